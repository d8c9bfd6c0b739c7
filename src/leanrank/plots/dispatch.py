"""One function that draws whatever it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leanrank.errors import InputError
from leanrank.plots import charts
from leanrank.plots.curve_charts import curves as draw_curves


def plot(thing: Any, data: Any = None, **options: Any) -> Any:
    """Draw a result: an Altair chart, for a notebook or ``chart.save("figure.html")``.

    Parameters
    ----------
    thing : Study, Path, Model, fitted ranker or list of dict
        A study shows its front, a path its coefficients, a linear model or ranker its features,
        one with curves each of them, a ranker's ``history_`` its learning curve.
    data : RankingData, optional
        The documents to draw a model's features or curves on.
    **options
        For the chart; see ``leanrank.plots``.

    Examples
    --------
    >>> import leanrank
    >>> data = leanrank.make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> path = leanrank.DominationRanker().path(data.X, data.y, qid=data.qid, n_alphas=5)
    >>> type(leanrank.plot(path)).__name__
    'LayerChart'
    """
    from leanrank.model.model import Model
    from leanrank.rankers.path import Path
    from leanrank.selection.study import Study

    if isinstance(thing, Study):
        return charts.front(thing, **options)
    if isinstance(thing, Path):
        return charts.coefficient_path(thing, **options)
    model = thing.to_model() if hasattr(thing, "to_model") else thing
    if isinstance(model, Model):
        if not model.is_linear:
            return draw_curves(model, data, **options)
        if data is None:
            raise InputError("a model is drawn on documents: give a RankingData as data=")
        return charts.features(model, data, **options)
    if isinstance(thing, Sequence) and thing and isinstance(thing[0], dict):
        return charts.learning_curve(thing, **options)
    raise InputError(
        f"a {type(thing).__name__} cannot be drawn: give a study, a path, a model, a fitted "
        "ranker or its history_"
    )
