"""The project's own papers: links of the README, the version, the citation."""

import re
from pathlib import Path

import pytest

import nurf

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?![a-z]+:|#)([^)#]+)", README))))
def test_links_of_the_readme_lead_to_files(target):
    assert (ROOT / target).is_file()


def test_the_citation_has_the_version_of_the_package():
    assert f"\nversion: {nurf.__version__}\n" in CITATION


def test_the_readme_and_the_citation_name_the_same_paper():
    (paper,) = set(re.findall(r"arxiv\.org/abs/([\d.]+)", CITATION))
    assert f"https://arxiv.org/abs/{paper}" in README


def test_the_package_is_typed():
    assert (Path(nurf.__file__).parent / "py.typed").is_file()
