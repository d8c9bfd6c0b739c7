"""What Pahikkala et al. 2010 printed: Tables 1 to 10.

In a table of measures a row is a method; its five folds are followed by the average.
"""

from __future__ import annotations

from dataclasses import dataclass

MEASURES = {"map": "MAP", "p@10": "P@10", "mean_ndcg": "MeanNDCG", "ndcg@10": "NDCG@10"}
"""The measures in the order of the tables, and their printed names."""


@dataclass(frozen=True)
class Published:
    """The tables of one data set.

    Attributes
    ----------
    first_table : int
        The number of the table of features; ``measures_table`` that of the first measure.
    first_figure : int
    exponents : tuple of int
        log2 λ of Greedy RankRLS in each fold.
    sizes : tuple of int
    selected : tuple of tuple of int
        The features of each fold in order of choice, from 1; at most ten are printed.
    measures : dict
        For each measure, method and fold the printed figure; the average is last.
    """

    first_table: int
    measures_table: int
    first_figure: int
    exponents: tuple[int, ...]
    sizes: tuple[int, ...]
    selected: tuple[tuple[int, ...], ...]
    measures: dict[str, dict[str, tuple[str, ...]]]


def _column(text: str) -> tuple[str, ...]:
    return tuple(f"0.{digits}" for digits in text.split())


PUBLISHED = {
    "MQ2007": Published(
        first_table=1,
        measures_table=3,
        first_figure=1,
        exponents=(8, 6, 9, 8, 7),
        sizes=(11, 40, 46, 44, 12),
        selected=(
            (39, 19, 25, 23, 32, 16, 43, 22, 5, 33),
            (39, 32, 19, 26, 23, 16, 5, 33, 18, 3),
            (39, 27, 23, 19, 13, 18, 42, 33, 16, 5),
            (39, 28, 45, 23, 43, 33, 13, 18, 22, 15),
            (39, 25, 19, 43, 23, 29, 22, 18, 5, 16),
        ),
        measures={
            "map": {
                "GRankRLS": _column("4859 4571 4655 4423 4709 4643"),
                "RankRLS": _column("4912 4573 4655 4425 4687 4650"),
                "RankSVM": _column("4894 4573 4676 4401 4680 4645"),
            },
            "p@10": {
                "GRankRLS": _column("3958 3858 3684 3670 3808 3796"),
                "RankRLS": _column("3997 3855 3684 3673 3811 3804"),
                "RankSVM": _column("4036 3932 3699 3652 3847 3833"),
            },
            "mean_ndcg": {
                "GRankRLS": _column("5228 4840 5056 4757 5033 4983"),
                "RankRLS": _column("5281 4841 5056 4754 5003 4987"),
                "RankSVM": _column("5278 4810 5042 4699 5003 4966"),
            },
            "ndcg@10": {
                "GRankRLS": _column("4735 4247 4466 4221 4487 4431"),
                "RankRLS": _column("4784 4246 4466 4221 4460 4435"),
                "RankSVM": _column("4818 4266 4461 4163 4485 4439"),
            },
        },
    ),
    "MQ2008": Published(
        first_table=2,
        measures_table=7,
        first_figure=3,
        exponents=(0, 10, 3, 6, 0),
        sizes=(1, 4, 7, 4, 1),
        selected=(
            (39,),
            (39, 23, 37, 32),
            (39, 29, 25, 23, 46, 37, 19),
            (39, 29, 25, 23),
            (39,),
        ),
        measures={
            "map": {
                "GRankRLS": _column("4311 4239 4582 5283 5183 4720"),
                "RankRLS": _column("4524 4300 4542 5225 5006 4719"),
                "RankSVM": _column("4502 4213 4529 5284 4950 4696"),
            },
            "p@10": {
                "GRankRLS": _column("2333 2178 2363 2975 2484 2467"),
                "RankRLS": _column("2391 2217 2325 2949 2503 2477"),
                "RankSVM": _column("2423 2229 2357 2981 2465 2491"),
            },
            "mean_ndcg": {
                "GRankRLS": _column("4454 4186 4787 5403 5369 4840"),
                "RankRLS": _column("4633 4269 4741 5407 5138 4838"),
                "RankSVM": _column("4577 4296 4686 5442 5159 4832"),
            },
            "ndcg@10": {
                "GRankRLS": _column("1920 1585 2558 2940 2254 2251"),
                "RankRLS": _column("2145 1669 2489 2874 2165 2268"),
                "RankSVM": _column("2117 1738 2494 2892 2155 2279"),
            },
        },
    ),
}
