"""Files that Arrow's threads may hold for longer than they read."""

import subprocess
import sys

from leanrank.data.tables.files import _lent, _wait_for_arrow, lent_to_arrow

HOLDING = """
import sys, threading, time
from leanrank.data.tables.files import lent_to_arrow

def hold(streams):
    time.sleep(0.1)
    print("released", flush=True)
    streams.clear()

with lent_to_arrow(sys.argv[1]) as stream:
    threading.Thread(target=hold, args=([stream],), daemon=True).start()
del stream
sys.exit(2)
"""


def test_a_process_ends_once_no_thread_holds_its_files(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,qid,bm25\n1,1,0.5\n")
    done = subprocess.run(
        [sys.executable, "-c", HOLDING, str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("released\n", "", 2)


def test_it_does_not_wait_for_ever(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,bm25\n1,1,0.5\n")
    with lent_to_arrow(tmp_path / "a.csv") as stream:
        assert stream in _lent
        _wait_for_arrow(0.01)
