"""The project's own papers: links of the README and the pages, the version, the citation; the tests that CI selects."""

import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

import nurf

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("decisions/*.md")])
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")  # [text](path), with a relative path
TREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", sorted(set(LINK.findall(README))))
def test_links_of_the_readme_lead_to_files(target):
    assert (ROOT / target).exists()


def page_name(page):
    return page.relative_to(DOCS).with_suffix("").as_posix()


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_of_the_pages_lead_to_files(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_table_of_contents():
    entries = [
        (page.parent / re.sub(r".*<(.*)>", r"\1", line)).relative_to(DOCS).as_posix()
        for page in PAGES
        for tree in TREE.findall(page.read_text(encoding="utf-8"))
        for line in tree.splitlines()
        if line and not line.startswith(":")
    ]
    pages = {page_name(page) for page in PAGES} - {"index"}
    missing = pages - set(entries)
    assert not missing, f"add {', '.join(missing)} to a toctree in docs/index.md, docs/user_guide.md or docs/project.md"
    assert sorted(pages) == sorted(set(entries) - {"gallery/index"})


def test_the_citation_has_the_version_of_the_package():
    assert f"\nversion: {nurf.__version__}\n" in CITATION


def test_the_readme_and_the_citation_name_the_same_paper():
    (paper,) = set(re.findall(r"arxiv\.org/abs/([\d.]+)", CITATION))
    assert f"https://arxiv.org/abs/{paper}" in README


def test_the_package_is_typed():
    assert (Path(nurf.__file__).parent / "py.typed").is_file()


NUMERICAL = ROOT / ".ci" / "numerical"


def numerical_tests(*number):
    """Return the files that `.ci/numerical` selects."""
    return subprocess.run([NUMERICAL, "list", *number], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(not NUMERICAL.exists(), reason="the source distribution has no CI")
@pytest.mark.skipif(sys.platform != "linux", reason="macOS has an older bash, and Windows none")
def test_four_numbers_select_all_numerical_tests():
    files, quarters = numerical_tests(), [numerical_tests(str(number)) for number in range(4)]
    assert sorted(chain.from_iterable(quarters)) == files
    assert max(map(len, quarters)) - min(map(len, quarters)) <= 1
    assert numerical_tests("99999") == quarters[3]
    assert "tests/test_solvers.py" in files
    assert "tests/test_project.py" not in files
