"""The conventions by hand, and their table in the documentation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.metrics import CONVENTIONS, Convention, evaluate
from leanrank.metrics.conventions import find_convention

DOCS = Path(__file__).parents[2] / "docs" / "measures.md"


def test_a_letor_query_worked_by_hand():
    # ranked labels 0 2 1: DCG = 0·1 + 3·1 + 1/log2(3); ideal 2 1 0: 3·1 + 1·1
    y, scores = [1, 2, 0], [0.1, 0.5, 0.9]
    found = evaluate(
        y, scores, measures="ndcg@1,ndcg@2,ndcg@3,ndcg@4,p@3,p@4,map,mean_ndcg", convention="letor4"
    )
    at_3 = (3 + 1 / np.log2(3)) / 4
    assert found["ndcg@1"] == 0
    assert found["ndcg@2"] == 3 / 4
    assert found["ndcg@3"] == pytest.approx(at_3, rel=1e-15)
    assert found["ndcg@4"] == 0  # the list is shorter
    assert found["mean_ndcg"] == pytest.approx((0 + 3 / 4 + at_3) / 3, rel=1e-15)
    assert found["p@3"] == 2 / 3
    assert found["p@4"] == 2 / 4  # the missing position is irrelevant
    assert found["map"] == pytest.approx((1 / 2 + 2 / 3) / 2, rel=1e-15)
    assert evaluate(y, scores, measures="p@4", convention="letor3")["p@4"] == 0
    mslr = evaluate(y, scores, measures="p@3,map", convention="mslr")
    assert mslr.means == {"p@3": 1 / 3, "map": 1 / 2}


def test_a_textbook_query_worked_by_hand():
    found = evaluate([1, 2, 0], [0.1, 0.5, 0.9], measures="ndcg@10", convention="lightgbm")
    dcg, ideal = 3 / np.log2(3) + 1 / 2, 3 + 1 / np.log2(3)
    assert found["ndcg@10"] == pytest.approx(dcg / ideal, rel=1e-15)
    found = evaluate([1, 2, 0], [0.1, 0.5, 0.9], measures="ndcg@10", ties="average", gain="linear")
    dcg, ideal = 2 / np.log2(3) + 1 / 2, 2 + 1 / np.log2(3)
    assert found["ndcg@10"] == pytest.approx(dcg / ideal, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "mean", "left_out"),
    [
        ("letor3", 0.5, 0),
        ("letor4", 0.5, 0),
        ("trec", 0.5, 0),
        ("lightgbm", 1, 0),
        ("standard", 1, 1),
    ],
)
def test_queries_without_relevant_documents(name, mean, left_out):
    y, scores, qid = [1, 0, 0, 0], [2, 1, 2, 1], [0, 0, 1, 1]
    found = evaluate(
        y, scores, qid, measures="ndcg@2,map", convention=name, doc_ids=["a", "b", "a", "b"]
    )
    assert found.means == {"ndcg@2": mean, "map": mean}
    assert found.undefined == {"ndcg@2": left_out, "map": left_out}


def test_ties_by_document_id_descending_on_32_bit_scores():
    choices = {"measures": "mrr", "convention": "trec"}
    assert evaluate([1, 0], [1.0, 1.0], doc_ids=["d2", "d10"], **choices)["mrr"] == 1
    assert evaluate([1, 0], [1.0, 1.0], doc_ids=["d1", "d10"], **choices)["mrr"] == 0.5
    assert evaluate([1, 0], [1.0 + 1e-9, 1.0], doc_ids=["a", "b"], **choices)["mrr"] == 0.5
    assert evaluate([1, 0], [1.0 + 1e-9, 1.0], doc_ids=["a", "b"], measures="mrr")["mrr"] == 1


def test_gains_by_label():
    found = evaluate([0, 1, 2], [3, 2, 1], measures="dcg@3", gain="linear", discount="letor")
    assert found["dcg@3"] == pytest.approx(1 + 2 / np.log2(3))
    with pytest.raises(InputError, match="out of range"):
        evaluate([0, 5000], [1, 2], measures="dcg")
    assert evaluate([0, 5000], [1, 2], measures="ndcg", gain="linear")["ndcg"] == 1
    assert evaluate([0, 5000], [1, 2], measures="err")["err"] == 1


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        ("gain", "cubic"),
        ("gain", [0, 1]),
        ("gain", 3),
        ("discount", "none"),
        ("ties", "random"),
        ("short_lists", "long"),
        ("no_relevant", 2),
        ("no_relevant", True),
        ("rel", "high"),
        ("rel", float("nan")),
        ("ap_cut", "none"),
    ],
)
def test_unknown_choices_are_refused(choice, value):
    with pytest.raises(InputError, match=choice):
        Convention("mine", **{choice: value})


def test_own_conventions_and_unknown_names():
    mine = Convention("mine", gain="linear", ties="pessimistic")
    found = evaluate([1, 0], [1, 1], measures="mrr", convention=mine)
    assert (found.convention, found["mrr"]) == ("mine", 0.5)
    assert find_convention(mine) is mine
    with pytest.raises(InputError, match="did you mean 'letor4'"):
        evaluate([1, 0], [1, 1], convention="letor5")


WORDS = {
    "exp2": "2^rel − 1",
    "linear": "rel",
    "log2": "1/log2(1 + rank)",
    "letor": "1, 1, then 1/log2(rank)",
    "as_is": "missing positions irrelevant",
    "ndcg_zero": "NDCG@k counts as 0, P@k as it is",
    "zero": "NDCG@k and P@k count as 0",
    "0": "0",
    "1": "1 (NDCG, AP, R@k)",
    "skip": "left out of the mean, counted",
    "input": "input order",
    "average": "averaged over orders",
    "pessimistic": "worst first",
    "docid": "document id descending",
    "all": "all relevant",
    "reachable": "at most k",
}


def markdown_table():
    columns = [
        "convention", "gain", "discount", "relevant", "k beyond the list",
        "query without relevant documents", "ties", "AP@k divides by", "source",
    ]  # fmt: skip
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    for c in CONVENTIONS.values():
        cells = [
            f"`{c.name}`",
            WORDS[str(c.gain)],
            WORDS[c.discount],
            f"≥ {c.rel:g}",
            WORDS[c.short_lists],
            WORDS[str(c.no_relevant)],
            WORDS[c.ties],
            WORDS[c.ap_cut],
            c.source,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def test_the_documentation_shows_this_table():
    assert markdown_table() in DOCS.read_text(encoding="utf-8")


def test_the_table_has_every_convention():
    assert list(CONVENTIONS) == ["standard", "letor3", "letor4", "mslr", "trec", "lightgbm"]
    lines = markdown_table().splitlines()
    assert len(lines) == 2 + len(CONVENTIONS)
    assert len({line.count("|") for line in lines}) == 1
