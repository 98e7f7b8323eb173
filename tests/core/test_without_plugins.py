"""The core without plugins: a folder of nmt/plugins, its tests, and the plugins that import it can be deleted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.test_structure import BETWEEN_PLUGINS

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(file.parent.name for file in ROOT.glob("nmt/plugins/*/plugin.py"))
TESTS = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/core"]
TESTS += ["-m", "not slow and not plugins"]
FOUR_COMMANDS = """
import sys
from nmt.cli import main

def run(*words):
    sys.argv = ["nmt", *words]
    try:
        main()
    except SystemExit as stopped:
        assert stopped.code in (0, None), (words, stopped.code)

options = sys.argv[1:]
run("--help")
run("preprocess", *options, "prepared=corpus")
run("train", *options, "prepared=corpus", "run=run", "trainer.max_steps=10")
run("translate", "run", "input=test.en", "output=out.de")
run("score", "out.de", "test.de")
"""


def copy_without(plugins: list[str], folder: Path) -> dict[str, str]:
    """Copy the repository without these plugins; returns the environment in which Python finds the copy."""
    for name in ("nmt", "conf", "tests", "docs", "recipes"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    for plugin in plugins:
        shutil.rmtree(folder / "nmt" / "plugins" / plugin)
        shutil.rmtree(folder / "tests" / "plugins" / plugin)
    return {**os.environ, "PYTHONPATH": str(folder)}


def with_importers(plugin: str) -> list[str]:
    """A plugin and all plugins that import it, directly or through others."""
    plugins = [plugin]
    # The list grows while the loop runs.
    for name in plugins:
        for importer, imported in BETWEEN_PLUGINS:
            if imported == name and importer not in plugins:
                plugins.append(importer)
    return plugins


def run_four_commands(plugins: list[str], folder: Path, options: list[str]) -> dict[str, str]:
    environment = copy_without(plugins, folder / "copy")
    words = [sys.executable, "-c", FOUR_COMMANDS, *options]
    outcome = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    assert "BLEU = " in outcome.stdout
    return environment


@pytest.mark.slow
def test_the_four_commands_need_no_plugin(tmp_path, other_text):
    run_four_commands(PLUGINS, tmp_path, other_text)


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_four_commands_need_no_single_plugin(plugin, tmp_path, other_text):
    run_four_commands(with_importers(plugin), tmp_path, other_text)


@pytest.mark.slow
def test_the_tests_of_the_core_need_no_plugin(tmp_path):
    environment = copy_without(PLUGINS, tmp_path)
    tests = subprocess.run(TESTS, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert tests.returncode == 0, tests.stdout
