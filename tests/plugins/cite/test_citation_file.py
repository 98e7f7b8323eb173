"""CITATION.cff, the BibTeX of the README and that of `nmt cite` say the same of the software as its package does."""

import tomllib
from pathlib import Path

import yaml

import nmt
from nmt.plugins.cite.cite import SOFTWARE

ROOT = Path(__file__).parents[3]


def test_the_citation_file_is_of_this_version():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(found)
    assert (found["version"], found["license"]) == (nmt.__version__, project["license"])
    assert found["keywords"] == project["keywords"]


def test_both_name_the_same_authors_and_title():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f"author = {{{{{found['authors'][0]['name']}}}}}" in SOFTWARE
    assert f"title = {{{found['title']}}}".replace(' "', " ``").replace('"}', "''}") in SOFTWARE


def test_the_readme_has_the_bibtex_that_nmt_cite_prints():
    assert SOFTWARE in (ROOT / "README.md").read_text(encoding="utf-8")
