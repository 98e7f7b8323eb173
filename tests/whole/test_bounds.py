"""The bounds for versions of dependencies."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
REQUIREMENTS = [Requirement(text) for group in GROUPS for text in group]
# Versions with malware or known vulnerabilities; the bounds exclude older versions, too.
EXCLUDED = [
    ("lightning", "2.6.2"),
    ("lightning", "2.6.3"),
    ("starlette", "1.5.0"),
    ("python-multipart", "0.0.30"),
    ("ctranslate2", "4.8.0"),
    ("sentencepiece", "0.2.2"),
]


def pins() -> dict[str, str]:
    """Canonical package name -> version in constraints.txt."""
    text = (ROOT / "constraints.txt").read_text()
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", text, flags=re.M)
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize(("name", "version"), EXCLUDED)
def test_vulnerable_versions_are_excluded(name, version):
    bounds = [requirement for requirement in REQUIREMENTS if requirement.name == name]
    assert bounds
    assert not any(requirement.specifier.contains(version) for requirement in bounds)


def test_pinned_versions_are_allowed():
    tested = pins()
    wrong = []
    for requirement in REQUIREMENTS:
        version = tested.get(canonicalize_name(requirement.name))
        if version and not requirement.specifier.contains(version):
            wrong.append(f"{requirement}: constraints.txt has {version}")
    assert wrong == []


def test_every_required_package_is_pinned():
    """A user who installs with constraints.txt gets the tested version of each direct dependency."""
    names = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    # pip does not decide any result, and a constraint would replace the pip that reads it.
    assert names - {"pip"} - set(pins()) == set()


def test_only_final_releases_are_pinned():
    assert [
        f"{name} {version}" for name, version in pins().items() if re.search(r"[a-z]", version)
    ] == []
