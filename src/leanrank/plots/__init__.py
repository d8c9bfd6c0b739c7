"""Charts of models and of what chose them, for notebooks and for the report."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.plots.charts import coefficient_path as coefficient_path
    from leanrank.plots.charts import features as features
    from leanrank.plots.charts import front as front
    from leanrank.plots.charts import learning_curve as learning_curve
    from leanrank.plots.charts import wins_and_losses as wins_and_losses
    from leanrank.plots.colours import theme as theme
    from leanrank.plots.curve_charts import curves as curves
    from leanrank.plots.dispatch import plot as plot

__getattr__, __dir__, __all__ = attach(
    "leanrank.plots",
    {
        "leanrank.plots.charts": "coefficient_path features front learning_curve wins_and_losses",
        "leanrank.plots.colours": "theme",
        "leanrank.plots.curve_charts": "curves",
        "leanrank.plots.dispatch": "plot",
    },
)
