"""Hostile cases: some of them, chosen by a seed. `make test-hostile` runs all."""

import signal
from contextlib import contextmanager

from hostile.cases import all_cases, some_cases

SHORT_FORM = 60
LIMIT = 120  # seconds for a case: one that takes longer has hung


def pytest_generate_tests(metafunc):
    seed, every = (metafunc.config.getoption(name) for name in ("hostile_seed", "hostile"))
    cases = all_cases(seed) if every else some_cases(seed, SHORT_FORM)
    metafunc.parametrize("case", cases, ids=lambda case: case.name)


@contextmanager
def limited(seconds):
    """Raise an error in a block that does not end, on systems that have alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_):
        raise TimeoutError(f"the case did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_hostile(case):
    with limited(LIMIT):
        case.run()
