"""A nightly job: check, learn again, compare, and publish only if every gate passes.

`python nightly.py FOLDER TODAY.parquet` uses FOLDER/model.json; without arguments, four made-up
nights: a first model, a quiet night, users who want something else, features in another unit.
"""

import sys
from pathlib import Path

import numpy as np

import leanrank
from leanrank.data import load, make_ranking
from leanrank.model.export import export_model
from leanrank.model.verify import verify_export

GATES = ("ndcg@10 < 0", "map < -0.01")
TARGET = "sql:duckdb"


def night(folder, today):
    """Return the exit code: 0 if a model that is right is in place, 1 if a person should look."""
    current, last = folder / "model.json", np.arange(today.n_queries) % 5 == 4
    learn, test = today.queries[np.flatnonzero(~last)], today.queries[np.flatnonzero(last)]
    if not current.exists():
        leanrank.LeanRanker().fit(learn).save(current)
        return print("first model") or 0
    old = leanrank.load_model(current)
    found = leanrank.check(old, today)
    found.write(folder / "check.html")
    print("check:", found.verdict)
    if found.findings:  # what broke must not be learned
        return print(*(each.text for each in found.findings), sep="\n") or 1
    if not found.needs_refit:
        return 0
    new = leanrank.refit(old, learn)
    change = leanrank.diff(old, new, test)
    change.write(folder / "diff.html")
    print("diff:", change.verdict)
    if failed := change.failures(GATES):
        return print("not published:", *failed, sep="\n") or 1
    (folder / "score.sql").write_text(export_model(new, TARGET))
    verified = verify_export(new, TARGET, test)
    print(f"verify: {verified.orders_changed} orders changed in {verified.engine}")
    if verified.agrees:
        new.save(current)
        print("published")
    return int(not verified.agrees)


if __name__ == "__main__":
    days = [load(path) for path in sys.argv[2:]]
    if not days:
        days = [make_ranking(n_queries=150, random_state=0).queries[k::3] for k in (0, 1, 2, 2)]
        days[2] = days[2].replace(y=days[2].y.max() - days[2].y)
        days[3] = days[2].replace(X=1000 * days[2].X)
    codes = [night(Path(*sys.argv[1:2]), today) for today in days]
    sys.exit(codes[-1] if len(sys.argv) > 1 else 0)
