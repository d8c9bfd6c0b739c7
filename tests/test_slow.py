"""The list of slow tests names what there is, and leaves something of every room."""

from pathlib import Path

from tests.conftest import SLOW

ROOT = Path(__file__).parent.parent


def test_every_entry_names_a_file_and_a_function_in_it():
    for entry in SLOW:
        file, _, function = entry.partition("::")
        assert (ROOT / file).exists(), entry
        if function:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert f"def {function.partition('[')[0]}" in text, entry
