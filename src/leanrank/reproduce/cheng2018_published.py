"""What Cheng et al. 2018 printed: Tables 2, 3 and 4. The curves of the figures were not printed."""

from __future__ import annotations

SETS = ("HP2004", "NP2004", "TD2004", "OHSUMED")

TABLE2 = {
    "HP2004": {
        "SparseRank": ("0.6799", "0.7687", "0.8098", "0.8135", "0.7435"),
        "FenchelRank": ("0.6800", "0.7880", "0.8123", "0.8239", "0.7475"),
        "MinBatSRank": ("0.7200", "0.8213", "0.8321", "0.8474", "0.7795"),
    },
    "NP2004": {
        "SparseRank": ("0.6133", "0.7734", "0.7972", "0.8180", "0.6837"),
        "FenchelRank": ("0.5600", "0.7752", "0.7905", "0.8148", "0.7144"),
        "MinBatSRank": ("0.5867", "0.7855", "0.8103", "0.8282", "0.7059"),
    },
    "TD2004": {
        "SparseRank": ("0.3867", "0.3523", "0.3263", "0.3151", "0.2362"),
        "FenchelRank": ("0.3866", "0.3763", "0.3524", "0.3214", "0.2241"),
        "MinBatSRank": ("0.5066", "0.4253", "0.3583", "0.3291", "0.2139"),
    },
    "OHSUMED": {
        "SparseRank": ("0.5671", "0.5000", "0.4764", "0.4563", "0.4489"),
        "FenchelRank": ("0.5453", "0.5131", "0.4879", "0.4608", "0.4480"),
        "MinBatSRank": ("0.5704", "0.5030", "0.4816", "0.4663", "0.4511"),
    },
}
"""By set and system: NDCG@1, 3, 5 and 10, and MAP."""

TABLE3 = {
    "FenchelRank": ("0.2031", "0.2625", "0.4875", "0.2844"),
    "SparseRank": ("0.3906", "0.6406", "0.5875", "0.2978"),
    "MinBatSRank": ("0.3469", "0.3781", "0.4625", "0.2311"),
}
"""By system: the share of the features in use, on each of ``SETS``."""

TABLE4 = {
    "FenchelRank": ("26.97", "48.45", "1585.03", "254.97"),
    "SparseRank": ("15.33", "8.61", "33.02", "18.89"),
    "MinBatSRank": ("0.68", "0.08", "0.53", "0.04"),
}
"""By system: seconds of training on each of ``SETS``, on a desktop computer of 2014."""
