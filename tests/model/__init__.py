from leanrank.model import Model
from leanrank.model.terms import sum_of_weak_rankers


def boosted(n_features, features, thresholds, missing, values, **more):
    """Make a model from one feature, threshold, missing and value per weak ranker."""
    weak = zip(features, thresholds, missing, values, strict=True)
    plain = ((int(f), float(t), int(m), float(v)) for f, t, m, v in weak)
    return Model(n_features, sum_of_weak_rankers(plain), **more)
