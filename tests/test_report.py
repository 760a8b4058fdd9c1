"""The report as its readers meet it: what the file holds, and how it behaves in a browser."""

import math
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl

mpl.use("Agg")

import pytest
from matplotlib.figure import Figure

from reproduction import report
from reproduction.findings import Comparison, Finding, Section

NAN = math.nan
ROWS = (
    Comparison("wave", "uniform", 9, 2.0e-2, 0.1, 20, 2.0e-2, 0.2, 8),
    Comparison("wave", "local", 100, 1.0e-3, 0.1, 20, 4.0e-3, 0.2, 8, "theirs is <penalised>"),
    Comparison("wave", "sparse", 20, 5.0e-4, NAN, 1, 5.0e-4, NAN, 1),
    Comparison("bump & corner", "local", 1000, NAN, NAN, 0, 3.0e-5, 0.2, 8),
    Comparison("bump & corner", "uniform", 200, 1.0e-1, 0.7, 20, 0.0, 0.2, 8),
)
LONG = tuple(Comparison("wave", f"law {n % 4}", n, 1 / n, 0.1, 20, 1 / n, 0.1, 8) for n in range(1, 101))
FINDINGS = (
    Finding("Nonuniform <b>beats</b> uniform & more.", "Section 5, N ≤ 30", True, "0.21 ± 0.05 < 1"),
    Finding("Sparse needs a third.", "Section 1", False, "0.52"),
    Finding("The rate is 2.5.", "Figure 4", None, "needs N = 2000"),
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]


def section(picture, name="fig4", findings=FINDINGS, comparisons=ROWS, **kwargs):
    texts = {"title": f"Title of {name}", "caption": f"Caption of {name}", "says": "Local & nonlocal: N < 5."}
    return Section(
        name=name, picture=picture, findings=findings, comparisons=comparisons, seconds=83.4, **texts | kwargs
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Three files by matplotlib, with ids in common."""
    folder = tmp_path_factory.mktemp("pictures")
    for n in range(3):
        figure = Figure(figsize=(8, 3))
        figure.subplots().plot([0, 1], [n, 1], label="law")
        figure.savefig(folder / f"{n}.svg")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def sections(pictures):
    return [
        section(pictures[0], note="The text & the figure differ."),
        section(pictures[1], "fig5", FINDINGS[:1], LONG, title="A" + 80 * "a"),  # a word wider than a narrow screen
        section(pictures[2], "fig6", (), ()),
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory, sections):
    path = tmp_path_factory.mktemp("report") / "new" / "report.html"
    report.write(path, sections, setting="quick <5 trials>.", seconds=754.2)
    return path


class Tree(HTMLParser):
    """The page as an element tree; fails where tags do not match."""

    VOID = frozenset({"meta", "link", "img", "input", "br"})

    def __init__(self, text):
        super().__init__()
        self.builder = ElementTree.TreeBuilder()
        self.open = []
        self.feed(text)
        assert self.open == []
        self.root = self.builder.close()

    def handle_starttag(self, tag, attributes):
        self.builder.start(tag, {name: value or "" for name, value in attributes})
        self.open.append(tag)
        if tag in self.VOID:
            self.handle_endtag(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.builder.end(tag)

    def handle_data(self, data):
        if self.open:
            self.builder.data(data)


def parse(path):
    return Tree(path.read_text(encoding="utf-8")).root


def text(element):
    return " ".join("".join(element.itertext()).split())


def by_class(element, name):
    return [e for e in element.iter() if name in e.get("class", "").split()]


# the file


def test_every_section_is_there_with_its_texts_and_its_picture(path, sections):
    page = parse(path)
    figures = by_class(page, "figure")
    assert [figure.get("id") for figure in figures] == ["fig4", "fig5", "fig6"]
    for figure, given in zip(figures, sections, strict=True):
        assert text(figure.find(".//h2")) == given.title
        assert text(figure.find(".//figcaption")) == given.caption
        assert given.says in text(figure)
        assert given.note in text(figure)
        assert "1 min 23 s" in text(figure)
        scheme, _, content = figure.find(".//img").get("src").partition(",")
        assert scheme == "data:image/svg+xml;base64"
        assert b64decode(content) == given.picture.read_bytes()


def test_every_claim_is_in_the_checklist_and_in_its_section(path):
    page = parse(path)
    (checklist,) = by_class(page, "claims")
    claims = [text(claim) for claim in by_class(checklist, "claim")]
    expected = [(finding, "Figure 4") for finding in FINDINGS] + [(FINDINGS[0], "Figure 5")]
    words = {True: "holds", False: "does not hold", None: "not decided"}
    assert claims == [f"{words[f.holds]} {f.claim} {f.numbers} {label} · {f.where}" for f, label in expected]
    here = [text(claim) for claim in by_class(by_class(page, "figure")[0], "claim")]
    assert here == [f"{words[f.holds]} {f.claim} {f.numbers} {f.where}" for f in FINDINGS]
    assert all(badge.find("svg") is not None for badge in by_class(page, "badge"))  # a symbol beside the word


def test_the_header_sums_up(path):
    summary = text(by_class(parse(path), "summary")[0])
    assert summary.startswith("2 of 4 claims hold (1 does not, 1 not decided)")
    assert "3 figures" in summary
    assert "105 errors" in summary
    assert "; 1 differs by more" in summary
    assert "Setting: quick <5 trials>. The run took 12 min 34 s;" in summary


def test_the_contents_name_every_figure_and_how_its_claims_came_out(path):
    page = parse(path)
    ids = {element.get("id") for element in page.iter()}
    links = page.findall(".//nav//a")
    assert [link.get("href") for link in links] == ["#report-claims", "#fig4", "#fig5", "#fig6"]
    assert {link.get("href")[1:] for link in links} <= ids
    marks = [text(by_class(link, "mark")[0]) for link in links]
    assert marks == ["2/4", "1/31 of 3 claims hold", "1/11 of 1 claim holds", "no claims"]
    assert [by_class(link, "mark")[0].get("class") for link in links[1:]] == ["mark fails", "mark holds", "mark none"]


def test_every_comparison_is_a_row(path):
    first, second, third = by_class(parse(path), "figure")
    rows = [[text(cell) for cell in row] for row in first.findall(".//tbody/tr")]
    assert rows == [
        ["wave", "uniform", "9", "2.00e-02×÷ 1.11(20)", "2.00e-02×÷ 1.22(8)", "1.00", ""],
        ["wave", "local", "100", "1.00e-03×÷ 1.11(20)", "4.00e-03×÷ 1.22(8)", "0.25", "theirs is <penalised>"],
        ["wave", "sparse", "20", "5.00e-04–(1)", "5.00e-04–(1)", "1.00", ""],
        ["bump & corner", "local", "1000", "––(0)", "3.00e-05×÷ 1.22(8)", "–", ""],
        ["bump & corner", "uniform", "200", "1.00e-01×÷ 2.01(20)", "0.00e+00×÷ 1.22(8)", "–", ""],
    ]
    assert len(second.findall(".//tbody/tr")) == 100
    assert third.find(".//table") is None
    assert [by_class(f, "comparisons")[0].get("open") for f in (first, second)] == ["", None]  # long tables are folded


def test_ids_are_unique(path):
    ids = [element.get("id") for element in parse(path).iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_the_page_refers_to_nothing_outside(path):
    for element in parse(path).iter():
        for name in ("src", "href", "srcset", "action", "poster"):
            assert element.get(name, "#").startswith(("#", "data:"))
    assert "@import" not in path.read_text(encoding="utf-8")
    assert "url(" not in path.read_text(encoding="utf-8")


def test_texts_cannot_become_markup(tmp_path, pictures):
    evil = "\"><script>alert('x')</script>&amp;</title>"
    finding = Finding(evil, evil, True, evil)
    row = Comparison(evil, evil, 1, 1.0, 0.1, 2, 1.0, 0.1, 2, evil)
    other = Comparison("b", "b", 1, 1.0, 0.1, 2, 1.0, 0.1, 2)  # with a second case, the filters list the first
    given = section(pictures[0], "fig1", (finding,), (row, other), title=evil, caption=evil, says=evil, note=evil)
    report.write(tmp_path / "r.html", [given], setting=evil, seconds=1.0)
    page = parse(tmp_path / "r.html")
    assert not [script for script in page.iter("script") if "alert" in text(script)]
    figure = by_class(page, "figure")[0]
    for element in (figure.find(".//h2"), figure.find(".//figcaption"), figure.find(".//tbody//td")):
        assert text(element) == evil
    assert figure.find(".//tbody/tr").get("data-law") == evil


@pytest.mark.parametrize("holds", [None, False, True])
def test_claims_that_all_came_out_one_way(tmp_path, pictures, holds):
    findings = (Finding("a", "b", holds, "c"), Finding("d", "e", holds, ""))
    report.write(tmp_path / "r.html", [section(pictures[0], findings=findings)], setting="s", seconds=1.0)
    words = {
        None: "0 of 2 claims hold (2 not decided)",
        False: "0 of 2 claims hold (2 do not)",
        True: "2 of 2 claims hold",
    }
    assert text(by_class(parse(tmp_path / "r.html"), "summary")[0]).startswith(f"{words[holds]}, checked")


def test_a_report_without_claims_and_comparisons(tmp_path, pictures):
    report.write(tmp_path / "r.html", [section(pictures[0], findings=(), comparisons=())], setting="s", seconds=1.0)
    page = text(parse(tmp_path / "r.html").find("body"))
    assert "No claim of the paper was checked" in page
    assert "No claims, checked on 1 figure" in page


def test_a_missing_picture_is_named_and_nothing_is_written(tmp_path, pictures):
    given = [section(pictures[0]), section(tmp_path / "gone.svg", "fig7")]
    with pytest.raises(FileNotFoundError, match=r"picture of fig7 is missing: .*gone\.svg"):
        report.write(tmp_path / "r.html", given, setting="s", seconds=1.0)
    assert list(tmp_path.iterdir()) == []


def test_other_wrong_input_is_named(tmp_path, pictures):
    with pytest.raises(ValueError, match=r"fig4 must be one of \.svg, \.png, got .*a\.pdf"):
        report.write(tmp_path / "r.html", [section(tmp_path / "a.pdf")], setting="s", seconds=1.0)
    with pytest.raises(ValueError, match="different names, got more than one fig4"):
        report.write(tmp_path / "r.html", 2 * [section(pictures[0])], setting="s", seconds=1.0)


def half_a_file(self, content, encoding):
    self.write_bytes(content.encode(encoding)[: len(content) // 2])
    raise OSError("disk full")


def no_replace(source, target):
    raise OSError("not allowed")


@pytest.mark.parametrize(("owner", "name", "broken"), [(Path, "write_text", half_a_file), (os, "replace", no_replace)])
def test_a_failed_write_leaves_the_old_report(tmp_path, pictures, monkeypatch, owner, name, broken):
    path = tmp_path / "r.html"
    path.write_text("the old report")
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken)
        with pytest.raises(OSError, match=r"disk full|not allowed"):
            report.write(path, [section(pictures[0])], setting="s", seconds=1.0)
    assert path.read_text() == "the old report"
    assert list(tmp_path.iterdir()) == [path]
    report.write(path, [section(pictures[0])], setting="s", seconds=1.0)
    assert list(tmp_path.iterdir()) == [path]
    assert parse(path).tag == "html"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.5, "9.5 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599.7, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations(seconds, words):
    assert report.duration(seconds) == words


def test_jinja_is_optional():
    code = """
import sys
import nurf
sys.modules["jinja2"] = None  # from here on, importing it fails
try:
    import reproduction.report
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "nurf[cli]"' in run.stdout


# the page in a browser


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason='playwright is missing: pip install "nurf[test]"')
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path: install it to test the report in a browser")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, path):
    """Open the report in a window; at the end, no script may have failed and nothing may have been asked for."""
    contexts, complaints, requests = [], [], []

    def visit(width=1400, script="", **kwargs):
        context = browser.new_context(viewport={"width": width, "height": 800}, reduced_motion="reduce", **kwargs)
        contexts.append(context)
        context.set_default_timeout(5000)
        context.add_init_script(script)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
    assert requests
    assert {url for url in requests if not url.startswith("data:")} == {path.as_uri()}


def column(page, number):
    return page.locator(f"#fig4 tbody td:nth-child({number})").evaluate_all("cells => cells.map(c => c.dataset.value)")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def overflow(page):
    return page.evaluate("document.scrollingElement.scrollWidth - innerWidth")


def test_the_pictures_show(visit):
    page = visit()
    sizes = page.locator(".picture img").evaluate_all("images => images.map(i => i.complete && i.naturalWidth)")
    assert len(sizes) == 3
    assert min(sizes) > 400


def test_numbers_sort_up_and_down_with_nan_last(visit):
    page = visit()
    ours = page.locator("#fig4 th", has_text="Ours")
    ours.get_by_role("button").click()
    assert column(page, 4) == ["0.0005", "0.001", "0.02", "0.1", "NaN"]
    assert ours.get_attribute("aria-sort") == "ascending"
    ours.get_by_role("button").press("Enter")
    assert column(page, 4) == ["0.1", "0.02", "0.001", "0.0005", "NaN"]
    assert ours.get_attribute("aria-sort") == "descending"
    page.locator("#fig4 th", has_text="Neurons").get_by_role("button").press("Space")
    assert column(page, 3) == ["9.0", "20.0", "100.0", "200.0", "1000.0"]
    assert page.locator("#fig4 th[aria-sort]").all_inner_texts() == ["Neurons"]
    page.locator("#fig4 th", has_text="PreparedDensity").get_by_role("button").click()
    laws = page.locator("#fig4 tbody td:nth-child(2)").all_inner_texts()
    assert laws == ["local", "local", "sparse", "uniform", "uniform"]


def test_tables_filter_by_case_and_law(visit):
    page = visit()
    shown = page.locator("#fig4 tbody tr:visible")
    page.locator("#fig4").get_by_label("PreparedDensity").select_option("local")
    assert shown.count() == 2
    page.locator("#fig4").get_by_label("Case").select_option("bump & corner")
    assert shown.count() == 1
    assert page.locator("#fig4 .shown").inner_text() == "1 of 5 rows"


def test_a_long_table_unfolds_and_scrolls_below_its_header(visit):
    page = visit()
    box = page.locator("#fig5 .scroll")
    assert not box.is_visible()
    page.locator("#fig5 .comparisons summary").click()
    height = box.bounding_box()["height"]
    assert height < 600
    assert page.locator("#fig5 table").bounding_box()["height"] > 2 * height
    box.evaluate("box => { box.scrollTop = 900; }")
    below = page.locator("#fig5 th").first.bounding_box()["y"] - box.bounding_box()["y"]
    assert abs(below) < 3


def test_the_checklist_shows_claims_of_one_kind(visit):
    page = visit()
    shown = page.locator(".claims .claim:visible")
    assert shown.count() == 4
    page.get_by_role("button", name="Does not hold").click()
    assert shown.count() == 1
    assert "Sparse needs a third." in shown.inner_text()
    page.get_by_role("button", name="All 4").click()
    assert shown.count() == 4


def test_a_figure_enlarges_and_escape_closes(visit):
    page = visit()
    viewer, image = page.get_by_role("dialog"), page.locator(".stage img")
    opener = page.get_by_role("button", name="Enlarge Figure 4")
    small = opener.locator("img").bounding_box()["width"]
    opener.press("Enter")
    assert viewer.is_visible()
    assert image.bounding_box()["width"] > small
    for key, label in (("ArrowRight", "Figure 5"), ("ArrowRight", "Figure 6"), ("ArrowLeft", "Figure 5")):
        page.keyboard.press(key)
        assert image.get_attribute("alt").startswith(label)
    assert image.get_attribute("src") == page.locator("#fig5 .picture img").get_attribute("src")
    assert page.locator(".viewer-caption").inner_text() == "Caption of fig5"
    page.keyboard.press("Escape")
    assert not viewer.is_visible()
    assert opener.evaluate("button => button === document.activeElement")
    opener.click()
    page.mouse.click(5, 5)  # beside the dialog
    assert not viewer.is_visible()


def test_the_theme_follows_the_system_until_it_is_chosen(visit):
    page = visit(color_scheme="dark")
    dark = background(page)
    page.emulate_media(color_scheme="light")
    light = background(page)
    assert light != dark
    toggle = page.get_by_role("button", name="Dark theme")
    assert toggle.get_attribute("aria-pressed") == "false"
    toggle.click()
    assert background(page) == dark
    page.reload()
    assert background(page) == dark
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.click()
    page.reload()
    assert background(page) == light


def test_the_theme_toggles_where_storage_is_refused(visit):
    refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } });"
    page = visit(script=refuse, color_scheme="light")
    before = background(page)
    page.get_by_role("button", name="Dark theme").click()
    assert background(page) != before


@pytest.mark.parametrize("width", [360, 1100])
def test_the_page_never_scrolls_sideways(visit, width):
    page = visit(width)
    page.locator("#fig5 .comparisons summary").click()
    assert overflow(page) <= 0
    page.locator("#fig5 .picture").click()
    assert overflow(page) <= 0


def test_the_contents_are_folded_on_a_narrow_screen(visit):
    page = visit(360)
    link = page.locator("nav a[href='#fig5']")
    assert not link.is_visible()
    page.locator("nav summary").click()
    link.click()
    assert not link.is_visible()
    bar = page.locator("nav").bounding_box()
    assert bar["y"] == 0
    assert bar["height"] <= page.locator("#fig5").bounding_box()["y"] < 200


def test_the_contents_lead_to_the_sections(visit):
    page = visit()
    for name in ("fig5", "fig4", "report-claims"):
        page.locator(f"nav a[href='#{name}']").click()
        page.locator(f"nav a[href='#{name}'][aria-current]").wait_for()
        assert page.url.endswith(f"#{name}")
        assert 0 <= page.locator(f"#{name}").bounding_box()["y"] < 100


def test_print_is_light_and_unfolded(visit):
    page = visit(color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    assert page.locator("#fig5 tbody tr").last.is_visible()
    assert not page.locator("nav").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.locator("#fig5 tbody tr").last.is_visible()
