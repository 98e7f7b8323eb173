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
    "extensions",
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
    """The parts of the core that import one of these libraries."""
    parts = set()
    for module, names in IMPORTS.items():
        imported = {name.split(".")[0] for name in names}
        if imported.intersection(libraries) and not is_plugin(module):
            parts.add(part(module))
    return parts


@pytest.mark.parametrize(
    ("libraries", "parts"),
    [
        (("lightning", "pytorch_lightning"), {"compat", "data", "training"}),
        (("typer", "click"), {"cli"}),
        (("hydra",), {"config"}),
    ],
)
def test_a_heavy_library_stays_in_its_part(libraries, parts):
    assert importers(*libraries) <= parts


def test_the_model_imports_little_of_nmt():
    """So that it can be lifted out."""
    libraries = {*sys.stdlib_module_names, "torch", "numpy", "lazy_loader"}
    ours = ("nmt.config.", "nmt.errors.", "nmt.compat.", "nmt.kernels.", "nmt.model.")
    for module, names in IMPORTS.items():
        if part(module) != "model" or module.name == "weights.py":
            continue
        for name in names:
            assert name.split(".")[0] in libraries or name.startswith(ours), f"{module}: {name}"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports(module):
    """The core imports downwards and no plugin; a plugin imports no other one.

    Both import packages, not their files.
    """
    if module.name == "__main__.py" or part(module) == "__init__":
        return
    if part(module) == "extensions":
        return  # it imports names only for the type checker, from all parts that can be extended
    for name in IMPORTS[module]:
        first, *names = name.split(".")
        if first != "nmt":
            continue
        if names[0] == "plugins":
            check_import_of_plugin(module, names[1])
        elif names[0] in LAYERS:
            check_import_of_core(module, names)


def check_import_of_plugin(module: Path, plugin: str) -> None:
    assert is_plugin(module), f"the core imports {plugin}"
    arrow = (part(module), plugin)
    assert plugin == part(module) or arrow in BETWEEN_PLUGINS, arrow


def check_import_of_core(module: Path, names: list[str]) -> None:
    """`names` are those after nmt, such as ["text", "files"]."""
    layer = names[0]
    if not is_plugin(module):
        assert LAYERS.index(layer) <= LAYERS.index(part(module)), f"{layer} is above"
    is_package = (ROOT / layer).is_dir()
    if len(names) > 2 and is_package and layer != "commands":
        assert layer == part(module), f"import {names[2]} from nmt.{layer}"


def test_exceptions_are_needed():
    arrows = set()
    for module, names in IMPORTS.items():
        for name in names:
            if ".plugins." in name:
                arrows.add((part(module), name.split(".")[2]))
    plugins = {part(module) for module in MODULES if is_plugin(module)}
    assert arrows >= {pair for pair in BETWEEN_PLUGINS if plugins.issuperset(pair)}
