"""A small study with every part, and one whose names try to get out of the page."""

import numpy as np
import pytest

from leanrank import make_ranking
from leanrank.rankers import DominationRanker, RankBoost
from leanrank.report import study_of_model, with_bands, with_path, with_stability
from leanrank.selection import Candidate

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "'); window.hacked = 3; ('",
    "datum['x'] + window.hacked = 4",
    "<!--<script>",
    "{{SCRIPT}}",
    "back\\slash\u2028line",
    "= constructor.constructor('window.hacked = 5')()",
]


def make_parts(names=None, n_features=8):
    data = make_ranking(
        60, (6, 14), n_features, n_informative=6, label_noise=1.0, correlation=0.3, random_state=4
    )
    ids = [f"d{at}" for at in range(len(data))]
    if names is not None:
        data = data.replace(feature_names=names)
        ids = [f"{names[at % len(names)]} {at}" for at in range(len(data))]
    data = data.replace(doc_ids=ids)
    return data.queries[:30], data.queries[30:45], data.queries[45:]


def make_study(names=None):
    train, vali, test = make_parts(names)
    model = DominationRanker(alpha=0.1).fit(train).to_model()
    history = [{"round": at, "ndcg@10": 1 - 0.5 / at} for at in range(1, 8)]
    study = study_of_model(model, train, vali, costs={"*": 2}, history=history)
    study = with_stability(with_path(study, n_alphas=12), n_subsamples=4)
    return study, test


@pytest.fixture(scope="session")
def study():
    return make_study()


@pytest.fixture(scope="session")
def hostile_study():
    return make_study(HOSTILE)


@pytest.fixture(scope="session")
def boosted_study():
    train, vali, _ = make_parts()
    ranker = RankBoost(n_rounds=25).fit(train)
    return study_of_model(ranker.to_model(), train, vali)


@pytest.fixture
def candidate():
    def made(model, n_queries=5, **fields):
        values = {"ndcg@10": np.linspace(0, 1, n_queries)}
        return Candidate(
            **{
                "name": "one", "algorithm": "none", "parameters": {}, "model": model,
                "values": values, "n_features": model.n_nonzero, "cost": 1.0, **fields,
            }
        )  # fmt: skip

    return made


@pytest.fixture(scope="session")
def curved_study():
    rng = np.random.default_rng(0)
    train, vali, _ = make_parts(["<b>bm25</b>" if k == 3 else f"f{k}" for k in range(1, 9)])

    def bent(data):
        X = data.X.copy()
        X[rng.random(len(X)) < 0.3, 2] = np.nan
        return data.replace(X=X)

    train, vali = bent(train), bent(vali)
    model = DominationRanker(alpha=0.1, curves=4).fit(train).to_model()
    return with_bands(with_path(study_of_model(model, train, vali), n_alphas=4), n_draws=3)
