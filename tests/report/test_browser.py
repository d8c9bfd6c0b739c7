"""The page in a real browser: it draws, it follows a click, it asks nobody, no name runs."""

import os
import shutil
from itertools import pairwise

import numpy as np
import pytest

import leanrank
from leanrank.model import Model, Ramps, Surface
from leanrank.model.summary import with_summary
from leanrank.plots.parts import front_models
from leanrank.report import study_of_model, write_report
from tests.report.conftest import HOSTILE, make_parts

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        if found is None and not os.path.exists(own):
            pytest.skip(f"there is no browser to draw the report: none of {', '.join(BROWSERS)}")
        one = playwright.chromium.launch(executable_path=found or own, args=ARGUMENTS)
        yield one
        one.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, study, hostile_study, boosted_study, curved_study):
    folder = tmp_path_factory.mktemp("reports")
    write_report(study[0], folder / "plain.html", test=study[1], title="A plain report")
    write_report(hostile_study[0], folder / "hostile.html", title=HOSTILE[0])
    write_report(boosted_study, folder / "boosted.html")
    write_report(curved_study, folder / "curved.html")
    return folder


class Opened:
    """A page, with everything that it complained about or asked for."""

    def __init__(self, browser, file, **options):
        options.setdefault("viewport", {"width": 1000, "height": 800})
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(30_000)
        self.messages, self.requests = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: self.messages.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def marks(self, chart):
        """Count the shapes of a chart that stand for data."""
        return self.page.locator(f"#chart-{chart} .role-mark path, #chart-{chart} .role-mark line")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def quiet(self):
        assert self.messages == []
        assert all(url.startswith(("file:", "data:")) for url in self.requests)
        assert sum(url.startswith("file:") for url in self.requests) == 1


@pytest.fixture
def open_page(browser, pages):
    opened = []

    def open_one(name, **options):
        opened.append(Opened(browser, pages / f"{name}.html", **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.page.close()


def test_a_page_is_small(pages):
    for file in pages.iterdir():
        assert 500_000 < file.stat().st_size < 3_000_000


def test_charts_and_tables_are_filled(open_page, study):
    one = open_page("plain")
    front = one.page.locator("#chart-front .models_marks path")
    assert front.count() == len(front_models(study[0]))
    for chart in ("front", "features", "path", "queries", "curve"):
        assert one.marks(chart).count() > 3, chart
    assert one.page.locator("#measures tbody tr").count() == 3
    for part, n in (("test", study[1].n_queries), ("validation", study[0].validation.n_queries)):
        assert f"{n} {part} queries" in one.text("#measures")
    assert f"on {study[1].n_queries} test queries" in one.text("#verdict")
    assert f"on the {study[0].validation.n_queries} validation queries" in one.text("#queries-text")
    assert "cost" in one.text("#feature-table")
    assert one.page.locator("#documents tbody tr").count() >= 5
    assert one.page.locator("#feature-table tbody tr").count() == study[0].chosen.n_features
    assert study[0].chosen.name in one.text("#current")
    assert one.page.title() == one.text("h1") == "A plain report"
    one.quiet()


def shown(one):
    """What a reader sees of the model."""
    return {
        part: one.text(part)
        for part in ("#current", "#verdict", "#feature-table", "#queries-text", "#documents")
    } | {"bars": one.page.locator("#chart-features svg").inner_html()}


def test_clicking_a_point_changes_the_model_everywhere(open_page, study):
    one = open_page("plain")
    before = shown(one)
    front = front_models(study[0])
    at = next(at for at, model in enumerate(front) if model is not study[0].chosen)
    one.page.locator(f'#chart-front [data-model="{at}"]').click()
    one.page.wait_for_function(
        "name => document.getElementById('current').innerText.includes(name)", arg=front[at].name
    )
    one.page.wait_for_timeout(200)
    after = shown(one)
    assert [part for part in before if before[part] == after[part]] == []
    assert f"{front[at].n_features} feature" in after["#current"]
    assert one.page.locator('#chart-front [aria-pressed="true"]').get_attribute(
        "data-model"
    ) == str(at)
    one.page.get_by_role("button", name="back to the chosen one").click()
    assert one.text("#feature-table") == before["#feature-table"]
    one.quiet()


def test_the_model_can_be_chosen_by_keyboard(open_page, study):
    one = open_page("plain")
    front = front_models(study[0])
    one.page.locator('#chart-front [data-model="0"]').focus()
    one.page.keyboard.press("Enter")
    assert front[0].name in one.text("#current")
    one.page.keyboard.press("ArrowRight")
    assert front[1].name in one.text("#current")
    one.page.locator("#model-list").evaluate("element => { element.open = true; }")
    one.page.locator("#model-0").check()
    assert front[0].name in one.text("#current")
    one.quiet()


def test_everything_can_be_reached_by_keyboard(open_page):
    one = open_page("plain")
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.className") == "skip"
    one.page.keyboard.press("Enter")
    assert one.page.evaluate("document.activeElement.id") == "main"
    unnamed = one.page.evaluate(
        """() => [...document.querySelectorAll('button, select, [role=button], [role=region]')]
            .filter((e) => !e.closest('[hidden]') && !(e.getAttribute('aria-label') ||
                e.innerText || e.closest('label'))).length"""
    )
    assert unnamed == 0
    levels = one.page.evaluate(
        "() => [...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert max(b - a for a, b in pairwise(levels)) <= 1


def test_a_query_is_taken_apart(open_page, study):
    one = open_page("plain")
    options = one.page.locator("#query option")
    assert options.count() == study[0].validation.n_queries
    before = one.text("#documents")
    one.page.select_option("#query", index=3)
    assert one.text("#documents") != before
    one.page.locator("#documents tbody button").nth(2).click()
    assert one.page.input_value("#above") == "2"
    assert one.page.input_value("#below") == "3"
    lines = one.page.locator("#why .differences > span").all_inner_texts()
    scores = [float(cell.replace("−", "-")) for cell in one.page.locator(
        "#documents tbody tr td:nth-child(4)").all_inner_texts()]  # fmt: skip
    changes = [float(text.replace("−", "-")) for text in lines[1::3]]
    total = sum(changes)
    sides = one.page.locator("#why .bar").evaluate_all(
        "bars => bars.map((e) => parseFloat(e.style.marginLeft) < 50)"
    )
    assert sides == [change < 0 for change in changes]
    assert total == pytest.approx(scores[2] - scores[3], abs=0.03)
    one.page.locator("#chart-queries .role-mark path").nth(1).click()
    one.quiet()


def curve_marks(one, feature):
    """What the chart of a feature shows, layer by layer, as it stands in the page."""
    figure = one.page.locator("#curve-charts figure").filter(has_text=feature)
    return {
        "names": figure.locator("figcaption").all_inner_texts(),
        "bars": figure.locator(".mark-rect.role-mark path").count(),
        "band": figure.locator(".mark-area path").first.get_attribute("d"),
        "lines": [
            path.get_attribute("d") for path in figure.locator(".mark-line path").all()
        ],
        "points": [
            path.get_attribute("transform")
            for path in figure.locator(".mark-symbol.role-mark path").all()
        ],
        "texts": figure.locator(".mark-text.role-mark text").all_text_contents(),
    }  # fmt: skip


def test_every_curve_is_drawn_over_its_density(open_page, curved_study):
    one = open_page("curved")
    model = curved_study.chosen.model
    assert one.page.locator("#curve-charts figure").count() == model.n_nonzero
    gaps = curve_marks(one, "<b>bm25</b>")
    assert gaps["names"] == ["<b>bm25</b>"]
    assert gaps["bars"] > 5
    assert len(gaps["band"]) > 100
    straight, curve = gaps["lines"]
    assert straight.count("L") == 1
    assert curve.count("L") > 1
    assert "missing" in gaps["texts"]
    assert "queries drawn again" in one.text("#curves-note")
    assert "missing value" in one.text("#curves-note")
    assert not one.page.locator("b", has_text="bm25").count()
    one.quiet()


@pytest.mark.parametrize("width", [1300, 1000, 390])
def test_what_the_curves_of_a_pair_add_stands_beside_it(browser, tmp_path, width):
    train, vali, _ = make_parts()
    pair = Surface((-1.0, 0.0, 1.0), (-0.5, 0.5), ((0.0, 1.0), (2.0, -1.0), (0.5, 0.0)))
    curves = {at: Ramps((0.0, 1.0), (2.0,)) for at in range(5)}
    surfaces = {(0, 1): pair, (0, 2): pair, (3, 4): pair}
    write_report(study_of_model(Model(8, curves, surfaces=surfaces), train, vali), tmp_path / "p")
    file = (tmp_path / "p").rename(tmp_path / "pairs.html")
    one = Opened(browser, file, viewport={"width": width, "height": 800})
    figures = one.page.locator("#curve-charts figure.beside")
    assert figures.count() == 3
    for figure in figures.all():
        first, second = (chart.bounding_box() for chart in figure.locator(".chart").all())
        if width > 800:
            assert first["y"] == second["y"]
        assert second["x"] + second["width"] <= width
    one.quiet()
    one.page.close()


def test_a_document_is_marked_on_every_curve(open_page, curved_study):
    one = open_page("curved")
    names = one.page.locator("#curve-charts figcaption").all_inner_texts()
    before = {name: curve_marks(one, name)["points"] for name in names}
    # the diamond of what is missing, and the two documents that are compared
    assert {len(points) for points in before.values()} == {2, 3}
    one.page.locator("#documents tbody button").nth(3).click()
    one.page.wait_for_timeout(200)
    after = {name: curve_marks(one, name)["points"] for name in names}
    assert before != after
    rows = one.page.locator("#documents tbody th").all_inner_texts()
    assert rows[3] in one.text("#curves-text")
    # where a document stands is what the table says that the feature adds, less the mean
    header = one.page.locator("#documents thead th").all_inner_texts()
    column = header.index(names[0])
    told = [
        float(row.locator("td, th").nth(column).inner_text().replace("−", "-"))
        for row in one.page.locator("#documents tbody tr").all()[3:5]
    ]
    heights = [float(point.split(",")[1].rstrip(")")) for point in after[names[0]][-2:]]
    assert (told[0] - told[1]) * (heights[0] - heights[1]) <= 0  # higher is further up
    one.quiet()


def test_curves_follow_the_model_and_leave_with_it(open_page, curved_study):
    one = open_page("curved")
    front = front_models(curved_study)
    at = next(at for at, each in enumerate(front) if each is not curved_study.chosen)
    one.page.locator(f'#chart-front [data-model="{at}"]').click()
    one.page.wait_for_function(
        "n => document.querySelectorAll('#curve-charts svg').length === n",
        arg=min(12, front[at].n_features),
    )
    assert "queries drawn again" not in one.text("#curves-note")
    one.quiet()
    plain = open_page("plain")
    assert plain.page.locator("#curves").is_hidden()
    assert open_page("boosted").page.locator("#curve-charts svg").count() > 0


def test_baselines_can_be_changed(open_page):
    one = open_page("plain")
    before = one.text("#queries-text")
    one.page.select_option("#baseline", index=0)
    assert one.text("#queries-text") != before
    assert "best feature" in one.text("#queries-text")
    one.quiet()


def test_hovering_shows_what_a_point_is(open_page, study):
    one = open_page("plain")
    one.page.locator('#chart-front [data-model="1"]').hover()
    one.page.wait_for_selector("#tip:not([hidden])")
    assert front_models(study[0])[1].name in one.text("#tip")


def test_no_name_runs(open_page, hostile_study):
    one = open_page("hostile")
    assert one.page.title() == HOSTILE[0]
    points = one.page.locator("#chart-front .models_marks path")
    for at in range(points.count()):
        one.page.locator(f'#chart-front [data-model="{at}"]').click()
        one.page.locator("#chart-features .role-mark path").first.hover()
    one.page.locator("#chart-path .role-mark text").first.hover()
    for at in range(3):
        one.page.select_option("#query", index=at)
    one.page.wait_for_timeout(200)
    assert one.page.evaluate("window.hacked") is None
    assert one.page.locator("img").count() == 0
    assert one.page.locator("script").count() == 3
    rows = hostile_study[0].chosen.model.weights
    flat = {" ".join(name.split()) for name in rows}
    one.page.get_by_role("button", name="back to the chosen one").click()
    names = one.page.locator("#feature-table tbody th").all_inner_texts()
    assert {" ".join(name.split()) for name in names} == flat
    one.quiet()


def test_the_policy_stops_a_script_that_got_in_all_the_same(open_page):
    one = open_page("plain")
    one.page.evaluate(
        """() => {
            const box = document.createElement('div');
            box.innerHTML = '<img src="data:," onerror="window.hacked = 1">';
            document.body.append(box);
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 2';
            document.body.append(script);
        }"""
    )
    one.page.wait_for_timeout(200)
    assert one.page.evaluate("window.hacked") is None
    refused = "() => fetch('https://example.org/').then(() => 'sent', () => 'refused')"
    assert one.page.evaluate(refused) == "refused"


def page_colour(one):
    return one.page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_follows_the_system_and_the_button(open_page):
    light, dark = open_page("plain"), open_page("plain", color_scheme="dark")
    assert page_colour(light) == "rgb(253, 253, 252)"
    assert page_colour(dark) == "rgb(20, 24, 29)"
    accent = "#chart-front .models_marks path"
    colours = {one.page.locator(accent).first.get_attribute("fill") for one in (light, dark)}
    assert len(colours) == 2
    light.page.locator("#theme").click()
    light.page.wait_for_function(
        "colour => document.querySelector('#chart-front .models_marks path')?.getAttribute('fill')"
        " === colour",
        arg=dark.page.locator(accent).first.get_attribute("fill"),
    )
    assert page_colour(light) == page_colour(dark)
    light.quiet()
    dark.quiet()


@pytest.mark.parametrize("name", ["plain", "hostile", "boosted", "curved"])
def test_a_phone_needs_no_sideways_scrolling(open_page, name):
    one = open_page(name, viewport={"width": 360, "height": 740})
    width = one.page.evaluate(
        "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
    )
    assert width <= 360
    for chart in ("front", "features", "queries"):
        assert one.marks(chart).count() > 1, chart
    assert one.page.locator("#current").bounding_box()["height"] < 50
    one.quiet()


def test_tables_of_plain_pages_stack_on_a_telephone(browser, tmp_path):
    names = [f"a_feature_with_quite_a_long_name_{at}" * 2 for at in range(8)]
    train, _, _ = make_parts(names)
    old, new = (Model.from_coef(w, feature_names=names) for w in (np.arange(8.0), np.ones(8)))
    leanrank.diff(old, new, train).write(tmp_path / "diff.html")
    moved = train.replace(X=1000 * train.X)
    leanrank.check(with_summary(old, train), moved).write(tmp_path / "check.html")
    for name, head in (("diff", "old"), ("check", "what")):
        for width, stacked in ((400, True), (1000, False)):
            page = browser.new_page(viewport={"width": width, "height": 740})
            page.goto((tmp_path / f"{name}.html").as_uri())
            right = "Math.max(...[...document.querySelectorAll('main *')].map(each => "
            right += "each.getBoundingClientRect().right))"
            assert page.evaluate(right) <= width
            before = "getComputedStyle(document.querySelector('td'), '::before').content"
            assert (f'"{head}' in page.evaluate(before)) is stacked
            page.close()


def test_a_boosted_model_is_taken_apart_too(open_page, boosted_study):
    one = open_page("boosted")
    assert "cost" not in one.text("#models") + one.text("#feature-table")
    query = int(one.page.input_value("#query"))
    data = boosted_study.validation
    rows = slice(*data.query_ptr[query : query + 2])
    expected = sorted(boosted_study.chosen.model.predict(data)[rows], reverse=True)[:10]
    cells = one.page.locator("#documents tbody tr td:nth-child(4)").all_inner_texts()
    assert [float(cell.replace("−", "-")) for cell in cells] == pytest.approx(expected, abs=0.006)
    one.quiet()
