"""Imports go only down the list of folders, and each heavy library stays where it belongs."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nmt

ROOT = Path(nmt.__file__).parent
ORDER = (
    *("errors", "hardware", "storage", "config", "kernels", "model", "text", "documents", "parsing", "evaluation"),
    *("model_directory", "data", "preparation", "search", "interchange", "translation", "training", "report"),
    *("comparison", "citation", "server"),
    *("compose", "commands", "api", "cli"),
)
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def imported(module: Path) -> Iterator[str]:
    """Dotted names of everything that a module imports, at its top or inside functions."""
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide where they lead"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def entry(module: Path) -> str:
    """The part of the list that a module belongs to: nmt/text/files.py -> text, nmt/cli.py -> cli."""
    return module.parts[0].removesuffix(".py")


def importers(*libraries: str) -> set[str]:
    return {entry(m) for m in MODULES if any(name.split(".")[0] in libraries for name in imported(m))}


@pytest.mark.parametrize("module", [m for m in MODULES if entry(m) not in ("__init__", "__main__")], ids=str)
def test_a_module_imports_only_from_entries_before_its_own(module):
    allowed = {*ORDER[: ORDER.index(entry(module)) + 1], "__version__"}
    ours = {name.split(".")[1] for name in imported(module) if name.startswith("nmt.")}
    assert ours <= allowed


def test_lightning_is_known_to_data_and_training_alone():
    assert importers("lightning", "pytorch_lightning") == {"data", "training"}


def test_hydra_is_known_to_compose_alone():
    assert importers("hydra") == {"compose"}


def test_typer_is_known_to_the_command_line_alone():
    assert importers("typer", "click") == {"cli"}


def test_the_model_can_be_lifted_out():
    names = {name for module in MODULES if entry(module) == "model" for name in imported(module)}
    outside = {name for name in names if name.split(".")[0] not in {*sys.stdlib_module_names, "torch"}}
    assert all(name.startswith(("nmt.config.", "nmt.errors.", "nmt.kernels.", "nmt.model.")) for name in outside)
