"""Units, missing queries, empty models and parameters of a wrong kind are told."""

import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from leanrank import LeanRanker, LinearRanker, make_ranking
from leanrank.data.grouping import LONGEST_LIST
from leanrank.data.scaling.normalizers import GlobalStandardScaler
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.rankers import (
    LCRA,
    PAMIR,
    RANKERS,
    SPD,
    AdaRank,
    DominationRanker,
    FenchelRank,
    GreedyRankRLS,
    KernelRankRLS,
    ListNet,
    MinBatSRank,
    NonconvexRankSVM,
    RankBoost,
    RankRLS,
    RankSVM,
    SparseRank,
    get_ranker,
)
from leanrank.rankers.parameters import CONSTRAINTS, check_parameters


@pytest.fixture(scope="module")
def data():
    made = make_ranking(n_queries=20, n_features=6, random_state=0)
    return made.replace(feature_names=["bm25", "length", "age", "depth", "clicks", "shard"])


@pytest.fixture(scope="module")
def raw(data):
    return data.replace(X=data.X * [1.0, 1e5, 1.0, 1.0, 1.0, 1.0])


def quiet_fit(ranker, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(*given, **options)


@pytest.mark.parametrize("name", sorted(set(RANKERS) - {"rankboost", "lean"}))
def test_every_ranker_warns_of_units_and_standardising_ends_it(name, data, raw):
    message = r"the spread of 'length' is 1\d\d,\d{3} times that of '\w+'.*GlobalStandardScaler"
    with pytest.warns(DataWarning, match=message) as caught:
        quiet_fit(get_ranker(name)(), raw)
    assert sum("spread" in str(warning.message) for warning in caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        quiet_fit(get_ranker(name)(), GlobalStandardScaler().fit_transform(raw))


@pytest.mark.filterwarnings("ignore:.*learned a model without features")  # in so few steps
@pytest.mark.parametrize(
    ("ranker", "slow"),
    [
        (RankSVM(loss="hinge", max_iter=5), True),
        (RankSVM(solver="struct", max_iter=5), True),
        (SparseRank(solver="proximal", max_iter=5), True),
        (LinearRanker(solver="proximal", max_iter=5), True),
        (RankSVM(), False),
        (RankSVM(solver="newton"), False),
        (SparseRank(), False),
    ],
)
def test_solvers_that_units_make_slow_say_so(ranker, slow, raw):
    with pytest.warns(DataWarning, match="spread of 'length'") as caught:
        quiet_fit(ranker, raw)
    (told,) = (str(warning.message) for warning in caught if "spread" in str(warning.message))
    assert ("this solver needs far more iterations: standardise" in told) == slow


def test_units_in_sparse_data_paths_and_streams(raw):
    sparse = raw.replace(X=csr_array(raw.X))
    with pytest.warns(DataWarning, match="spread of 'length'"):
        RankRLS().fit(sparse)
    with pytest.warns(DataWarning, match="spread of 'length'"):
        DominationRanker(max_iter=1000).path(raw, n_alphas=2)
    ranker = PAMIR(n_steps=10)
    with pytest.warns(DataWarning, match="spread of 'length' .* QueryStandardScaler or --scale q"):
        ranker.partial_fit(raw.queries[:10])
    ranker.partial_fit(raw.queries[10:])  # the same data: said once


def test_thresholds_have_no_units(data, raw):
    before, after = (RankBoost(n_rounds=5).fit(d).predict(d) for d in (data, raw))
    assert np.array_equal(before, after)


def test_scores_without_the_queries_that_were_fitted(data):
    ranker = RankRLS().fit(data.X, data.y, qid=data.qid)
    with pytest.warns(DataWarning, match=r"score got no qid, .* was fitted on 20: .*routing=True"):
        ranker.score(data.X, data.y)
    ranker.score(data.X, data.y, qid=data.qid)
    ranker.score(data.X, data.y, group=np.diff(data.query_ptr))
    RankRLS().fit(data.X, data.y).score(data.X, data.y)  # one query is one query


def test_a_search_that_does_not_route_qid(data):
    search = GridSearchCV(RankRLS(), {"alpha": [0.1]}, cv=2, refit=False)
    with pytest.warns(DataWarning, match="set_config"):
        search.fit(data.X, data.y, qid=data.qid)


def test_a_search_warns_once():
    made = make_ranking(n_queries=300, n_features=4, random_state=1)
    search = GridSearchCV(RankRLS(), {"alpha": [0.1, 1.0]}, cv=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(made.X, made.y)
        search.fit(made.X, made.y)
    # fits of folds and the last fit are called from two lines of scikit-learn
    assert [str(each.message)[:14] for each in caught] == ["fit got no qid"] * 2


def test_evaluate_without_queries():
    made = make_ranking(n_queries=130, n_features=4, random_state=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            evaluate(made.y, made.X[:, 0])
    assert ["qid" in str(each.message) for each in caught] == [True]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(made.y, made.X[:, 0], made.qid)
        evaluate(made.y, made.X[:, 0], np.zeros(len(made)))
        evaluate(made.y[:LONGEST_LIST], made.X[:LONGEST_LIST, 0])
        evaluate(made, made.X[:, 0])


def test_many_documents_without_queries():
    made = make_ranking(n_queries=130, n_features=4, random_state=1)
    X, y = made.X, made.y
    message = f"fit got no qid, so all {len(made):,} documents count as one query: give qid"
    assert len(made) > LONGEST_LIST
    with pytest.warns(DataWarning, match=message) as caught:
        RankRLS().fit(X, y)
    assert caught[0].filename == __file__
    assert len(str(caught[0].message)) <= 300
    with pytest.warns(DataWarning, match="fit got no qid"):
        GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=2).fit(np.vstack([X, X]), np.hstack([y, y]))
    sizes = np.diff(made.query_ptr)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRLS().fit(X[:LONGEST_LIST], y[:LONGEST_LIST])
        RankRLS().fit(X, y, np.zeros(len(made)))  # one list, and it is said
        RankRLS().fit(X, y, group=sizes)
        RankRLS().fit(made)
        SPD(n_steps=10).partial_fit(X, y)


def test_an_empty_model_names_the_strength_that_empties_it(data):
    top = DominationRanker().alpha_max(data)
    with pytest.warns(DataWarning, match=f"lower alpha=1000 below alpha_max={top:.3g}") as caught:
        assert not DominationRanker(alpha=1000).fit(data).coef_.any()
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match="MinBatSRank .* lower alpha or take more passes"):
        MinBatSRank(alpha=1000).fit(data)
    with pytest.warns(DataWarning, match="features that differ between documents"):
        DominationRanker().fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("ranker", "named"),
    [
        (DominationRanker(callback=1), "callback=1"),
        (DominationRanker(penalty_factors="query"), "penalty_factors='query'"),
        (DominationRanker(warm_start="yes"), "warm_start='yes'"),
        (DominationRanker(l1_ratio=1.5), "l1_ratio=1.5"),
        (GreedyRankRLS(alpha=0.0), "alpha=0.0"),
        (KernelRankRLS(gamma=0.0), "gamma=0.0"),
        (MinBatSRank(convention=[]), "convention=[]"),
        (RankRLS(normalize=None), "normalize=None"),
        (RankSVM(margin="scaled", margin_scale=0.0), "margin_scale=0.0"),
        (RankSVM(solver="bound-cd"), "solver='bound-cd'"),
        (SPD(epochs="3"), "epochs='3'"),
        (SPD(learning_rate="pegasis"), "learning_rate='pegasis'"),
    ],
)
def test_parameters_of_a_wrong_kind(data, ranker, named):
    with pytest.raises(InputError) as caught:
        ranker.fit(data)
    assert named in str(caught.value)


@pytest.mark.parametrize("kind", [DominationRanker, ListNet, SparseRank, NonconvexRankSVM])
def test_features_by_name_and_by_number(data, kind):
    listed = {"penalty_factors": [1, np.inf, 1, 0, 1, 1], "signs": [0, 0, -1, 0, 0, 1]}
    named = {"penalty_factors": {"length": np.inf, "depth": 0}, "signs": {"age": -1, "shard": 1}}
    numbered = {"penalty_factors": {1: np.inf, 3: 0}, "signs": {2: -1, 5: 1}}
    expected = kind(**listed).fit(data).coef_
    for given in (named, numbered):
        assert np.array_equal(kind(**given).fit(data).coef_, expected)
    letor = {"penalty_factors": {"f2": np.inf, "f4": 0}, "signs": {"f3": -1, "f6": 1}}
    assert np.array_equal(kind(**letor).fit(data.X, data.y, data.qid).coef_, expected)
    assert kind(**named).alpha_max(data) == kind(**listed).alpha_max(data)
    path = kind(**named).path(data, n_alphas=3)
    assert np.array_equal(path.coefs, kind(**listed).path(data, n_alphas=3).coefs)


def test_the_open_grid_takes_features_by_name_too(data):
    factors = {"length": np.inf, "depth": 0}
    named = LinearRanker(penalty_factors=factors, signs={"age": -1}).fit(data)
    listed = LinearRanker(penalty_factors=[1, np.inf, 1, 0, 1, 1], signs=[0, 0, -1, 0, 0, 0])
    assert np.array_equal(named.coef_, listed.fit(data).coef_)


def test_features_that_the_data_do_not_have(data):
    with pytest.raises(InputError, match="signs has the feature 'bn25': did you mean 'bm25'"):
        DominationRanker(signs={"bn25": 1}).fit(data)
    with pytest.raises(InputError, match=r"penalty_factors has the feature 6: .* from 0 to 5"):
        DominationRanker(penalty_factors={6: 1}).fit(data)
    with pytest.raises(InputError, match="signs has the feature 'bm25': choose from f1, f2"):
        DominationRanker(signs={"bm25": 1}).fit(data.X, data.y, data.qid)
    with pytest.raises(InputError, match="signs has 'up' for the feature 'bm25': give a number"):
        DominationRanker(signs={"bm25": "up"}).fit(data)


def test_costs_and_directions_by_name(data):
    costs = {"bm25": 3.0, "length": 1.0}
    chosen = [
        LeanRanker(costs=given, max_cost=3.0, n_strengths=4).fit(data).model_.indices.tolist()
        for given in (costs, [3.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    ]
    assert chosen[0] == chosen[1]
    for given in ({"age": -1}, [1, 1, -1, 1, 1, 1]):
        chosen.append(AdaRank(n_rounds=3, signs=given).fit(data).coef_.tolist())
    assert chosen[2] == chosen[3]


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_anything_as_any_parameter_is_one_sentence_or_a_model(name, data):
    odd = (object(), {}, [], "zzz", (1,), np.array([[1.0]]), print, True, b"x")
    small = data.queries[:4]
    kind = get_ranker(name)
    cheap = {"n_steps": 5, "epochs": 1, "n_rounds": 2, "max_iter": 3}
    cheap = {k: v for k, v in cheap.items() if k in kind().get_params()}
    for parameter in kind().get_params():
        if parameter in ("loss", "penalty", "solver"):  # objects of the user's own
            continue
        for value in odd:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    kind(**{**cheap, parameter: value}).fit(small)
                except InputError as error:
                    assert str(error).count("\n") == 0  # noqa: PT017


def test_the_defaults_of_every_ranker_are_of_their_kinds():
    met = set()
    for kind in [LinearRanker, KernelRankRLS, *map(get_ranker, RANKERS)]:
        check_parameters(kind())
        met |= set(kind().get_params())
    assert set(CONSTRAINTS) - met <= {"max_cost"}


def test_validation_data_are_for_rankers_with_rounds(data):
    with pytest.raises(InputError, match="RankRLS has no passes or rounds"):
        RankRLS().fit(data, validation=data)


ADVICE = [  # what cannot be done, and the parameters that the message may name
    (SPD(alpha=0, learning_rate="pegasos"), {"learning_rate", "alpha", "l1_ratio"}),
    (LCRA(alpha=0, learning_rate="pegasos"), {"learning_rate", "alpha"}),
    (SPD(eta0=1e300, learning_rate="constant", loss="squared"), {"eta0", "learning_rate"}),
    (SPD(l1_ratio=None), {"l1_ratio"}),
    (LinearRanker(penalty="l1", solver="cutting-plane"), {"l1_ratio", "penalty", "signs"}),
    (RankSVM(l1_ratio=1.0, solver="cutting-plane"), {"l1_ratio", "penalty", "signs"}),
    (FenchelRank(radius=0.0), {"radius"}),
]


@pytest.mark.parametrize(
    ("ranker", "named"), ADVICE, ids=[str(ranker)[:40] for ranker, _ in ADVICE]
)
def test_advice_names_parameters_of_the_ranker_only(ranker, named, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        with pytest.raises((InputError, DataWarning)) as caught:
            ranker.fit(data)
    words = set(re.findall(r"\w+", str(caught.value)))
    assert words & set(CONSTRAINTS) & named
    assert words & set(CONSTRAINTS) <= named & set(ranker.get_params())


def test_messages_name_kinds_in_words(data):
    with pytest.raises(InputError, match=r"penalty_factors=-1 must be an array-like, a dict or"):
        RankSVM(penalty_factors=-1).fit(data)
    with pytest.raises(InputError, match="there is no solver None: choose from"):
        LinearRanker(solver=None).fit(data)
