"""Rankers on mapped data: the bits of data in memory, without their memory."""

import os

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from leanrank import LinearRanker, RankingData, evaluate
from leanrank._mapped import is_mapped
from leanrank.data import GlobalStandardScaler, QueryMinMaxScaler, dump, make_ranking
from leanrank.designs.dense import DenseDesign
from leanrank.execution import make_executor
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.model.writing import as_model
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers import DominationRanker, ListNet, RankNet, RankRLS, RankSVM
from leanrank.selection import cross_validate_path
from leanrank.solvers.newton.solver import Newton

from ..memory import in_child


def documents(form):
    """Queries of one document, of one level and without, ties among documents and features."""
    sparse = form.startswith("sparse")
    data = make_ranking(
        60, (1, 25), 20, density=0.3 if sparse else 1.0, random_state=1,
        dtype=np.float32 if form.endswith("32") else np.float64,
    )  # fmt: skip
    X = data.X.copy()
    if not sparse:
        X[5:9] = X[5]
        X[:, 3] = X[:, 2]
    return RankingData(X, np.where(data.qid == 7, 1, data.y), data.qid, sample_weight=data.y + 1)


FORMS = ["dense64", "dense32", "sparse64", "sparse32"]
GROUPS = np.arange(20) // 4
RANKERS = {
    "domination": DominationRanker(alpha=0.01),
    "elastic net": DominationRanker(alpha=0.02, l1_ratio=0.5),
    "ranksvm": RankSVM(alpha=0.01),
    "ranksvm l1": RankSVM(alpha=0.01, l1_ratio=1.0),
    "ranknet": RankNet(alpha=0.01),
    "listnet": ListNet(alpha=0.01),
    "groups": LinearRanker("logistic", "groups", groups=GROUPS, alpha=0.01),
    "exponential": LinearRanker("exponential", alpha=0.02),
    "rankrls": RankRLS(alpha=0.01),
    "curves": LinearRanker(alpha=0.02, curves=3),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return both forms of the documents."""
    folder = tmp_path_factory.mktemp("stores")

    def both(form):
        data = documents(form)
        if not (folder / f"{form}.arrow").exists():
            dump(data, folder / f"{form}.arrow")
        return data, RankingData.open(folder / f"{form}.arrow")

    return both


@pytest.mark.filterwarnings("ignore:the spread of")
@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for name in RANKERS
        for form in (FORMS if name == "domination" else ["dense32", "sparse64"])
    ],
)
def test_the_same_bits_as_in_memory(stored, name, form):
    memory, disk = stored(form)
    found = []
    for data in (memory, disk):
        ranker = RANKERS[name].fit(data)
        scores = ranker.predict(data)
        means = evaluate(data, scores).means
        found.append((ranker.coef_.tobytes(), scores.tobytes(), means))
    assert found[0] == found[1]


@pytest.mark.parametrize("form", ["dense32", "sparse64"])
def test_paths_folds_and_scalers(stored, form):
    memory, disk = stored(form)
    ranker = DominationRanker()
    found = []
    for data in (memory, disk):
        path = ranker.path(data, n_alphas=4)
        folds = cross_validate_path(ranker, data, n_alphas=4, cv=3)
        scaler = GlobalStandardScaler().fit(data)
        scaled = scaler.transform(data)
        assert is_mapped(scaled.X) == (data is disk)
        model = as_model(DominationRanker(alpha=0.01).fit(scaled), scaler)
        found.append([
            path.coefs, path.dual_gaps, folds.fold_means["ndcg@10"], model.predict(data),
        ])  # fmt: skip
        if form.startswith("dense"):
            found[-1].append(QueryMinMaxScaler().fit_transform(data).X)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("form", FORMS)
def test_some_queries_of_a_store_stay_on_disk(stored, form):
    memory, disk = stored(form)
    for chosen in (slice(3, 30), np.arange(60) % 3 > 0, [9, 2]):
        part, wanted = disk.queries[chosen], memory.queries[chosen]
        assert is_mapped(part.X)
        dense = [d.X if isinstance(d.X, np.ndarray) else d.X.toarray() for d in (part, wanted)]
        np.testing.assert_array_equal(*dense)
        np.testing.assert_array_equal(part.y, wanted.y)


@pytest.mark.parametrize("loss", ["domination", "squared-hinge", "logistic", "listnet"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_working_set_that_is_not_copied(loss, dtype):
    data = make_ranking(30, (1, 60), 40, random_state=2, dtype=dtype)
    executor = make_executor(2)
    anchor = np.repeat(data.query_ptr[:-1], np.diff(data.query_ptr))
    penalty = ElasticNet.build(0.03, 1.0, 40)
    found = []
    for most in (None, 0):
        parts = get_loss(loss)
        design = DenseDesign(data.X, executor, anchor, most_copied=most, rows_per_block=50)
        plan = parts.prepare(Labels(data.y, data.query_ptr))
        problem = MemoryProblem(design, parts, plan, executor)
        solution = Newton().solve(problem, penalty)
        assert solution.converged
        assert np.count_nonzero(solution.w) < 40
        found.append((solution.w.tobytes(), solution.objective, solution.gap))
    assert found[0] == found[1]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_memory_of_a_fit(tmp_path, form):
    """X has 96 MB or more; a fit takes 100 bytes for each of 60,000 documents, and some room."""
    code = """
        import sys
        import numpy as np
        from scipy.sparse import csr_array
        from leanrank.rankers import DominationRanker
        from leanrank.data import RankingData, write_store
        from tests.memory import Peak
        def chunks(n):
            rng = np.random.default_rng(0)
            for at in range(n):
                X = rng.normal(size=(2_000, 400)).astype(np.float32)
                y = np.clip(np.round(X[:, 0] + X[:, 1] + rng.normal(size=2_000)), 0, 3)
                if sys.argv[2] == "sparse":
                    X = csr_array(X * (rng.random(X.shape) < 0.4))
                ids, ptr = np.arange(100) + 100 * at, np.arange(0, 2_001, 20)
                yield RankingData.of_fields(X=X, y=y, query_ids=ids, query_ptr=ptr)
        def fit(n, name):
            write_store(chunks(n), f"{sys.argv[1]}/{name}")
            data = RankingData.open(f"{sys.argv[1]}/{name}")
            with Peak() as peak:
                ranker = DominationRanker(alpha=0.02, max_iter=4).fit(data)
                ranker.predict(data)
            return peak.bytes
        fit(2, "warm.arrow")
        print(fit(30, "a.arrow"))
    """
    assert in_child(code, tmp_path, form) < 60_000 * 100 + 40e6
