"""Any ranking measure as a scorer for scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.metrics.judge import Judge, better_sign


class RankingScorer(BaseEstimator):
    """A measure for ``scoring=`` in GridSearchCV, cross_validate and others.

    It asks for ``qid`` by itself once metadata routing is enabled, and passes it on to a pipeline
    whose steps need it to transform. Greater is better: an error comes out negative. Documents of
    equal scores count as in all their orders on average, whatever the convention does with them.

    Parameters
    ----------
    measure : str, default="ndcg@10"
        As ``leanrank.metrics.evaluate`` takes it.
    convention : str or Convention, default="standard"

    Examples
    --------
    >>> from leanrank import RankRLS, make_ranking
    >>> data = make_ranking(n_queries=20, random_state=0)
    >>> ranker = RankRLS().fit(data.X, data.y, qid=data.qid)
    >>> bool(0.5 < RankingScorer("map")(ranker, data.X, data.y, qid=data.qid) < 1)
    True
    """

    def __init__(self, measure: str = "ndcg@10", convention: Any = "standard") -> None:
        self.measure = measure
        self.convention = convention

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None) -> float:
        """Measure a fitted ranker or pipeline on held-out queries."""
        if qid is None:
            raise InputError(
                "RankingScorer must know the query of each row: enable scikit-learn's metadata "
                "routing and pass qid"
            )
        scores = np.asarray(estimator.predict(X, **_passed_on(estimator, qid)))
        rules = Judge(self.measure, self.convention).rules
        found = evaluate(y, scores, qid, measures=self.measure, convention=rules, n_jobs=1)
        return better_sign(self.measure) * float(next(iter(found.means.values())))

    def get_metadata_routing(self) -> Any:
        """Return the request of the scorer for ``qid``."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="qid", alias=True)
        return request


def _passed_on(estimator: Any, qid: Any) -> dict[str, Any]:
    """Pass ``qid`` to a pipeline that uses it in ``predict``; a ranker does not."""
    if not get_routing_for_object(estimator).consumes("predict", {"qid"}):
        return {}
    if not get_config()["enable_metadata_routing"]:
        raise InputError(
            "a step of the pipeline needs qid to transform, and scikit-learn passes it on only "
            "with sklearn.set_config(enable_metadata_routing=True)"
        )
    return {"qid": qid}
