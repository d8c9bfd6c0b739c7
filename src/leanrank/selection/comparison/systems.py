"""All systems that can be compared, ours and others, by name."""

from __future__ import annotations

from importlib.util import find_spec

from leanrank.errors import InputError, suggest
from leanrank.registry import SYSTEMS, get_system
from leanrank.selection.comparison import peers
from leanrank.selection.validation import Chosen, Split, fit_best

PEERS = {
    "lightgbm": ("LightGBM", peers.fit_lightgbm),
    "xgboost": ("XGBoost", peers.fit_xgboost),
    "bestfeature": ("best feature", peers.fit_single_feature),
}
PACKAGES = ("lightgbm", "xgboost")
"""Peers that are packages of their own, which may not be installed."""


def system_names() -> list[str]:
    """List all systems, installed or not."""
    return [*(name for name, system in SYSTEMS.items() if system.space is not None), *PEERS]


def installed(name: str) -> bool:
    """Return whether a system can be used here."""
    return name not in PACKAGES or find_spec(name) is not None


def title(name: str) -> str:
    """Return the name of a system in tables.

    >>> title("rankrls"), title("lightgbm")
    ('RankRLS', 'LightGBM')
    """
    return PEERS[name][0] if name in PEERS else get_system(name).title


def check_systems(names: list[str]) -> None:
    """Reject a name that is not known, or twice in the list."""
    known = system_names()
    for name in names:
        if name not in known:
            raise InputError(f"there is no system {name!r}: {suggest(name, known)}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the system {twice!r} is named twice: name it once")


def fit_system(name: str, split: Split) -> Chosen:
    """Fit a system with its parameters chosen on the validation data.

    Parameters
    ----------
    name : str
        One of ``system_names``.
    split : Split

    Returns
    -------
    Chosen

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> fit_system("bestfeature", Split(train, vali)).n_features
    1
    """
    check_systems([name])
    if name in PEERS:
        return PEERS[name][1](split)
    space = get_system(name).space
    assert space is not None
    return fit_best(space, split)
