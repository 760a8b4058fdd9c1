"""The report in a browser: Chromium, driven by playwright."""

import shutil

import pytest
from made_up import html, sections

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on the path", allow_module_level=True)
api = pytest.importorskip("playwright.sync_api", reason='playwright is missing: pip install "nurf[test]"')

FLAGS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "report.html").write_text(html(sections(folder)), encoding="utf-8")
    return folder / "report.html"


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


def test_columns_sort_up_and_down_with_empty_cells_last(visit):
    page = visit()
    ours = page.locator("#fig4 th", has_text="Ours")
    ours.get_by_role("button").click()
    assert column(page, 4) == ["3e-05", "0.0005", "0.001", "0.02", "0.1"]
    assert ours.get_attribute("aria-sort") == "ascending"
    ours.get_by_role("button").press("Enter")
    assert column(page, 4) == ["0.1", "0.02", "0.001", "0.0005", "3e-05"]
    assert ours.get_attribute("aria-sort") == "descending"
    page.locator("#fig4 th", has_text="Neurons").get_by_role("button").press("Space")
    assert column(page, 3) == ["9.0", "20.0", "100.0", "200.0", "1000.0"]
    assert page.locator("#fig4 th[aria-sort]").all_inner_texts() == ["Neurons"]
    page.locator("#fig4 th", has_text="Method").get_by_role("button").click()
    methods = page.locator("#fig4 tbody td:nth-child(2)").all_inner_texts()
    assert methods == ["local", "local", "sparse", "uniform", "uniform"]
    reason = page.locator("#fig4 th", has_text="Reason").get_by_role("button")
    for _ in range(2):
        reason.click()
        assert page.locator("#fig4 tbody td:nth-child(7)").all_inner_texts() == ["theirs is <penalised>", *[""] * 4]


def test_tables_filter_by_case_and_method(visit):
    page = visit()
    shown = page.locator("#fig4 tbody tr:visible")
    page.locator("#fig4").get_by_label("Method").select_option("local")
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
