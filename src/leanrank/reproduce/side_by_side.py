"""Published figures beside ours where the data differ: to be read, not compared digit by digit."""

from __future__ import annotations

from dataclasses import dataclass

from leanrank.reproduce.report import Cell, ComparedTable, Report


@dataclass(frozen=True)
class Beside(Cell):
    """A figure as printed, on other data than ours.

    >>> Beside("0.670", "0.812").differs
    False
    """

    @property
    def is_compared(self) -> bool:
        """Never: the data are not the same."""
        return False


@dataclass(frozen=True)
class SideBySideTable(ComparedTable):
    """A published table whose data are not ours."""

    def markdown(self) -> str:
        """Write the table, without a count of figures that agree."""
        return super().markdown().rpartition("\n\n")[0]


@dataclass
class SideBySideReport(Report):
    """A reproduction on other data than the published."""

    @property
    def summary(self) -> str:
        """Say what the figures are for."""
        return (
            "The published figures come from other data, and stand beside ours to be read, not to "
            "be matched."
        )
