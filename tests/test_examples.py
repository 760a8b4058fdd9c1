"""The examples: what they print and draw, their silence where there is no terminal, and the derivatives they compute.

`make docs` runs the examples of the gallery in full. Here are their solvers, and one of them in full.
"""

import importlib.util
import re
import runpy
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

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
    """Return the rows of the printed table without the seconds: density, error of values, error of gradients."""
    rows = [line.split() for line in text.splitlines()]
    names = ("uniform", "active_subspace", "local", "nonlocal")
    return {row[0]: [float(x) for x in row[1:3]] for row in rows if row and row[0] in names}


def test_the_demo_prints_a_table_and_writes_pictures(demo, tmp_path, capsys):
    out = tmp_path / "new" / "pictures"
    demo.main(["--quick", "--out", str(out)])
    printed, progress = capsys.readouterr()
    assert printed.count("estimated error  seconds  setting") == 1
    assert printed.count("90% intervals contain") == 2
    found = re.findall(r"^(nurf, .*|Gaussian process .*|radial .*?) +([\d.e+-]+) +[\d.]+$", printed, re.MULTILINE)
    errors = {name.split(", time_budget")[0].strip(): float(error) for name, error in found}  # the last of each method
    assert len(errors) == 4
    ours = errors.pop("nurf, values and gradients")
    assert all(ours < error / 3 for error in errors.values())  # a factor of forty with enough time
    page = out / "report.html"
    assert page.as_uri() in printed
    assert 'id="explore-data"' in page.read_text(encoding="utf-8")
    page.unlink()
    rows = table(printed)
    assert list(rows) == ["uniform", "active_subspace", "local", "nonlocal"]
    assert all(0 < values < gradients < 1 for values, gradients in rows.values())
    for name in ("active_subspace", "local", "nonlocal"):
        assert rows[name][0] < rows["uniform"][0]  # by a factor of three, and more with more neurons
    assert progress == ""
    assert plt.get_fignums() == []

    pictures = sorted(out.iterdir())
    assert [p.name for p in pictures] == ["convergence.png", "predictions.png", "ten_samples.png"]
    for picture in pictures:
        assert str(picture) in printed
        image = plt.imread(picture)
        assert image.shape[0] > 600
        assert image.shape[1] > 900
        assert 0.01 < np.mean(image[..., :3] < 0.9) < 0.5  # neither blank nor full
        frame = np.concatenate([image[[0, -1], :, :3].reshape(-1, 3), image[:, [0, -1], :3].reshape(-1, 3)])
        assert frame.min() == 1  # nothing is cut off at the edges

    rng = np.random.default_rng(0)
    data, test = (demo.BOREHOLE.jet(demo.BOREHOLE.sample(n, rng)) for n in (300, 500))
    demo.compare(data, test, n_neurons=60)
    assert table(capsys.readouterr().out) == rows


def test_progress_is_shown_on_a_terminal_only(demo, capsys, monkeypatch):
    demo.progress("fitting")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    demo.progress("fitting")
    assert capsys.readouterr().err.endswith("fitting")


def test_the_pictures_of_all_densities(tmp_path, capsys, monkeypatch):
    example = load("plot_densities")
    monkeypatch.setattr(example, "PROBLEMS", ["planar_wave", "checkmark"])
    example.main(["--out", str(tmp_path), "--trials", "1"])
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


def definitions(name):
    """Return the names that an example of the gallery defines in the cells before its first samples or fit."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    names = {}
    exec(re.split(r"default_rng|\.fit\(", text)[0].rpartition("# %%")[0], names)
    return names


def differences(function, x, step):
    """Return central differences of a function of one point by each input, as the last axis."""
    return np.stack([(function(x + h) - function(x - h)) / (2 * h.sum()) for h in np.diag(np.full(len(x), step))], -1)


def test_the_adjoint_of_heat_conduction():
    solve = definitions("plot_heat")["sensor_temperature"]
    x = np.linspace(-1, 1, 9)
    # Truncation is 1e-10 and rounding 1e-16 / 1e-5 times the condition of the system, 1e3, relative to slopes of 0.1.
    assert_allclose(solve(x)[1], differences(lambda x: solve(x)[0], x, 1e-5), rtol=1e-5, atol=1e-7)


def test_the_adjoint_of_a_beam():
    run = definitions("plot_beam")["run"]
    x = np.array([0.25, 0.1, 200.0, 8.0, 2.0])
    values = [differences(lambda x, q=q: run(x)[0][q], x, 1e-5) for q in (0, 1)]
    assert_allclose(run(x)[1], values, rtol=1e-5, atol=1e-6)
    # elements are exact at nodes for point and uniform loads of a beam with constant height
    EI, span = 200e9 * 0.1 * 0.2**3 / 12, 3.0
    known = 1e6 * (8 * span**3 / 3 + 2 * span**4 / 8) / EI
    assert_allclose(run([0.2, 0.2, 200.0, 8.0, 2.0])[0], [known, 7850 * 0.1 * 0.2 * span], rtol=1e-6)


def test_the_sensitivities_of_kinetics():
    product = definitions("plot_kinetics")["product"]
    x = np.log([0.04, 3e7, 1e4])  # Robertson's
    value, gradient = product(x)
    assert_allclose(value, 1 - 0.7158 - 9.2e-6, atol=1e-4)  # at 40 s, from the literature: a = 0.7158, b = 9.185e-6
    # The integrator is exact to about 1e-8 for each of some hundred steps: 1e-6 / 1e-2, and truncation is 1e-4.
    assert_allclose(gradient, differences(lambda x: product(x)[0], x, 1e-2), atol=1e-3)


def test_the_forces_of_a_potential():
    energy_and_forces = definitions("plot_forces")["energy_and_forces"]
    for x in np.array([[-0.55, 1.44], [0.2, 0.3], [0.6, 0.0]]):
        slopes = differences(lambda x: energy_and_forces(x[None])[0][0], x, 1e-5)
        assert_allclose(-energy_and_forces(x[None])[1][0], slopes, rtol=1e-5, atol=1e-4)
    # the two minima and their energies are known from the literature
    minima, energies = np.array([[-0.558, 1.442], [0.623, 0.028]]), [-146.70, -108.17]
    assert_allclose(energy_and_forces(minima)[0], energies, atol=0.02)


def test_the_costate_of_control():
    solve = definitions("plot_control")["solve"]
    x = np.array([1.3, -0.7])
    # The solver is exact to 1e-5 of the value, which is 3: 3e-5 / 1e-2, and truncation is 1e-4 of the slope.
    assert_allclose(solve(x)[1], differences(lambda x: solve(x)[0], x, 1e-2), rtol=5e-3)


def test_the_greeks_of_options():
    names = definitions("plot_noise")
    X = np.array([[90.0, 0.2, 0.5], [100.0, 0.3, 1.0], [120.0, 0.15, 1.4]])
    _, gradients = names["monte_carlo"](X, np.random.default_rng(0))
    for j, step in enumerate([1e-6, 1e-8, 1e-8]):  # so small that no path crosses the strike in between
        h = step * np.eye(3)[j]
        up, down = (names["monte_carlo"](X + sign * h, np.random.default_rng(0))[0] for sign in (1, -1))
        assert_allclose(gradients[:, j], (up - down) / (2 * step), rtol=1e-4, atol=1e-4)
    delta = differences(lambda x: names["closed_form"](x[None])[0][0], X[1], 1e-5)[0]
    assert_allclose(names["closed_form"](X)[1][1], delta, rtol=1e-6)


def test_the_simulator_of_epidemics():
    names = definitions("plot_values_only")
    X = np.array([[2.5, 4.0, 7.0, 0.03, 40.0, 0.4]])
    run = solve_ivp(
        lambda t, state: names["changes"](t, state[:, None], X)[:, 0],
        (0, 100),
        [0.9995, 0, 0.0005, 0],
        t_eval=[50, 100],
        rtol=1e-9,
        atol=1e-12,
    )
    # A step is a sixteenth of the time of recovery or less: relative errors of (1/16)^5 / 120 for each of 400 steps.
    assert_allclose(names["epidemic"](X)[[50, 100], 0], run.y[3], rtol=1e-4)


def test_fifty_outputs_in_full(capsys):
    names = runpy.run_path(str(EXAMPLES / "plot_many_outputs.py"))
    x = np.array([-0.8, -0.5, -0.2, 0.1, 0.4, 0.7, 5.0])
    forces, slopes = names["bar_forces"](x)
    # Truncation is 1e-8; rounding is 1e-16 times forces of 10 and the condition of the system, 1e4, over the step: 1e-7
    assert_allclose(slopes, differences(lambda x: names["bar_forces"](x)[0], x, 1e-4), atol=1e-5)
    # All bars that hold one joint are in balance: forces on a joint without a load add up to zero.
    joint = names["upper"](3)
    pulls = np.zeros(2)
    for (first, second), force, vector, length in zip(
        names["bars"], forces, names["vectors"], names["lengths"], strict=True
    ):
        pulls += force * vector / length * (int(first == joint) - int(second == joint))
    assert_allclose(pulls, 0, atol=1e-9)

    printed, progress = capsys.readouterr()
    assert progress == ""
    shapes, values, both = printed.splitlines()
    assert shapes == "(40, 7) (40, 50) (40, 50, 7)"
    assert float(both.split()[-1]) < float(values.split()[-1]) / 2  # for this seed by a factor of 5
    assert len(plt.get_fignums()) == 2
    plt.close("all")


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


def test_a_learned_component(capsys):
    """The optimum of the truss is published, and stresses are compared with differences and with their closed form."""
    pytest.importorskip("openmdao")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = runpy.run_path(str(EXAMPLES / "plot_openmdao.py"))
    x = np.array([0.8, 0.4])
    found, slopes = names["stresses"](x)
    a, b = x
    bottom = np.sqrt(2) * a**2 + 2 * a * b
    assert_allclose(found, [2 * (np.sqrt(2) * a + b) / bottom, 2 / (a + np.sqrt(2) * b), -2 * b / bottom])
    assert_allclose(slopes, differences(lambda x: names["stresses"](x)[0], x, 1e-4), atol=1e-6)
    lines = capsys.readouterr().out.splitlines()
    published, ours, kriging = (float(line.split("volume")[1].split(",")[0]) for line in lines)
    assert abs(ours - published) < 0.1 < abs(kriging - published)
    plt.close("all")


def test_the_simulator_of_a_study():
    names = runpy.run_path(str(EXAMPLES / "plot_study.py"))
    x = np.array([0.3, -0.4])
    slopes = differences(lambda x: names["simulate"]({"x": x[0], "y": x[1]})[0], x, 1e-5)
    assert_allclose(names["simulate"]({"x": x[0], "y": x[1]})[1], slopes, rtol=1e-6)
    assert_allclose(names["camel"](0.0898, -0.7126), -1.0316, atol=1e-4)
    with pytest.raises(RuntimeError, match="no mesh"):
        names["simulate"]({"x": 1.0, "y": 0.5})
