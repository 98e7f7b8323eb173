"""The structure: which way imports go, where each heavy library stays, and how large each folder may be."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nmt

ROOT = Path(nmt.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
LAYERS = (
    *(
        ("errors", "registry", "hardware", "compat", "version"),
        ("config",),
        ("files",),
        ("kernels",),
        ("model", "text"),
    ),
    *(("data", "evaluation"), ("search",), ("preparation",), ("translation",), ("training",)),
    *(("commands",), ("api",), ("cli",)),
)
"""The core, from the bottom up; a part imports from its own layer's part and from those below."""


def imported(module: Path) -> Iterator[str]:
    """Dotted names of everything that a module imports, at its top or inside functions."""
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide where they lead"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(module: Path) -> str:
    """The part of nmt that a module belongs to: nmt/text/files.py -> text, nmt/cli.py -> cli."""
    return module.parts[0].removesuffix(".py")


def importers(*libraries: str) -> set[str]:
    return {part(m) for m in MODULES if any(name.split(".")[0] in libraries for name in imported(m))} - {"plugins"}


def test_lightning_is_known_to_data_and_training_alone():
    assert importers("lightning", "pytorch_lightning") <= {"compat", "data", "training"}


def test_typer_is_known_to_the_command_line_alone():
    assert importers("typer", "click") == {"cli"}


def test_the_model_can_be_lifted_out():
    names = {name for module in MODULES if part(module) == "model" for name in imported(module)}
    outside = {
        name for name in names if name.split(".")[0] not in {*sys.stdlib_module_names, "torch", "numpy", "lazy_loader"}
    }
    assert all(
        name.startswith(("nmt.config.", "nmt.errors.", "nmt.compat.", "nmt.kernels.", "nmt.model.")) for name in outside
    )


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_packages_of_the_core_are_imported_as_packages(module):
    """`from nmt.text import Tokenizer`, not `from nmt.text.tokenizers import Tokenizer`, outside of nmt/text."""
    core = {name for layer in LAYERS for name in layer} - {"commands"}
    for name in imported(module):
        parts = name.split(".")
        if parts[0] == "nmt" and len(parts) > 3 and parts[1] in core:
            assert parts[1] == part(module), f"{module} imports {name}"
