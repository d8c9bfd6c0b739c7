"""Build the wheel and the source archive, and use them as strangers would.

``make dist`` runs this. Each archive is checked, the wheel is installed into an empty environment
where the demo runs and a model goes to a file and back, and once more into one that has NumPy and
nothing else, which is all that scoring needs. ``--tag v0.1.0`` compares a tag with the version.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent

ROUND_TRIP = """
import sys
import numpy as np
from leanrank import LeanRanker, __version__, load_model
from leanrank.data import load_sample
train, _, test = load_sample()
ranker = LeanRanker(max_features=5).fit(train)
ranker.model_.save(sys.argv[1])
scores = load_model(sys.argv[1]).predict(test.X)
assert scores.tobytes() == ranker.predict(test).tobytes()
np.save(sys.argv[2], np.asarray(test.X))
np.save(sys.argv[3], scores)
print(f"leanrank {__version__}: NDCG@10 {ranker.score(test):.4f}")
"""
SCORING = """
import importlib.util, sys
import numpy as np
from leanrank.model import load_model
absent = [name for name in ("numba", "scipy", "sklearn", "rich", "typer")
          if importlib.util.find_spec(name)]
assert not absent, absent
scores = load_model(sys.argv[1]).predict(np.load(sys.argv[2]))
assert scores.tobytes() == np.load(sys.argv[3]).tobytes()
print(f"NumPy alone: the same {len(scores):,} scores, {len(sys.modules)} modules loaded")
"""


def main() -> None:
    """Build, check and try the archives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", default="", help="the tag that is released, such as v0.1.0")
    tag = parser.parse_args().tag
    version = re.findall(r'__version__ = "(.+)"', (ROOT / "src/leanrank/_version.py").read_text())[
        0
    ]
    if tag and tag != f"v{version}":
        sys.exit(f"the tag is {tag} and the version {version}: change src/leanrank/_version.py")
    for name in ("CHANGELOG.md", "CITATION.cff"):
        if tag and version not in (ROOT / name).read_text("utf-8"):
            sys.exit(f"{name} does not name {version}")
    if tag and pending((ROOT / "CHANGELOG.md").read_text("utf-8")):
        sys.exit(f"CHANGELOG.md has entries under Unreleased: they belong to {version}")
    dist = ROOT / "dist"
    for old in dist.glob("leanrank-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
    archives = sorted(dist.glob("leanrank-*"))
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    wheel = next(file for file in archives if file.suffix == ".whl")
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert any(name.endswith("py.typed") for name in names), "the wheel has no py.typed"
    assert not [n for n in names if n.startswith(("tests/", "papers/"))], "the wheel has more"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = [place / "m.json", place / "X.npy", place / "scores.npy"]
        python = environment(place / "whole", wheel)
        run(python, "-c", ROUND_TRIP, *files, cwd=place)
        run(python, "-m", "leanrank", "demo", cwd=place)
        python = environment(place / "scoring", "numpy", "--no-deps", wheel)
        run(python, "-c", SCORING, *files, cwd=place)
    print(f"{', '.join(file.name for file in archives)}: built, checked, installed and used")


def pending(log: str) -> bool:
    """Say whether the change log has entries that belong to no version."""
    return "\n- " in log.partition("## Unreleased")[2].partition("\n## ")[0]


def environment(place: Path, *packages: object) -> Path:
    """Make an empty environment with some packages, and return its Python."""
    run(sys.executable, "-m", "venv", place)
    python = next(place.glob("[bS]*/python*"))
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(python, *install, *packages)
    return python


def run(*words: object, cwd: Path | None = None) -> None:
    """Run a command; a failure ends everything."""
    subprocess.run([str(word) for word in words], check=True, cwd=cwd)


if __name__ == "__main__":
    main()
