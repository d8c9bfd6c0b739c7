"""What a ranking data set is, and how it is read, written, scaled, fetched and made up."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.data.letor import dump_letor as dump_letor
    from leanrank.data.letor import load_letor as load_letor
    from leanrank.data.ranking_data import RankingData as RankingData
    from leanrank.data.sample import load_sample as load_sample
    from leanrank.data.sample import sample_weights as sample_weights
    from leanrank.data.synthetic import make_ranking as make_ranking
    from leanrank.data.synthetic import stream_ranking as stream_ranking

__getattr__, __dir__, __all__ = attach(
    "leanrank.data",
    {
        "RankingData": "leanrank.data.ranking_data",
        "dump_letor": "leanrank.data.letor",
        "load_letor": "leanrank.data.letor",
        "load_sample": "leanrank.data.sample",
        "make_ranking": "leanrank.data.synthetic",
        "sample_weights": "leanrank.data.sample",
        "stream_ranking": "leanrank.data.synthetic",
    },
)
