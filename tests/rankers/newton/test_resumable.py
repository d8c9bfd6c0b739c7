"""Interrupted exact fits go on to the bits of a run that was not interrupted."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from leanrank import DominationRanker, LinearRanker, NonconvexRankSVM, RankRLS, RankSVM
from leanrank.data import make_ranking
from leanrank.errors import FileError, InputError
from leanrank.rankers.newton.resumable import fit_resumable

DENSE = make_ranking(40, (1, 30), 24, random_state=0)
SPARSE = make_ranking(40, (1, 30), 300, density=0.1, random_state=0)


class Stop(Exception):
    pass


def stopper(at):
    def stop(entry):
        if entry["iteration"] == at:
            raise Stop

    return stop


CASES = {
    "domination": (lambda **o: DominationRanker(alpha=0.001, **o), DENSE),
    "sparse": (lambda **o: DominationRanker(alpha=0.001, **o), SPARSE),
    "ranksvm": (lambda **o: RankSVM(alpha=0.01, **o), DENSE),
    "free": (
        lambda **o: LinearRanker("logistic", alpha=0.01, penalty_factors={"f1": 0.0}, **o),
        DENSE,
    ),
    "groups": (
        lambda **o: LinearRanker("listnet", "groups", groups=np.arange(24) // 4, alpha=0.002, **o),
        DENSE,
    ),
    "curves": (lambda **o: LinearRanker(alpha=0.01, curves=3, **o), DENSE),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_after_interruptions(tmp_path, case):
    make, data = CASES[case]
    whole = fit_resumable(make(), data, tmp_path / "whole")
    assert whole.dual_gap_ <= 1e-6
    plain = make().fit(data)
    assert abs(whole.objective_ - plain.objective_) <= 2e-6 * plain.objective_
    for at in range(1, whole.n_iter_ + 1):  # each time a little further
        with pytest.raises(Stop):
            fit_resumable(make(callback=stopper(at)), data, tmp_path / "run")
    again = fit_resumable(make(n_jobs=2), data, tmp_path / "run")
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert (again.objective_, again.dual_gap_) == (whole.objective_, whole.dual_gap_)
    assert again.history_ == whole.history_
    finished = fit_resumable(make(), data, tmp_path / "run")
    assert finished.coef_.tobytes() == whole.coef_.tobytes()
    assert "resuming" not in vars(finished)


def test_another_run_is_rejected(tmp_path):
    fit_resumable(DominationRanker(alpha=0.1), DENSE, tmp_path / "run")
    for ranker, data, message in (
        (DominationRanker(alpha=0.2), DENSE, r"is of alpha=0\.1, not alpha=0\.2: give another"),
        (DominationRanker(alpha=0.1), DENSE.queries[1:], "is of other data"),
        (RankSVM(alpha=0.1), DENSE, "is of DominationRanker, not of RankSVM"),
    ):
        with pytest.raises(InputError, match=message):
            fit_resumable(ranker, data, tmp_path / "run")
    for ranker in (RankRLS(), NonconvexRankSVM(), DominationRanker(solver="bound-cd")):
        with pytest.raises(InputError, match=r"is not solved by Newton's method"):
            fit_resumable(ranker, DENSE, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def rewritten(content, change):
    """Return a state whose header was changed by hand, with a checksum that fits."""
    first, text, arrays = content.split(b"\n", 2)
    header = json.loads(text)
    change(header)
    body = json.dumps(header).encode() + b"\n" + arrays
    magic, schema, _ = first.split(b" ")
    return b"%s %s %s\n" % (magic, schema, hashlib.sha256(body).hexdigest().encode()) + body


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("progress", "w", "shape"), [], "damaged"),
        (("progress", "free_scale", "shape"), [], "damaged"),
        (("progress", "best"), "0x1p+99999", "a number is none"),
        (("progress", "best"), None, "a number is none"),
        (("progress", "bound"), "inf", "above its objective"),
        (("progress", "strength"), "-0x1p+0", "not in its range"),
        (("progress", "n_iter"), 10**6, "history"),
        (("progress", "improved"), 10**6, "no iteration"),
        (("progress", "history"), [{}], "history"),
        (("made_by", "parameters"), {}, "is of "),
        (("made_by", "version"), 7, "of leanrank 7"),
    ],
)
def test_states_written_by_hand(tmp_path, place, value, message):
    file = tmp_path / "run"
    fit_resumable(DominationRanker(alpha=0.1), DENSE, file)

    def change(header):
        for key in place[:-1]:
            header = header[key]
        header[place[-1]] = value

    file.write_bytes(rewritten(file.read_bytes(), change))
    with pytest.raises(InputError, match=message):
        fit_resumable(DominationRanker(alpha=0.1), DENSE, file)


def test_an_iteration_beyond_the_last_and_a_parameter_left_out(tmp_path):
    file = tmp_path / "run"
    fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
    content = file.read_bytes()

    def later(header):
        entry = dict.fromkeys(("iteration", "objective", "gap", "support", "working_set"), 1)
        header["progress"] |= {"n_iter": 1000, "history": [entry] * 999}

    def without(header):
        del header["made_by"]["parameters"]["signs"]  # which is None

    for change, message in ((later, "beyond the last iteration"), (without, "other parameters")):
        file.write_bytes(rewritten(content, change))
        with pytest.raises(InputError, match=message):
            fit_resumable(DominationRanker(alpha=0.1), DENSE, file)


def test_a_working_set_whose_differences_overflow(tmp_path):
    file = tmp_path / "run"
    fit_resumable(DominationRanker(alpha=0.001), DENSE, file)
    content = file.read_bytes()
    header = json.loads(content.split(b"\n", 2)[1])
    (n_set,), n = header["progress"]["features"]["shape"], header["progress"]["w"]["shape"][0]
    assert n_set > 2
    damaged = bytearray(rewritten(content, lambda header: None))
    at = len(content) - 8 * n - 8 * n_set + 8  # its second feature
    damaged[at : at + 8] = (2**63 - 1).to_bytes(8, "little")
    file.write_bytes(rewritten(bytes(damaged), lambda header: None))
    with pytest.raises(InputError, match="features that are not there"):
        fit_resumable(DominationRanker(alpha=0.001), DENSE, file)


def test_sparse_data_with_values_in_other_columns(tmp_path):
    fit_resumable(DominationRanker(alpha=0.1), SPARSE, tmp_path / "run")
    moved = SPARSE.X.copy()
    moved.indices = 299 - moved.indices
    moved.sort_indices()
    moved.data = SPARSE.X.data.copy()
    with pytest.raises(InputError, match="is of other data"):
        fit_resumable(DominationRanker(alpha=0.1), SPARSE.replace(X=moved), tmp_path / "run")


def test_damaged_files(tmp_path):
    file = tmp_path / "run"
    fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
    content = file.read_bytes()
    for damaged in (content[:-3], content.replace(b'"n_iter": ', b'"n_iter": 7'), content + b"x"):
        file.write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"run: this checkpoint is damaged .*: rename run.previous"
        ):
            fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
    os.replace(f"{file}.previous", file)  # as the message says
    fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
    assert file.read_bytes() == content
    file.write_bytes(b"leanrank-checkpoint 2 x\n")
    with pytest.raises(InputError, match="this is no checkpoint of an exact fit"):
        fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
    with pytest.raises(FileError):
        fit_resumable(DominationRanker(alpha=0.1), DENSE, tmp_path / "none" / "run")


def test_after_sigkill(tmp_path):
    code = """
        import os, signal, sys
        from leanrank import DominationRanker
        from leanrank.data import load
        from leanrank.rankers.newton.resumable import fit_resumable
        def kill(entry):
            if entry["iteration"] == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        data = load(sys.argv[1])
        fit_resumable(DominationRanker(alpha=0.001, callback=kill), data, sys.argv[2])
    """
    pytest.importorskip("pyarrow")
    from leanrank.data import dump, load

    dump(DENSE, tmp_path / "a.arrow")
    words = [tmp_path / "a.arrow", tmp_path / "run"]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, words)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    data = load(tmp_path / "a.arrow")
    whole = fit_resumable(DominationRanker(alpha=0.001), data, tmp_path / "whole")
    seen = []
    again = fit_resumable(
        DominationRanker(alpha=0.001, callback=lambda e: seen.append(e["iteration"])),
        data,
        words[1],
    )
    assert seen[0] == 3
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert sorted(os.listdir(tmp_path)) == [
        "a.arrow", "run", "run.previous", "whole", "whole.previous",
    ]  # fmt: skip
