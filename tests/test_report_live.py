"""The model that runs in a report: what Chromium computes and draws when sliders, keys and buttons are used."""

import csv
import io
import re
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from nurf import DeepFeatureRegressor, KernelFeatureRegressor, RandomFeatureRegressor, Surrogate, export
from nurf.report import gather, render

api = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium on the path", allow_module_level=True)
FLAGS = ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
NASTY = "=<img src=x onerror=alert(1)>\"'</script><script>alert(2)</script>"
WIDE = KernelFeatureRegressor("matern", metric="scales")


def valley(X):
    """Return values with two minima, the lower of which is at about (0.5, -0.4), and values of another output."""
    a, b = X.T[:2]
    first = -np.exp(-8 * ((a - 0.5) ** 2 + (b + 0.4) ** 2)) - 0.6 * np.exp(-8 * ((a + 0.5) ** 2 + (b - 0.4) ** 2))
    return np.column_stack([first, a * b])


def model_of(engine=WIDE, columns=("a", "b"), n=60, k=2, names=("depth", "other")):
    """Return a surrogate with the data of its report."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (n, len(columns))), columns=list(columns))
    # noise keeps the coefficients of kernels small, and so their rounding errors, which differ between programs
    y = valley(X.to_numpy())[:, :k] + 0.02 * np.random.default_rng(1).standard_normal((n, k))
    model = Surrogate(None, engines=[engine], target=None, random_state=0).fit(X, y if k > 1 else y[:, 0])
    gather(model, X, y if k > 1 else y[:, 0], targets=names[:k], source="runs.csv", seconds=0).attach(model)
    return model


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A report in a browser; complaints and requests to a network are errors."""

    def __init__(self, browser, path, text, width=1200, **options):
        path.write_text(text, encoding="utf-8")
        self.tab = browser.new_page(viewport={"width": width, "height": 900}, accept_downloads=True, **options)
        self.complaints, self.requests = [], []
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.complaints.append(dialog.message) or dialog.dismiss())
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.as_uri())

    def drawn(self, times=1):
        """Wait until all pictures were drawn some times. The policy of the page forbids playwright's own waiting."""
        for _ in range(600):
            if int(self.tab.locator("#explore").get_attribute("data-drawn") or 0) >= times:
                return
            self.tab.wait_for_timeout(50)
        raise AssertionError("the pictures were not drawn")

    def numbers(self):
        """Return the table of the present point, by rows."""
        rows = self.tab.locator("#explore table tbody tr").all()
        return {
            row.locator("th").inner_text(): [float(cell) for cell in row.locator("td").all_inner_texts()]
            for row in rows
        }

    def saved(self, button):
        with self.tab.expect_download() as download:
            button.click()
        return download.value

    def close(self):
        assert self.complaints == []
        assert all(url.startswith(("file:", "data:", "blob:")) for url in self.requests)
        self.tab.close()


@pytest.fixture(scope="module")
def model():
    return model_of()


@pytest.fixture(scope="module")
def page(model):
    return render(model, title="valley.nurf")


@pytest.fixture
def visit(browser, tmp_path):
    visits = []

    def open_page(text, **options):
        visits.append(Visit(browser, tmp_path / f"{len(visits)}.html", text, **options))
        return visits[-1]

    yield open_page
    for each in visits:
        each.close()


def assert_shown(visit, model, point):
    """Compare the table with the model at a point; six digits are shown."""
    X = pd.DataFrame([point], columns=list(model.feature_names_in_))
    k = np.size(model.y_scale_)
    values, deviations = (part.reshape(k) for part in model.predict(X, return_std=True))
    found = visit.numbers()
    close = partial(assert_allclose, rtol=2e-5, atol=1e-9)
    close(found["value"], values)
    close(found["90% band, low"], values - 1.6448536 * deviations)
    close(found["90% band, high"], values + 1.6448536 * deviations)
    slopes = model.predict_gradient(X).reshape(k, -1)
    for j, name in enumerate(X.columns):
        close(found[f"∂/∂ {name}"], slopes[:, j])


class TestInputs:
    def test_numbers_and_sliders(self, visit, model, page):
        here = visit(page)
        stored = model.evidence_["X"]
        assert_shown(here, model, stored.mean(axis=0))
        fields, sliders = (
            here.tab.locator("#explore input[type=number]"),
            here.tab.locator("#explore input[type=range]"),
        )
        fields.nth(0).fill("0.25")
        fields.nth(1).fill("-0.5")
        assert_shown(here, model, [0.25, -0.5])
        low, high = stored.min(axis=0), stored.max(axis=0)
        assert abs(float(sliders.nth(0).input_value()) / 1000 - (0.25 - low[0]) / (high[0] - low[0])) < 1e-3
        sliders.nth(0).fill("100")
        assert_allclose(float(fields.nth(0).input_value()), low[0] + 0.1 * (high[0] - low[0]), rtol=1e-4)
        assert_shown(here, model, [low[0] + 0.1 * (high[0] - low[0]), -0.5])
        fields.nth(0).fill("3")
        assert "Outside the range of the samples: a." in here.tab.get_by_role("status").inner_text()
        assert_shown(here, model, [3, -0.5])

    def test_keys(self, visit, model, page):
        here = visit(page)
        slider = here.tab.get_by_role("slider", name="a", exact=True)
        slider.focus()
        before = int(slider.input_value())
        for key in ("ArrowRight", "ArrowRight", "PageUp", "ArrowLeft"):
            here.tab.keyboard.press(key)
        after = int(slider.input_value())
        assert after > before + 50
        x = float(here.tab.locator("#explore input[type=number]").nth(0).input_value())
        low, high = model.evidence_["X"][:, 0].min(), model.evidence_["X"][:, 0].max()
        assert_allclose(x, low + after / 1000 * (high - low), rtol=1e-4)
        assert slider.get_attribute("aria-valuetext")
        here.tab.keyboard.press("Home")
        assert_allclose(float(here.tab.locator("#explore input[type=number]").nth(0).input_value()), low, rtol=1e-4)
        here.tab.keyboard.press("Tab")
        assert here.tab.evaluate("document.activeElement.type") == "number"

    def test_fields_are_short_and_points_exact(self, visit, model, page):
        here = visit(page)
        mean = model.evidence_["X"].mean(axis=0)
        found = [field.input_value() for field in here.tab.locator("#explore input[type=number]").all()]
        assert all(len(text) <= 11 for text in found)
        assert_allclose([float(text) for text in found], mean, rtol=1e-4)
        code = here.tab.locator("pre.code").text_content()
        copied = [float(text) for text in re.search(r"\[\[(.*?)\]\]", code)[1].split(",")]
        assert_allclose(copied, mean, rtol=1e-15)

    def test_pictures_move_the_point(self, visit, model, page):
        here = visit(page)
        here.drawn()
        lines = "document.querySelector('#explore figure path[fill=none][stroke-width=\"2\"]').getAttribute('d')"
        before = here.tab.evaluate(lines)
        picture = here.tab.locator("#explore figure[aria-label='along b'] svg")
        scale = picture.bounding_box()["width"] / 320
        picture.click(position={"x": (68 + 236 * 0.75) * scale, "y": 80})
        low, high = model.evidence_["X"][:, 1].min(), model.evidence_["X"][:, 1].max()
        fields = here.tab.locator("#explore input[type=number]")
        assert abs(float(fields.nth(1).input_value()) - (low + 0.75 * (high - low))) < 0.02 * (high - low)
        here.drawn(2)
        assert here.tab.evaluate(lines) != before
        here.tab.locator("#explore figure[aria-label='heat map'] svg").click(
            position={"x": (68 + 188 * 0.25) * scale, "y": (10 + 176 * 0.25) * scale}
        )
        low, high = model.evidence_["X"].min(axis=0), model.evidence_["X"].max(axis=0)
        found = [float(field.input_value()) for field in fields.all()]
        assert_allclose(found, low + np.array([0.25, 0.75]) * (high - low), atol=0.04)

    @pytest.mark.parametrize(
        "engine",
        [
            RandomFeatureRegressor(20, width=0.5, growth=None, density="uniform", random_state=0),
            DeepFeatureRegressor((5, 5), steps=30, random_state=0),
        ],
        ids=["sampled", "trained"],
    )
    def test_other_engines(self, visit, engine):
        model = model_of(engine, columns=["a", "b", "c"], k=1)
        here = visit(render(model))
        assert_shown(here, model, model.evidence_["X"].mean(axis=0))
        here.drawn()


class TestAnswers:
    @pytest.mark.parametrize(("word", "sign"), [("minimum", 1), ("maximum", -1)])
    def test_optima(self, visit, model, page, word, sign):
        here = visit(page)
        here.tab.get_by_role("button", name=f"Find the {word}").click()
        status = here.tab.get_by_role("status").filter(has_text="in the range of the samples")
        status.wait_for()
        text = status.inner_text()
        found = float(re.search(r"samples: (\S+),", text)[1])
        samples = model.evidence_["X"]
        box = list(zip(samples.min(axis=0), samples.max(axis=0), strict=True))

        def height(x):
            return sign * model.predict(pd.DataFrame([x], columns=["a", "b"]))[0, 0]

        def slope(x):
            return sign * model.predict_gradient(pd.DataFrame([x], columns=["a", "b"]))[0, 0]

        ends = [minimize(height, x, jac=slope, bounds=box, method="L-BFGS-B") for x in samples[:25]]
        best = min(ends, key=lambda end: end.fun)
        assert_allclose(sign * found, best.fun, rtol=1e-5)
        fields = [float(field.input_value()) for field in here.tab.locator("#explore input[type=number]").all()]
        assert_allclose(fields, best.x, atol=1e-3)
        assert re.search(r"\d+ of \d+ searches ended there", text)

    def test_python(self, visit, model, page, tmp_path, monkeypatch):
        here = visit(page)
        here.tab.locator("#explore input[type=number]").nth(0).fill("0.125")
        here.tab.get_by_role("button", name="Copy as Python").click()
        code = here.tab.locator("pre.code").filter(has_text="predict").text_content()  # the box may still be closed
        model.save(tmp_path / "valley.nurf")
        monkeypatch.chdir(tmp_path)
        names = {}
        *start, predict, _ = code.splitlines()
        exec("\n".join([*start, f"found = {predict}"]), names)
        assert names["X"]["a"].tolist() == [0.125]
        assert_allclose(names["found"][0][0], here.numbers()["value"], rtol=2e-5)

    def test_outputs_are_chosen(self, visit, page):
        here = visit(page)
        here.drawn()
        here.tab.get_by_label("Output").select_option("other")
        here.drawn(2)
        assert "other" in here.tab.locator("#explore figure[aria-label='along a'] svg").text_content()


class TestDownloads:
    def test_tables(self, visit, model, page):
        here = visit(page)
        here.drawn()
        saved = here.saved(here.tab.get_by_role("button", name="Slices as CSV"))
        rows = list(csv.DictReader(io.StringIO(saved.path().read_bytes().decode())))
        frame = pd.DataFrame(rows)
        points = frame[["a", "b"]].astype(float)
        values, deviations = model.predict(points, return_std=True)
        assert list(frame["along"].unique()) == ["a", "b"]
        assert_allclose(frame["depth"].astype(float), values[:, 0], rtol=1e-9, atol=1e-9)
        ends = values[:, 0] + 1.6448536269514722 * deviations[:, 0]
        assert_allclose(frame["depth high"].astype(float), ends, rtol=1e-6)
        table = here.saved(here.tab.locator(".tools").get_by_role("button", name="CSV").first)
        assert table.path().read_text().splitlines()[0] == ",depth,other"

    @pytest.mark.parametrize("label", ["along a", "heat map", "sensitivity"])
    def test_pictures(self, visit, page, label):
        image = pytest.importorskip("PIL.Image")
        here = visit(page, color_scheme="dark")
        here.drawn()
        svg = here.saved(here.tab.get_by_role("button", name=f"{label}: download as SVG").first)
        text = svg.path().read_text()
        assert text.startswith("<svg")
        assert not re.search("currentColor|var\\(", text)
        png = here.saved(here.tab.get_by_role("button", name=f"{label}: download as PNG").first)
        pixels = np.asarray(image.open(png.path()).convert("L"), float)
        assert pixels.shape[1] == 1600
        assert pixels.std() > 5  # not blank


class TestPage:
    def test_hostile_names_run_nothing(self, visit):
        model = model_of(columns=[NASTY, "b"], names=(NASTY, "other"))
        here = visit(render(model, title=NASTY))
        here.drawn()
        assert here.tab.locator("#explore label").first.inner_text() == NASTY
        assert here.tab.evaluate("document.images.length") == 0
        here.tab.get_by_role("button", name="Find the minimum").click()
        here.tab.get_by_role("status").filter(has_text="in the range of the samples").wait_for()
        saved = here.saved(here.tab.get_by_role("button", name="Slices as CSV"))
        (head, *_) = csv.reader(io.StringIO(saved.path().read_bytes().decode()))
        assert head[1] == f"'{NASTY}"  # a spreadsheet computes nothing
        names = {}
        code = here.tab.locator("pre.code").text_content()
        exec("\n".join(line for line in code.splitlines() if line.startswith(("import pandas", "X ="))), names)
        assert list(names["X"].columns) == [NASTY, "b"]

    def test_the_policy_stops_other_scripts_and_requests(self, browser, page, tmp_path):
        (tmp_path / "page.html").write_text(page.replace("</main>", "<script>window.bad = 1</script></main>"))
        tab = browser.new_page()
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate("window.bad") is None
        assert not tab.evaluate("fetch('https://example.org').then(() => true, () => false)")
        tab.close()

    @pytest.mark.parametrize("width", [400, 1200])
    def test_it_fits(self, visit, width):
        long = ["log10_Vmax_of_the_third_reaction_in_mg_per_hour", "b", "c"]
        here = visit(render(model_of(columns=long)), width=width)
        here.drawn()
        assert here.tab.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
        for field in here.tab.locator("#explore input").all():
            box = field.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["width"] > 80

    @pytest.mark.parametrize(("target", "size"), [(None, 1e-3), (None, 3e6), ("log", 1.0)])
    def test_ticks_and_names_of_axes_are_apart(self, visit, target, size):
        X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
        y = size * np.exp(4 * X[:, 0] - 4) if target else size * X[:, 0]
        model = Surrogate(None, engines=[WIDE], target=target, random_state=0).fit(size * X, y)
        here = visit(render(model, evidence=gather(model, size * X, y, seconds=0)))
        here.drawn()
        for picture in here.tab.locator("#explore figure svg").all():
            name = picture.locator("text.up").bounding_box()
            ticks = picture.locator("text.tick")
            assert min(tick.bounding_box()["x"] for tick in ticks.all()) > name["x"] + name["width"]
            powers = {"e" in text for text in ticks.all_text_contents() if text != "0"}
            assert len(powers) == 1

    def test_bands_are_not_cut(self, visit, page):
        here = visit(page)
        here.drawn()
        here.tab.get_by_role("button", name="Find the maximum").click()
        here.tab.get_by_role("status").filter(has_text="in the range of the samples").wait_for()
        here.drawn(2)
        outlines = here.tab.locator("#explore figure path[fill-opacity='0.22']").all()
        heights = [float(y) for path in outlines for y in re.findall(r",([-\d.]+)", path.get_attribute("d"))]
        assert len(heights) > 100
        assert min(heights) >= 10  # the upper and lower edges of the frame
        assert max(heights) <= 224 - 38

    def test_the_results_fit_a_phone(self, visit):
        here = visit(render(model_of(k=1)), width=390)
        box = "document.querySelector('.results').scrollWidth - document.querySelector('.results').clientWidth"
        assert here.tab.evaluate(box) <= 0

    def test_without_scripts_it_is_a_page(self, visit, page):
        here = visit(page, java_script_enabled=False)
        assert not here.tab.locator("#explore").is_visible()
        assert not here.tab.locator("nav a[href='#explore']").is_visible()
        assert here.tab.locator("#chosen").is_visible()

    def test_bands_of_large_models_are_estimated_errors(self, visit, model, monkeypatch):
        monkeypatch.setattr(export._spread, "MOST_NUMBERS", 10)
        here = visit(render(model))
        here.drawn()
        assert "as the standard deviation takes too much memory for a page" in here.tab.locator("#bands").inner_text()
        found = here.numbers()
        half = (np.array(found["90% band, high"]) - found["90% band, low"]) / 2
        assert_allclose(half, 1.645 * model.estimated_error_, rtol=1e-3)
