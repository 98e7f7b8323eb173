"""The structure: which way imports go, and where each heavy library stays."""

import ast
import re
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
    ("bergamot", "serve"): "translator.html has the styles of the server's page",
    ("catalogs", "documents"): "catalogs contain strings with markup",
    ("prose", "documents"): "books and manuals contain sentences with markup",
    ("quality", "judge"): "`nmt score qe=true` scores with the model that `run` names",
    ("quality", "results"): "calibration needs held-out sets, and cards have the charts of reports",
    ("serve", "documents"): "the server translates files",
}
IMPORT_PATH = re.compile(r"nmt(\.\w+)+(:\w+)?\.?")
"""A string from which code is imported, such as `nmt.search:load`, or the beginning of one."""
PRIVATE_BY_NAME = {
    "torch.utils._python_dispatch": "torch's notes on extending PyTorch document it",
    "os._exit": "Python's documentation has it",
}


def names_in(path: Path) -> Iterator[str]:
    """Dotted names of everything that a module imports, at its top or inside functions."""
    yield from names_below(ast.parse(path.read_text(encoding="utf-8")), path)


def names_below(tree: ast.AST, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they lead"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


IMPORTS = {module: [*names_in(ROOT / module)] for module in MODULES}


def import_paths_in(path: Path) -> Iterator[str]:
    """Dotted names of what a module imports by strings: entries of plugins, `import_module`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and IMPORT_PATH.fullmatch(text):
            yield text.rstrip(".").replace(":", ".")


def public_names() -> dict[str, set[str]]:
    """Package of the core -> the names in its `__init__.pyi`."""
    names = {}
    for path in ROOT.glob("*/__init__.pyi"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        names[path.parent.name] = {alias.asname for node in imports for alias in node.names}
    return names


PUBLIC = public_names()


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

    Both import what a package lists as public, not from its files.
    """
    if module.name == "__main__.py" or part(module) == "__init__":
        return
    if part(module) == "extensions":
        return  # it imports names only for the type checker, from all parts that can be extended
    for name in IMPORTS[module]:
        first, *names = name.split(".")
        if first == "nmt":
            check_direction(module, names)
            check_is_public(module, names)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_strings_that_name_code(module):
    if part(module) in ("__init__", "registry"):
        return  # the Python API loads names of plugins; the registry finds plugins
    for name in import_paths_in(ROOT / module):
        names = name.split(".")[1:]
        # Strings such as "nmt.train" name a function for users.
        if names[0] == "plugins" or names[0] in LAYERS:
            check_direction(module, names)


def check_direction(module: Path, names: list[str]) -> None:
    """`names` are those after nmt, such as ["text", "files"]."""
    if names[:1] == ["plugins"]:
        assert is_plugin(module), f"the core imports {names}"
        arrow = (part(module), names[1])
        assert names[1] == part(module) or arrow in BETWEEN_PLUGINS, arrow
    elif not is_plugin(module) and names != ["__version__"]:
        assert "".join(names[:1]) in LAYERS, f"{names} is no part of the core"
        assert LAYERS.index(names[0]) <= LAYERS.index(part(module)), f"{names[0]} is above"


def check_is_public(module: Path, names: list[str]) -> None:
    layer = names[0]
    if layer in ("plugins", "__version__", part(module)):
        return
    assert not any(name.startswith("_") for name in names), f"{names} is private"
    assert names != ["*"]
    if len(names) > 1 and layer in PUBLIC:
        assert names[1] in PUBLIC[layer], f"nmt.{layer} does not list {names[1]} in __init__.pyi"
        assert len(names) == 2, f"import {names[2]} from nmt.{layer}"


def test_each_part_of_the_core_is_in_a_layer():
    parts = {part(module) for module in MODULES if module.parts[0] != "plugins"}
    assert parts == {*LAYERS, "__init__", "__main__"}


def test_extensions_import_the_parts_that_they_extend_for_the_type_checker_only():
    tree = ast.parse((ROOT / "extensions.py").read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    assert not [name for name in names_below(tree, ROOT) if name.split(".")[0] == "nmt"]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_private_names_of_libraries_are_in_compat(module):
    if part(module) == "compat":
        return
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    imports = [name for name in IMPORTS[module] if name.split(".")[0] not in ("nmt", "__future__")]
    modules = set(modules_in(tree))
    attributes = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = [name for name in attributes if name.split(".")[0] in modules]
    for name in imports + used:
        is_private = re.search(r"\._[a-z]", name)
        assert not is_private or name.startswith((*PRIVATE_BY_NAME,)), f"{module}: {name}"


def modules_in(tree: ast.AST) -> Iterator[str]:
    """The names by which `import` statements bind modules of libraries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def test_exceptions_are_needed():
    arrows = set()
    for module, names in IMPORTS.items():
        for name in [*names, *import_paths_in(ROOT / module)]:
            if ".plugins." in name:
                arrows.add((part(module), name.split(".")[2]))
    plugins = {part(module) for module in MODULES if is_plugin(module)}
    assert arrows >= {pair for pair in BETWEEN_PLUGINS if plugins.issuperset(pair)}
