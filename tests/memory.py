"""Peak anonymous memory: what a process has taken beside the files that it maps."""

import json
import subprocess
import sys
import textwrap
import threading


def anonymous():
    """Return the bytes of anonymous memory of this process."""
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


class Peak:
    """Watches the memory of a block; ``bytes`` is the most that it took beyond what was there."""

    def __enter__(self):
        self.before = self.most = anonymous()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while not self.ended.wait(0.001):
            self.most = max(self.most, anonymous())

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.bytes = max(self.most, anonymous()) - self.before


def in_child(code, *arguments):
    """Run code in a fresh process; return what it prints last, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
