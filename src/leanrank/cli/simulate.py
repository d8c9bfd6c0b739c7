"""``leanrank simulate``: learners that explore, tried on simulated users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_folder, read_data, stdin_once
from leanrank.cli.parameters import parse_parameters
from leanrank.errors import InputError, suggest

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.online.trial import Trial


def simulate(
    data: Annotated[
        str, Argument(metavar="DATA", help="Judged documents whose queries users ask, or -.")
    ],
    learners: Annotated[
        str, Option(metavar="LIST", help="Any of spd, lcra, pdgd, ips, dbgd, mgd, cps.")
    ] = "spd,lcra,pdgd",
    users: Annotated[
        str,
        Option(metavar="LIST", help="Any of perfect, navigational, informational, almost-random."),
    ] = "navigational",
    queries: Annotated[int, Option(min=1, metavar="N", help="Lists per run.")] = 5_000,
    test: Annotated[
        str | None,
        Option(metavar="FILE", help="Measure what was learned on these data, instead of DATA."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter of every learner that has it, or of one: lcra.mu=0.1. May be "
            "repeated.",
        ),
    ] = None,
    seeds: Annotated[int, Option(min=1, metavar="N", help="Runs of each learner.")] = 10,
    seed: Annotated[int, Option(min=0, metavar="N", help="Of the first run.")] = 0,
    query: Annotated[
        str | None, Option(metavar="ID", help="The query whose lists the page shows.")
    ] = None,
    scale: Annotated[
        str, Option(metavar="KIND", help="Normalise features, as for train; none leaves them.")
    ] = "query-minmax",
    report: Annotated[
        str | None, Option(metavar="FILE", help="Write a page with curves and lists, or -.")
    ] = None,
    format: options.Format = None,
    read: options.Read = None,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Let learners serve simulated users, and show how they learn.

    For example: leanrank simulate train.txt --learners spd,lcra,pdgd --report r.html
    """
    from leanrank.data.scaling.normalizers import NORMALIZERS, make_normalizer
    from leanrank.online.users import USERS

    stdin_once(data, test)
    methods = _methods(learners, parameter or [])
    visitors = _listed("--users", users, USERS)
    normalizer = None if scale == "none" else make_normalizer(scale, (*NORMALIZERS, "none"))
    if report is not None:
        check_folder(report, json, "page", "the page a file")
        options.check_report()
    with screen.progress() as say:
        from leanrank.online.trial import try_learners

        say(f"Reading {data}")
        asked = read_data(data, format, read)
        measured = None
        if test is not None:
            measured = read_data(test, format, read, n_features=asked.n_features)
        number = None if query is None else _number(asked, query, data)
        if normalizer is not None:
            asked = normalizer.fit_transform(asked)
            measured = None if measured is None else normalizer.transform(measured)
        trial = try_learners(
            asked, methods, visitors, queries, test=measured, n_seeds=seeds, query=number,
            random_state=seed, n_jobs=jobs, say=say,
        )  # fmt: skip
        if report is not None:
            from leanrank.report import write_trial

            say("Writing the page")
            write_trial(trial, report)
    if json:
        screen.print_json(_result(trial, data, test, report))
    else:
        _print(trial, report)


def _methods(learners: str, given: list[str]) -> dict[str, dict[str, Any]]:
    """Return the parameters of each learner; every word must be of use to one of them."""
    from leanrank.online.learners.ranker import DEFAULTS
    from leanrank.online.learners.state import METHODS

    chosen = _listed("--learners", learners, METHODS)
    found: dict[str, dict[str, Any]] = {method: {} for method in chosen}
    for word in given:
        method, dot, _ = word.partition("=")[0].partition(".")
        if dot and method not in found:
            raise InputError(f"-p {word}: {method} is none of --learners {learners}")
        whose = [method] if dot else [each for each in chosen if method in DEFAULTS[each]]
        text = word[len(method) + 1 :] if dot else word
        for each in whose or chosen[:1]:  # the first one says that there is no such parameter
            parsed = parse_parameters([text], DEFAULTS[each], each)
            if parsed.keys() & found[each].keys():
                raise InputError(f"-p {word}: {each} has got this parameter already: give it once")
            found[each] |= parsed
    return found


def _listed(option: str, text: str, choices: tuple[str, ...]) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in choices:
            raise InputError(f"{option} has no {name!r}: {suggest(name, choices)}")
        if names.count(name) > 1:
            raise InputError(f"{option} names {name} twice: name it once")
    return names


def _number(data: RankingData, query: str, file: str) -> int:
    names = [str(name) for name in data.query_ids]
    if query not in names:
        raise InputError(f"{file} has no query {query!r}: its first is {names[0]!r}")
    return names.index(query)


def _result(trial: Trial, data: str, test: str | None, report: str | None) -> dict[str, Any]:
    return {
        "data": data,
        "test": test,
        "report": report,
        "queries": trial.n_queries,
        "seeds": trial.n_seeds,
        "results": [
            {
                "learner": one.learner,
                "user": one.user,
                "at": one.at.tolist(),
                "ndcg@10": one.learned.mean(axis=0).tolist(),
                "ndcg_shown": one.served.mean(axis=0).tolist(),
                "cumulative_ndcg": float(one.cumulative.mean()),
                "features": float(one.features.mean()),
                "preferred": vars(one.preference),
            }
            for one in trial.results
        ],
    }


def _print(trial: Trial, report: str | None) -> None:
    console = screen.screen(error=report == "-")
    for user in dict.fromkeys(one.user for one in trial.results):
        table = screen.plain_table(
            f"{user} users", "cumulative", "NDCG@10", "features", "last : first", "clear after"
        )
        for one in (one for one in trial.results if one.user == user):
            table.add_row(
                one.learner,
                f"{one.cumulative.mean():.2f}",
                f"{one.learned[:, -1].mean():.4f}",
                f"{one.features.mean():g}",
                f"{one.preference.wins:,} : {one.preference.losses:,}",
                f"{one.preference.decided:,}" if one.preference.decided else "–",
            )
        console.print(table)
        console.print()
    where = "other queries" if trial.held_out else "the same queries"
    console.print(
        f"{trial.n_queries:,} lists, {trial.n_seeds} run{'s' * (trial.n_seeds != 1)}; cumulative: "
        f"discounted NDCG of the lists shown; NDCG@10: of what was learned, on {where}; "
        f"last : first: of {trial.results[0].preference.n_lists:,} lists interleaved from the last "
        "ranker and the one it began with, those that prefer each",
        style="dim",
    )
    if report not in (None, "-"):
        console.print(f"Report written to {report}", soft_wrap=True)
