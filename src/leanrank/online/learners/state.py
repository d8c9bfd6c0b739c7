"""What the kernels of online learners share: the rule, the state, and one list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leanrank._typing import FloatArray, IntArray

METHODS = ("spd", "lcra", "pdgd", "ips", "dbgd")
SPD, LCRA, PDGD, IPS, DBGD = range(len(METHODS))

LISTS, STEPS = range(2)
"""Places in ``LearnerState.counts``: lists observed, steps taken."""


class LearnerRule(NamedTuple):
    """The parameters of a learner, as kernels take them; the loss is passed beside them.

    Attributes
    ----------
    method : int
        Which of ``METHODS``.
    length : int
        Documents per list.
    explore : float
        ε: chance that a slot gets a document drawn uniformly.
    schedule : int
        Which of ``pair_descent.SCHEDULES``.
    eta0, power, alpha : float
        Rate, its exponent, and strength of the penalty.
    ftrl : bool
        Whether steps follow the regularised leader, with an ℓ1 penalty; else they are gradient
        steps with an ℓ2² penalty.
    rho : float
        Keeps FTRL's first rates small.
    mu : float
    n_unlabeled : int
        Strength of the agreement and unlabelled pairs per step of LCRA.
    eta : float
        A user looks at rank r with chance r^−η, as IPS assumes.
    clip : float
        The smallest propensity.
    delta : float
        Distance of a candidate from the current weights.
    """

    method: int
    length: int
    explore: float
    schedule: int
    eta0: float
    power: float
    alpha: float
    ftrl: bool
    rho: float
    mu: float
    n_unlabeled: int
    eta: float
    clip: float
    delta: float


class LearnerState(NamedTuple):
    """All that a learner changes; arrays that its method does not need have no columns.

    Attributes
    ----------
    w : array of shape (views, features)
        The weights of each view; a document's score is the mean over the views.
    member : array of shape (views, features)
        1 where a feature belongs to a view, else 0.
    v, s : array of shape (views, features)
        Of FTRL.
    generator : array of shape (1,)
    counts : array of shape (2,)
    """

    w: FloatArray
    member: FloatArray
    v: FloatArray
    s: FloatArray
    generator: npt.NDArray[np.uint64]
    counts: IntArray


class Slate(NamedTuple):
    """One list, and what learning from its clicks needs.

    Attributes
    ----------
    documents : array of shape (length,)
    propensity : array of shape (length,)
        Chance of the document in its slot, given those above.
    scores : array of shape (views, documents)
        When the list was made.
    mean : array of shape (documents,)
        Their mean over the views; Plackett-Luce: the exponentials.
    direction : array of shape (features,)
        From the current weights to the candidate of a duel.
    shares : array of shape (2, length)
        Chance that each of the two gives the document of a slot, given those above.
    top, keys, order, chances, left, touched, slopes : array
        Working memory, whose content nothing depends on.
    """

    documents: IntArray
    propensity: FloatArray
    scores: FloatArray
    mean: FloatArray
    direction: FloatArray
    shares: FloatArray
    top: IntArray
    keys: FloatArray
    order: IntArray
    chances: FloatArray
    left: FloatArray
    touched: IntArray
    slopes: FloatArray


def new_slate(rule: LearnerRule, state: LearnerState, n_documents: int) -> Slate:
    """Return an empty slate for queries of up to ``n_documents`` documents."""
    views, features = state.w.shape
    duels = 2 if rule.method == DBGD else 0
    n_touched = n_documents if rule.method == IPS else rule.length + 2 * rule.n_unlabeled
    return Slate(
        documents=np.zeros(rule.length, dtype=np.int64),
        propensity=np.zeros(rule.length),
        scores=np.zeros((views, n_documents)),
        mean=np.zeros(n_documents),
        direction=np.zeros(features if duels else 0),
        shares=np.zeros((duels, rule.length)),
        top=np.zeros(rule.length, dtype=np.int64),
        keys=np.zeros(n_documents),
        order=np.zeros(n_documents, dtype=np.int64),
        chances=np.zeros((duels, n_documents)),
        left=np.zeros(duels),
        touched=np.zeros(n_touched, dtype=np.int64),
        slopes=np.zeros((views, n_touched)),
    )
