"""Draw the picture of a report for the guide: a real one, of the sample set, in a browser.

    python scripts/make_report_image.py [FILE]

It needs playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from leanrank.data import load_sample
from leanrank.report import write_report
from leanrank.selection import tune

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "report.png"
SIZE = {"width": 1000, "height": 1500}


def main(target: Path = TARGET) -> None:
    """Search the sample set, write its report, and photograph the top of it."""
    train, vali, test = load_sample()
    study = tune(
        train, vali, systems=["lean", "domination", "greedyrankrls"], trials=6, max_features=8
    )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write_report(study, page, test=test, title="The sample set")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--headless=new", "--no-sandbox"]
            )
            shown = browser.new_page(viewport=SIZE)
            shown.goto(page.as_uri())
            shown.wait_for_selector("html[data-ready]")
            shown.screenshot(path=target)
            browser.close()
    print(f"{target} written")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, nargs="?", default=TARGET)
    main(**vars(parser.parse_args()))
