"""Losses by name."""

import subprocess
import sys

import pytest

from leanrank.errors import InputError
from leanrank.losses import LOSSES, get_loss


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_name_leads_to_its_loss(name):
    loss = get_loss(name)
    assert loss.name == name
    assert callable(loss.prepare)
    assert callable(loss.evaluate)


def test_options_reach_the_loss():
    assert get_loss("listnet", target="gain").target == "gain"
    assert get_loss("logistic", importance="ndcg").importance == "ndcg"


@pytest.mark.parametrize(
    ("name", "hint"), [("logistics", "'logistic'"), ("zzz", "domination"), (None, "domination")]
)
def test_an_unknown_name_is_answered_with_a_hint(name, hint):
    with pytest.raises(InputError, match=f"there is no loss .*{hint}"):
        get_loss(name)


def test_the_table_loads_no_compiler():
    code = "import sys, leanrank.losses; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
