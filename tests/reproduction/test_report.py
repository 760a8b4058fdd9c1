"""The report: what the HTML file contains."""

from base64 import b64decode
from html.parser import HTMLParser
from xml.etree import ElementTree

import made_up
import pytest
from made_up import FINDINGS, html, section

from reproduction import report
from reproduction.findings import Comparison, Finding


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    return made_up.sections(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def page(sections):
    return parse(html(sections))


@pytest.fixture
def picture(sections):
    return sections[0].picture


class Tree(HTMLParser):
    """The page as an element tree; fails if tags do not match."""

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


def parse(text):
    return Tree(text).root


def text(element):
    return " ".join("".join(element.itertext()).split())


def by_class(element, name):
    return [e for e in element.iter() if name in e.get("class", "").split()]


def test_every_section_is_there_with_its_texts_and_its_picture(page, sections):
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


def test_every_claim_is_in_the_checklist_and_in_its_section(page):
    (checklist,) = by_class(page, "claims")
    claims = [text(claim) for claim in by_class(checklist, "claim")]
    expected = [(finding, "Figure 4") for finding in FINDINGS] + [(FINDINGS[0], "Figure 5")]
    words = {True: "holds", False: "does not hold", None: "not decided"}
    assert claims == [f"{words[f.holds]} {f.claim} {f.numbers} {label} · {f.where}" for f, label in expected]
    here = [text(claim) for claim in by_class(by_class(page, "figure")[0], "claim")]
    assert here == [f"{words[f.holds]} {f.claim} {f.numbers} {f.where}" for f in FINDINGS]
    assert all(badge.find("svg") is not None for badge in by_class(page, "badge"))  # a symbol beside the word


def test_a_claim_shows_the_authors_numbers_and_whether_it_is_clear(picture):
    given = (Finding("a", "b", True, "c", clear=False, theirs="no: 1.2"), Finding("d", "e", True, "f", clear=True))
    first, second = by_class(by_class(parse(html([section(picture, findings=given)])), "figure")[0], "claim")
    assert "Not clear" in text(first)
    assert "With the errors of the authors’ code: no: 1.2" in text(first)
    assert text(second) == "holds d f e"


def test_the_header_sums_up(page):
    summary = text(by_class(page, "summary")[0])
    assert summary.startswith("2 of 4 claims hold (1 does not, 1 not decided)")
    assert "3 figures" in summary
    assert "105 errors" in summary
    assert "97% are within 10% of theirs, 97% within 25%" in summary  # 102
    assert "; 1 differs by more" in summary
    assert "Setting: quick <5 trials>. The run took 12 min 34 s;" in summary


def test_the_contents_name_every_figure_and_how_its_claims_came_out(page):
    ids = {element.get("id") for element in page.iter()}
    links = page.findall(".//nav//a")
    assert [link.get("href") for link in links] == ["#report-claims", "#fig4", "#fig5", "#fig6"]
    assert {link.get("href")[1:] for link in links} <= ids
    marks = [text(by_class(link, "mark")[0]) for link in links]
    assert marks == ["2/4", "1/31 of 3 claims hold", "1/11 of 1 claim holds", "no claims"]
    assert [by_class(link, "mark")[0].get("class") for link in links[1:]] == ["mark fails", "mark holds", "mark none"]


def test_every_comparison_is_a_row(page):
    first, second, third = by_class(page, "figure")
    rows = [[text(cell) for cell in row] for row in first.findall(".//tbody/tr")]
    assert rows == [
        ["wave", "uniform", "9", "2.00e-02×÷ 1.11(20)", "2.00e-02×÷ 1.22(8)", "1.00", ""],
        ["wave", "local", "100", "1.00e-03×÷ 1.11(20)", "4.00e-03×÷ 1.22(8)", "0.25", "theirs is <penalised>"],
        ["wave", "sparse", "20", "5.00e-04–(1)", "5.00e-04–(1)", "1.00", ""],
        ["bump & corner", "local", "1000", "3.00e-05×÷ 1.35(4)", "3.00e-08×÷ 1.22(8)", "1.00e+03", ""],
        ["bump & corner", "uniform", "200", "1.00e-01×÷ 2.01(20)", "2.00e-01×÷ 1.22(8)", "0.50", ""],
    ]
    assert len(second.findall(".//tbody/tr")) == 100
    assert third.find(".//table") is None
    assert [by_class(f, "comparisons")[0].get("open") for f in (first, second)] == ["", None]  # long tables are folded


def test_ids_are_unique(page):
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_the_page_refers_to_nothing_outside(page):
    for element in page.iter():
        for name in ("src", "href", "srcset", "action", "poster"):
            assert element.get(name, "#").startswith(("#", "data:"))
    style = text(page.find(".//style"))
    assert style
    assert "@import" not in style
    assert "url(" not in style


def test_texts_cannot_become_markup(picture):
    evil = "\"><script>alert('x')</script>&amp;</title>"
    finding = Finding(evil, evil, True, evil)
    row = Comparison(evil, evil, 1, 1.0, 0.1, 2, 1.0, 0.1, 2, evil)
    other = Comparison("b", "b", 1, 1.0, 0.1, 2, 1.0, 0.1, 2)  # with a second case, the filters list the first
    given = section(picture, "fig1", (finding,), (row, other), title=evil, caption=evil, says=evil, note=evil)
    page = parse(report.render([given], setting=evil, seconds=1.0))
    assert not [script for script in page.iter("script") if "alert" in text(script)]
    figure = by_class(page, "figure")[0]
    for element in (figure.find(".//h2"), figure.find(".//figcaption"), figure.find(".//tbody//td")):
        assert text(element) == evil
    assert figure.find(".//tbody/tr").get("data-method") == evil


@pytest.mark.parametrize(
    ("holds", "words"),
    [
        (None, "0 of 2 claims hold (2 not decided)"),
        (False, "0 of 2 claims hold (2 do not)"),
        (True, "2 of 2 claims hold"),
    ],
)
def test_claims_with_one_outcome(picture, holds, words):
    findings = (Finding("a", "b", holds, "c"), Finding("d", "e", holds, ""))
    page = parse(html([section(picture, findings=findings)]))
    assert text(by_class(page, "summary")[0]).startswith(f"{words}, checked")


def test_a_report_without_claims_and_comparisons(picture):
    page = text(parse(html([section(picture, findings=(), comparisons=())])).find("body"))
    assert "No claim of the paper was checked" in page
    assert "No claims, checked on 1 figure" in page


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
