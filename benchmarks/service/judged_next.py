"""Documents that are judged next: those that ``judge_next`` names beside a random choice."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import LeanRanker
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import evaluate
from leanrank.service.judgments import gain_chances, judge_next

N_QUERIES, N_DOCUMENTS, N_FEATURES = 60, 25, 8
START, STEP, ROUNDS = 120, 40, 4


def judged_next(options: Options) -> Table:
    """NDCG@10 of models that learn from chosen labels; error of a difference of two models."""
    n_draws = 2 if options.quick else 20
    found = {who: _draws(who, n_draws) for who in ("judge-next", "random")}
    table = Table(f"Judged next: {N_QUERIES} queries × {N_DOCUMENTS}, {n_draws} draws")
    for at in range(ROUNDS + 1):
        named, drawn = found["judge-next"][0][:, at], found["random"][0][:, at]
        error = np.std(named - drawn) / np.sqrt(n_draws)
        table.add(
            what="NDCG@10 on new queries",
            judged=START + at * STEP,
            **{"judge-next": f"{named.mean():.4f}", "random": f"{drawn.mean():.4f}"},
            difference=f"{np.mean(named - drawn):+.4f} ± {error:.4f}",
        )
    errors = {who: found[who][1] for who in found}
    table.add(
        what="error of ΔDCG@10 between two models",
        judged=START + STEP,
        **{who: f"{np.sqrt(np.mean(each**2)):.4f}" for who, each in errors.items()},
        difference="",
    )
    table.note = (
        "Both begin with the same random judgments; then 40 documents a round are judged, named by "
        "the model so far or drawn. The last row: root mean square error of the estimated "
        "difference of two models, 40 judgments named with `against=` or drawn."
    )
    return table


def _draws(who: str, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
    curves, errors = [], []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        weight = rng.normal(size=N_FEATURES)
        pool, test = (_world(rng, weight) for _ in range(2))
        judged = rng.permutation(len(pool))[:START]
        luck = np.random.default_rng(seed + 1000)
        values = []
        for at in range(ROUNDS + 1):
            ranker = _learn(pool, judged)
            values.append(evaluate(test, ranker.predict(test.X)).means["ndcg@10"])
            if at == 0:
                errors.append(_difference_error(who, pool, judged, ranker, luck))
            open_ = np.setdiff1d(np.arange(len(pool)), judged)
            more = luck.permutation(open_)[:STEP]
            if who == "judge-next":
                more = judge_next(ranker, _hidden(pool, judged), n=STEP)[0]
            judged = np.concatenate([judged, more])
        curves.append(values)
    return np.array(curves), np.array(errors)


def _world(rng: np.random.Generator, weight: np.ndarray) -> RankingData:
    n = N_QUERIES * N_DOCUMENTS
    X = rng.normal(size=(n, N_FEATURES))
    worth = np.tanh(X) @ weight + 0.5 * np.linalg.norm(weight) * rng.normal(size=n)
    y = np.searchsorted(np.quantile(worth, (0.6, 0.85, 0.95)), worth).astype(float)
    return RankingData(X, y, np.repeat(np.arange(N_QUERIES), N_DOCUMENTS))


def _hidden(pool: RankingData, judged: np.ndarray) -> RankingData:
    y = np.full(len(pool), np.nan)
    y[judged] = pool.y[judged]
    return pool.replace(y=y)


def _learn(pool: RankingData, judged: np.ndarray) -> LeanRanker:
    rows = np.sort(judged)
    return LeanRanker(max_pairs=0, curves=None).fit(pool.X[rows], pool.y[rows], pool.qid[rows])


def _difference_error(
    who: str, pool: RankingData, judged: np.ndarray, ranker: LeanRanker, luck: np.random.Generator
) -> float:
    """Return by how much the mean difference of DCG@10 is misjudged after more judgments."""
    other = ranker.resized(max(1, ranker.n_features_ // 2))
    open_ = np.setdiff1d(np.arange(len(pool)), judged)
    more = luck.permutation(open_)[:STEP]
    if who == "judge-next":
        more = judge_next(ranker, _hidden(pool, judged), n=STEP, against=other)[0]
    ranks = [each.rank(pool.X, qid=pool.qid) for each in (ranker, other)]
    parts = [np.where(rank <= 10, 1.0 / np.log2(1.0 + rank), 0.0) for rank in ranks]
    bracket = parts[0] - parts[1]
    chances, gains = gain_chances(_hidden(pool, judged), ranker.predict(pool.X))
    known = np.concatenate([judged, more])
    guess, truth = chances @ gains, np.exp2(pool.y) - 1.0
    guess[known] = truth[known]
    return float(bracket @ (guess - truth)) / N_QUERIES
