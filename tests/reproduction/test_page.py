"""The page of the documentation, from made-up sections."""

import dataclasses
import re
from math import nan

import made_up
import pytest
from tiny import SAMPLED, TRAINING, UNITS

from reproduction import page
from reproduction.comparison import listed
from reproduction.findings import Comparison, Finding
from reproduction.results import Result
from reproduction.store import Unit

RATIOS = (1.0, 1.09, 1 / 1.24, 1.49, 1 / 1.6, 3.1, 0.2)
COMPARISONS = tuple(Comparison("wave", "local", n, ratio, 0.1, 4, 1.0, 0.1, 4) for n, ratio in enumerate(RATIOS))
OTHERS = (
    Finding("It is |x|.", "Section 2", False, "0.9", False, "yes, as far as it is known: 0.7"),
    Finding("It is another.", "Section 3", None, "not the same", testable=False),
)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    first, *rest = made_up.sections(tmp_path_factory.mktemp("pictures"))
    deviating = dataclasses.replace(COMPARISONS[1], reason="a reason")
    comparisons = (COMPARISONS[0], deviating, *COMPARISONS[2:])
    sections = [
        dataclasses.replace(first, findings=(*made_up.FINDINGS, *OTHERS), comparisons=comparisons),
        *(dataclasses.replace(section, comparisons=()) for section in rest),
    ]
    return page.render(sections, {unit: Result((), (), 60.0) for unit in UNITS})


def test_claims_are_counted_by_their_verdicts(text):
    short = " ".join(text.partition("## In short")[2].partition("## How it is done")[0].split())
    assert "Of 6 claims that the paper makes, 2 hold, 0 of them not clearly, 1 cannot be tested" in short
    assert ", 1 are not decided, and 2 do not hold, 1 of them not clearly:" in short
    assert "- fig4: It is |x|. (not clearly) With the authors' errors: yes, as far as they are known." in short


def test_every_claim_is_a_row_with_its_verdict_and_numbers(text):
    assert "| It is &#124;x&#124;. (Section 2) | **no**, not clearly | 0.9 | yes, as far as it is known: 0.7 |" in text
    assert "| It is another. (Section 3) | not testable | not the same | not known |" in text
    assert "| Sparse needs a third. (Section 1) | **no** | 0.52 | not known |" in text
    assert "(images/reproduction/fig5.png)" in text


def test_agreement_is_told_in_shares_of_errors(text):
    short = " ".join(text.partition("## In short")[2].partition("## How it is done")[0].split())
    assert "7 errors are compared" in short
    assert "29% are within 10% of theirs" in short  # 2 of 7
    assert "43% within 25%" in short
    assert "43% are beyond 1.5 times and 28.6% beyond 3 times" in short
    assert "6 do not differ significantly from theirs" in short
    assert "Beyond 3 times: wave, local, N = 5, 6: 0.20 to 3.10 times (not explained)." in short


def test_rows_that_deviate_or_are_far_are_listed(text):
    found = re.findall(r"^\| wave \| local \| (\d) \|.*\| (.*) \|$", text, flags=re.MULTILINE)
    far = "within two standard errors"
    assert found == [("1", "a reason"), ("4", far), ("5", far), ("6", far)]
    assert [listed(c) for c in COMPARISONS] == [False, False, False, False, True, True, True]


def test_times_and_versions_are_those_of_the_results(text):
    assert f"The full setting: {len(UNITS)} results" in text
    assert "took 8 minutes of one core in total: training from three dimensions on 0.0" in " ".join(text.split())
    for unit in (SAMPLED[0], Unit(TRAINING, "sparse", 0)):
        assert unit.experiment.version[:12] in text


def test_no_line_of_prose_is_too_long(text):
    prose = [line for line in text.splitlines() if not line.startswith(("|", "!", "## fig"))]
    assert max(map(len, prose)) <= page.WIDTH
    assert page.spread(0.1234, nan, 1) == "0.123 (1)"
    assert page.spread(0.1234, 0.256, 4) == "0.123 ±26% (4)"
