"""Search for a small model, write it as SQL, and check that the database computes its scores."""

import tempfile
from pathlib import Path

import duckdb

from leanrank import evaluate, tune
from leanrank.data import load_sample, to_frame
from leanrank.model.export import export_model
from leanrank.model.verify import verify_export

train, vali, test = load_sample()
# budget=60 searches for a minute; six trials give the same answer on every run.
study = tune(
    train, vali, max_features=6, trials=6, systems=["domination", "greedyrankrls", "listnet"]
)
print(study, "\n")
print(study.model, "\n")
print(evaluate(test, study.model.predict(test)), "\n")

sql = export_model(study.model, "sql:duckdb", table="documents", qid="qid", top=3)
file = Path(tempfile.mkdtemp()) / "score.sql"
file.write_text(sql, encoding="utf-8")
print(sql)

# leanrank runs the query itself and compares every score with the model's.
found = verify_export(study.model, "sql:duckdb", test)
print(f"largest difference {found.difference:.1e}, orders changed: {found.orders_changed}\n")

# In your own database: create the view once, then select from it.
documents = to_frame(test)
with duckdb.connect() as database:
    database.execute(file.read_text(encoding="utf-8").split(";")[0])
    print(
        database.sql(
            "SELECT qid, doc_id, label, leanrank_score FROM leanrank ORDER BY 4 DESC LIMIT 5"
        )
    )
