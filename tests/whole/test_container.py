"""Containerfile names files that exist, and the ignore file lets through what the build reads."""

import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
COPIES = re.findall(r"^COPY (?!--from)(.*)$", TEXT, flags=re.M)


def is_sent(path: str) -> bool:
    """Whether the build gets a file; as Docker and Podman read the file, the last pattern that matches decides."""
    sent = True
    parts = PurePath(path)
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        # A pattern also applies to everything below a folder that matches. `*` does not cross folders.
        for place in (parts, *parts.parents[:-1]):
            depth = len(PurePath(pattern).parts) == len(place.parts) or pattern.startswith("**/")
            if depth and fnmatch(str(place), pattern):
                sent = line.startswith("!")
    return sent


def copied() -> list[str]:
    return [source for line in COPIES for source in line.split()[:-1]]


def test_all_that_is_copied_exists_and_is_sent():
    assert copied()
    for source in copied():
        files = [path for path in (ROOT / source).rglob("*") if path.is_file()] or [ROOT / source]
        for file in files:
            name = str(file.relative_to(ROOT))
            assert file.is_file()
            assert is_sent(name) == ("__pycache__" not in name), name


def test_the_wheel_is_built_from_files_that_are_copied():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [
        "pyproject.toml",
        project["project"]["readme"],
        *project["project"]["license-files"],
        project["tool"]["hatch"]["version"]["path"].split("/")[0],
        *wheel["packages"],
        *wheel["force-include"],
    ]
    assert {*needed, "constraints.txt"} <= {*copied()}


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("runs/quickstart/model/model.safetensors", False),
        (".git/config", False),
        ("keys.txt", False),
        ("deploy/nmt.service", False),
        ("deploy/health.py", True),
        ("nmt/plugins/serve/page/page.js", True),
        ("nmt/files/__pycache__/a.pyc", False),
    ],
)
def test_only_sources_are_sent(path, sent):
    assert is_sent(path) == sent


def test_the_commands_of_the_image_are_words_of_programs_and_files_that_it_has():
    """In the form of JSON lists, because another form starts a shell, which would be process 1."""
    found = dict(re.findall(r"^(?:HEALTHCHECK.*? )?(CMD|ENTRYPOINT) (.*)$", TEXT, flags=re.M))
    assert json.loads(found["ENTRYPOINT"]) == ["nmt"]
    assert json.loads(found["CMD"]) == ["--help"]
    [check] = re.findall(r"^HEALTHCHECK .*CMD (.*)$", TEXT, flags=re.M)
    python, script = json.loads(check)
    assert python == "python"
    [folder] = [line.split()[-1] for line in COPIES if line.startswith("deploy/health.py ")]
    assert script == f"{folder}health.py"
