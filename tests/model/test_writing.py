import json

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

from leanrank import load_model, make_ranking
from leanrank.errors import FileError, InputError
from leanrank.model import Model, save_model
from leanrank.rankers import RankRLS

KINDS = ["query-minmax", "query-standard", "query-rank", "standard", "minmax"]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=12, docs_per_query=8, n_features=5, random_state=0)


def test_a_ranker(data, tmp_path):
    ranker = RankRLS(alpha=0.1).fit(data.X, data.y, qid=data.qid)
    written = save_model(ranker, tmp_path / "m.json")
    assert load_model(tmp_path / "m.json") == written
    assert written.coef.tolist() == ranker.coef_.tolist()
    ranker.save(tmp_path / "again.json")
    assert load_model(tmp_path / "again.json") == written


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_becomes_one_model(data, tmp_path, kind):
    from leanrank.data.scaling.normalizers import make_normalizer

    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline([("scale", make_normalizer(kind)), ("rank", RankRLS(alpha=0.1))])
        pipeline.fit(data.X, data.y, qid=data.qid)
        expected = pipeline.predict(data.X, qid=data.qid)
    save_model(pipeline, tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert model.normalizer["kind"] == kind
    np.testing.assert_allclose(model.predict(data), expected, rtol=1e-10, atol=1e-12)
    mixed = np.random.default_rng(0).permutation(len(data))
    scores = model.predict(data.X[mixed], data.qid[mixed])
    np.testing.assert_allclose(scores, expected[mixed], rtol=1e-10, atol=1e-12)


def test_a_pipeline_keeps_the_names_of_a_frame(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    from leanrank.data.scaling.normalizers import make_normalizer

    frame = pandas.DataFrame(data.X, columns=list("abcde"))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline([("scale", make_normalizer("standard")), ("rank", RankRLS(alpha=0.1))])
        pipeline.fit(frame, data.y, qid=data.qid)
    model = save_model(pipeline, tmp_path / "m.json")
    assert model.feature_names == tuple("abcde")
    expected = model.predict(frame)
    assert model.predict(frame[list("ecabd")]).tolist() == expected.tolist()


def test_what_cannot_be_saved(data, tmp_path):
    ranker = RankRLS().fit(data.X, data.y, qid=data.qid)
    scaler = RobustScaler().fit(data.X)
    path = tmp_path / "m.json"
    with pytest.raises(
        InputError, match=r"RobustScaler cannot be saved as a model: it has no to_m"
    ):
        save_model(scaler, path)
    with pytest.raises(InputError, match="its last step must be a ranker"):
        save_model(Pipeline([("scale", scaler)]), path)
    with pytest.raises(InputError, match="because of its step 'scale': steps"):
        save_model(Pipeline([("scale", scaler), ("rank", ranker)]), path)
    assert not path.exists()


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MaxAbsScaler(),
    ],
    ids=str,
)
def test_a_pipeline_with_a_scaler_of_scikit_learn(data, tmp_path, scaler):
    Z = scaler.fit_transform(data.X)
    ranker = RankRLS().fit(Z, data.y, qid=data.qid)
    model = save_model(Pipeline([("scale", scaler), ("rank", ranker)]), tmp_path / "m.json")
    np.testing.assert_allclose(model.predict(data.X), ranker.predict(Z), rtol=1e-9, atol=1e-12)


def test_steps_that_do_nothing_are_passed_over(data, tmp_path):
    ranker = RankRLS().fit(data.X, data.y, qid=data.qid)
    model = save_model(Pipeline([("scale", "passthrough"), ("rank", ranker)]), tmp_path / "m.json")
    assert model.coef.tolist() == ranker.coef_.tolist()


def test_two_normalisers_are_one_too_many(data, tmp_path):
    from leanrank.data.scaling.normalizers import make_normalizer

    one, two = (make_normalizer("standard").fit(data.X) for _ in range(2))
    ranker = RankRLS().fit(data.X, data.y, qid=data.qid)
    with pytest.raises(InputError, match="because of its step 'two'"):
        save_model(Pipeline([("one", one), ("two", two), ("rank", ranker)]), tmp_path / "m.json")


def test_nowhere_to_write(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        save_model(Model.from_coef([1.0]), tmp_path / "no" / "m.json")


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    Model.from_coef([1.0]).save(path)
    old = path.read_bytes()

    def fail(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("leanrank._files.os.fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        Model.from_coef([2.0]).save(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_standard_output(capsys):
    Model.from_coef([1.0]).save("-")
    assert json.loads(capsys.readouterr().out)["curves"] == [{"feature": 0, "weight": 1.0}]


class TestNormalisersInFiles:
    @pytest.fixture
    def document(self, data):
        from leanrank.data.scaling.normalizers import make_normalizer

        spec = make_normalizer("standard").fit(data.X).to_dict()
        return Model.from_coef(np.ones(5), normalizer=spec).to_dict()

    def load(self, document, tmp_path):
        (tmp_path / "m.json").write_text(json.dumps(document))
        return load_model(tmp_path / "m.json")

    def test_round_trip(self, document, tmp_path):
        assert self.load(document, tmp_path).to_dict() == document

    def test_unknown_kind(self, document, tmp_path):
        document["normalizer"]["kind"] = "whiten"
        with pytest.raises(ValueError, match=r"m\.json: the document cannot be used: .*whiten"):
            self.load(document, tmp_path)

    def test_wrong_width(self, document, tmp_path):
        document["n_features"] = 6
        with pytest.raises(ValueError, match=r"m\.json: .*normalizer .* 5 features"):
            self.load(document, tmp_path)

    def test_missing_values_are_named(self, document, data, tmp_path):
        X = data.X.copy()
        X[3, 2] = np.nan
        with pytest.raises(InputError):
            self.load(document, tmp_path).predict(X)
