"""``leanrank systems``, ``warmup`` and ``demo``."""

from __future__ import annotations

import contextlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from leanrank._files import make_folder
from leanrank.cli import screen
from leanrank.errors import LeanrankError
from leanrank.registry import CAPABILITIES, SYSTEMS, System, get_system, shown

if TYPE_CHECKING:
    from leanrank.data import RankingData

_PARAMETER = r"(?m)^(\w[\w, ]*?)(?: : (.*))?\n((?:^    .*\n?)*)"


def systems(system: str | None = None, /, json: bool = False) -> None:
    """List the ranking systems and their purposes, or the parameters of one.

    For example: leanrank systems domination

    Parameters
    ----------
    system : NAME
        System to describe. [default: list all]
    """
    if system is not None:
        _explain(get_system(system), json)
    elif json:
        screen.print_json({"systems": [_summary(system) for system in _fitted().values()]})
    else:
        console = screen.screen()
        rows = [[system.name, system.purpose] for system in _fitted().values()]
        console.print(screen.plain_table("name", "purpose", rows=rows, justify="left"))
        console.print("\nleanrank systems NAME shows the parameters and capabilities of one.")


def _explain(system: System, as_json: bool) -> None:
    ranker, own = system.load(), system.own_parameters
    parameters = [
        entry | ({"default": own[entry["name"]]} if entry["name"] in own else {})
        for entry in describe(ranker)
    ]
    if as_json:
        screen.print_json(_summary(system) | {"fixed": own, "parameters": parameters})
        return
    console = screen.screen()
    console.print((inspect.getdoc(ranker) or "").partition("\n\n")[0] + "\n")
    about = {
        "purpose": system.purpose,
        "published": system.paper,
        "class": f"leanrank.rankers.{system.ranker}",
        "train with": f"leanrank train DATA -a {system.name} -m FILE",
    }
    console.print(
        screen.facts(
            about | {what: shown(system, able) or "no" for able, what in CAPABILITIES.items()}
        )
    )
    console.print()
    rows = [[one["name"], str(one["default"]), one["meaning"]] for one in parameters]
    console.print(screen.plain_table("-p", "default", "meaning", rows=rows, justify="left"))


def describe(ranker: Any) -> list[dict[str, Any]]:
    """Return name, default and first sentence of the description of each parameter of a class.

    >>> from leanrank.rankers import RankRLS
    >>> describe(RankRLS)[0]["name"]
    'alpha'
    """
    meanings: dict[str, str] = {}
    for owner in reversed(ranker.__mro__):  # descriptions are inherited
        section = inspect.cleandoc(owner.__doc__ or "").partition("Parameters\n----------\n")[2]
        section = re.split(r"\n\n\S+\n---+\n", section)[0] + "\n"
        for names, kind, text in re.findall(_PARAMETER, section):
            sentence = " ".join(text.replace("``", "").split()).partition(". ")[0].rstrip(".")
            for name in names.split(", "):
                known = meanings.get(name, kind.partition(", default=")[0])
                meanings[name] = _of_another(sentence, name) or sentence or known
    return [
        {"name": name, "default": parameter.default, "meaning": meanings.get(name, "")}
        for name, parameter in inspect.signature(ranker).parameters.items()
    ]


def _of_another(sentence: str, name: str) -> str:
    """Return the meaning that a parameter has in the class that "As for SPD" names."""
    from leanrank import rankers

    other = getattr(rankers, sentence.removeprefix("As for "), None)
    entries = describe(other) if inspect.isclass(other) else []
    return next((entry["meaning"] for entry in entries if entry["name"] == name), "")


def _fitted() -> dict[str, System]:
    return {name: system for name, system in SYSTEMS.items() if system.space is not None}


def _summary(system: System) -> dict[str, Any]:
    return {
        "name": system.name,
        "title": system.title,
        "purpose": system.purpose,
        "published": system.paper,
        "class": f"leanrank.rankers.{system.ranker}",
    } | {able: getattr(system, able) for able in CAPABILITIES}


def warmup(names: list[str] | None = None, /) -> None:
    """Compile in advance what a first run would compile.

    Compiled code is stored in NUMBA_CACHE_DIR, or beside the package. In a container image, set the
    variable to a folder of the image and RUN leanrank warmup.

    For example: leanrank warmup domination ranksvm

    Parameters
    ----------
    names : SYSTEM
        Systems to compile for. [default: all]
    """
    from leanrank._jit import compile_seconds

    systems = [get_system(name) for name in dict.fromkeys(names or [])]
    systems = systems or list(_fitted().values())
    before = compile_seconds()
    with screen.progress() as say:
        say("Reading and measuring")
        data = _read_and_measure()
        for system in systems:
            say(f"Fitting {system.title}")
            _fit(system, data)
    seconds = compile_seconds() - before
    count = "1 system" if len(systems) == 1 else f"{len(systems)} systems"
    screen.screen().print(f"Ready: {count}, reading and measuring; {seconds:.1f} s of compiling.")


def _read_and_measure() -> RankingData:
    """Read a text file and compute every measure: all systems share these kernels."""
    import tempfile
    from pathlib import Path

    from leanrank.data import dump_letor, load_letor, load_sample
    from leanrank.metrics import evaluate

    sample = load_sample()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.txt"
        dump_letor(sample, path)
        data = load_letor(path, n_features=sample.n_features, storage="dense")
        load_letor(path, storage="sparse")
    evaluate(data, data.X[:, 0], measures="ndcg@10,mean_ndcg,map,p@10,mrr,err,auc")
    evaluate(data, data.X[:, 0], measures="domination_error,all_pairs_error")
    return data


def _fit(system: System, data: RankingData) -> None:
    """Fit a system to dense and sparse X in both precisions, where it takes them.

    Fit it also to one list that is long enough for every kernel of a loss.
    """
    import warnings

    import numpy as np
    from scipy.sparse import csr_array

    from leanrank.data import GlobalStandardScaler, RankingData

    assert system.space is not None
    setting: dict[str, Any] = {**system.space.fixed, **system.space.settings()[0]}
    X = GlobalStandardScaler().fit(data).transform(data).X[:, :8]
    dense, holes = np.ascontiguousarray(X), csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    forms = [
        data.replace(X=form.astype(dtype))
        for form in (dense, holes)
        for dtype in (np.float64, np.float32)
    ]
    for some in (*forms, RankingData(dense[:200], data.y[:200])):
        with warnings.catch_warnings(), contextlib.suppress(LeanrankError):
            warnings.simplefilter("ignore")  # some systems do not take all forms
            system.load()(**setting).fit(some)


MEASURES = "ndcg@10,map,mrr,p@5"
MAX_FEATURES = 10
SHOWN_SIZES = (1, 2, 3, 5, 8, 10)


def demo(output: str = "demo-output") -> None:
    """Learn on the sample set and compare with simple rules.

    The sample set is a small web search that is part of leanrank; nothing is downloaded.

    Parameters
    ----------
    output : -o DIR
        Directory for the model.
    """
    from leanrank.cli.train import with_notes

    path = str(make_folder(output) / "model.json")
    with screen.progress() as say:
        import numpy as np

        from leanrank.data.sets import load_sample
        from leanrank.metrics import evaluate
        from leanrank.rankers import LeanRanker
        from leanrank.selection.engine import Split
        from leanrank.selection.systems import fit_system

        say("Reading the sample set")
        train, _, test = load_sample()
        say("Fitting LeanRanker")
        ranker = LeanRanker(max_features=MAX_FEATURES).fit(train)
        say("Measuring")
        rule = fit_system("bestfeature", Split(train, train, "ndcg@10"))
        columns = {"leanrank": evaluate(test, ranker.predict(test), measures=MEASURES)}
        columns["best feature"] = evaluate(test, rule.model.predict(test), measures=MEASURES)
        # All scores equal, averaged over the orders of ties: the exact mean of random orders.
        equal = evaluate(test, np.zeros(len(test)), measures=MEASURES, ties="average")
        columns["random order"] = equal
        model = with_notes(ranker.model_, measures={"test": columns["leanrank"].means})
        model.save(path)
    console = screen.screen()
    facts = {
        "data": "a small web search with a known truth, part of leanrank",
        "training": screen.data_summary(train),
        "test": f"{test.n_queries} queries, {len(test):,} documents",
        "ranker": f"LeanRanker(max_features={MAX_FEATURES}): a sum of curves, chosen by the "
        "loss on held-out training queries",
    }
    console.print(screen.facts(facts))
    console.print("\nWhat the model learned, and how well it ranks the test queries", style="bold")
    screen.print_model(console, model, columns)
    first = "highest" if rule.parameters["direction"] > 0 else "lowest"
    best = f"{rule.model.term_names[0]}, {first} first"
    console.print(f"best feature on the training queries: {best}", style="dim")
    console.print("\nWhat fewer features would give", style="bold")
    sizes = [row for row in ranker.front_ if row["features"] in SHOWN_SIZES][::-1]
    row = ["held-out ndcg@10", *(screen.number(size["ndcg@10"]) for size in sizes)]
    heads = ("features", *(str(size["features"]) for size in sizes))
    console.print(screen.plain_table(*heads, rows=[row]))
    console.print()
    screen.print_written(console, {"Model": path})
    console.print(f"Next: leanrank predict {path} DATA -o scores.txt", style="dim", soft_wrap=True)
