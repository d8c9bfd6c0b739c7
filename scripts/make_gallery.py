"""Run the examples of docs/gallery.md and write the picture that each section ends with."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main() -> None:
    """Draw all pictures."""
    names: dict[str, Any] = {}
    for section in (DOCS / "gallery.md").read_text("utf-8").split("\n## "):
        before = names.get("chart")
        for example in doctest.DocTestParser().get_examples(section):
            if doctest.SKIP not in example.options:
                exec(compile(example.source, "gallery.md", "single"), names)
        target = re.search(r"\]\((images/gallery/\S+\.(?:svg|png))\)", section)
        if target is None:
            continue
        if names["chart"] is before:
            raise SystemExit(f"no chart is drawn for {target[1]}")
        # Pages may be dark, and their fonts wider than those that the margins were measured with.
        margins = {"left": 24, "right": 24, "top": 8, "bottom": 8}
        shown = names["chart"].properties(background="white", padding=margins)
        shown.save(str(DOCS / target[1]))
        print(target[1])


if __name__ == "__main__":
    main()
