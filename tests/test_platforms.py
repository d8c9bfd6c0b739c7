"""What Windows and macOS lack or do otherwise, simulated: a session on files as a user has them."""

import subprocess
import sys

import pytest

ELSEWHERE = """
import os, sys
# Windows has none of these modules and functions.
for module in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[module] = None
for name in ("register_at_fork", "getuid", "geteuid", "O_TMPFILE", "fork", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)

# Windows refuses to replace, remove or rename a file that is open or mapped.
def held(path):
    place = os.path.realpath(path)
    links = [os.path.join("/proc/self/fd", each) for each in os.listdir("/proc/self/fd")]
    opened = any(os.path.realpath(link) == place for link in links)
    with open("/proc/self/maps") as maps:
        return opened or place in maps.read()

def guarded(function, which):
    def call(*args, **more):
        for path in args[:which]:
            if isinstance(path, (str, os.PathLike)) and os.path.exists(path) and held(path):
                raise PermissionError(13, "in use by this process", os.fspath(path))
        return function(*args, **more)
    return call

if os.path.isdir("/proc/self/fd"):
    os.replace, os.rename = guarded(os.replace, 2), guarded(os.rename, 2)
    os.remove, os.unlink = guarded(os.remove, 1), guarded(os.unlink, 1)
"""

SESSION = """
import numpy as np
from leanrank import LeanRanker, load_letor, load_model
from leanrank.cli import main
from leanrank.data import RankingData, dump, load, load_sample

train, _, test = load_sample()
ranker = LeanRanker(max_features=2, max_pairs=0, curves=None).fit(train)
for _ in range(2):  # the second time there is a file to replace
    ranker.save("model.json")
    for name in ("d.txt", "d.parquet", "d.csv", "d.arrow"):
        dump(test, name)
        assert len(load(name)) == len(test), name
assert np.array_equal(load_model("model.json").predict(test), ranker.predict(test))

text = open("d.txt", newline="").read()
assert "\\r" not in text
open("crlf.txt", "w", newline="").write(text.replace("\\n", "\\r\\n"))
assert np.array_equal(load_letor("crlf.txt").X, load_letor("d.txt").X)
table = open("d.csv", newline="").read()
open("crlf.csv", "w", newline="").write(table.replace("\\n", "\\r\\n"))
assert np.array_equal(load("crlf.csv").X, load("d.csv").X)

sys.argv = ["leanrank", "predict", "model.json", "d.parquet", "-o", "scores.txt"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
assert len(open("scores.txt").read().split()) == len(test)
print("done")
"""


def test_a_session_where_the_system_is_another(tmp_path):
    pytest.importorskip("pyarrow")
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE + SESSION],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
