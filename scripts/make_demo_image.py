"""Draw what ``leanrank demo`` prints, as the picture in the README.

    python scripts/make_demo_image.py [FILE]

The demo runs for real, in a temporary directory; only its screen is replaced by one that records.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from leanrank.cli import screen
from leanrank.cli.systems import demo

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "demo.svg"
WIDTH = 80
THEME = TerminalTheme(
    background=(24, 26, 31),
    foreground=(214, 218, 226),
    normal=[
        (24, 26, 31),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (214, 218, 226),
    ],
)


def main(target: Path = TARGET) -> None:
    """Run the demo and write the picture."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print("$ make demo", style="bold")
    screen.screen = lambda **_: console
    target = target.resolve()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            demo(output="demo-output")
        finally:
            os.chdir(here)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A fixed id keeps the file the same from run to run.
    svg = console.export_svg(title="leanrank", theme=THEME, unique_id="leanrank-demo")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no fonts from afar
    lines = (line.rstrip() for line in svg.splitlines() if line.strip())
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, nargs="?", default=TARGET)
    main(**vars(parser.parse_args()))
