"""Learning from streams: the same as chunk by chunk, and the same bits after an interruption."""

import doctest
import hashlib
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank import make_ranking
from leanrank._files import HeldFile
from leanrank.data import dump_letor, dump_parquet, stream_ranking
from leanrank.data.streams import open_stream, resized
from leanrank.errors import FileError, InputError
from leanrank.rankers import SPD, MinBatSRank, RankRLS
from leanrank.rankers.streaming import fit_stream, load_checkpoint

N_QUERIES, N_FEATURES = 90, 25


class Stop(Exception):
    """An interruption."""


def ranker(**parameters):
    return MinBatSRank(**{"alpha": 0.05, "l1": "per_step", **parameters})


def chunks(n_queries=N_QUERIES, **shape):
    shape = {"random_state": 3, **shape}
    return stream_ranking(n_queries, 12, N_FEATURES, queries_per_chunk=7, **shape)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same queries as text, as Parquet and as a list."""
    folder = tmp_path_factory.mktemp("sources")
    data = make_ranking(N_QUERIES, 12, N_FEATURES, random_state=3)
    dump_letor(data, folder / "a.txt")
    dump_parquet(data, folder / "a.parquet")
    return {
        "text": lambda: open_stream(folder / "a.txt", chunk_bytes=50_000),
        "parquet": lambda: open_stream(folder / "a.parquet", chunk_bytes=9000),
        "list": lambda: list(chunks()),
        "generator": lambda: chunks(),
    }


def interrupted(model, source, stop_at, **options):
    """Learn until so many chunks have been seen."""
    seen = 0

    def progress(report):
        nonlocal seen
        seen += 1
        if seen == stop_at:
            raise Stop

    with pytest.raises(Stop):
        fit_stream(model, source, progress=progress, **options)


def test_a_stream_is_partial_fit_chunk_by_chunk():
    expected = ranker()
    for chunk in chunks():
        expected.partial_fit(chunk)
    got = fit_stream(ranker(), chunks())
    assert got.coef_.tobytes() == expected.coef_.tobytes()
    assert 0 < np.count_nonzero(got.coef_) < N_FEATURES
    assert got.n_queries_ == N_QUERIES
    assert got.predict(np.ones((2, N_FEATURES))).shape == (2,)


def test_the_chunks_do_not_matter_to_the_result():
    one = fit_stream(ranker(relative=False), [make_ranking(N_QUERIES, 12, N_FEATURES)])
    many = fit_stream(ranker(relative=False), chunks(random_state=0))
    np.testing.assert_allclose(one.coef_, many.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("kind", ["text", "parquet", "list", "generator"])
def test_the_same_bits_after_interruptions_anywhere(sources, kind, epochs, tmp_path):
    if kind == "generator" and epochs > 1:
        pytest.skip("a generator is read once")
    how = {"epochs": epochs}
    whole = fit_stream(ranker(), sources[kind](), **how)
    n_chunks = epochs * len(list(open_stream(sources[kind]())))
    assert n_chunks > 5
    for stop_at in range(1, n_chunks + 1, 3):
        file = tmp_path / f"{stop_at}.ckpt"
        how |= {"checkpoint": file, "every": 15}
        interrupted(ranker(), sources[kind](), stop_at, **how)
        resumed = ranker()
        seen = []
        fit_stream(resumed, sources[kind](), progress=seen.append, **how)
        assert resumed.coef_.tobytes() == whole.coef_.tobytes()
        assert resumed.n_queries_ == whole.n_queries_ == N_QUERIES
        assert resumed.n_features_in_ == whole.n_features_in_
        if stop_at > 6:
            assert len(seen) < n_chunks  # it did not begin again


@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.01, "l1_ratio": 1.0}])
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_drawn_pairs_go_on_with_the_same_bits(parameters, density, tmp_path):
    def spd():
        return SPD(n_steps=200, **parameters)

    def source():
        return list(chunks(density=density))

    whole = fit_stream(spd(), source())
    assert whole.coef_.any()
    for stop_at in (1, 5, 9):
        file = tmp_path / f"{stop_at}"
        interrupted(spd(), source(), stop_at, checkpoint=file, every=10)
        resumed = fit_stream(spd(), source(), checkpoint=file, every=10)
        assert resumed.coef_.tobytes() == whole.coef_.tobytes()


def test_every_interruption_of_one_run_after_the_other(sources, tmp_path):
    whole = fit_stream(ranker(), sources["text"]())
    for _ in range(30):
        try:
            interrupted(ranker(), sources["text"](), 2, checkpoint=tmp_path / "c.ckpt", every=1)
        except pytest.fail.Exception:
            break  # it came to the end before it could be stopped
    again = fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c.ckpt", every=1)
    assert again.coef_.tobytes() == whole.coef_.tobytes()


def test_history_is_the_same_after_an_interruption(sources, tmp_path):
    held_out = make_ranking(20, 12, N_FEATURES, random_state=9)
    how = {"every": 20, "validation": held_out}
    whole = fit_stream(ranker(), sources["text"](), **how)
    interrupted(ranker(), sources["text"](), 7, checkpoint=tmp_path / "c", **how)
    resumed = fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c", **how)

    def timeless(history):
        return [{k: v for k, v in e.items() if k != "documents_per_second"} for e in history]

    assert timeless(resumed.history_) == timeless(whole.history_)
    assert len(whole.history_) > 3
    last = whole.history_[-1]
    assert (last["epoch"], last["queries"], last["documents"]) == (1, N_QUERIES, 12 * N_QUERIES)
    assert last["ndcg@10"] == pytest.approx(whole.score(held_out))
    assert last["support"] == np.count_nonzero(whole.coef_)


def test_an_interruption_between_two_passes_counts_no_query_twice(tmp_path):
    def source():
        return chunks(n_queries=40)

    how = {"epochs": 2, "every": 10**6, "checkpoint": tmp_path / "c"}
    seen = [len(chunk.query_ids) for chunk in source()]
    interrupted(ranker(), list(source()), len(seen) + 1, **how)
    resumed = fit_stream(ranker(), list(source()), **how)
    assert resumed.history_[-1]["queries"] == sum(seen)


def test_a_failed_write_leaves_the_checkpoint_before(sources, tmp_path, monkeypatch):
    file = tmp_path / "c.ckpt"
    interrupted(ranker(), sources["text"](), 6, checkpoint=file, every=10)
    before = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fit_stream(ranker(), sources["text"](), checkpoint=file, every=10)
    assert file.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.ckpt"]


def test_a_damaged_checkpoint_is_refused_and_left_as_it_is(sources, tmp_path):
    file = tmp_path / "c.ckpt"
    fit_stream(ranker(), sources["text"](), checkpoint=file, every=10)
    for damaged in (file.read_bytes()[:-3], file.read_bytes() + b"x"):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"c.ckpt: this .* delete this one"):
            fit_stream(ranker(), sources["text"](), checkpoint=file, every=10)
        assert file.read_bytes() == damaged


def test_two_runs_on_one_checkpoint(sources, tmp_path):
    def second(report):
        with pytest.raises(FileError, match=r"c.ckpt: another process is using this file"):
            fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c.ckpt")

    fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c.ckpt", progress=second)


def test_a_finished_run_is_not_run_again(sources, tmp_path):
    first = fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c")
    seen = []
    again = fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c", progress=seen.append)
    assert seen == []
    assert again.coef_.tobytes() == first.coef_.tobytes()


def test_new_features_grow():
    wide = list(chunks(density=0.4))
    narrow = [resized(c, 10) if at < 4 else c for at, c in enumerate(wide)]
    narrow[6] = resized(wide[6], 5)
    got = fit_stream(ranker(relative=False, alpha=0.001), narrow)
    padded = [resized(c, N_FEATURES) for c in narrow]
    expected = fit_stream(ranker(relative=False, alpha=0.001), padded)
    np.testing.assert_allclose(got.coef_, expected.coef_, rtol=1e-12, atol=1e-15)
    assert got.n_features_in_ == N_FEATURES
    assert got.coef_[10:].any()


def test_new_sparse_features_grow():
    wide = [c.replace(X=csr_array(c.X)) for c in chunks(density=0.1)]
    narrow = [resized(c, 10) if at < 4 else c for at, c in enumerate(wide)]
    got = fit_stream(ranker(relative=False, alpha=0.001), narrow)
    expected = fit_stream(
        ranker(relative=False, alpha=0.001), [resized(c, N_FEATURES) for c in narrow]
    )
    np.testing.assert_allclose(got.coef_, expected.coef_, rtol=1e-12, atol=1e-15)


def test_validation_data_with_other_features():
    held_out = resized(make_ranking(20, 12, N_FEATURES, random_state=9), N_FEATURES + 3)
    model = fit_stream(ranker(), chunks(), validation=held_out)
    assert model.history_[-1]["ndcg@10"] == pytest.approx(
        model.score(resized(held_out, N_FEATURES))
    )


def test_history_stays_small_in_a_long_stream():
    model = fit_stream(ranker(), chunks())
    assert len(model.history_) == 1
    assert len(fit_stream(ranker(), chunks(), every=30).history_) == 3


def test_queries_without_information_first(tmp_path):
    dull = make_ranking(3, 4, N_FEATURES).replace(y=np.zeros(12))
    expected = fit_stream(ranker(), list(chunks()))
    got = fit_stream(ranker(), [dull, *chunks()], checkpoint=tmp_path / "c", every=1)
    assert got.coef_.tobytes() == expected.coef_.tobytes()
    interrupted(ranker(), [dull, *chunks()], 2, checkpoint=tmp_path / "d", every=1)
    resumed = fit_stream(ranker(), [dull, *chunks()], checkpoint=tmp_path / "d", every=1)
    assert resumed.coef_.tobytes() == expected.coef_.tobytes()


def test_as_a_method():
    got = MinBatSRank(alpha=0.05, l1="per_step").fit_stream(chunks())
    assert got.coef_.tobytes() == fit_stream(ranker(), chunks()).coef_.tobytes()


def test_progress_says_speed_and_sparsity():
    seen = []
    model = fit_stream(ranker(), chunks(), progress=seen.append)
    assert [r["queries"] for r in seen] == [*range(7, 90, 7), 90]
    assert seen[-1]["support"] == np.count_nonzero(model.coef_)
    assert seen[-1]["sparsity"] == model.sparsity_
    assert all(r["documents_per_second"] > 0 for r in seen)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.5}, r"was made with alpha=0.05, not alpha=0.5: give another"),
        ({"loss": "hinge"}, "was made with loss=squared-hinge, not loss=hinge"),
    ],
)
def test_a_checkpoint_of_other_parameters(sources, tmp_path, change, message):
    fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c.ckpt")
    with pytest.raises(InputError, match=f"c.ckpt: this checkpoint {message}"):
        fit_stream(ranker(**change), sources["text"](), checkpoint=tmp_path / "c.ckpt")


def test_a_checkpoint_of_something_else(sources, tmp_path):
    file = tmp_path / "c.ckpt"
    data = make_ranking(20, 5, 4, random_state=0)
    for name in ("a.txt", "b.txt"):
        dump_letor(data, tmp_path / name)
    fit_stream(ranker(), tmp_path / "a.txt", checkpoint=file)

    def refused(source, message, **how):
        with pytest.raises(InputError, match=message):
            fit_stream(ranker(), source, checkpoint=file, **how)

    refused(tmp_path / "b.txt", "a.txt.*b.txt")
    refused([tmp_path / "a.txt"] * 2, "sources=a.txt, not sources=a.txt, a.txt")
    refused(tmp_path / "a.txt", "epochs=1, not epochs=2", epochs=2)
    refused(
        open_stream(tmp_path / "a.txt", dtype="float32"),
        "=float64, not dtype of a.txt=",
    )
    scaled = open_stream(tmp_path / "a.txt").map(lambda chunk: chunk, "query-minmax")
    refused(scaled, "changed of a.txt=None")
    dump_letor(data.queries[:19], tmp_path / "a.txt")
    refused(tmp_path / "a.txt", "of a.txt=")


@pytest.mark.parametrize("content", [b"no archive", b"PK\x03\x04 broken", b"leanrank-checkpoint\n"])
def test_what_is_no_checkpoint(sources, tmp_path, content):
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(InputError, match="this is no leanrank-checkpoint file"):
        fit_stream(ranker(), sources["text"](), checkpoint=tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == content


def load(file):
    with HeldFile(file) as held:
        return load_checkpoint(held, {})


def test_a_checkpoint_cut_short_or_of_another_version(sources, tmp_path):
    file = tmp_path / "c"
    fit_stream(ranker(), sources["text"](), checkpoint=file)
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(1, len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"c: this (is no|file is damaged)") as caught:
            load(file)
        assert size < first or "is damaged" in str(caught.value)
    file.write_bytes(whole.replace(b" 6 ", b" 99 ", 1))
    with pytest.raises(InputError, match="no leanrank-checkpoint file of version 6"):
        load(file)
    with pytest.raises(FileError, match="cannot be used"):
        load(tmp_path)


def test_nothing_is_unpickled(tmp_path):
    """An array of objects in a state file is refused, whatever it would execute."""
    stream = io.BytesIO()
    np.savez(stream, header=np.array([{"epoch": 1}], dtype=object))
    body = stream.getvalue()
    digest = hashlib.sha256(body).hexdigest().encode()
    (tmp_path / "c").write_bytes(b"leanrank-checkpoint 6 " + digest + b"\n" + body)
    with pytest.raises(InputError, match="c: this file is damaged"):
        load(tmp_path / "c")


def test_the_guide_shows_what_happens():
    page = Path(__file__).parents[3] / "docs" / "streams.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert done.attempted >= 15
    assert done.failed == 0


def test_what_cannot_be_done(tmp_path):
    with pytest.raises(InputError, match="epochs=2 needs a source that can be read again"):
        fit_stream(ranker(), chunks(), epochs=2)
    with pytest.raises(InputError, match="cannot be resumed"):
        fit_stream(ranker(), "-", checkpoint=tmp_path / "c")
    with pytest.raises(InputError, match="RankRLS needs all data at once"):
        fit_stream(RankRLS(), chunks())
    with pytest.raises(InputError, match="the stream is empty"):
        fit_stream(ranker(), [])
    with pytest.raises(InputError, match="every=0 must be a whole number"):
        fit_stream(ranker(), chunks(), every=0)


def test_a_warm_start_goes_on_after_a_stream():
    whole = list(chunks())
    model = ranker(warm_start=True, relative=False)
    fit_stream(fit_stream(model, whole[:5]), whole[5:])
    at_once = fit_stream(ranker(relative=False), whole)
    assert np.array_equal(model.coef_, at_once.coef_)
    assert model.coef_.any()


def test_a_warm_start_takes_other_widths():
    model = fit_stream(ranker(warm_start=True), chunks())
    wider = stream_ranking(20, 12, N_FEATURES + 5, random_state=4)
    assert len(fit_stream(model, wider).coef_) == N_FEATURES + 5
    assert len(fit_stream(model, chunks(20)).coef_) == N_FEATURES + 5


def frames(*columns):
    pandas = pytest.importorskip("pandas")
    for number, names in enumerate(columns):
        data = make_ranking(10, 8, len(names), random_state=number)
        yield pandas.DataFrame(np.asarray(data.X), columns=list(names)), data.y, data.qid


def test_columns_of_frames_keep_their_names_and_places():
    model = fit_stream(ranker(), frames("abcd", "abcdef", "abc"))
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(InputError, match="column 1 is 'c' in a later chunk and was 'b' before"):
        fit_stream(ranker(), frames("abcd", "acbd"))
    with pytest.raises(InputError, match="column 1 is 'c' in a later chunk and was 'b' before"):
        fit_stream(ranker(), frames("abcd", "acb"))


def test_patience_has_no_meaning_on_a_stream():
    with pytest.raises(InputError, match="patience has no effect with a stream"):
        fit_stream(ranker(patience=2), chunks())


def test_views_survive_an_interruption(tmp_path):
    from leanrank.rankers import LCRA

    whole, file = list(chunks()), tmp_path / "run.ckpt"

    def broken():
        yield from whole[:7]
        raise Stop

    with pytest.raises(Stop):
        fit_stream(LCRA(n_steps=50), broken(), checkpoint=file, every=20)
    again = (chunk for chunk in whole)
    resumed = fit_stream(LCRA(n_steps=50), again, checkpoint=file, every=20)
    assert np.array_equal(resumed.coef_, fit_stream(LCRA(n_steps=50), iter(whole)).coef_)


def test_later_passes_count_no_query_twice(sources):
    once, thrice = (
        fit_stream(ranker(), sources["list"](), epochs=epochs, every=20) for epochs in (1, 3)
    )
    assert thrice.n_queries_ == once.n_queries_ == N_QUERIES
    assert thrice.n_informative_queries_ == once.n_informative_queries_
    assert [e["queries"] for e in thrice.history_] == 3 * [e["queries"] for e in once.history_]
    assert thrice.history_[-1]["queries"] == N_QUERIES
