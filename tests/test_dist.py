"""The wheel, as users install it: in an empty environment without extras, and in one with all of them."""

import os
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

TORCH = "torch==2.13.0"  # a build that needs no graphics card, if the index has one
OPTIONAL = [
    "SALib",
    "botorch",
    "dask",
    "gpytorch",
    "jax",
    "jinja2",
    "matplotlib",
    "onnx",
    "openmdao",
    "openturns",
    "pandas",
    "rich",
    "torch",
    "typer",
]
USE = f"""
import sys, numpy as np, sklearn.compose, sklearn.decomposition
before = set(sys.modules)  # scikit-learn imports some of them itself, if they are there
from nurf import *
import nurf
X = np.random.default_rng(0).uniform(size=(60, 2))
y = np.sin(3 * X[:, 0]) * X[:, 1]
G = np.stack([3 * np.cos(3 * X[:, 0]) * X[:, 1], np.sin(3 * X[:, 0])], axis=1)
model = Surrogate(time_budget=5, random_state=0).fit(X, y, gradients=G)
assert np.abs(model.predict(X) - y).max() < 0.1
assert model.predict_gradient(X).shape == X.shape
model.save("model.nurf")
assert np.all(load("model.nurf").predict(X) == model.predict(X))
assert "site-packages" in nurf.__file__, nurf.__file__
print([name for name in {OPTIONAL!r} if name in set(sys.modules) - before])
"""


class Environment:
    """A virtual environment with packages of its own, in which commands run in a folder of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        venv.create(folder / "venv", with_pip=True)

    def run(self, *command, check=True):
        name, *arguments = command
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
        done = subprocess.run(
            [str(self.bin / name), *map(str, arguments)], cwd=self.folder, env=clean, capture_output=True, text=True
        )
        assert done.returncode == 0 or not check, f"{command}\n{done.stdout}\n{done.stderr}"
        return done

    def install(self, *requirements):
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)

    def versions(self):
        listed = self.run("python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check").stdout
        return dict(line.lower().split("==") for line in listed.splitlines() if "==" in line)


@pytest.fixture(scope="module")
def wheel(request):
    path = request.config.getoption("wheel").resolve()
    assert path.is_file()
    return path


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("bare"))
    environment.install(wheel)
    return environment


@pytest.fixture(scope="module")
def complete(wheel, tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("complete"))
    environment.install(TORCH)
    environment.install(f"{wheel}[all]", TORCH)
    return environment


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"nurf"}
    assert "nurf/py.typed" in names
    assert any(name.startswith("nurf/report/templates/") for name in names)
    assert not [name for name in names if "__pycache__" in name or "/test" in name]


def test_without_extras_there_are_three_dependencies_and_theirs(bare):
    found = set(bare.versions()) - {"pip", "setuptools"}
    assert {"nurf", "numpy", "scipy", "scikit-learn"} <= found
    assert not found & set(OPTIONAL)
    assert bare.run("python", "-c", USE).stdout == "[]\n"


def test_without_extras_the_command_says_what_to_install(bare):
    done = bare.run("nurf", "fit", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert 'pip install "nurf[cli]"' in done.stderr


def test_without_extras_what_needs_one_names_it(bare):
    for code, extra in (
        ("import nurf; nurf.plots", "plot"),
        ("import nurf; nurf.torch.initialize_(None, [[0.0]], [0.0])", "torch"),
        ("import nurf; nurf.export.to_botorch(None)", "botorch"),
        ("import nurf; nurf.export.to_openmdao(None)", "openmdao"),
        ("import nurf; nurf.export.to_openturns(None)", "openturns"),
    ):
        done = bare.run("python", "-c", code, check=False)
        assert done.returncode != 0
        assert f'pip install "nurf[{extra}]"' in done.stderr


def test_with_all_extras_none_is_imported_before_it_is_needed(complete):
    assert complete.versions()["torch"].split("+")[0] == TORCH.split("==")[1]
    assert complete.run("python", "-c", USE).stdout == "[]\n"


def test_with_all_extras_the_command_goes_from_samples_to_programs(complete):
    complete.run("nurf", "sample", "borehole", "-n", "60", "--out", "samples.csv")
    complete.run(
        "nurf", "fit", "samples.csv", "--target", "y", "--gradients", "dy_*", "--time-budget", "5", "--out", "m.nurf"
    )
    predictions = complete.run("nurf", "predict", "m.nurf", "samples.csv", "--gradient").stdout.splitlines()
    assert len(predictions) == 61
    complete.run("nurf", "report", "m.nurf", "--out", "report.html")
    page = (complete.folder / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    for kind in ("c", "python", "onnx", "torch"):
        complete.run("nurf", "export", "m.nurf", "--to", kind)
