"""What all tests share: one thread each, the choices of `perturbation.py`, Hypothesis' profile, and fixtures."""

import os
import time
from pathlib import Path

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

# What NumPy and scikit-learn read when they are loaded. `pytest -n` starts a process for each core: one thread each.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn skips one of its checks without it
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_addoption(parser):
    group = parser.getgroup("perturbations", "what differs between machines (tests/perturbation.py)")
    group.addoption("--rounding", type=int, default=0, metavar="SEED", help="round in another way; 0: as the machine")
    group.addoption("--shift-seeds", type=int, default=0, metavar="N", help="use other random seeds; 0: as written")
    group = parser.getgroup("scale", "what takes long and much memory (tests/test_large_data.py)")
    group.addoption("--scale", action="store_true", help="run these tests too")
    group = parser.getgroup("wheel", "what installs packages from an index (tests/test_dist.py)")
    group.addoption("--wheel", type=Path, metavar="FILE", help="install this wheel into empty environments, and use it")
    group = parser.getgroup("hostile cases", "generated data and what must hold (tests/hostile)")
    group.addoption("--hostile", action="store_true", help="run all cases, not some of them")
    group.addoption("--hostile-seed", type=int, default=0, metavar="SEED", help="generate other cases")


def pytest_configure(config):
    import perturbation  # which loads NumPy

    threadpool_limits(1)  # a plugin of pytest, that of zarr, may have loaded it before the variables were set
    rounding, shift = config.getoption("rounding"), config.getoption("shift_seeds")
    if rounding:
        perturbation.perturb_rounding(rounding)
    if shift:
        perturbation.shift_seeds(shift)
    hypothesis.settings.register_profile(
        "nurf",
        derandomize=not shift,
        deadline=None,
        max_examples=8,
        database=None,
        phases=[hypothesis.Phase.generate],
    )
    hypothesis.settings.load_profile("nurf")
    if shift:
        hypothesis.core.global_force_seed = shift


@pytest.fixture
def own_memory(request):
    """Skip a test that measures memory if the library is perturbed, which takes memory too."""
    if request.config.getoption("rounding"):
        pytest.skip("--rounding takes memory of its own")


class Ticks:
    """A clock on which a millisecond passes each time that somebody looks at it, on every machine."""

    seconds = 0.0

    def __call__(self):
        self.seconds += 1e-3
        return self.seconds


@pytest.fixture
def ticks(monkeypatch):
    """Return the clock by which time budgets are kept during the test."""
    clock = Ticks()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.fixture
def command(capsys):
    """Run the command `nurf` in this process; return its exit code, output and errors."""

    from nurf.cli._run import run  # needs typer

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            run([str(argument) for argument in arguments])
        return end.value.code or 0, *capsys.readouterr()

    return call


def pytest_report_header(config):
    return f"perturbations: --rounding {config.getoption('rounding')} --shift-seeds {config.getoption('shift_seeds')}"


def pytest_collection_modifyitems(config, items):
    """Leave out doctests if seeds are shifted: they print what their seeds give. Leave out what takes long."""
    for option in ("scale", "wheel"):
        if not config.getoption(option):
            long = [item for item in items if item.get_closest_marker(option)]
            config.hook.pytest_deselected(items=long)
            items[:] = [item for item in items if item not in set(long)]
    if config.getoption("shift_seeds"):
        doctests = [item for item in items if isinstance(item, pytest.DoctestItem)]
        config.hook.pytest_deselected(items=doctests)
        items[:] = [item for item in items if item not in set(doctests)]
