"""The same trials of ``tune`` on one thread and on two: seconds, and whether the answers agree.

Wall-clock time, so nothing else may run. Sixteen trials on the first fold of MQ2008, or on the
sample set without ``--data``; both contestants take turns.
"""

from __future__ import annotations

from benchmarks.harness import Options, Table, race, show_seconds
from leanrank.data import RankingData, load_letor, load_sample
from leanrank.selection import Study, tune

TRIALS = 16
THREADS = (1, 2)


def run(options: Options) -> list[Table]:
    training, validation = _parts(options)
    n_trials = 2 if options.quick else TRIALS
    contestants = {
        n_jobs: lambda n_jobs=n_jobs: tune(training, validation, trials=n_trials, n_jobs=n_jobs)
        for n_jobs in THREADS
    }
    timings = race(contestants, repeat=options.repeat)
    table = Table(f"tune, the same {n_trials} trials on {len(training):,} documents")
    first = timings[THREADS[0]]
    for n_jobs, timing in timings.items():
        table.add(
            threads=n_jobs,
            seconds=str(timing),
            **{
                "fastest": show_seconds(min(timing.seconds)),
                "trials per second": n_trials / timing.median,
                "times one thread": first.median / timing.median,
                "same answer": _same(first.result, timing.result),
            },
        )
    table.note = "seconds: median and half the range; the answer is every candidate and its values."
    return [table]


def _parts(options: Options) -> tuple[RankingData, RankingData]:
    if options.data is None:
        return load_sample()[:2]
    folder = options.data / "MQ2008" / "Fold1"
    training = load_letor(folder / "train.txt")
    return training, load_letor(folder / "vali.txt", n_features=training.n_features)


def _same(one: Study, other: Study) -> bool:
    def answer(study: Study) -> list[tuple[str, float]]:
        return [(each.name, each.score(study.measure)) for each in study.candidates]

    return answer(one) == answer(other) and one.chosen.name == other.chosen.name
