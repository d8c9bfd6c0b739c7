"""Interrupted exact fits go on to the bits of a run that was not interrupted."""

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
    assert not hasattr(vars(finished), "resuming")


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


def test_damaged_files(tmp_path):
    file = tmp_path / "run"
    fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
    content = file.read_bytes()
    for damaged in (content[:-3], content.replace(b'"n_iter": ', b'"n_iter": 7'), content + b"x"):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"run: this checkpoint is damaged .*: give another"):
            fit_resumable(DominationRanker(alpha=0.1), DENSE, file)
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
