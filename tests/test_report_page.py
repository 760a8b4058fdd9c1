"""The page of a model: what it shows is true, comes from rows that did not train, and cannot run anything."""

import base64
import hashlib
import itertools
import json
import re
import shutil
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from nurf import KernelFeatureRegressor, RandomFeatureRegressor, Surrogate, load
from nurf.activations import Heaviside
from nurf.decisions import propagate, sensitivity
from nurf.report import Evidence, gather, predicted_at, render, sections
from nurf.report._page import Errors

NASTY = "<script>alert(1)</script> $x^{ &amp; \"'"
SCRIPTS = [{"type": "application/json", "id": "explore-data"}, {"type": "module"}]
SAMPLED = RandomFeatureRegressor(30, density="uniform", width=0.5, growth=None, random_state=0)


def data(n=40, d=3, k=1, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    gradients = np.zeros((n, d))
    gradients[:, 0], gradients[:, 1] = 2 * np.cos(2 * X[:, 0]), 1
    if k == 1:
        return X, y, gradients
    return X, np.stack([y, -2 * y], axis=1), np.stack([gradients, -2 * gradients], axis=1)


def fitted(engines=(SAMPLED,), columns=None, **options):
    X, y, gradients = data(**options)
    frame = pd.DataFrame(X, columns=columns or [f"x{j}" for j in range(X.shape[1])])
    return (
        Surrogate(None, engines=list(engines), random_state=0).fit(frame, y, gradients=gradients),
        frame,
        y,
        gradients,
    )


@pytest.fixture(scope="module")
def page():
    model, X, y, gradients = fitted()
    gather(model, X, y, gradients=gradients, targets=["lift"], source="runs.csv").attach(model)
    return render(model, title="wing.nurf")


class Tags(HTMLParser):
    """The elements of a page, and whether they are nested properly."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.text = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.append(text)


class TestEvidence:
    @pytest.mark.filterwarnings("ignore:1 of 40 samples carry 90%")  # the one that is spoiled
    def test_predictions_come_from_fits_without_the_rows(self):
        model, X, y, gradients = fitted()
        found = gather(model, X, y, gradients=gradients)
        assert found.n_refits == 5
        assert_array_equal(np.sort(found.rows), range(40))
        assert_array_equal(found.true[:, 0], y[found.rows])
        # a row whose value is absurd is not predicted by a fit that did not see it, and by one that saw it is
        spoiled = y.copy()
        spoiled[7] += 1000
        other, *_ = fitted()
        other.fit(X, spoiled)
        again = gather(other, X, spoiled)
        assert abs(again.predicted[again.rows == 7, 0][0] - spoiled[7]) > 500

    def test_each_fold_is_predicted_by_the_chosen_estimator_fitted_to_the_others(self):
        model, X, y, gradients = fitted(n=60)
        found = gather(model, X, y, gradients=gradients, seconds=1e-9)  # a single refit
        assert found.n_refits == 1
        train = np.setdiff1d(np.arange(60), found.rows)
        refit = RandomFeatureRegressor(**model.model_.get_params())
        refit.fit(X.iloc[train], y[train], gradients=gradients[train])
        test = X.iloc[found.rows]
        assert_allclose(found.predicted[:, 0], refit.predict(test), rtol=1e-9)
        assert_allclose(found.intervals[:, 0], refit.predict_interval(test, 0.9), rtol=1e-9)
        errors = gradients[found.rows] - refit.predict_gradient(test)
        assert_allclose(
            found.gradient_errors, np.linalg.norm(errors) / np.linalg.norm(gradients[found.rows]), rtol=1e-9
        )

    def test_equal_points_leave_together(self):
        model, X, y, _ = fitted(n=20)
        twice, values = pd.concat([X, X], ignore_index=True), np.concatenate([y, y + 0.1])
        found = gather(model, twice, values, seconds=1e-9)
        assert set(found.rows % 20) == set(found.rows[found.rows < 20])
        assert len(found.rows) == 2 * len(set(found.rows % 20))

    def test_more_samples_leave_once(self):
        model, X, y, _ = fitted(n=200)
        found = gather(model, X, y)
        assert (found.n_refits, len(found.rows)) == (1, 40)
        assert np.isnan(found.gradient_errors).all()

    def test_it_is_small_and_saved_with_the_model(self, tmp_path, monkeypatch):
        model, X, y, gradients = fitted(k=2)
        monkeypatch.setattr("nurf.report._evidence.MOST_ROWS", 15)
        found = gather(model, X, y, gradients=gradients, targets=["a", "b"], source="s.csv")
        assert found.X.shape == (15, 3)
        assert found.predicted.shape == (15, 2)
        found.attach(model)
        model.save(tmp_path / "m.nurf")
        again = Evidence.of(load(tmp_path / "m.nurf"))
        assert (again.targets, again.source, again.n_samples) == (("a", "b"), "s.csv", 40)
        assert_array_equal(again.predicted, found.predicted)
        assert_array_equal(again.rows, found.rows)

    def test_without_time_or_with_few_samples_there_are_none(self):
        model, X, y, gradients = fitted()
        assert len(gather(model, X, y, gradients=gradients, seconds=0.0).rows) == 0
        model, X, y, gradients = fitted(n=8)
        few = gather(model, X, y, gradients=gradients)
        assert len(few.rows) == 0
        assert "No rows were held out" in render(model, evidence=few)

    def test_what_is_stored_in_another_form_is_refused(self):
        model, X, y, _ = fitted()
        model.evidence_ = {"targets": ("y",)}
        with pytest.raises(ValueError, match="the stored data for reports must be as `gather` returns them"):
            render(model)
        gather(model, X, y, seconds=0.0).attach(model)
        model.evidence_["y"] = np.ones((3, 3))
        with pytest.raises(ValueError, match=r"`y` must have shape \(40, 1\), got \(3, 3\)"):
            render(model)
        other, *_ = fitted(d=2)
        with pytest.raises(ValueError, match="must have 2 inputs and 1 targets, as the model has, got 3 and 1"):
            render(other, evidence=gather(model, X, y, seconds=0.0))

    @pytest.mark.parametrize("k", [1, 2])
    def test_new_rows_are_predicted_by_the_model_itself(self, k):
        model, X, y, _ = fitted(k=k)
        points, values, slopes = data(n=25, k=k, seed=1)
        fresh = pd.DataFrame(points, columns=X.columns)
        alone = predicted_at(model, fresh, values, gradients=slopes, targets=["a", "b"][:k], source="new.csv")
        assert_allclose(alone.predicted, model.predict(fresh).reshape(25, k))
        assert_array_equal(alone.X, points)
        assert (alone.n_refits, alone.n_samples, alone.targets) == (0, 0, ("a", "b")[:k])
        known = slopes.reshape(25, k, 3)
        errors = np.linalg.norm(known - model.predict_gradient(fresh).reshape(known.shape), axis=(0, 2))
        assert_allclose(alone.gradient_errors, errors / np.linalg.norm(known, axis=(0, 2)))
        assert "rows of new.csv, to which the model was not fitted" in render(model, evidence=alone)
        gather(model, X, y, seconds=0.0, targets=["c", "d"][:k]).attach(model)
        beside = predicted_at(model, fresh, values)
        assert (beside.n_samples, beside.targets) == (40, ("c", "d")[:k])
        assert_array_equal(beside.X, X)
        assert_array_equal(beside.true, values.reshape(25, k))


class TestErrors:
    def test_against_their_definitions(self):
        rng = np.random.default_rng(0)
        y, f = rng.normal(size=(2, 50, 1))
        ends = np.stack([f - 1, f + 1], axis=-1)
        found = Errors.of(
            Evidence(("y",), "", 50, np.ones((1, 1)), np.ones((1, 1)), np.arange(50), y, f, ends, np.array([0.5]), 5), 0
        )
        assert found.rms == pytest.approx(np.sqrt(np.mean((y - f) ** 2)))
        assert found.r2 == pytest.approx(1 - np.sum((y - f) ** 2) / np.sum((y - y.mean()) ** 2))
        assert found.relative == pytest.approx(found.rms / y.std())
        assert found.median == np.median(np.abs(y - f))
        assert found.largest == np.abs(y - f).max()
        assert found.covered == np.mean(np.abs(y - f) <= 1)
        assert found.gradients == 0.5


class TestPage:
    def test_it_is_one_page_that_needs_nothing_else(self, page):
        tags = Tags(page)
        assert not [tag for tag, _ in tags.found if tag in ("iframe", "object", "form")]
        assert [attributes for tag, attributes in tags.found if tag == "script"] == SCRIPTS
        (policy,) = [a["content"] for _, a in tags.found if a.get("http-equiv") == "Content-Security-Policy"]
        (program,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
        assert policy == (
            f"default-src 'none'; script-src 'sha256-{digest}'; img-src data:; style-src 'unsafe-inline'; "
            "base-uri 'none'; form-action 'none'"
        )
        for _, attributes in tags.found:
            for name in ("src", "href", "xlink:href"):
                assert attributes.get(name, "#").startswith(("#", "data:"))
        assert "url(http" not in page
        assert "@import" not in page
        ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
        assert {"chosen", "errors", "slices", "inputs", "hyperplanes"} <= set(ids)

    def test_all_parts_are_there(self, page):
        tags = Tags(page)
        titles = [attributes["aria-label"] for tag, attributes in tags.found if tag == "figure"]
        assert titles[:3] == ["estimated errors of all engines", "predicted against true", "residuals"]
        assert titles[3:8] == ["along x0", "along x1", "along x2", "sensitivity", "active directions"]
        assert re.fullmatch(r"lift: 30 hyperplanes, \d+ of which pass between samples", titles[8])
        assert len(titles) == 9
        text = " ".join("".join(tags.text).split())
        for words in (
            "wing.nurf",
            "lift",
            "fitted to 40 samples of runs.csv",
            "without a fifth of the rows, 5 times",
            "R²",
        ):
            assert words in text

    def test_names_of_the_user_are_shown_as_they_are_and_run_nothing(self):
        model, X, y, gradients = fitted(columns=[NASTY, "b$c$", "<b>d"])
        gather(model, X, y, gradients=gradients, targets=[NASTY], source=NASTY, seconds=1e-9).attach(model)
        text = render(model, title=NASTY, command=f"nurf report {NASTY}")
        tags = Tags(text)
        assert [attributes for tag, attributes in tags.found if tag == "script"] == SCRIPTS
        assert "b" not in {tag for tag, attributes in tags.found if "class" in attributes}
        assert NASTY in "".join(tags.text)
        (data,) = re.findall(r'id="explore-data">(.*?)</script>', text, re.DOTALL)
        assert not set("<>&") & set(data)
        assert [each["name"] for each in json.loads(data)["inputs"]] == [NASTY, "b$c$", "<b>d"]
        assert json.loads(data)["title"] == NASTY
        (program,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
        assert "alert" not in program

    @pytest.mark.parametrize(
        ("engine", "d"),
        [(KernelFeatureRegressor("gaussian", metric="scales"), 2), (SAMPLED, 2), (SAMPLED, 4)],
        ids=["2-wide", "2-sampled", "4-sampled"],
    )
    def test_other_engines_and_dimensions(self, engine, d):
        model, X, y, gradients = fitted([engine], d=d, k=2)
        gather(model, X, y, gradients=gradients, seconds=1e-9).attach(model)
        text = render(model)
        Tags(text)
        assert ('id="hyperplanes"' not in text) == isinstance(engine, KernelFeatureRegressor)
        assert ('href="#hyperplanes"' not in text) == isinstance(engine, KernelFeatureRegressor)

    @pytest.mark.filterwarnings("ignore:. of 40 samples carry 90%")
    @pytest.mark.parametrize("d", [1, 2, 4])
    def test_hyperplanes_of_logarithms_of_the_values(self, d):
        X = np.random.default_rng(0).uniform(-1, 1, (40, d))
        values = np.exp(4 * X[:, 0])
        pages = []
        for options in ({"target": "log"}, {"target": "log", "inputs": "log"}):
            model = Surrogate(None, engines=[SAMPLED], random_state=0, **options).fit(X + 2, values)
            assert model.warping_.outputs is not None
            pages.append(render(model, evidence=gather(model, X + 2, values, targets=["lift"], seconds=0.0)))
        found, none = ([a.get("aria-label") or "" for _, a in Tags(page).found] for page in pages)
        (title,) = [label for label in found if "hyperplanes" in label]
        planes = Surrogate(None, engines=[SAMPLED], target="log", random_state=0).fit(X + 2, values).model_.hyperplanes_
        sides = planes.signed_distance(X + 2) > 0
        crossing = np.sum(sides.any(axis=0) & ~sides.all(axis=0))
        assert title == f"lift: 30 hyperplanes, {crossing} of which pass between samples"
        assert not [label for label in none if "hyperplanes" in label]

    def test_one_input(self):
        X = np.linspace(-1, 1, 30)[:, None]
        model = Surrogate(None, engines=[SAMPLED]).fit(X, X[:, 0] ** 2)
        gather(model, X, X[:, 0] ** 2, seconds=1e-9).attach(model)
        figures = [attributes.get("aria-label") for tag, attributes in Tags(render(model)).found if tag == "figure"]
        assert len(set(figures)) == len(figures) > 3

    def test_a_model_without_samples_says_what_is_left_out(self):
        model, *_ = fitted()
        text = render(model)
        assert "The file holds no samples" in text
        assert [attributes.get("aria-label") for tag, attributes in Tags(text).found if tag == "figure"] == [
            "estimated errors of all engines"
        ]
        Tags(render(model.model_))  # another estimator

    def test_a_model_without_gradients_says_that_it_does_not_run_in_the_page(self):
        X, y, _ = data()
        model = RandomFeatureRegressor(20, activation=Heaviside(), gradient_weight=0.0, random_state=0).fit(X, y)
        text = render(model, evidence=gather(model, X, y, seconds=0.0))
        tags = Tags(text)
        assert "The model does not run in this page: a model is exported with its gradient" in text
        ids = {attributes.get("id") for _, attributes in tags.found}
        assert not {"explore", "explore-data", "slices", "inputs", "hyperplanes"} & ids

    def test_huge_inputs(self):
        X, y, _ = data()
        model = KernelFeatureRegressor("matern", metric="scales").fit(1e200 * X, y)
        with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sensitivities in standard deviations
            text = render(model, evidence=gather(model, 1e200 * X, y, seconds=0.0))
        (found,) = re.findall(r'id="explore-data">(.*?)</script>', text, re.DOTALL)
        deviations = [each["deviation"] for each in json.loads(found)["inputs"]]
        assert_allclose(deviations, 1e200 * X.std(axis=0), rtol=1e-12)

    def test_pictures_of_many_targets_are_limited(self, monkeypatch):
        monkeypatch.setattr("nurf.report._page.MOST_TARGETS", 1)
        model, X, y, gradients = fitted(k=2)
        text = render(model, evidence=gather(model, X, y, gradients=gradients, seconds=1e-9))
        assert "Pictures are shown for the first 1 of 2 targets" in text

    def test_gradients_that_contradict_are_named(self):
        X, y, gradients = data(n=100, d=2)
        with pytest.warns(UserWarning, match="contradict"):
            model = Surrogate(None, engines=[SAMPLED]).fit(X, y, gradients=-gradients)
        assert "The gradients contradict the values: the gradients have the wrong sign" in render(model)

    def test_findings_have_the_names_of_targets(self):
        model, X, y, _ = fitted(n=100, k=2)
        page = render(model, evidence=gather(model, X, y, targets=["lift", "drag"], seconds=0.0))
        assert re.search("<p>(lift|drag): the gradients explain", page)

    def test_settings_of_matplotlib_stay_as_they_are(self):
        import matplotlib as mpl

        before = dict(mpl.rcParams)
        render(fitted()[0])
        assert dict(mpl.rcParams) == before


class TestBrowser:
    def test_it_fits_wide_and_narrow_windows_in_light_and_dark(self, page, tmp_path):
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if chromium is None:
            pytest.skip("no Chromium on the path")
        api = pytest.importorskip("playwright.sync_api")
        (tmp_path / "report.html").write_text(page, encoding="utf-8")
        flags = ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        complaints, requests = [], []
        with api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            for width, scheme in itertools.product((1200, 390), ("light", "dark")):
                tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
                tab.on("console", lambda message: complaints.append(message.text))
                tab.on("request", lambda request: requests.append(request.url))
                tab.goto((tmp_path / "report.html").as_uri())
                assert tab.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
                style = "name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number)"
                color, ground = (tab.evaluate(style, name) for name in ("color", "backgroundColor"))
                assert (sum(color) > sum(ground)) == (scheme == "dark")
                label = "getComputedStyle(document.querySelector('.plot text')).fill"
                assert tab.evaluate(label) == tab.evaluate("getComputedStyle(document.body).color")
                widths = tab.locator(".plot").evaluate_all("plots => plots.map(p => p.getBoundingClientRect().width)")
                assert min(widths) > 250
            browser.close()
        assert complaints == []
        assert all(url.startswith(("file:", "data:")) for url in requests)


class TestAnswers:
    def test_they_are_sections_with_their_numbers(self):
        model, *_ = fitted(columns=["load", NASTY, "c"])
        found = propagate(model, n_points=64, random_state=0)
        tags = Tags(render(model, answers=[found, sensitivity(model, n_points=64, random_state=0)]))
        text = "".join(tags.text)
        assert [attributes for tag, attributes in tags.found if tag == "script"] == SCRIPTS[1:]
        assert {attributes.get("id") for tag, attributes in tags.found if tag == "section"} >= {"answer-1", "answer-2"}
        links = {attributes.get("href") for tag, attributes in tags.found if tag == "a"}
        assert {"#answer-1", "#answer-2"} <= links
        for words in ("Propagation", "Sensitivity", NASTY, str(found.mean), f"{float(found.quantile(0.99)):.3g}"):
            assert words in text

    def test_headings_may_be_given(self):
        (section,) = sections({"At night": propagate(fitted()[0], n_points=64, random_state=0)})
        assert (section.heading, section.anchor) == ("At night", "answer-1")
        assert "quantity" in section.columns
        assert section.rows[0][0] == "mean"

    def test_other_objects(self):
        with pytest.raises(TypeError, match=r"results of nurf\.decisions have, got float"):
            sections([0.5])
