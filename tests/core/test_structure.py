"""The structure: which way imports go, and where each heavy library stays."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nmt

ROOT = Path(nmt.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
LAYERS = (
    "errors",
    "registry",
    "compat",
    "hardware",
    "config",
    "kernels",
    "files",
    "model",
    "text",
    "sentences",
    "flags",
    "items",
    "data",
    "evaluation",
    "search",
    "preparation",
    "translation",
    "training",
    "commands",
    "api",
    "cli",
)
"""The parts of the core from the bottom up: each imports only from those before it."""
BETWEEN_PLUGINS = {
    ("bergamot", "exchange"): "Firefox's models are Marian's",
    ("serve", "documents"): "the server translates files",
}


def names_in(path: Path) -> Iterator[str]:
    """Dotted names of everything that a module imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they lead"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


IMPORTS = {module: [*names_in(ROOT / module)] for module in MODULES}


def part(module: Path) -> str:
    """nmt/text/files.py -> text, nmt/cli.py -> cli, nmt/plugins/serve/app.py -> serve."""
    return module.parts[1 if is_plugin(module) else 0].removesuffix(".py")


def is_plugin(module: Path) -> bool:
    return module.parts[0] == "plugins" and len(module.parts) > 2


def importers(*libraries: str) -> set[str]:
    importing = {
        module
        for module, names in IMPORTS.items()
        if any(name.split(".")[0] in libraries for name in names)
    }
    return {part(module) for module in importing if not is_plugin(module)}


def test_each_heavy_library_stays_in_its_part():
    assert importers("lightning", "pytorch_lightning") <= {"compat", "data", "training"}
    assert importers("typer", "click") == {"cli"}
    assert importers("hydra") == {"config"}


def test_the_model_can_be_lifted_out():
    modules = [
        module for module in MODULES if part(module) == "model" and module.name != "weights.py"
    ]
    names = {name for module in modules for name in IMPORTS[module]}
    libraries = {*sys.stdlib_module_names, "torch", "numpy", "lazy_loader"}
    outside = {name for name in names if name.split(".")[0] not in libraries}
    ours = ("nmt.config.", "nmt.errors.", "nmt.compat.", "nmt.kernels.", "nmt.model.")
    assert all(name.startswith(ours) for name in outside)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports(module):
    """The core imports downwards and no plugin; a plugin imports no other; both import packages, not their files."""
    for name in IMPORTS[module]:
        first, *names = name.split(".")
        if first != "nmt" or module.name == "__main__.py" or part(module) == "__init__":
            continue
        if names[0] == "plugins":
            assert is_plugin(module), f"the core imports {name}"
            assert names[1] == part(module) or (part(module), names[1]) in BETWEEN_PLUGINS, name
        elif names[0] in LAYERS:
            if not is_plugin(module):
                assert LAYERS.index(names[0]) <= LAYERS.index(part(module)), f"{name} is above"
            if len(names) > 2 and (ROOT / names[0]).is_dir() and names[0] != "commands":
                assert names[0] == part(module), f"import {names[2]} from nmt.{names[0]}"


def test_exceptions_are_needed():
    arrows = {
        (part(module), name.split(".")[2])
        for module in MODULES
        for name in IMPORTS[module]
        if ".plugins." in name
    }
    plugins = {part(module) for module in MODULES if is_plugin(module)}
    assert arrows >= {pair for pair in BETWEEN_PLUGINS if {*pair} <= plugins}
