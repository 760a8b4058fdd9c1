"""The examples: what they print and draw, and their silence where there is no terminal."""

import importlib.util
import re
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, **settings):
    """Run an example without functions, with other values of some names in capitals, and return what it defines."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    for names, values in settings.items():
        source, n = re.subn(
            rf"(?m)^{names.replace('__', ', ')} = .*$", f"{names.replace('__', ', ')} = {values}", source
        )
        assert n == 1
    scope = {"__name__": name}
    exec(compile(source, name, "exec"), scope)
    return scope


@pytest.fixture(scope="module")
def demo():
    return load("demo")


def table(text):
    """Return the rows of the printed table without the seconds: law, error of values, error of gradients."""
    rows = [line.split() for line in text.splitlines()]
    laws = ("uniform", "active_subspace", "local", "nonlocal")
    return {row[0]: [float(x) for x in row[1:3]] for row in rows if row and row[0] in laws}


def test_the_demo_prints_a_table_and_writes_pictures(demo, tmp_path, capsys):
    out = tmp_path / "new" / "pictures"
    demo.main(["--quick", "--out", str(out)])
    printed, progress = capsys.readouterr()
    assert printed.count("estimated error  seconds  setting") == 2
    assert printed.count("90% intervals contain") == 2
    rows = table(printed)
    assert list(rows) == ["uniform", "active_subspace", "local", "nonlocal"]
    assert all(0 < values < gradients < 1 for values, gradients in rows.values())
    for law in ("active_subspace", "local", "nonlocal"):
        assert rows[law][0] < rows["uniform"][0] / 3
    assert progress == ""
    assert plt.get_fignums() == []

    pictures = sorted(out.iterdir())
    assert [p.name for p in pictures] == ["convergence.png", "predictions.png", "slices.png"]
    for picture in pictures:
        assert str(picture) in printed
        image = plt.imread(picture)
        assert image.shape[0] > 600
        assert image.shape[1] > 900
        assert 0.01 < np.mean(image[..., :3] < 0.9) < 0.5  # neither blank nor full
        frame = np.concatenate([image[[0, -1], :, :3].reshape(-1, 3), image[:, [0, -1], :3].reshape(-1, 3)])
        assert frame.min() == 1  # nothing is cut off at the edges

    demo.main(["--quick", "--out", str(out)])
    assert table(capsys.readouterr().out) == rows


def test_progress_is_shown_on_a_terminal_only(demo, capsys, monkeypatch):
    demo.progress("fitting")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    demo.progress("fitting")
    assert capsys.readouterr().err.endswith("fitting")


def test_the_pictures_of_all_laws(tmp_path, capsys, monkeypatch):
    laws = load("plot_densities")
    monkeypatch.setattr(laws, "PROBLEMS", ["planar_wave", "checkmark"])
    laws.main(["--out", str(tmp_path), "--trials", "1"])
    tables = []
    for text in capsys.readouterr().out.strip().split("\n\n"):
        header, _, *rows = text.splitlines()
        columns = [cell.strip() for cell in header.strip("|").split("|")]
        errors = {row.split("|")[1].strip(): [float(cell) for cell in row.strip("|").split("|")[1:]] for row in rows}
        tables.append([dict(zip(columns[1:], errors[name], strict=True)) for name in ("planar wave", "checkmark")])
    (wave, checkmark), (other_kernels, _), (crowded, _) = tables
    assert other_kernels["the paper's"] == wave["nonlocal"]
    assert [f"{name}, knn" for name in [*crowded][::2]] == [*crowded][1::2]
    assert max(wave, key=wave.get) == "uniform"
    assert wave["active subspace"] < wave["uniform"] / 5
    assert checkmark["exact representation"] < checkmark["active subspace"] / 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "densities_angle_offset.png",
        "densities_hyperplanes.png",
    ]


def test_a_surrogate_is_minimised_and_sampled(tmp_path, capsys):
    load("optimise_and_sample").main(["--quick", "--out", str(tmp_path)])
    minimum, _, _, chain, exact, wrote = capsys.readouterr().out.splitlines()
    assert float(minimum.split(" of ")[1].split()[0]) < 0.05
    # The means and deviations of a chain of 20,000 steps vary by 0.06 or less (the standard deviation over five chains
    # on the energy itself): 0.4 is six times that.
    found, true = ([float(number) for number in row.split()[1:]] for row in (chain, exact))
    assert_allclose(true, [0, 0.5, 1, 0.85], atol=0.02)  # x1 ~ N(0, 1) and x2 = x1^2 / 2 + N(0, 1/4), cut off
    assert_allclose(found, true, atol=0.4)
    image = plt.imread(tmp_path / "optimise_and_sample.png")
    assert wrote.endswith("optimise_and_sample.png")
    assert 0.01 < np.mean(image[..., :3] < 0.9) < 0.5  # neither blank nor full


def test_ten_samples_with_and_without_slopes(tmp_path, capsys):
    load("plot_few_samples").main(["--quick", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    rows = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("| ")]
    errors, inputs = np.array(rows[1:3], dtype=float)[:, 1:], {row[0].strip(): row[1:] for row in rows[4:]}
    assert set(inputs) == {"rw", "r", "Tu", "Hu", "Tl", "Hl", "L", "Kw"}
    _, partials, shares = np.array(list(inputs.values()), dtype=float).T
    assert np.argmax(partials) == np.argmax(shares) == list(inputs).index("rw")
    # For ten seeds, slopes divide the error by 1700 at the least.
    assert np.all(errors[:, 2] < errors[:, 0] / 20)
    assert "used, error" in printed
    assert plt.get_fignums() == []
    for name in ("few_samples.png", "few_samples_inputs.png"):
        assert str(tmp_path / name) in printed
        image = plt.imread(tmp_path / name)
        assert 0.01 < np.mean(image[..., :3] < 0.9) < 0.5  # neither blank nor full
        frame = np.concatenate([image[[0, -1], :, :3].reshape(-1, 3), image[:, [0, -1], :3].reshape(-1, 3)])
        assert frame.min() == 1  # nothing is cut off at the edges


def test_first_weights_in_torch(capsys):
    pytest.importorskip("torch")
    curves = run("plot_initialize_torch", N_SEEDS__N_STEPS__EVERY=(1, 40, 20))["curves"]
    assert len(curves) == len(capsys.readouterr().out.splitlines()) == 4
    assert all(errors.shape == (1, 3) for errors in curves.values())
    # without training the error is about the standard deviation, or more if random layers are in its units
    assert all(np.all((errors[:, 0] > 0.5) & (errors[:, -1] < errors[:, 0])) for errors in curves.values())
    assert plt.get_fignums() != []
    plt.close("all")


def test_bayesian_optimisation(capsys):
    with warnings.catch_warnings():  # torch warns of what BoTorch's dependencies do
        warnings.simplefilter("ignore")
        pytest.importorskip("botorch")
        curves = run("plot_botorch", N_SEEDS__N_FIRST__N_STEPS=(1, 6, 1))["curves"]
    assert len(curves) == len(capsys.readouterr().out.splitlines()) == 3
    assert all(values.shape == (1, 2) and np.all(np.diff(values) <= 0) for values in curves.values())
    plt.close("all")
