"""The base class of rankers: input checks, prediction, scoring, saving."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.dask import is_dask
from leanrank.data.grouping import LONGEST_LIST, group_sizes_to_qid
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, ModelError, overflow, warn
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.model.scoring import rank_within_queries
from leanrank.rankers import inputs
from leanrank.rankers.dask import ClusterData, data_on_cluster, fit_partitions, lazy_predict
from leanrank.rankers.parameters import CONSTRAINTS, Constraints, Uses, by_feature, check_parameters

if TYPE_CHECKING:
    from leanrank.model import Model
    from leanrank.model.explain import Explanation


WITHOUT_EFFECT = frozenset({"n_jobs", "verbose", "callback"})
"""Parameters that do not change the weights; model files leave them out."""

WEIGHTS = ("sample_weight", "query_weight", "offset")


class BaseRanker(BaseEstimator):
    """A ranking function that follows scikit-learn's conventions.

    A subclass stores its parameters in ``__init__`` and implements ``_learn``, ``_scores`` (or
    ``predict``) and ``to_model``.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of str
        Only when X had column names that are all strings.
    n_queries_ : int
        Queries in the training data.
    n_informative_queries_ : int
        Training queries with documents at two levels or more.
    """

    # scikit-learn passes these on from meta-estimators once metadata routing is enabled.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}

    _takes_validation: ClassVar[bool] = False  # whether ``fit`` uses validation data
    _takes_preferences: ClassVar[bool] = False  # whether ``fit`` can do without labels
    _learned: ClassVar[str] = "coef_"  # the attribute that ``fit`` sets last
    _fits_on_cluster: ClassVar[bool] = False  # whether documents may be on a Dask cluster
    _takes_unlabeled: ClassVar[bool] = False  # whether NaN in y is a document without a label
    _constraints: ClassVar[Constraints] = CONSTRAINTS
    _used_with: ClassVar[Uses] = {}
    """For a parameter that is used only with some values of another one: the name of the other and
    these values; None means every value but None."""

    n_features_in_: int

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        validation: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        gain_weight: Any = None,
        offset: Any = None,
        preferences: Any = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (documents, features), or RankingData
            Rows in any order. Of a ClickLog, the documents that it shows. On Dask, a DataFrame, an
            Array, or a list of delayed objects or futures; the other arguments then have the same
            partitions, see `docs/scale.md`. A RankingData contains its labels, queries and
            weights; the other arguments and all results are in its grouped order.
        y : array-like
            One label per document; levels are the distinct values. For a ClickLog, what
            ``leanrank.data.click_weights`` returns.
        qid : array-like, optional
            One query identifier per document, any hashable type. None: all documents are one query.
        validation : RankingData or (X, y, qid), optional
            For rankers that learn in rounds or passes: data on which the model is measured after
            each. The best model is returned. With ``patience``, the fit stops after that many
            rounds or passes without a better one.
        group : array-like, optional
            Instead of qid: the sizes of consecutive queries.
        sample_weight : array-like, optional
            One weight per document; a document of weight 2 counts twice.
        query_weight : array-like or mapping, optional
            One weight per query in order of first appearance, or a mapping from qid.
        gain_weight : array-like, optional
            One weight per document for the terms of the loss in which it should rank above others,
            such as the inverse propensity of a click.
        offset : array-like, optional
            The margin offset s of each document: the loss sees Xw − s.
        preferences : tuple (i, j) or (i, j, weight) of arrays, optional
            For rankers with a pairwise loss, instead of labels: the document in row i should rank
            above the one in row j of the same query. A preference of weight 2 counts twice.

        Returns
        -------
        self
        """
        if validation is not None and not self._takes_validation:
            raise InputError(f"{type(self).__name__} has no passes or rounds: leave validation out")
        given = {"group": group, "sample_weight": sample_weight, "query_weight": query_weight}
        given |= {"gain_weight": gain_weight, "offset": offset, "preferences": preferences}
        if is_dask(X) and hasattr(self, "partial_fit") and not self._fits_on_cluster:
            return fit_partitions(self, X, y, qid, validation=validation, **given)
        data, labels = self._data_and_labels(X, y, qid, **given)
        held_out = inputs.held_out_data(self, validation)
        self._count_queries(data, labels)
        # Weights that are not finite are rejected below; NumPy's warnings would repeat that.
        with single_threaded_blas(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            self._learn(data, labels, held_out)
            self._check_learned()
            self._warn_if_empty(data, labels)
        return self

    def _count_queries(self, data: RankingData, labels: Labels) -> None:
        """Set ``n_queries_`` and ``n_informative_queries_``."""
        self.n_queries_ = data.n_queries
        self.n_informative_queries_ = inputs.count_informative(data, labels)

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        """Set the fitted attributes; ``held_out`` is None without validation data."""
        raise AssertionError(f"{type(self).__name__} must define _learn")

    def predict(self, X: Any) -> FloatArray:
        """Score documents, in the order given; a higher score ranks first.

        Only the columns of features in use are read. For a Dask collection, the scores are a lazy
        collection.
        """
        check_is_fitted(self, self._learned)
        return lazy_predict(self, X) if is_dask(X) else self._scores(self._checked_features(X))

    def _scores(self, X: Matrix) -> FloatArray:
        """Score checked documents."""
        raise AssertionError(f"{type(self).__name__} must define _scores")

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return a plain model, which can be saved, sent and exported."""
        raise AssertionError(f"{type(self).__name__} must define to_model")

    @property
    def _slow_unscaled(self) -> bool:
        """Whether features of very different spread make the solver much slower."""
        return False

    @property
    def _takes_nan(self) -> bool:
        """Whether NaN is a missing value, as for steps and curves; these need no scaling either."""
        return False

    def _check_learned(self) -> None:
        """Reject weights that are not finite; the ranker is then not fitted."""
        for name in ("coef_", "dual_coef_"):
            learned = getattr(self, name, None)
            if learned is not None and not np.isfinite(learned).all():
                delattr(self, name)
                raise InputError(overflow(type(self).__name__))

    def _data_and_labels(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        gain_weight: Any = None,
        preferences: Any = None,
        first: bool | None = None,
        **fields: Any,
    ) -> tuple[RankingData, Labels]:
        """Check the arguments of ``fit``, and set the number and names of the features.

        ``fields`` are further arguments of RankingData. ``first`` tells the first of several chunks
        of a stream from later ones; None means that the data are complete.
        """
        normalize = getattr(self, "normalize", "query")
        if is_dask(X) or isinstance(X, ClusterData):
            fields |= {"preferences": preferences, "gain_weight": gain_weight}
            labels = Labels(np.zeros(0), np.zeros(1, np.int64), normalize=normalize)
            return data_on_cluster(self, X, y, qid, **fields), labels  # type: ignore[return-value]
        check_parameters(self)
        explicit = preferences is not None
        if isinstance(X, ClickLog):
            X, gain_weight = X.labelled(
                y, explicit=explicit, gain_weight=gain_weight, qid=qid, **fields
            )
            y, qid, fields = None, None, {}
        if explicit and not self._takes_preferences:
            raise InputError(
                f"{type(self).__name__} has no pairwise loss: give labels y, or choose RankSVM"
            )
        if isinstance(X, RankingData):
            inputs.refuse_beside_data(y=y, qid=qid, **fields)
            data = X
            self._checked_features(data, reset=True)
        else:
            data = self._validated(X, y, qid, fields, needs_y=not explicit)
            unnamed = qid is None and fields.get("group") is None and first is None
            if unnamed and not explicit and len(data) > LONGEST_LIST and data.n_queries == 1:
                inputs.warn_without_qid("fit", len(data))
        if not explicit and not self._takes_unlabeled:
            inputs.check_labels(data, type(self).__name__)
        if data.sample_weight is not None and not data.sample_weight.any():
            raise InputError("every sample_weight is zero: at least two documents must count")
        if first is not False and not self._takes_nan:
            inputs.warn_of_units(data, by_query=first is True, slow=self._slow_unscaled)
        gains = inputs.grouped_gains(gain_weight, data, grouped=data is X)
        given = {name: getattr(data, name) for name in ("y", "query_ptr", *WEIGHTS)}
        edges = inputs.grouped_edges(preferences, data, grouped=data is X) if explicit else None
        return data, Labels(**given, gain_weight=gains, normalize=normalize, edges=edges)

    def _warn_if_empty(self, data: RankingData, labels: Labels) -> None:
        if getattr(self, "sparsity_", None) == 0.0:
            warn(
                f"{type(self).__name__} learned a model without features, so every score is 0: "
                f"{self._remedy_if_empty(data, labels)}"
            )

    def _remedy_if_empty(self, data: RankingData, labels: Labels) -> str:
        """Return advice on how to get a model with features."""
        remedies = {"alpha": "lower alpha", "radius": "raise radius", "epochs": "take more passes"}
        given = [text for name, text in remedies.items() if name in self.get_params()]
        return " or ".join([*given, "give features that differ between labels of a query"])

    def rank(self, X: Any, qid: Any = None, *, group: Any = None) -> IntArray:
        """Return each document's rank within its query, 1 the best; ties keep the input order."""
        scores = self.predict(X)
        if isinstance(X, RankingData):
            inputs.refuse_beside_data(qid=qid, group=group)
            qid = X.qid
        elif group is not None:
            if qid is not None:
                raise InputError("both qid and group were given: give one of them")
            qid = group_sizes_to_qid(group, len(scores))
        return rank_within_queries(scores, qid)

    def explain(self, X: Any, qid: Any = None) -> Explanation:
        """Split the scores of documents into the contributions of the features.

        Give the documents of one query, or all with ``qid``; ``explain(X).why(a, b)`` then lists
        the features that put row a above row b.
        """
        return self.to_model().explain(X, qid)

    def score(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Return NDCG@10 in the standard convention, the mean over queries where it is defined.

        ``sample_weight`` is not used, since the measure counts queries; scikit-learn's pipelines
        and searches pass it to every ``score``.
        """
        from leanrank.metrics import evaluate

        scores = self.predict(X)
        if isinstance(X, RankingData):
            inputs.refuse_beside_data(y=y, qid=qid, group=group)
            y, qid = X.y, X.qid
        elif y is None:
            raise InputError("score needs the labels y (or a RankingData)")
        elif qid is None and group is None and not is_dask(X):
            qid = np.zeros(len(scores), dtype=np.int64)
            if self.n_queries_ > 1:
                though = f", though {type(self).__name__} was fitted on {self.n_queries_:,}"
                inputs.warn_without_qid("score", len(scores), though)
        return float(evaluate(y, scores, qid, group=group, measures=["ndcg@10"])["ndcg@10"])

    @property
    def sparsity_(self: Any) -> float:
        """Share of the features that the model uses."""
        return float(self.n_features_ / max(1, self.n_features_in_))

    def _checked_features(self, X: Any, *, reset: bool = False) -> Matrix:
        """Return checked features; with ``reset``, learn their number and names from X."""
        return inputs.checked_features(self, X, reset=reset)

    def _names(self) -> tuple[str, ...] | None:
        return inputs.names_of(self)

    def _by_feature(self, name: str, n_features: int, rest: float) -> Any:
        """Return a parameter with one value per feature, which may be given by name."""
        return by_feature(name, getattr(self, name), n_features, self._names(), rest)

    def _provenance(self) -> dict[str, Any]:
        """Return algorithm, parameters and certificate of the fit, for the model file."""
        from leanrank.model import make_provenance

        parameters = {k: v for k, v in self.get_params().items() if k not in WITHOUT_EFFECT}
        report = {k: getattr(self, f"{k}_", None) for k in ("dual_gap", "objective", "n_iter")}
        return make_provenance(
            algorithm=type(self).__name__,
            parameters=parameters,
            training={k: v for k, v in report.items() if v is not None} or None,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON; ``leanrank.load_model`` reads it."""
        self.to_model().save(Path(path))

    def _validated(self, X: Any, y: Any, qid: Any, fields: Any, *, needs_y: bool) -> RankingData:
        """Check features and labels, and group them; ``fields`` as for ``_data_and_labels``."""
        if y is None and needs_y:
            name = type(self).__name__
            raise InputError(f"{name} requires y to be passed, but the target y is None")
        matrix = self._checked_features(X, reset=True)
        return RankingData(matrix, y, qid, feature_names=self._names(), **fields)

    def _repr_html_(self) -> str:
        """Return the weights as HTML; scikit-learn's HTML before ``fit`` or without weights."""
        from leanrank.model.explain import weights_html

        try:
            return weights_html(self.to_model(), type(self).__name__)
        except (NotFittedError, ModelError):  # not fitted, or not linear
            return str(estimator_html_repr(self))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan
        return tags
