from __future__ import annotations

import doctest
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import RankingData, make_ranking
from leanrank.checks import ranker_checks
from leanrank.errors import DataWarning, InputError
from leanrank.rankers import MinBatSRank, get_ranker, stochastic

RANKERS = [
    MinBatSRank(),
    MinBatSRank(loss="domination", rates="uniform", l1="per_step"),
    MinBatSRank(0.01, loss="listnet", normalize="none", eta0=0.1),
]


@pytest.mark.parametrize("check", ranker_checks(), ids=lambda c: c.__name__)
@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_battery(ranker, check):
    check(ranker)


@parametrize_with_checks([MinBatSRank(), MinBatSRank(loss="domination", l1="per_step")])
def test_scikit_learn(estimator, check):
    check(estimator)


def problem(seed=0):
    return make_ranking(n_queries=40, n_features=20, n_informative=4, random_state=seed)


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge", "logistic", "domination", "listnet"])
def test_every_loss_makes_a_sparse_model(loss):
    train, test = problem(), problem()
    ranker = MinBatSRank(0.2, loss=loss).fit(train)
    assert 0 < np.count_nonzero(ranker.coef_) < 15
    truth = MinBatSRank(0.0, loss=loss).fit(train)
    assert np.count_nonzero(truth.coef_) == 20
    assert ranker.score(test) > 0.7


def test_alpha_is_a_share_of_alpha_max():
    data = problem()
    for l1 in ("total", "per_step"):
        ranker = MinBatSRank(0.3, l1=l1)
        top = ranker.alpha_max(data)
        assert ranker.fit(data).alpha_ == pytest.approx(0.3 * top)
        absolute = MinBatSRank(0.3 * top, l1=l1, relative=False).fit(data)
        assert np.array_equal(ranker.coef_, absolute.coef_)
        with pytest.warns(DataWarning, match="without features"):
            empty = MinBatSRank(3.0, l1=l1).fit(data)
        assert not empty.coef_.any()


def test_alpha_max_per_step_is_that_of_the_batch_problem():
    from leanrank.rankers import DominationRanker

    data = problem()
    ranker = MinBatSRank(loss="domination", l1="per_step")
    assert ranker.alpha_max(data) == pytest.approx(DominationRanker().alpha_max(data))


def test_sizes_fall_with_alpha_and_seeds_differ():
    data = problem()
    sizes = [np.count_nonzero(MinBatSRank(a).fit(data).coef_) for a in (0.5, 0.1, 0.01)]
    assert sizes == sorted(sizes)
    one, same, other = (MinBatSRank(0.01, random_state=s).fit(data).coef_ for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    drawn = MinBatSRank(0.05, random_state=np.random.RandomState(3)).fit(data)
    assert drawn.score(data) > 0.7


def test_partial_fit_is_one_pass_in_the_given_order():
    data = problem()
    once = MinBatSRank(5.0, relative=False, epochs=1, shuffle=False).fit(data)
    parts = MinBatSRank(5.0, relative=False)
    for first in range(0, 40, 10):
        piece = data.queries[first : first + 10]
        parts.partial_fit(piece.X, piece.y, qid=piece.qid)
    assert np.allclose(parts.coef_, once.coef_, rtol=1e-9)
    assert parts.state_.steps == once.state_.steps
    assert parts.n_queries_ == 40
    assert len(parts.history_) == 4
    assert parts.history_[-1]["documents"] == len(data)


def test_partial_fit_skips_blocks_without_information_and_takes_pickles():
    data = problem()
    idle = data.replace(y=np.ones(len(data)))
    ranker = MinBatSRank(1.0, relative=False).partial_fit(idle)
    assert not ranker.coef_.any()
    assert ranker.n_informative_queries_ == 0
    ranker.partial_fit(data)
    kept = pickle.loads(pickle.dumps(ranker))
    for r in (ranker, kept):
        r.partial_fit(idle).partial_fit(data)
    assert np.array_equal(kept.coef_, ranker.coef_)
    assert np.array_equal(
        MinBatSRank(1.0, relative=False).partial_fit(data).partial_fit(data).coef_, kept.coef_
    )


def test_preferences_stand_in_for_labels():
    data = problem()
    same = data.qid[:, None] == data.qid[None, :]
    i, j = np.nonzero(same & (data.y[:, None] > data.y[None, :]))
    by_label = MinBatSRank(0.1).fit(data)
    by_pairs = MinBatSRank(0.1).fit(data.X, qid=data.qid, preferences=(i, j))
    assert by_pairs.n_informative_queries_ == by_label.n_informative_queries_
    assert by_pairs.score(data) == pytest.approx(by_label.score(data), abs=0.02)
    # labels and all their pairs are the same, once the order is
    settings = {"relative": False, "epochs": 2, "shuffle": False}
    one = MinBatSRank(5.0, **settings).fit(data)
    other = MinBatSRank(5.0, **settings).fit(data.X, qid=data.qid, preferences=(i, j))
    assert np.allclose(one.coef_, other.coef_, rtol=1e-8)
    assert np.allclose(
        MinBatSRank(5.0, relative=False)
        .partial_fit(data.X, qid=data.qid, preferences=(i, j))
        .coef_,
        MinBatSRank(5.0, relative=False).partial_fit(data).coef_,
        rtol=1e-8,
    )
    # whatever the order of the rows
    mixed = np.random.default_rng(0).permutation(len(data))
    place = np.argsort(mixed)
    shuffled = MinBatSRank(0.1).fit(
        data.X[mixed], qid=data.qid[mixed], preferences=(place[i], place[j])
    )
    assert np.allclose(shuffled.coef_, by_pairs.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(InputError, match="not a sum over pairs"):
        MinBatSRank(loss="listnet").fit(data.X, qid=data.qid, preferences=(i, j))


def test_growing():
    data = problem()
    X = csr_array(data.X)
    ranker = MinBatSRank(0.0).partial_fit(X[:, :15], data.y, data.qid)
    before = ranker.coef_
    with pytest.raises(ValueError, match="expecting 15 features"):
        ranker.partial_fit(X, data.y, data.qid)
    with pytest.raises(InputError, match="expecting 15 features"):
        ranker.partial_fit(data)
    ranker.grow(20)
    assert np.array_equal(ranker.coef_[:15], before)
    assert not ranker.coef_[15:].any()
    assert ranker.partial_fit(X, data.y, data.qid).coef_[15:].any()
    with pytest.raises(InputError, match="cannot continue"):
        ranker.grow(3)
    assert MinBatSRank().grow(4).n_features_in_ == 4


def test_early_stopping_keeps_the_best_pass():
    train, vali = problem(), problem(1)  # another truth: more training need not help
    for measure in ("map", "all_pairs_error"):
        ranker = MinBatSRank(0.02, epochs=40, patience=3, measure=measure, convention="letor4")
        ranker.fit(train, validation=(vali.X, vali.y, vali.qid))
        values = [entry[measure] for entry in ranker.history_]
        best = min(values) if measure == "all_pairs_error" else max(values)
        assert values[ranker.best_epoch_ - 1] == best
        assert values.index(best) == ranker.best_epoch_ - 1
        assert ranker.n_iter_ == len(values) < 40
        assert ranker.n_iter_ == ranker.best_epoch_ + 3
        shorter = MinBatSRank(
            ranker.alpha_, relative=False, epochs=ranker.best_epoch_, eta0=1.0
        ).fit(train)
        assert np.array_equal(shorter.coef_, ranker.coef_)


def test_an_empty_model_is_never_the_best_pass():
    data = problem()
    # in file order an empty model would look perfect
    ordered = RankingData(data.X, data.y, data.qid)
    rows = np.lexsort((-ordered.y, ordered.qid))
    vali = (ordered.X[rows], ordered.y[rows], ordered.qid[rows])
    ranker = MinBatSRank(0.9, epochs=20, measure="map", convention="letor3")
    ranker.fit(data, validation=vali)
    assert ranker.history_[0]["support"] == 0
    assert ranker.history_[0]["map"] < 0.6  # ties count as in all orders
    assert ranker.coef_.any()
    # nor does patience run out before the first feature
    patient = MinBatSRank(0.9, epochs=20, measure="map", convention="letor3", patience=2)
    assert patient.fit(data, validation=vali).coef_.any()
    assert patient.best_epoch_ > 2
    assert not hasattr(patient.set_params(patience=None).fit(data), "best_epoch_")


def test_warm_start_goes_on():
    data = problem()
    ranker = MinBatSRank(2.0, relative=False, epochs=3, warm_start=True).fit(data).fit(data)
    assert np.array_equal(ranker.coef_, MinBatSRank(2.0, relative=False, epochs=6).fit(data).coef_)
    narrow = RankingData(data.X[:, :5], data.y, data.qid)
    assert len(ranker.fit(narrow).coef_) == 5


def test_progress(capsys):
    seen = []
    MinBatSRank(epochs=2, verbose=1, callback=seen.append).fit(problem())
    text = capsys.readouterr().err
    assert text.count("[MinBatSRank] epoch") == 2
    assert "documents_per_second" in text
    assert "sparsity" in text
    assert [entry["epoch"] for entry in seen] == [1, 2]
    assert seen[1]["loss"] < seen[0]["loss"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": -1}, "alpha=-1"),
        ({"eta0": 0}, "eta0=0"),
        ({"rho": -0.1}, "rho=-0.1"),
        ({"rates": "fast"}, "rates='fast'"),
        ({"l1": "all"}, "l1='all'"),
        ({"epochs": 0}, "epochs=0"),
        ({"patience": 0}, "patience=0"),
        ({"loss": "hinges"}, "did you mean 'hinge'"),
        ({"normalize": "term"}, "normalize='term'"),
        ({"epochs": 2.5}, "epochs=2.5"),
        ({"rates": "uniform", "rho": 2.0}, "rho has no effect"),
    ],
)
def test_wrong_parameters(parameters, words):
    with pytest.raises(InputError, match=words):
        MinBatSRank(**parameters).fit(problem())


def test_wrong_validation():
    with pytest.raises(InputError, match="validation must be"):
        MinBatSRank().fit(problem(), validation=[1, 2])


def test_plain_sums_with_uniform_rates_diverge_with_a_sentence():
    data = problem()
    large = RankingData(1e4 * data.X, data.y, data.qid)
    ranker = MinBatSRank(0.0, rates="uniform", normalize="none", eta0=100.0, epochs=50)
    with pytest.raises(InputError, match="lower eta0"):
        ranker.fit(large)


def test_names_and_examples():
    assert get_ranker("minbatsrank") is MinBatSRank
    for module in (stochastic,):
        assert doctest.testmod(module).failed == 0


def test_a_run_does_not_go_on_with_other_parameters():
    data = problem()
    ranker = MinBatSRank(0.1, epochs=2, warm_start=True).fit(data)
    ranker.set_params(epochs=3, patience=2, measure="map").fit(data, validation=data)
    ranker.set_params(patience=None)
    ranker.set_params(alpha=0.2)
    for go_on in (ranker.fit, ranker.partial_fit):
        with pytest.raises(InputError, match=r"started with alpha=0\.1 and cannot continue"):
            go_on(data)
    ranker.set_params(warm_start=False).fit(data).partial_fit(data)


def test_growing_is_one_way():
    ranker = MinBatSRank(0.1).partial_fit(problem())
    with pytest.raises(InputError, match="features and cannot continue with 3"):
        ranker.grow(3)


def test_the_best_pass_is_forgotten_when_learning_goes_on():
    data = problem()
    ranker = MinBatSRank(0.1, epochs=2).fit(data, validation=data)
    assert ranker.best_epoch_ in (1, 2)
    assert not hasattr(ranker.partial_fit(data), "best_epoch_")


@pytest.mark.parametrize("wrong", ["zero", -1, 0.5])
def test_a_wrong_seed(wrong):
    with pytest.raises(InputError, match=r"random_state=.* must be an int in the range"):
        MinBatSRank(random_state=wrong).fit(problem())


def test_blocks_without_information_are_counted():
    data = problem()
    alike = data.replace(y=np.zeros(len(data)))
    ranker = MinBatSRank(0.1).partial_fit(alike).partial_fit(alike).partial_fit(data)
    assert ranker.n_queries_ == 3 * data.n_queries
    assert ranker.n_informative_queries_ == int(data.informative.sum())
