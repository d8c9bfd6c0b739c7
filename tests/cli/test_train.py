import json

import numpy as np
import pytest

from leanrank import load_letor, load_model
from leanrank.metrics import evaluate
from leanrank.rankers import RankBoost, RankRLS


def left_behind(folder):
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".txt"))


def test_the_model_is_what_the_library_learns(run, files):
    ran = run(
        "train",
        "train.txt",
        "-a",
        "rankrls",
        "-p",
        "alpha=2",
        "-p",
        "normalize=none",
        "--model",
        "m.json",
    )
    assert ran.code == 0, ran.err
    data = load_letor("train.txt")
    expected = RankRLS(alpha=2, normalize="none").fit(data)
    model = load_model("m.json")
    assert model.coef.tolist() == expected.coef_.tolist()
    assert model.provenance["algorithm"] == "RankRLS"
    assert model.provenance["parameters"] == {"alpha": 2, "normalize": "none"}
    assert model.provenance["data"]["fingerprint"].startswith("sha256:")
    assert left_behind(files) == ["m.json"]


def test_the_summary(run, files):
    ran = run(
        "train",
        "train.txt",
        "-a",
        "rankrls",
        "--vali",
        "vali.txt",
        "-p",
        "alpha=0.1",
        "-m",
        "m.json",
    )
    assert (ran.code, ran.err) == (0, "")
    assert "12 queries" in ran.out
    assert "RankRLS (alpha=0.1, normalize=query)" in ran.out
    assert "6 of 6 features with a weight" in ran.out
    assert "Model written to m.json" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\x1b" not in ran.out
    vali = load_letor("vali.txt")
    means = evaluate(vali, load_model("m.json").predict(vali), measures=["ndcg@10", "map"]).means
    for name, mean in means.items():
        (line,) = [line for line in ran.out.splitlines() if line.startswith(name)]
        assert line.split()[-1] == f"{mean:.4f}"


def test_json(run, files):
    ran = run(
        *("train", "train.txt", "-a", "rankrls", "--vali", "vali.txt", "-m", "m.json", "--json"),
        *("--measures", "p@5,map", "--convention", "letor4"),
    )
    assert (ran.code, ran.err) == (0, "")
    result = json.loads(ran.out)
    assert result["model"] == "m.json"
    assert result["data"]["training"]["queries"] == 12
    assert result["n_nonzero"] == 6
    assert list(result["measures"]["validation"]["means"]) == ["p@5", "map"]
    assert result["measures"]["validation"]["convention"] == "letor4"
    assert result["weights"] == {str(at): w for at, w in load_model("m.json").weights.items()}


def test_the_same_input_gives_the_same_file(run, files):
    for name, jobs in (("a.json", 1), ("b.json", 2), ("c.json", -1)):
        assert run("train", "train.txt", "--vali", "vali.txt", "-m", name, "-j", jobs).code == 0
    assert (files / "a.json").read_bytes() == (files / "b.json").read_bytes()
    assert (files / "a.json").read_bytes() == (files / "c.json").read_bytes()


@pytest.mark.parametrize(
    "kind", ["query-minmax", "query-standard", "query-rank", "standard", "minmax"]
)
def test_a_normaliser_travels_with_the_model(run, files, kind):
    ran = run(
        "train",
        "train.txt",
        "-a",
        "rankrls",
        "--vali",
        "vali.txt",
        "--scale",
        kind,
        "-m",
        "m.json",
        "--json",
    )
    assert ran.code == 0, ran.err
    model = load_model("m.json")
    assert model.normalizer["kind"] == kind
    assert json.loads(ran.out)["normalizer"]["kind"] == kind

    from leanrank.data.scaling.normalizers import make_normalizer

    train, vali = load_letor("train.txt"), load_letor("vali.txt")
    scaler = make_normalizer(kind)
    X = scaler.fit_transform(train.X, qid=train.qid)
    expected = RankRLS().fit(X, train.y, qid=train.qid)
    scores = scaler.transform(vali.X, qid=vali.qid) @ expected.coef_
    np.testing.assert_allclose(model.predict(vali), scores, rtol=1e-10, atol=1e-12)


def test_a_model_on_standard_output_is_all_there_is(run, files):
    ran = run("train", "train.txt", "-a", "rankrls", "--model", "-")
    assert ran.code == 0
    assert json.loads(ran.out)["format"] == "leanrank-model"
    assert "6 of 6 features" in ran.err
    ran = run("train", "train.txt", "--model", "-", "--json")
    assert ran.code == 2
    assert ran.err == (
        "leanrank: error: --json and a result both go to standard output: give it a file\n"
    )


def test_validation_data_may_end_in_features_that_are_zero(run, files):
    (files / "narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:0.25\n")
    assert run("train", "train.txt", "--vali", "narrow.txt", "-m", "m.json").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["train.txt", "-a", "rankrsl"],
            "there is no system 'rankrsl': did you mean 'rankrls'?",
        ),
        (
            ["train.txt", "-a", "domination", "-p", "alhpa=1"],
            "DominationRanker has no parameter 'alhpa': did you mean 'alpha'?",
        ),
        (
            ["train.txt", "-a", "domination", "-p", "alpha=x"],
            "alpha='x' must be a float",
        ),
        (["none.txt"], "none.txt: there is no such file"),
        (["-", "--vali", "-"], "standard input (-) can be read only once"),
        (
            ["train.txt", "--read", "zerobased=1"],
            "text has no option 'zerobased': did you mean 'zero_based'?",
        ),
        (["train.txt", "--measures", "ndgc@10"], ""),
        (["train.txt", "--convention", "letor5"], ""),
        (["train.txt", "--scale", "minmix"], ""),
        (["train.txt", "--format", "xml"], "format='xml' is not known"),
        (["broken.txt"], "broken.txt, line 2, column "),
    ],
)
def test_faults(run, files, words, message):
    (files / "broken.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:x\n")
    before = left_behind(files)
    ran = run("train", *words, "--model", "m.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert ran.err.count("\n") == 1
    assert left_behind(files) == before


def test_the_place_for_the_model_is_checked_first(run, files):
    (files / "folder").mkdir()
    assert run("train", "train.txt", "-m", "no/m.json").err == (
        "leanrank: error: no/m.json: the directory no does not exist: create it first\n"
    )
    ran = run("train", "train.txt", "-m", "folder")
    assert ran.code == 2
    assert ran.err == "leanrank: error: folder is a directory: give the name of a file\n"


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (RuntimeError, 1)])
def test_a_failure_leaves_the_old_model_alone(run, files, monkeypatch, error, code):
    (files / "m.json").write_text("the old one")

    def fail(*_):
        raise error

    monkeypatch.setattr("leanrank._files.os.fsync", fail)
    assert run("train", "train.txt", "-m", "m.json").code == code
    assert (files / "m.json").read_text() == "the old one"
    assert left_behind(files) == ["m.json"]


EARLY = ["-a", "rankboost", "-p", "n_rounds=40", "-p", "measure=map"]


@pytest.mark.parametrize("scale", [[], ["--scale", "standard"]])
def test_patience_stops_by_the_validation_data(run, files, scale):
    vali = ["--vali", "vali.txt"]
    ran = run("train", "train.txt", *EARLY, *vali, "-p", "patience=3", *scale, "-m", "m.json")
    assert ran.code == 0, ran.err
    train, held_out = load_letor("train.txt"), load_letor("vali.txt", n_features=6)
    if scale:
        from leanrank.data.scaling.normalizers import make_normalizer

        normalizer = make_normalizer("standard")
        train, held_out = normalizer.fit_transform(train), normalizer.transform(held_out)
    expected = RankBoost(40, measure="map", patience=3).fit(train, validation=held_out)
    assert len(expected.history_) < 40
    model = load_model("m.json")
    assert np.array_equal(model.values, expected.to_model().values)
    kept = f"round {expected.n_iter_} of {len(expected.history_)}, the best by map on the"
    assert kept in " ".join(ran.out.split())


def test_validation_data_alone_do_not_change_the_model(run, files):
    assert run("train", "train.txt", *EARLY, "-m", "a.json").code == 0
    assert run("train", "train.txt", *EARLY, "--vali", "vali.txt", "-m", "b.json").code == 0
    assert np.array_equal(load_model("a.json").values, load_model("b.json").values)


def test_patience_needs_validation_data_unless_the_training_data_will_do(run, files):
    ran = run("train", "train.txt", *EARLY, "-p", "patience=3", "-m", "m.json")
    assert ran.code == 2
    assert "patience has no effect without validation data" in ran.err
    assert left_behind(files) == []
    assert run("train", "train.txt", "-a", "adarank", "-p", "patience=3", "-m", "m.json").code == 0


@pytest.fixture
def raw_file(files):
    from leanrank import dump_letor

    data = load_letor("train.txt")
    dump_letor(data.replace(X=data.X * ([1e5] + [1.0] * (data.n_features - 1))), "raw.txt")
    return "raw.txt"


def test_features_of_different_spread_are_standardised_and_that_is_said(run, raw_file):
    ran = run("train", raw_file, "-a", "domination", "-m", "m.json", "-p", "alpha=0.001")
    assert (ran.code, ran.err) == (0, "")
    assert "the spread of 'f1' is" in " ".join(ran.out.split())
    assert load_model("m.json").normalizer["kind"] == "standard"
    plain = run("train", "train.txt", "-a", "domination", "-m", "p.json", "-p", "alpha=0.001")
    assert "spread" not in plain.out
    assert load_model("p.json").normalizer is None


def test_features_that_are_not_to_be_scaled_get_one_warning(run, raw_file):
    ran = run("train", raw_file, "-m", "m.json", "-a", "rankrls", "--scale", "none")
    assert ran.code == 0
    assert ran.err.count("leanrank: warning: the spread of 'f1' is") == 1
    assert load_model("m.json").normalizer is None


def test_an_empty_model_is_not_written(run, files):
    words = ("train", "train.txt", "-a", "domination", "-p", "alpha=1000", "-m", "m.json")
    ran = run(*words)
    assert ran.code == 1
    assert "lower alpha=1000 below alpha_max=" in ran.err
    assert "m.json was not written: the model uses no feature" in ran.err
    assert left_behind(files) == []
