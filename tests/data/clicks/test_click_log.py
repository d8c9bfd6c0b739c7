"""Click logs: joining, preferences, and what is said of logs that cannot be right."""

import re
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.data import (
    RankingData,
    click_preferences,
    click_weights,
    estimate_propensities,
    from_frame,
    make_clicks,
    make_ranking,
    read_clicks,
)
from leanrank.errors import FileError, InputError

FEATURES = {
    "query": ["q", "q", "q", "r", "r"],
    "document": ["a", "b", "c", "a", "d"],
    "f": [1.0, 2.0, 3.0, 4.0, 5.0],
}


def log(*rows):
    """Rows are (session, query, document, position, clicked)."""
    names = ("session", "query", "document", "position", "clicked")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


GOOD = log(
    (1, "q", "a", 1, 0),
    (1, "q", "b", 2, 1),
    (1, "q", "c", 3, 0),
    (2, "r", "d", 1, 1),
    (2, "r", "a", 2, 1),
    (3, "q", "b", 1, 0),
    (3, "q", "a", 2, 0),
)


def named_edges(clicks):
    winner, loser, weight = click_preferences(clicks)
    ids, qid = clicks.data.doc_ids, clicks.qid
    assert np.array_equal(qid[winner], qid[loser])
    return {
        (str(qid[i]), str(ids[i]), str(ids[j])): w
        for i, j, w in zip(winner, loser, weight, strict=True)
    }


def brute_force(table):
    edges = {}
    lists = {}
    for s, q, d, k, c in zip(*table.values(), strict=True):
        lists.setdefault((s, q), []).append((k, str(d), bool(c)))
    for (_, q), shown in lists.items():
        shown.sort()
        for at, (_, d, c) in enumerate(shown):
            losers = []
            if c:
                losers += [e for _, e, hit in shown[:at] if not hit]
                losers += [e for _, e, hit in shown[at + 1 : at + 2] if not hit]
            for e in losers:
                edges[str(q), d, e] = edges.get((str(q), d, e), 0) + 1
    return edges


def test_a_small_log():
    clicks = read_clicks(GOOD, FEATURES)
    assert (clicks.n_lists, clicks.n_without_clicks) == (3, 1)
    assert clicks.lists_per_query.tolist() == [2, 1]
    assert named_edges(clicks) == {("q", "b", "a"): 1, ("q", "b", "c"): 1}


def test_the_features_follow_the_documents_and_unshown_ones_are_dropped():
    clicks = read_clicks(GOOD, {**FEATURES, "f": [10.0, 20, 30, 40, 50]})
    keys = zip(map(str, clicks.qid), map(str, clicks.data.doc_ids), strict=True)
    shown = dict(zip(keys, clicks.X[:, 0], strict=True))
    assert shown == {("q", "a"): 10, ("q", "b"): 20, ("q", "c"): 30, ("r", "a"): 40, ("r", "d"): 50}
    first = {name: column[:3] for name, column in GOOD.items()}
    few = read_clicks(first, FEATURES)
    assert few.data.doc_ids.tolist() == ["a", "b", "c"]
    assert named_edges(few) == {("q", "b", "a"): 1, ("q", "b", "c"): 1}


@settings(max_examples=60)
@given(st.data())
def test_preferences_equal_brute_force(data):
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    rows = []
    for session in range(rng.integers(1, 25)):
        for q in rng.permutation(3)[: rng.integers(1, 3)]:
            length = rng.integers(1, 7)
            places = np.sort(rng.permutation(9)[:length]) + 1  # with gaps
            for d, k in zip(rng.permutation(8)[:length], places, strict=True):
                rows.append((f"s{session}", int(q), f"d{d}", int(k), int(rng.random() < 0.4)))
    rng.shuffle(rows)
    table = log(*[tuple(row) for row in rows])
    features = {
        "query": np.repeat(np.arange(3), 8)[::-1],
        "document": np.tile([f"d{d}" for d in range(8)], 3),
        "f": rng.normal(size=24),
    }
    clicks = read_clicks(table, features)
    expected = brute_force(table)
    if expected:
        assert named_edges(clicks) == expected
    else:
        with pytest.raises(InputError, match="express no preference"):
            click_preferences(clicks)
    silent = {(s, q) for s, q in zip(table["session"], table["query"], strict=True)}
    silent -= {(s, q) for s, q, _, _, c in zip(*table.values(), strict=True) if c}
    assert clicks.n_without_clicks == len(silent)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "csv", "parquet", "feather"])
def test_every_kind_of_table(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    tables = []
    for name, columns in (("log", GOOD), ("features", FEATURES)):
        table = pa.table(columns)
        if kind == "pandas":
            table = pytest.importorskip("pandas").DataFrame(columns)
        elif kind == "polars":
            table = pytest.importorskip("polars").DataFrame(columns)
        elif kind == "csv":
            from pyarrow import csv

            csv.write_csv(table, tmp_path / f"{name}.csv")
        elif kind == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, tmp_path / f"{name}.parquet", row_group_size=2)
        elif kind == "feather":
            from pyarrow import feather

            feather.write_feather(table, str(tmp_path / f"{name}.feather"))
        in_file = kind in ("csv", "parquet", "feather")
        tables.append(tmp_path / f"{name}.{kind}" if in_file else table)
    assert named_edges(read_clicks(*tables)) == named_edges(read_clicks(GOOD, FEATURES))


def test_other_column_names_letor_features_and_numbers_as_text(tmp_path):
    file = tmp_path / "features.txt"
    file.write_text("0 qid:7 1:0.5 #docid = 11\n0 qid:7 1:0.25 #docid = 12\n")
    table = {"s": [1, 1], "q": ["7", "7"], "d": [11, 12], "rank": [1, 2], "c": [False, True]}
    names = {"session": "s", "query": "q", "document": "d", "position": "rank", "clicked": "c"}
    clicks = read_clicks(table, file, **names)
    assert named_edges(clicks) == {("7", "12", "11"): 1}


def test_truth_values_in_text(tmp_path):
    file = tmp_path / "log.csv"
    words = {**GOOD, "clicked": [str(bool(c)).lower() for c in GOOD["clicked"]]}
    rows = zip(*words.values(), strict=True)
    file.write_text("\n".join([",".join(GOOD), *(",".join(map(str, row)) for row in rows)]))
    assert named_edges(read_clicks(file, FEATURES)) == named_edges(read_clicks(GOOD, FEATURES))
    with pytest.raises(
        InputError,
        match=r"no column 'url': rename the right one, .* document=",
    ):
        read_clicks(file, FEATURES, document="url")


def test_categories_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GOOD).astype({"query": "category", "document": "category"})
    assert named_edges(read_clicks(frame, FEATURES)) == named_edges(read_clicks(GOOD, FEATURES))


def changed(row, name, value):
    table = {key: list(column) for key, column in GOOD.items()}
    table[name][row] = value
    return table


@pytest.mark.parametrize(
    ("table", "features", "words"),
    [
        (changed(1, "position", 1), FEATURES, "position 1 twice in session 1 .*rows 0 and 1"),
        (changed(1, "document", "a"), FEATURES, "'a' twice in session 1 .*rows 0 and 1"),
        (changed(1, "position", 0), FEATURES, "position 0 in row 1"),
        (changed(1, "position", 1.5), FEATURES, "position 1.5 in row 1"),
        (changed(1, "position", float("nan")), FEATURES, "position nan in row 1"),
        (changed(4, "clicked", 2), FEATURES, "clicked 2 in row 4"),
        (changed(4, "clicked", "yes"), FEATURES, "each of one type"),
        (changed(3, "document", "x"), FEATURES, "document 'x' for query 'r' in row 3"),
        (changed(3, "document", "b"), FEATURES, "document 'b' for query 'r' in row 3"),
        (changed(3, "query", "z"), FEATURES, "for query 'z' in row 3"),
        ({k: v for k, v in GOOD.items() if k != "clicked"}, FEATURES, "no column 'clicked'"),
        ({**GOOD, "clicked": [1]}, FEATURES, "columns of one length"),
        ({k: [] for k in GOOD}, FEATURES, "no rows"),
        (changed(1, "session", None), FEATURES, "'session' of .* has no value in row 1"),
        (GOOD, {k: [*v, v[0]] for k, v in FEATURES.items()}, "document a of query q twice"),
        (GOOD, {k: v for k, v in FEATURES.items() if k != "f"}, "no features beside"),
        (GOOD, RankingData([[1.0]]), "no document ids"),
        (3, FEATURES, "not a table"),
    ],
)
def test_what_is_wrong_is_said(table, features, words):
    with pytest.raises(InputError, match=words):
        read_clicks(table, features)


def test_nulls_of_arrow_are_named():
    pa = pytest.importorskip("pyarrow")
    for name in ("session", "position", "clicked"):
        with pytest.raises(InputError, match=f"'{name}' of .* has no value in row 2"):
            read_clicks(pa.table(changed(2, name, None)), FEATURES)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_clicks(tmp_path / "none.csv", FEATURES)
    (tmp_path / "log.docx").write_text("x")
    with pytest.raises(InputError, match="suffix names no known format"):
        read_clicks(tmp_path / "log.docx", FEATURES)


def test_ids_are_the_same_text_whatever_they_are():
    from leanrank.data.clicks.columns import identifiers

    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    whole = rng.integers(-(10**12), 10**12, size=4000)[rng.integers(0, 3000, size=9000)]
    for column in (whole, whole % 977, whole.astype(str), whole.astype(object)):
        for array in (pa.array(column), pa.array(column).dictionary_encode()):
            ids = identifiers(pa.chunked_array([array]), "document", "the log")
            assert ids.to_pylist() == list(map(str, column.tolist()))


def test_made_up_logs_are_the_same_for_the_same_seed():
    data = make_ranking(n_queries=15, docs_per_query=(1, 12), random_state=0)
    one, same, other = (make_clicks(data, 300, swaps="adjacent", random_state=s) for s in (1, 1, 2))
    assert np.array_equal(one.clicked, same.clicked)
    assert np.array_equal(one.row, same.row)
    assert not np.array_equal(one.clicked[:200], other.clicked[:200])
    for at in range(one.n_lists):
        mine = slice(one.list_ptr[at], one.list_ptr[at + 1])
        assert one.position[mine].tolist() == list(range(1, len(one.row[mine]) + 1))
        assert len(set(one.row[mine].tolist())) == len(one.row[mine]) <= 10
        assert len(set(one.qid[one.row[mine]].tolist())) == 1


def test_preferences_go_straight_into_a_ranker():
    from leanrank.rankers import RankSVM

    truth = make_ranking(
        n_queries=60, docs_per_query=8, n_levels=2, label_noise=0.2, random_state=1
    )
    clicks = make_clicks(truth, 6000, noise=0.05, swaps="shuffle", random_state=2)
    edges = click_preferences(clicks)
    ranker = RankSVM(alpha=0.01).fit(clicks.X, preferences=edges, qid=clicks.qid)
    judged = RankSVM(alpha=0.01).fit(truth.X, truth.y, qid=truth.qid)
    best = judged.score(truth.X, truth.y, qid=truth.qid)
    assert ranker.score(truth.X, truth.y, qid=truth.qid) > best - 0.05
    times = edges.weight.astype(int)  # an edge of weight 2 is the edge twice
    repeated = (np.repeat(edges.winner, times), np.repeat(edges.loser, times))
    same = RankSVM(alpha=0.01).fit(clicks.X, preferences=repeated, qid=clicks.qid)
    assert np.allclose(same.coef_, ranker.coef_, rtol=1e-3, atol=1e-4)


def test_a_click_log_is_fitted_as_it_is():
    from leanrank.rankers import DominationRanker, RankSVM

    truth = make_ranking(n_queries=30, docs_per_query=8, random_state=1)
    truth = truth.replace(feature_names=[f"n{j}" for j in range(truth.n_features)])
    clicks = make_clicks(truth, 2000, random_state=2)
    weights = click_weights(clicks, 1 / np.arange(1, 9))
    by_parts = DominationRanker(alpha=0.01).fit(
        clicks.X, weights.y, qid=clicks.qid, gain_weight=weights.gain_weight
    )
    whole = DominationRanker(alpha=0.01).fit(clicks, weights)
    assert np.array_equal(whole.coef_, by_parts.coef_)
    assert tuple(whole.to_model().feature_names) == truth.feature_names
    popular = {"query_weight": clicks.lists_per_query}
    by_parts = DominationRanker(alpha=0.01).fit(
        clicks.X, weights.y, qid=clicks.qid, gain_weight=weights.gain_weight, **popular
    )
    assert np.array_equal(
        DominationRanker(alpha=0.01).fit(clicks, weights, **popular).coef_, by_parts.coef_
    )
    edges = click_preferences(clicks)
    assert RankSVM().fit(clicks, preferences=edges).to_model().feature_names is not None
    with pytest.raises(InputError, match="propensit"):  # no document has moved
        DominationRanker().fit(clicks)
    moved = make_clicks(truth, 20_000, swaps="adjacent", random_state=2)
    estimated = click_weights(moved, estimate_propensities(moved))
    by_log, by_hand = (DominationRanker(alpha=0.01).fit(moved, y) for y in (None, estimated))
    assert np.array_equal(by_log.coef_, by_hand.coef_)
    with pytest.raises(InputError, match="gain_weight"):
        DominationRanker().fit(moved, gain_weight=estimated.gain_weight)
    with pytest.raises(InputError, match="gain_weight"):
        DominationRanker().fit(clicks, weights, gain_weight=weights.gain_weight)
    with pytest.raises(InputError, match="qid"):
        DominationRanker().fit(clicks, weights, qid=clicks.qid)


def test_reserved_names_are_no_features_of_clicks():
    pd = pytest.importorskip("pandas")
    table = {**FEATURES, "weight": [-1.0] * 5, "label": [1] * 5, "qid": list("abcde")}
    for features in (table, pd.DataFrame(table)):
        assert read_clicks(GOOD, features).data.feature_names == ("f",)


def _proposed(call):
    """Return the arguments that the message of a failing call proposes, for that function."""
    with pytest.raises(InputError) as error:
        call()
    if "from_frame" in str(error.value):
        return []
    return re.findall(r"(\w+)=(?:…|None|\W|$)", str(error.value))


def test_messages_propose_arguments_that_the_function_has():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from leanrank import tune

    bad = pd.DataFrame({**FEATURES, "f": list("vwxyz")})
    unnamed = bad.rename(columns={"query": "q", "document": "d"})
    for features in (bad, unnamed):
        for name in _proposed(lambda features=features: read_clicks(GOOD, features)):
            assert name in signature(read_clicks).parameters
    assert "document" in _proposed(lambda: read_clicks(GOOD, bad.drop(columns="document")))
    for frame in (bad, bad.rename(columns={"query": "qid"})):
        for name in _proposed(lambda frame=frame: from_frame(frame)):
            assert name in signature(from_frame).parameters
        for name in _proposed(lambda frame=frame: tune(frame)):
            assert name in signature(tune).parameters
