"""Every format that is read."""

from __future__ import annotations

import gzip
import random
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.harness import target
from tests.fuzz.mutations import mutated


def _data() -> Any:
    from leanrank.data import make_ranking

    data = make_ranking(6, 4, n_features=5, random_state=2)
    return data.replace(feature_names=[f"f{at}" for at in range(5)])


@lru_cache(maxsize=8)
def written(suffix: str) -> bytes:
    """Return a small data set in the format of a suffix."""
    from leanrank.data import dump

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{suffix}")
        dump(_data(), path)
        return path.read_bytes()


def _maybe_packed(rng: random.Random, content: bytes, path: Path) -> Path:
    """Write a file as it is, or compressed, or compressed and damaged."""
    kind = rng.randrange(6)
    if kind > 1:
        path.write_bytes(content)
        return path
    packed = gzip.compress(content, mtime=0)
    path = path.with_name(path.name + ".gz")
    path.write_bytes(packed if kind else mutated(rng, packed))
    return path


def _check_data(data: Any) -> None:
    """What every data set that is accepted promises."""
    values = data.X.data if data.is_sparse else data.X
    assert not np.isinf(values).any(), "an infinite feature was accepted"
    assert np.isfinite(data.y).all() or np.isnan(data.y).any(), "an infinite label was accepted"
    assert data.query_ptr[0] == 0
    assert data.query_ptr[-1] == len(data) == len(data.y) == data.X.shape[0]
    assert (np.diff(data.query_ptr) > 0).all()


def _load(path: Path, **options: Any) -> None:
    from leanrank.data import load

    _check_data(load(path, **options))


def _warm(suffix: str) -> None:
    """Compile and import what reading a whole file needs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"in{suffix}")
        path.write_bytes(written(suffix))
        _load(path)


def _warm_letor() -> None:
    from tests.data.letor.test_fuzz import OPTIONS, SEEDS, agree

    for content in SEEDS:
        for options in OPTIONS:
            agree(content, options)


@target("letor", share=2.0, prepare=_warm_letor)
def letor(rng: random.Random, folder: Path) -> None:
    """LETOR text is read as the slow reading reads it, or refused at the same place."""
    from tests.data.letor.test_fuzz import OPTIONS, SEEDS, agree, mutate

    content = mutate(bytearray(rng.choice(SEEDS)), rng)
    if not agree(content, rng.choice(OPTIONS)):
        from leanrank.errors import InputError

        raise InputError("refused alike")


@target("letor-file", prepare=lambda: _warm(".txt"))
def letor_file(rng: random.Random, folder: Path) -> None:
    """LETOR text as a file, compressed or not, at once and as a stream."""
    from leanrank.data import open_stream

    content = mutated(rng, written(".txt"))
    path = _maybe_packed(rng, content, folder / "in.txt")
    if rng.random() < 0.5:
        _load(path)
    else:
        for chunk in open_stream(path, chunk_bytes=200):
            _check_data(chunk)


@target("csv", share=2.0, prepare=lambda: _warm(".csv"))
def csv(rng: random.Random, folder: Path) -> None:
    """CSV, compressed or not."""
    _load(_maybe_packed(rng, mutated(rng, written(".csv")), folder / "in.csv"))


@target("parquet", share=2.0, prepare=lambda: _warm(".parquet"))
def parquet(rng: random.Random, folder: Path) -> None:
    """Parquet files."""
    path = folder / "in.parquet"
    path.write_bytes(mutated(rng, written(".parquet")))
    _load(path)


@target("arrow", share=2.0, prepare=lambda: _warm(".arrow"))
def arrow(rng: random.Random, folder: Path) -> None:
    """Arrow files."""
    path = folder / "in.arrow"
    path.write_bytes(mutated(rng, written(".arrow")))
    _load(path)


@lru_cache(maxsize=1)
def _stores() -> list[bytes]:
    """Dense and sparse data with everything that a store can hold, and some with text for ids."""
    from scipy.sparse import csr_array

    from leanrank.data import write_store

    data = _data()
    more = {"sample_weight": np.linspace(0.5, 2.0, len(data)), "offset": np.zeros(len(data))}
    more |= {"doc_ids": [f"d{at}" for at in range(len(data))], "query_weight": np.ones(6)}
    kinds = [data.replace(**more), data.replace(X=csr_array(np.round(data.X)))]
    kinds.append(kinds[1].with_fields(query_ids=np.array([f"q{at}" for at in range(6)])))
    with tempfile.TemporaryDirectory() as folder:
        for at, each in enumerate(kinds):
            write_store(each, f"{folder}/{at}.arrow")
            _use_store(Path(f"{folder}/{at}.arrow"))
        return [Path(folder, f"{at}.arrow").read_bytes() for at in range(len(kinds))]


@target("store", share=2.0, prepare=_stores)
def store(rng: random.Random, folder: Path) -> None:
    """Arrow files that are mapped: what they hold is checked before a kernel sees it."""
    path = folder / "in.arrow"
    path.write_bytes(mutated(rng, rng.choice(_stores())))
    _use_store(path, fit=rng.random() < 0.2)


def _use_store(path: Path, *, fit: bool = True) -> None:
    from leanrank.data import RankingData, load
    from leanrank.rankers import RankRLS

    data = RankingData.open(path)
    same = load(path)
    assert data.X.shape == same.X.shape
    assert np.array_equal(data.y, same.y, equal_nan=True)
    assert np.array_equal(data.query_ptr, same.query_ptr)
    if data.doc_ids is not None:
        assert len(data.doc_ids.tolist()) == len(data)
    with np.errstate(all="ignore"):
        (data.X @ np.ones(data.X.shape[1])).sum()
    if fit and data.n_features < 1000:
        assert np.isfinite(RankRLS().fit(data).coef_).all()


RUN = b"".join(b"q%d Q0 d%d %d %.3f tag\n" % (q, d, d, 9 - d) for q in range(4) for d in range(4))
QRELS = b"".join(b"q%d 0 d%d %d\n" % (q, d, d % 3) for q in range(4) for d in range(4))
SCORES = b"".join(b"%.4f\n" % (0.37 * at - 1) for at in range(12))
CLICKS = b"session,query,document,position,clicked\n" + b"".join(
    b"s%d,q%d,d%d,%d,%d\n" % (s, s % 2, p, p, (s + p) % 3 == 0)
    for s in range(4)
    for p in range(1, 4)
)


@target("trec-run")
def trec_run(rng: random.Random, folder: Path) -> None:
    """TREC runs."""
    from leanrank.data.trec import load_run

    run = load_run(_maybe_packed(rng, mutated(rng, RUN), folder / "in.run"))
    assert np.isfinite(run.score).all()
    assert len(run.score) == len(run.qid) == len(run.doc_id)


@target("trec-qrels")
def trec_qrels(rng: random.Random, folder: Path) -> None:
    """TREC judgments."""
    from leanrank.data.trec import load_qrels

    qrels = load_qrels(_maybe_packed(rng, mutated(rng, QRELS), folder / "in.qrels"))
    assert np.isfinite(qrels.label).all()


@target("scores")
def scores(rng: random.Random, folder: Path) -> None:
    """Score files."""
    from leanrank.cli.datafiles import read_scores

    content = mutated(rng, SCORES)
    read = read_scores(str(_maybe_packed(rng, content, folder / "in.txt")), 12, "the data")
    assert np.isfinite(read).all()


LOGGED = (
    CLICKS.replace(b"clicked\n", b"clicked,propensity\n")
    .replace(b"0\n", b"0,0.5\n")
    .replace(b"1\n", b"1,0.25\n")
)


@target("clicks", prepare=lambda: _clicks(CLICKS, Path(tempfile.mkdtemp())))
def clicks(rng: random.Random, folder: Path) -> None:
    """Click logs with the features of their documents."""
    _clicks(mutated(rng, CLICKS), folder)


def _clicks(content: bytes, folder: Path) -> None:
    from leanrank.data import click_preferences

    click_preferences(_read_clicks(content, folder))


def _read_clicks(content: bytes, folder: Path, **options: Any) -> Any:
    from leanrank.data import read_clicks

    (folder / "in.csv").write_bytes(content)
    pairs = [(query, document) for query in ("q0", "q1") for document in ("d1", "d2", "d3")]
    features = {
        "query": [query for query, _ in pairs],
        "document": [document for _, document in pairs],
        "bm25": [0.5 * at for at in range(6)],
    }
    return read_clicks(folder / "in.csv", features, **options)


@target("policies", prepare=lambda: _policies(LOGGED, Path(tempfile.mkdtemp())))
def policies(rng: random.Random, folder: Path) -> None:
    """Click logs with propensities: what a new ranker is worth, and an online learner's step."""
    _policies(mutated(rng, LOGGED), folder)


def _policies(content: bytes, folder: Path) -> None:
    from leanrank.online import OnlineRanker, evaluate_policy

    log = _read_clicks(content, folder, propensity="propensity", keep_unshown=True)
    assert (log.propensity > 0).all(), "a propensity of 0 was accepted"
    assert (log.propensity <= 1).all(), "a propensity above 1 was accepted"
    value = evaluate_policy(log, -log.data.X[:, 0])
    for each in (value.logged, *value.estimates.values()):
        assert np.isfinite([each.value, each.low, each.high]).all(), f"not finite: {value}"
    ranker = OnlineRanker("ips", n_features=1)
    ranker.learn_from_log(log)
    assert np.isfinite(ranker.coef_).all()


@target("engine-logs", share=2.0)
def engine_logs(rng: random.Random, folder: Path) -> None:
    """Feature logs, judgments and click logs of engines."""
    from tests.data.logs.test_mutations import CASES, UBI_EVENTS, UBI_QUERIES, mutate

    name = rng.choice(sorted(CASES))
    content, read = CASES[name]
    place = folder / "in"
    place.mkdir()
    pair = {"ubi_queries.ndjson": UBI_QUERIES, "ubi_events.ndjson": UBI_EVENTS}
    for other, whole in pair.items() if name in pair else ():
        (place / other).write_bytes(whole)
    damaged = mutated(rng, content) if rng.random() < 0.5 else mutate(content, rng)
    (place / name).write_bytes(damaged)
    read(place if name in pair else place / name)


QUERY_SIZES = b"4\n4\n4\n4\n4\n4\n"
NAMES = b"feature,name,shift\nf1,bm25,0\nf2,age,1.5\nf5,clicks,\n"
ENGINE_SCORES = {
    ".csv": b"qid,doc_id,score\n" + b"".join(b"%d,d%d,%.2f\n" % (q, q, q) for q in range(6)),
    ".ndjson": b"".join(
        b'{"query": "%d", "_id": "d%d", "_score": 0.5}\n' % (q, q) for q in range(6)
    ),
}


@target("small-files", prepare=lambda: _warm(".txt"))
def small_files(rng: random.Random, folder: Path) -> None:
    """Sizes of queries beside a file, names of features in an engine, scores that it logged."""
    kind = rng.randrange(3)
    if kind == 0:
        (folder / "in.txt").write_bytes(_without_queries())
        suffix = rng.choice((".query", ".group"))
        (folder / f"in.txt{suffix}").write_bytes(mutated(rng, QUERY_SIZES))
        _load(folder / "in.txt")
    elif kind == 1:
        from leanrank.cli.export import read_names

        (folder / "in.csv").write_bytes(mutated(rng, NAMES))
        named = read_names(str(folder / "in.csv"))
        assert all(named["names"].values())
        assert np.isfinite(list(named["shifts"].values())).all()
    else:
        from leanrank.model.verify.logged import read_logged

        suffix = rng.choice(sorted(ENGINE_SCORES))
        path = folder / f"in{suffix}"
        path.write_bytes(mutated(rng, ENGINE_SCORES[suffix]))
        logged = read_logged(path, _identified())
        assert not np.isinf(logged.scores).any()


@lru_cache(maxsize=1)
def _without_queries() -> bytes:
    lines = written(".txt").split(b"\n")
    return b"\n".join(b" ".join(w for w in line.split() if b"qid:" not in w) for line in lines)


@lru_cache(maxsize=1)
def _identified() -> Any:
    data = _data()
    return data.replace(doc_ids=[f"d{at // 4}" if at % 4 == 0 else f"x{at}" for at in range(24)])


@target("table-streams", prepare=lambda: _warm(".parquet"))
def table_streams(rng: random.Random, folder: Path) -> None:
    """Parquet files chunk by chunk."""
    from leanrank.data import open_stream

    (folder / "in.parquet").write_bytes(mutated(rng, written(".parquet")))
    for chunk in open_stream(folder / "in.parquet"):
        _check_data(chunk)
