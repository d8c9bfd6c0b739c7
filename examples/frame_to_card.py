"""From a data frame to a model card: what the model uses, and how good it is."""

import tempfile
from pathlib import Path

from sklearn.pipeline import make_pipeline

import leanrank
from leanrank.data import GlobalStandardScaler, from_frame, load_sample, to_frame
from leanrank.model import save_model
from leanrank.model.export import export_model
from leanrank.rankers import DominationRanker

# Your table: one row per document and query, a label, the query, features.
train, vali, test = (to_frame(part, "pandas") for part in load_sample())
print(train.iloc[:3, :6], "\n")

# Other column names: from_frame(train, label="grade", qid="query", doc_id="url")
train, vali, test = map(from_frame, (train, vali, test))
scaler = GlobalStandardScaler().fit(train)
scaled = scaler.transform(train)
path = DominationRanker().path(scaled, validation=scaler.transform(vali), n_alphas=30)
print(path, "\n")

# The best model of the path with at most ten features; behind the scaler, it takes raw documents.
small = [at for at in range(len(path)) if 0 < path.n_selected[at] <= 10]
best = max(small, key=lambda at: path.measures["ndcg@10"][at])
ranker = path.ranker(best)
folder = Path(tempfile.mkdtemp())
save_model(make_pipeline(scaler, ranker), folder / "model.json")
model = leanrank.load_model(folder / "model.json")
print(leanrank.evaluate(test, model.predict(test)), "\n")

card = export_model(model, "markdown", name="web_search")
(folder / "card.md").write_text(card, encoding="utf-8")
print(card)
