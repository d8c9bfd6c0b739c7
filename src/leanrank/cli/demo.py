"""``leanrank demo``: a first look, on the sample set that comes with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from leanrank._files import make_folder
from leanrank.cli import options, screen
from leanrank.cli.screen import print_json, progress

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.metrics import Evaluation
    from leanrank.model import Model

MEASURES = "ndcg@10,map,mrr,p@5"
ALPHAS = (0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002)


def demo(
    out: Annotated[str, Option(metavar="DIR", help="Directory for the model.")] = "demo-output",
    json: options.Json = False,
) -> None:
    """Learn on the sample set and compare with simple rules.

    The sample set is a small web search that comes with leanrank; nothing is downloaded.
    """
    from leanrank.cli.training.shared import with_measures

    path = str(make_folder(out) / "model.json")
    with progress() as say:
        from leanrank.data.sets.sample import load_sample

        say("Reading the sample set")
        train, vali, test = load_sample()
        say("Fitting Domination Rank")
        model = _fit(train, vali)
        say("Measuring")
        rule, columns = _compare(model, train, test)
        model = with_measures(model, {"test": columns["leanrank"].means})
        model.save(path)
    if json:
        _print_json(path, model, rule, columns)
    else:
        _print(path, model, rule, columns, (train, vali, test))


def _fit(train: RankingData, vali: RankingData) -> Model:
    """Fit for several strengths and keep the leanest model that is as good as any.

    As good: on the validation queries, within one standard error of the best NDCG@10. Features are
    standardised, so that the sizes of their weights can be compared.
    """
    import numpy as np

    from leanrank.cli.training.shared import fit_model
    from leanrank.data.scaling.normalizers import GlobalStandardScaler
    from leanrank.metrics import evaluate
    from leanrank.rankers import DominationRanker

    scaler = GlobalStandardScaler()
    models = [fit_model(DominationRanker(alpha=alpha), train, scaler) for alpha in ALPHAS]
    models = [model for model in models if model.n_nonzero]
    results = [evaluate(vali, m.predict(vali), measures="ndcg@10") for m in models]
    ndcg = [result.means["ndcg@10"] for result in results]
    values = results[int(np.argmax(ndcg))].per_query["ndcg@10"]
    spread = np.nanstd(values, ddof=1) / np.sqrt(np.count_nonzero(~np.isnan(values)))
    good = [m for m, mean in zip(models, ndcg, strict=True) if mean >= max(ndcg) - spread]
    return min(good, key=lambda model: model.n_nonzero)


def _compare(
    model: Model, train: RankingData, test: RankingData
) -> tuple[str, dict[str, Evaluation]]:
    """Measure the model on the test queries beside the best single feature and no order at all."""
    import numpy as np

    from leanrank.metrics import evaluate

    def measured(scores: Any, **choices: Any) -> Evaluation:
        return evaluate(test, scores, measures=MEASURES, **choices)

    rule, column, sign = best_single_feature(train)
    return rule, {
        "leanrank": measured(model.predict(test)),
        "best feature": measured(sign * test.X[:, column]),
        # All scores equal, averaged over the orders of ties: the exact mean of random orders.
        "random order": measured(np.zeros(len(test)), ties="average"),
    }


def best_single_feature(train: RankingData) -> tuple[str, int, float]:
    """Find the feature, and its direction, that alone ranks the training queries best."""
    from leanrank.selection.engine import Split
    from leanrank.selection.systems import fit_system

    found = fit_system("bestfeature", Split(train, train, "ndcg@10")).parameters
    column, sign = found["feature"], float(found["direction"])
    name = train.feature_names[column] if train.feature_names else f"feature {column}"
    return f"{name}, {'highest' if sign > 0 else 'lowest'} first", column, sign


def _print_json(path: str, model: Model, rule: str, columns: dict[str, Evaluation]) -> None:
    print_json(
        {
            "model": path,
            "parameters": model.provenance["parameters"],
            "weights": model.weights,
            "best_feature": rule,
            "measures": {
                name.replace(" ", "_").lower(): column.means for name, column in columns.items()
            },
        }
    )


def _print(
    path: str,
    model: Model,
    rule: str,
    columns: dict[str, Evaluation],
    parts: tuple[RankingData, ...],
) -> None:
    from leanrank.data.sets.sample import sample_weights

    console = screen.screen()
    train, vali, test = parts
    alpha = model.provenance["parameters"]["alpha"]
    console.print(
        screen.facts(
            {
                "data": "a small web search with a known truth, part of leanrank",
                "training": screen.data_summary(train),
                "validation": f"{vali.n_queries} queries, {len(vali):,} documents",
                "test": f"{test.n_queries} queries, {len(test):,} documents",
                "algorithm": f"Domination Rank on standardised features; alpha={alpha:g}, the "
                f"leanest of {len(ALPHAS)} models within one standard error of the best on the "
                "validation queries",
            }
        )
    )
    truth = {
        name: "raises relevance" if weight > 0 else "lowers relevance"
        for name, weight in sample_weights().items()
        if weight
    }
    console.print("\nWhat the model learned", style="bold")
    console.print(screen.weights_table(model, console, truth, "in truth"))
    console.print(screen.weights_caption(model), style="dim")
    console.print("\nHow well it ranks the test queries", style="bold")
    console.print(screen.measures_table(columns, best="leanrank"))
    console.print(f"best feature on the training queries: {rule}", style="dim")
    console.print(f"\nModel written to {path}", soft_wrap=True)
    console.print(f"Next: leanrank predict {path} DATA -o scores.txt", style="dim", soft_wrap=True)
