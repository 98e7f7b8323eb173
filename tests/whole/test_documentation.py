"""Commands in the documentation compose, and its links, paths and symbols exist."""

import ast
import builtins
import importlib.util
import io
import json
import re
import shlex
import shutil
import tokenize
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import yaml

import nmt
from docs import hooks
from nmt.commands import COMMANDS, compose
from nmt.config import is_bare, to_tree
from nmt.data import FORMAT_VERSION
from nmt.translation import Details

YAML = r"```yaml\n(.*?)```"
TIMES = {"12h": "00:12:00:00", "1d12h": "01:12:00:00"}
ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("recipes/*/*.md"),
        *ROOT.glob("recipes/*/*.sh"),
    ]
)
MODULES = sorted(
    path
    for room in ("nmt", "tests", "benchmarks", "recipes")
    for path in (ROOT / room).rglob("*.py")
)
YAML_FILES = sorted(
    [*(ROOT / "conf").rglob("*.yaml"), *(ROOT / "nmt/plugins").glob("*/conf/**/*.yaml")]
)
PATH = re.compile(
    r"(?<![\w/.~*$}-])((?:nmt|tests|benchmarks|recipes|conf|docs)/[\w./*{},-]*[\w*}/])"
)
NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`(?!`)")


def commands(text):
    """Every `nmt COMMAND WORDS...` at the beginning of a line, behind && or a launcher, without redirections."""
    for line in text.splitlines():
        for part in line.split("#")[0].split("&&"):
            part = re.sub(r"^\s*(\w+=\S+ )*(torchrun|srun|taskset) .*?(?=nmt )", "", part)
            if part.strip().startswith("nmt "):
                yield shlex.split(re.split(r"[<>|]", part)[0])[1:]


def write_examples(text, folder):
    """The YAML files of a page, as it calls them in their comments; their paths below the folder."""
    examples = {
        re.search(r"^# (\w+/\w+\.yaml)$", part, flags=re.M)[1]: part
        for part in re.findall(YAML, text, re.S)
    }
    for name, content in examples.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return list(examples)


@cache
def mapping_of(command, *words):
    """What a command composes, as a mapping that nobody changes."""
    return to_tree(compose(command, list(words)))


def write_what_words_name(command, words):
    """The files, runs and prepared corpora that the words of a command without = name, and the model of init=."""
    for folder in (Path(word.removeprefix("init=")) for word in words if word.startswith("init=")):
        folder.mkdir(parents=True, exist_ok=True)
        about = {
            "vocabulary_size": 8000,
            "source": "en",
            "target": "de",
            "tokenizer": "",
            "format_version": 1,
        }
        model = mapping_of("train", "model=tiny")["model"]
        (folder / "config.json").write_text(json.dumps({**about, "model": model, "training": {}}))
    for path in (Path(word) for word in words if is_bare(word) and " " not in word):
        if command == "train":
            config = mapping_of("preprocess", "data=files", "data.name=corpus")
            content = {
                "data": config["data"] | {"name": path.name},
                "tokenizer": config["tokenizer"],
                "sources": {},
            }
            about = {
                "fingerprint": "",
                "counts": {},
                "vocabulary_size": 9,
                "tokenizer": "",
                "versions": {},
            }
            path.mkdir(parents=True, exist_ok=True)
            manifest = {"format_version": FORMAT_VERSION, **about, "content": content}
            (path / "manifest.json").write_text(json.dumps(manifest))
        elif path.suffix:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.mkdir(parents=True, exist_ok=True)
            if command == "translate" and not str(path).startswith("runs/"):
                (path / "page.md").touch()  # otherwise, the folder could be a model


def check_commands(text, folder):
    for command, *words in commands(text):
        overrides = [
            word
            for word in words
            if not word.startswith(("-", "$")) and word not in ("FOLDER", ".")
        ]
        overrides = [re.sub(r"(?<=^data.target=)\$.*", "xx", word) for word in overrides]
        overrides = [re.sub(r"(?<=^part=)\$\w+", "1", word) for word in overrides]
        overrides = [
            re.sub(
                r"(?<=rate=)\$.*|(?<=dropout=)\$.*|(?<=^seed=)\$.*",
                "1e-3" if "rate" in word else "0",
                word,
            )
            for word in overrides
        ]
        named = [
            word
            for word in overrides
            if word.startswith("input=") or ("=" not in word and "/" not in word)
        ]
        if command == "synthesize" and not named:  # a file of lines by a variable of the shell
            overrides.append("input=mono")
        write_what_words_name(command, overrides)
        compose(command, overrides, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_pages_compose_and_links_have_targets(page, here):
    text = page.read_text()
    folder = here if write_examples(text, here) else None
    if "--config-dir" in text and (page.parent / "data").is_dir():
        if folder:
            shutil.copytree(page.parent / "data", here / "data", dirs_exist_ok=True)
        else:
            folder = page.parent
    blocks = (
        re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S)
        if page.suffix == ".md"
        else [text]
    )
    check_commands("".join(blocks), folder)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target
    for target in re.findall(r"^make ([a-z0-9-]+)", text, flags=re.M):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.M), target


def test_the_examples_of_every_help_page_compose(here):
    check_commands(
        "\n".join(f"nmt {name} {words}" for name in COMMANDS for words in COMMANDS[name].examples),
        None,
    )


def test_every_example_of_a_yaml_file_takes_effect(tmp_path):
    files = write_examples((ROOT / "docs/reference/configuration.md").read_text(), tmp_path)
    assert {file.split("/")[0] for file in files} == {"data", "model", "experiment", "trainer"}
    for file in files:
        group, option = file.removesuffix(".yaml").split("/")
        config = to_tree(compose("train", [f"{group}={option}"], tmp_path))
        written = yaml.safe_load((tmp_path / file).read_text())
        del written["defaults"]
        for key, values in ({group: written} if group != "experiment" else written).items():
            for name, value in values.items() if isinstance(values, dict) else [("", values)]:
                composed = config[key][name] if name else config[key]
                assert composed in (value, [value], TIMES.get(value)), f"{file}: {key}.{name}"


def test_the_readme_names_every_command_and_the_site_has_every_page():
    text, site = (ROOT / "README.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    assert [name for name in COMMANDS if f"`nmt {name}" not in text] == []
    assert [
        page
        for page in ROOT.glob("docs/**/*.md")
        if f": {page.relative_to(ROOT / 'docs')}\n" not in site
    ] == []
    first_screen = "\n".join(text.splitlines()[:75])
    order = ("**Train", "uvx", "minutes=30", "docs/serve.png", "make test")
    assert sorted(order, key=first_screen.index) == [*order]


@cache
def parsed(path):
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def prose(path):
    """Docstrings and comments of a module, or the lines of any other file."""
    text = path.read_text()
    if path.suffix != ".py":
        return text.splitlines()
    values = [
        node.value
        for node in parsed(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return [
        value.value for value in values if isinstance(getattr(value, "value", None), str)
    ] + comments


def patterns(path):
    """conf/{data,model}/NAME.yaml -> conf/data/*.yaml, conf/model/*.yaml; but README.md is itself."""
    if braces := re.search(r"{([^{}]*)}", path):
        return [
            p for part in braces[1].split(",") for p in patterns(path.replace(braces[0], part, 1))
        ]
    return [path.rstrip("/"), re.sub(r"\b[A-Z]{3,}\b", "*", path).rstrip("/")]


@cache
def is_there(path):
    return any(
        any(ROOT.glob(p + suffix)) for p in patterns(path) for suffix in ("", ".py", ".yaml")
    )


@cache
def identifiers(path):
    """Every name that a module defines or uses, those in strings of one word too."""
    names = set()
    for node in parsed(path):
        for field in ("name", "arg", "id", "attr", "asname"):
            names.update(str(getattr(node, field, None) or "").split("."))
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and not re.search(r"\s", node.value)
        ):
            names.update(re.findall(r"\w+", node.value))
    return names


def test_every_path_in_pages_exists():
    """In pages, configuration, docstrings and comments; words in capitals stand for any name."""
    files = [*PAGES, *MODULES, *YAML_FILES, ROOT / "Makefile"]
    named = ((file, path) for file in files for text in prose(file) for path in PATH.findall(text))
    assert [f"{file.relative_to(ROOT)}: {path}" for file, path in named if not is_there(path)] == []


def test_every_symbol_in_pages_exists():
    """In docstrings and comments, and below nmt in pages."""
    in_yaml = (re.findall(r"\w+", path.read_text()) for path in YAML_FILES)
    names = set(dir(builtins)).union(*map(identifiers, MODULES), *in_yaml)
    named = [
        (file, name) for file in MODULES for text in prose(file) for name in NAME.findall(text)
    ]
    named += [
        (page, name)
        for page in PAGES
        for name in NAME.findall(page.read_text())
        if name.startswith("nmt.")
    ]
    dead = [
        (file, name)
        for file, name in named
        if not is_there(name) and not {*name.split(".")} <= names
    ]
    assert [f"{file.relative_to(ROOT)}: {name}" for file, name in dead] == []


def test_the_page_of_the_python_api_has_every_call_and_every_field():
    """In the file itself, which people read in the repository."""
    page = (ROOT / "docs/reference/python.md").read_text()
    assert hooks.calls() in page
    for record in (nmt.Translation, Details, nmt.Score):
        assert [field.name for field in fields(record) if f"\n| `{field.name}` |" not in page] == []


def test_the_generated_pages_name_every_call_and_key():
    calls = hooks.calls()
    assert [
        calls.count(f"| `{name}(") for name in ("nmt.train", "nmt.compare", "model.translate")
    ] == [1, 1, 1]
    for name in COMMANDS:
        page = hooks.page_of(name)
        assert all(f"nmt {name} {example}".rstrip() in page for example in COMMANDS[name].examples)
    assert "| `decode.beam_size` | `4` |" in hooks.page_of("translate")


def test_scripts_import_names_that_exist():
    scripts = [
        path
        for path in MODULES
        if path.is_relative_to(ROOT / "benchmarks") or "recipes" in path.parts
    ]
    nodes = [
        node
        for path in scripts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    names = {
        (node.module, alias.name)
        for node in nodes
        for alias in node.names
        if (node.module or "").startswith("nmt")
    }
    missing = [
        f"{module}.{name}"
        for module, name in sorted(names)
        if not hasattr(importlib.import_module(module), name)
        and not importlib.util.find_spec(f"{module}.{name}")
    ]
    assert missing == []
