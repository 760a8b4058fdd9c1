"""The project's own papers: links of the README and the pages, the version, the citation; the tests that CI selects."""

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml

import nurf

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("decisions/*.md"), *DOCS.glob("answers/*.md")])
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


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))


def test_the_recipe_for_conda_has_the_name_version_and_dependencies_of_the_package():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    context, requirements = recipe["context"], recipe["requirements"]
    assert (context["name"], context["version"]) == (PROJECT["name"], PROJECT["version"])
    assert PROJECT["requires-python"] == f">={context['python_min']}"
    python, *packages = requirements["run"]
    assert python == "python >=${{ python_min }}"
    assert [package.replace(" ", "") for package in packages] == PROJECT["dependencies"]
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert backend in [package.replace(" ", "") for package in requirements["host"]]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["documentation"] == PROJECT["urls"]["Documentation"]
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]


WORKFLOWS = ROOT / ".github" / "workflows"
needs_workflows = pytest.mark.skipif(not WORKFLOWS.exists(), reason="the source distribution has no workflows")


@needs_workflows
@pytest.mark.parametrize(("workflow", "job"), [("ci", "test"), ("nightly", "everything")])
def test_the_workflows_run_every_supported_python(workflow, job):
    matrix = yaml.safe_load((WORKFLOWS / f"{workflow}.yml").read_text(encoding="utf-8"))["jobs"][job]["strategy"][
        "matrix"
    ]
    assert matrix["python"] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


@needs_workflows
def test_a_release_is_tested_before_it_is_published_without_a_password():
    jobs = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/ci.yml"
    assert jobs["check"]["needs"] == "test"
    assert jobs["publish"]["needs"] == "check"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")


def test_the_paper_cites_what_its_bibliography_has():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    entries = re.findall(r"(?m)^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"))
    assert sorted(set(re.findall(r"@(\w+\d{4}\w+)", text))) == sorted(entries)
    assert 750 <= len(text.split("---")[2].split()) <= 1750  # what the journal asks for


def numbers_in(text):
    """Return the numbers and ranges of numbers in a text, such as "1.5e-03" and "14 to 20"."""
    found = re.findall(r"(?<![\w.])\d[\d.]*(?:e-\d+)?(?: to \d[\d.]*)?", text)
    return {re.sub(r"e-0?(?=\d)", "e-", each).rstrip(".") for each in found}


@pytest.mark.parametrize(
    ("heading", "pages"),
    [("Measured performance", ("comparison", "few_samples", "trained")), ("Research impact", ("reproduction",))],
)
def test_the_numbers_of_the_paper_are_in_the_pages(heading, pages):
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"# {heading}\n(.*?)\n# ", text, re.DOTALL)
    known = "\n".join((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    claims = " ".join(line for line in section.splitlines() if not line.startswith("|"))
    assert numbers_in(claims)
    assert numbers_in(claims) <= numbers_in(" ".join(known.split()))


def test_the_paper_has_the_table_of_the_readme():
    (table,) = re.findall(r"<!-- table: collection -->\n(.*?)<!-- end -->", README, re.DOTALL)
    assert table in (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
