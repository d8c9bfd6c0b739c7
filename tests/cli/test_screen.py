import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from leanrank import load_model
from leanrank._display import printable_lines
from leanrank.cli import screen
from leanrank.data import RankingData
from leanrank.data.trec import Run
from leanrank.metrics import evaluate
from leanrank.model import Model


def rendered(renderable, width=80, **options):
    stream = io.StringIO()
    console = Console(file=stream, width=width, markup=False, **options)
    console.print(renderable)
    return stream.getvalue()


def test_names_are_never_taken_for_markup(capsys):
    model = Model.from_coef([1.0, -0.5], feature_names=["[bold]a[/bold]", ":smile:"])
    console = screen.screen()
    console.print(screen.weights_table(model, console))
    text = capsys.readouterr().out
    assert "[bold]a[/bold]" in text
    assert " \n" not in text
    assert ":smile:" in text


def test_bars_are_as_long_as_the_weights():
    model = Model.from_coef([2.0, -1.0, 1e-9])
    utf8 = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    lines = rendered(screen.weights_table(model, utf8)).splitlines()[2:]
    assert [line.count("█") for line in lines] == [20, 10, 0]


def test_long_names_fold_at_80_columns():
    names = [f"{at}_" + "very_long_name_" * 12 for at in range(3)]
    model = Model.from_coef([1.0, 2.0, -3.0], feature_names=names)
    text = rendered(screen.weights_table(model, screen.screen()))
    assert max(map(len, text.splitlines())) <= 80
    assert "+2.000" in text


def test_captions_count():
    assert screen.weights_caption(Model.from_coef([0.0])) == "0 of 1 feature with a weight"
    assert screen.weights_caption(Model.from_coef(np.ones(13))) == (
        "13 of 13 features with a weight, the 12 largest shown"
    )


def test_queries_left_out_are_counted():
    y, qid = [1, 0, 0, 0, 1, 1], [1, 1, 2, 2, 3, 3]
    scores = np.arange(6.0)
    note = screen.measures_note(evaluate(y, scores, qid, measures="auc"))
    assert note == "convention standard; left out of 3 queries: 2 for auc"
    note = screen.measures_note(evaluate(y, scores, qid, measures="auc,p@1"))
    assert note == "convention standard; left out of 3 queries: 2 for auc, 1 for p@1"


def test_json_has_null_for_what_is_not_defined(capsys):
    screen.print_json({"a": float("nan"), "b": [1, float("inf")], "c": {1: "é"}})
    assert capsys.readouterr().out == '{"a": null, "b": [1, null], "c": {"1": "é"}}\n'


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX terminal")
@pytest.mark.parametrize("colour", [True, False])
def test_progress_is_on_the_terminal_only(tmp_path, colour):
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    if not colour:
        environment["NO_COLOR"] = "1"
    code = (
        "import time\n"
        "from leanrank.cli.screen import progress, screen\n"
        "with progress() as say:\n"
        "    say('Reading [x]'); time.sleep(0.4)\n"
        "screen().print('done', style='bold red')\n"
    )
    leader, follower = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        out = process.stdout.read()
        assert process.wait(timeout=60) == 0
    os.close(leader)
    assert out == b"done\n"
    assert b"Reading [x]" in shown
    assert (b"\x1b[3" in shown) == colour


HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x1b]52;c;eA==\x07"


def test_names_in_files_do_not_command_the_terminal(run, files):
    """Title, clear screen, clipboard: in the header of a CSV file, and then in the model file."""
    header = f"qid,label,a{HOSTILE},b{HOSTILE}\n"
    rows = "".join(f"{q},{y},{y + q / 9},{1 - y}\n" for q in range(9) for y in (0, 1))
    (files / "d.csv").write_text(header + rows)
    done = run("train", "d.csv", "-a", "rankrls", "-m", "m.json")
    assert done.code == 0, done.err
    model = load_model("m.json")
    assert len(model.weights) == 2
    assert all(name.endswith(HOSTILE) for name in model.weights)
    shown = [done.out, done.err, repr(model), repr(model.explain([[1.0, 2.0], [0.0, 1.0]]))]
    shown.append(repr(model.explain([[1.0, 2.0], [0.0, 1.0]]).why(0, 1)))
    for words in (["predict", "m.json", "d.csv"], ["train", "d.csv", "--json", "-m", "n.json"]):
        done = run(*words)
        shown += [done.out, done.err]
    for text in shown:
        assert text == printable_lines(text)


def test_ids_of_documents_do_not_command_the_terminal():
    data = RankingData([[1.0], [2.0]], [0, 1], doc_ids=[f"a{HOSTILE}", f"b{HOSTILE}"])
    explained = Model.from_coef([1.0]).explain(data)
    for text in (
        repr(explained),
        repr(explained.why(1, 0)),
        repr(Run(["q"], ["d"], [1.0], HOSTILE)),
    ):
        assert text == printable_lines(text)


def test_commands_print_on_the_one_screen():
    """``screen`` makes the only console; what is printed without it holds no names from files."""
    folder = Path(screen.__file__).parent
    found = {
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"(?<![.\w])(Console|print)\(|typer\.echo\(", path.read_text())
    }
    assert found == {"screen.py", "__init__.py", "entry.py", "app.py", "export.py"}
