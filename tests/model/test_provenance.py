import json

import numpy as np
from scipy.sparse import csr_array

from leanrank.data import RankingData
from leanrank.model import Model, fingerprint, make_provenance

X = np.arange(12.0).reshape(6, 2)
Y = [0, 1, 2, 0, 1, 0]
QID = [1, 1, 1, 2, 2, 2]


def test_the_fingerprint_is_fixed_for_ever():
    assert fingerprint(RankingData(X, Y, QID)) == (
        "sha256:28b67681f85262f3a4467062e63557420ec657045b3adc11d9b8d419f32a42ab"
    )


def test_what_counts():
    data = RankingData(X, Y, QID)
    known = fingerprint(data)
    others = [
        RankingData(X + 1e-9, Y, QID),
        RankingData(X, [0, 1, 2, 0, 1, 1], QID),
        RankingData(X, Y, [1, 1, 2, 2, 2, 2]),
        RankingData(X.astype(np.float32), Y, QID),
        RankingData(csr_array(X), Y, QID),
        RankingData(X.reshape(4, 3)[:, :2], Y[:4], QID[:4]),
        RankingData(X, Y, QID, sample_weight=np.ones(6)),
        RankingData(X, Y, QID, offset=np.ones(6)),
        RankingData(X, Y, QID, query_weight=[1, 1]),
    ]
    prints = {fingerprint(other) for other in others}
    assert len(prints) == len(others)
    assert known not in prints


def test_what_does_not_count():
    known = fingerprint(RankingData(X, Y, QID))
    assert fingerprint(RankingData(X, Y, ["a"] * 3 + ["b"] * 3)) == known
    assert fingerprint(RankingData(X, Y, QID, feature_names=["a", "b"])) == known
    assert fingerprint(RankingData(X, Y, QID, doc_ids=list("abcdef"))) == known
    assert fingerprint(RankingData(np.asfortranarray(X), Y, QID)) == known
    mixed = [0, 3, 1, 4, 2, 5]
    assert fingerprint(RankingData(X[mixed], np.array(Y)[mixed], np.array(QID)[mixed])) == known


def test_index_width_does_not_count():
    narrow = csr_array(X)
    wide = csr_array((narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)))
    assert fingerprint(RankingData(narrow, Y, QID)) == fingerprint(RankingData(wide, Y, QID))


def test_empty_data():
    assert fingerprint(RankingData(np.zeros((0, 3)))) != fingerprint(RankingData(np.zeros((0, 4))))


def test_any_parameter_can_be_written_down():
    class Odd:
        pass

    made = make_provenance(
        algorithm="X",
        parameters={
            "array": np.arange(3),
            "scalar": np.float32(0.5),
            "nested": {"t": (1, np.nan)},
            "function": np.median,
            "class": Odd,
            "object": Odd(),
            "text": "\ud800",
            1: True,
        },
        data=RankingData(X, Y, QID),
        measures={"vali": {"map": np.float64(0.5)}},
        training={"iterations": np.int64(3)},
        created="now",
    )
    again = json.loads(json.dumps(made, allow_nan=False))
    assert again == made
    assert made["parameters"]["nested"] == {"t": [1, "nan"]}
    assert made["parameters"]["object"].endswith("Odd")
    assert " at 0x" not in json.dumps(made)
    assert made["data"]["queries"] == 2
    assert Model.from_coef([1.0], provenance=made).provenance == made


def test_no_time_stamp_by_default():
    assert make_provenance(algorithm="X") == make_provenance(algorithm="X")
    assert "created" not in make_provenance()
