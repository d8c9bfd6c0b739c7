"""``leanrank fuse``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leanrank._files import atomic_write
from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_files
from leanrank.errors import InputError, suggest

if TYPE_CHECKING:
    from leanrank.selection.fused import Fusion

TARGET_SCALERS = {
    "opensearch": ("query-minmax", "query-reciprocal-rank"),
    "elasticsearch": ("query-minmax", "query-reciprocal-rank"),
    "qdrant": ("query-qdrant-rank",),
}
"""The normalisers of scores that each engine computes."""


def fuse(
    runs: list[str],
    /,
    qrels: str,
    output: str | None = None,
    target: str | None = None,
    query_features: str | None = None,
    baseline: str | None = None,
    loss: str = "squared-hinge",
    measure: str = "ndcg@10",
    convention: str = "standard",
    folds: int = 5,
    curve: bool = True,
    json: bool = False,
) -> None:
    """Learn the weights of a hybrid search and compare them with reciprocal rank fusion.

    For example: leanrank fuse bm25.trec dense.trec --qrels q.txt --to opensearch -o pipe.json

    Parameters
    ----------
    runs : RUN
        TREC runs, one per retriever.
    qrels : FILE
        TREC qrels, Quepid CSV or workbench JSON of OpenSearch.
    output : -o FILE
        Where to write the weights, or -.
    target : --to -t ENGINE
        opensearch, elasticsearch or qdrant: choose among the normalisers that it computes, and
        write its request. [default: plain JSON]
    query_features : FILE
        CSV with the column qid and others, such as kind or length, to learn weights for each type
        of query.
    baseline : RUN=WEIGHT,…
        Current weights, to compare with.
    loss : NAME
        domination, exponential, listnet, logistic or squared-hinge.
    measure : NAME
        Measure to choose by and to report.
    folds : N
        Number of folds, of the outer and of the inner cross-validation.
    curve : --curve/--no-curve
        Measure how many judged queries are needed.
    """
    check_files([*runs, qrels], output, json=json)
    if target is not None and target not in TARGET_SCALERS:
        raise InputError(f"there is no target {target!r}: {suggest(target, TARGET_SCALERS)}")
    how: dict[str, Any] = {"loss": loss, "curve": curve, "cv": folds}
    how |= {"measure": measure, "convention": convention}
    if target is not None:
        how["scalers"] = TARGET_SCALERS[target]
    with screen.progress() as say:
        from leanrank.data.tables.files import read_table
        from leanrank.data.trec import as_qrels, as_run
        from leanrank.selection.fuse import fuse

        options.check_measures(measure, convention)
        names = run_names(runs)
        say("Reading the runs")
        loaded = {name: as_run(file, name) for name, file in zip(names, runs, strict=True)}
        say(f"Reading {qrels}")
        judged = as_qrels(qrels)
        if query_features is not None:
            how["query_features"] = read_table(query_features, texts={"qid"}, categories=True)
        if baseline is not None:
            how["baseline"] = options.parse_numbers(baseline.split(","), "--baseline")
        say(f"Learning the weights of {len(loaded)} runs")
        found = fuse(loaded, judged, **how)
    if output is not None:
        write_weights(found, target, output)
    if json:
        screen.print_json(described(found))
    elif output != "-":
        show(found)
        if output is not None:
            screen.print_written(screen.screen(), {"Weights": output})


def run_names(files: list[str]) -> list[str]:
    """Return the names of runs: those of their files, without folders and suffixes."""
    from pathlib import Path

    names = [Path(file).name.removesuffix(".gz").partition(".")[0] or file for file in files]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two runs are named {name!r}: give their files different names")
    return names


def write_weights(found: Fusion, target: str | None, output: str) -> None:
    """Write the request of an engine, or the weights alone."""
    import json

    from leanrank.model.export import hybrid_weights

    content: Any = described(found)
    if target is not None:  # a request for each type of query, and one for all others
        content, (scaler, constant, _) = {}, found.setting
        for kind, weights in {**found.weights_by_type, "others": found.weights}.items():
            how: dict[str, Any] = {"scaler": scaler}
            if isinstance(constant, tuple):  # Qdrant's ranks: the weights are in the constants
                weights = dict(zip(weights, constant, strict=True))
            elif constant is not None:
                how["rank_constant"] = constant
            content[kind] = json.loads(hybrid_weights(weights, target, **how))
        content = content if found.weights_by_type else content["others"]
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    with atomic_write(output) as out:
        out.write(text)


def described(found: Fusion) -> dict[str, Any]:
    """Return all results as plain values."""
    same = ("weights", "weights_by_type", "loss", "dual_gap", "measure", "convention", "means")
    return {
        **{name: getattr(found, name) for name in same},
        **found.setting._asdict(),
        "queries": found.n_queries,
        "comparisons": {name: one.to_dict() for name, one in found.comparisons.items()},
        "fold_settings": [setting._asdict() for setting in found.fold_settings],
        "curve": [
            {"queries": p.n_queries, "mean": p.mean, **p.against_all.to_dict()} for p in found.curve
        ],
        "verdict": found.verdict(),
        "notes": list(found.notes),
    }


def show(found: Fusion) -> None:
    """Print weights, the table of systems, the learning curve and the verdict."""
    console = screen.screen()
    how = f"{found.setting}" + (
        "" if found.dual_gap is None else f", {found.loss}, duality gap {found.dual_gap:.1e}"
    )
    weights = ", ".join(f"{name} {weight:.3f}" for name, weight in found.weights.items())
    idle = [name for name, weight in found.weights.items() if weight == 0]
    without = f"{', '.join(idle)}: weight 0, leave out of the request" if idle else ""
    facts = {"weights": weights, "chosen": how, "without": without}
    facts["notes"] = "; ".join(found.notes)
    console.print(screen.facts(facts))
    console.print()
    if found.weights_by_type:
        by_type = {**found.weights_by_type, "others": found.weights}
        rows = [[name, *(f"{w:.3f}" for w in own.values())] for name, own in by_type.items()]
        console.print(screen.plain_table("type of query", *found.weights, rows=rows))
        console.print()
    rows = [
        [name, screen.number(mean), *_difference(found.comparisons.get(name))]
        for name, mean in found.means.items()
    ]
    heads = (found.measure, "learned − this", "95% interval")
    console.print(screen.plain_table("system", *heads, rows=rows))
    if found.curve:
        rows = [
            [f"{point.n_queries:,}", screen.number(point.mean), *_difference(point.against_all)]
            for point in found.curve
        ]
        heads = (found.measure, "this − all", "95% interval")
        console.print()
        console.print(screen.plain_table("judged queries", *heads, rows=rows))
        console.print(found.curve_sentence())
    console.print(found.verdict())


def _difference(against: Any) -> list[str]:
    return ["", ""] if against is None else screen.difference(against)
