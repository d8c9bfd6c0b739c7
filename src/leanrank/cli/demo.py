"""``leanrank demo``: a first look, on the sample set that comes with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leanrank._files import make_folder
from leanrank.cli import screen

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.metrics import Evaluation
    from leanrank.model import Model

MEASURES = "ndcg@10,map,mrr,p@5"
MAX_FEATURES = 10
SHOWN_SIZES = (1, 2, 3, 5, 8, 10)


def demo(output: str = "demo-output", json: bool = False) -> None:
    """Learn on the sample set and compare with simple rules.

    The sample set is a small web search that comes with leanrank; nothing is downloaded.

    Parameters
    ----------
    output : -o DIR
        Directory for the model.
    """
    from leanrank.cli.train import with_notes

    path = str(make_folder(output) / "model.json")
    with screen.progress() as say:
        from leanrank.data.sets import load_sample
        from leanrank.rankers import LeanRanker

        say("Reading the sample set")
        train, _, test = load_sample()
        say("Fitting LeanRanker")
        ranker = LeanRanker(max_features=MAX_FEATURES).fit(train)
        say("Measuring")
        rule, columns = _compare(ranker.model_, train, test)
        model = with_notes(ranker.model_, measures={"test": columns["leanrank"].means})
        model.save(path)
    if json:
        measures = {name.replace(" ", "_"): one.means for name, one in columns.items()}
        found = {"model": path, "parameters": model.provenance["parameters"]}
        found |= {"weights": model.weights, "best_feature": rule, "measures": measures}
        screen.print_json(found)
    else:
        facts = {
            "data": "a small web search with a known truth, part of leanrank",
            "training": screen.data_summary(train),
            "test": f"{test.n_queries} queries, {len(test):,} documents",
            "ranker": f"LeanRanker(max_features={MAX_FEATURES}): a sum of curves, chosen by the "
            "loss on held-out training queries",
        }
        _print(path, model, rule, columns, facts, ranker.front_)


def _compare(
    model: Model, train: RankingData, test: RankingData
) -> tuple[str, dict[str, Evaluation]]:
    """Measure the model on the test queries beside the best single feature and no order at all."""
    import numpy as np

    from leanrank.metrics import evaluate

    rule, column, sign = best_single_feature(train)
    scores = {"leanrank": model.predict(test), "best feature": sign * test.X[:, column]}
    columns = {name: evaluate(test, each, measures=MEASURES) for name, each in scores.items()}
    # All scores equal, averaged over the orders of ties: the exact mean of random orders.
    equal = evaluate(test, np.zeros(len(test)), measures=MEASURES, ties="average")
    return rule, {**columns, "random order": equal}


def best_single_feature(train: RankingData) -> tuple[str, int, float]:
    """Find the feature, and its direction, that alone ranks the training queries best."""
    from leanrank.selection.engine import Split
    from leanrank.selection.systems import fit_system

    found = fit_system("bestfeature", Split(train, train, "ndcg@10")).parameters
    column, sign = found["feature"], float(found["direction"])
    name = train.feature_names[column] if train.feature_names else f"feature {column}"
    return f"{name}, {'highest' if sign > 0 else 'lowest'} first", column, sign


def _print(
    path: str,
    model: Model,
    rule: str,
    columns: dict[str, Evaluation],
    facts: dict[str, str],
    front: list[dict[str, Any]],
) -> None:
    from leanrank.data.sets import sample_weights

    console = screen.screen()
    console.print(screen.facts(facts))
    truth = {
        name: "raises relevance" if weight > 0 else "lowers relevance"
        for name, weight in sample_weights().items()
        if weight
    }
    console.print("\nWhat the model learned", style="bold")
    console.print(screen.weights_table(model, console, truth, "in truth"))
    console.print(f"{screen.weights_caption(model)}: how far its curve rises or falls", style="dim")
    console.print("\nWhat fewer features would give", style="bold")
    sizes = [row for row in front if row["features"] in SHOWN_SIZES][::-1]
    row = ["held-out ndcg@10", *(screen.number(size["ndcg@10"]) for size in sizes)]
    heads = ("features", *(str(size["features"]) for size in sizes))
    console.print(screen.plain_table(*heads, rows=[row]))
    console.print("\nHow well it ranks the test queries", style="bold")
    console.print(screen.measures_table(columns))
    console.print(f"best feature on the training queries: {rule}", style="dim")
    console.print(f"\nModel written to {path}", soft_wrap=True)
    console.print(f"Next: leanrank predict {path} DATA -o scores.txt", style="dim", soft_wrap=True)
