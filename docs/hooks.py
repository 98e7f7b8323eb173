"""MkDocs hooks that generate pages from the code."""

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import nmt
from nmt.commands import COMMANDS
from nmt.config import default_tree, flatten, in_words, keys_of
from nmt.extensions import CommandEntry, PythonEntry, import_attribute
from nmt.registry import entries_of

sys.path.append(str(Path(__file__).parent))
from notebook import as_markdown

MODEL_CALLS = ("translate", "translate_file", "explain", "stream", "score")


def cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def page_of(name: str) -> str:
    """Return the usage, example and keys of a command as Markdown."""
    command = COMMANDS[name]
    values = {
        key: in_words(value).replace("???", "(required)")
        for key, value in flatten(default_tree(command)).items()
    }
    hidden = [f"{key}." for key in command.hides.split()]
    rows = [
        f"| `{key}` | `{cell(values.get(key, 'null'))}` | {cell(member.help)} |"
        for key, member in sorted(keys_of(command.config).items(), key=lambda item: "." in item[0])
        if not f"{key}.".startswith(tuple(hidden) or ("\0",))
    ]
    usage = " ".join(filter(None, ("nmt", name, command.usage, "[KEY=VALUE]... [OPTIONS]")))
    usage = "\n".join([usage, *(f"nmt {name} {example}".rstrip() for example in command.examples)])
    parts = [
        f"# nmt {name}",
        entries_of(CommandEntry)[name].summary,
        f"```text\n{usage}\n```",
    ]
    options = "\n".join(
        f"- `{option}`: short for `{word}`" for option, word in command.options.items()
    )
    table = "| key | default | |\n|---|---|---|\n" + "\n".join(rows) if rows else ""
    return "\n\n".join(filter(None, [*parts, options, table])) + "\n"


def source_of(name: str) -> str:
    """Return a heading and the source of `package.module.Class`."""
    module, _, attribute = name.rpartition(".")
    source = inspect.getsource(import_attribute(f"{module}:{attribute}"))
    return f"### {attribute} {{#{name}}}\n\n`{module}`\n\n```python\n{source}```\n"


def code_of_paper(page: Path) -> str:
    """Return Markdown with the source of classes and functions linked from a page; a method appears in its class."""
    names = dict.fromkeys(re.findall(r"\]\[(nmt[\w.]+)\]", page.read_text(encoding="utf-8")))
    owners: dict[str, list[str]] = {}
    for name in names:
        owners.setdefault(re.sub(r"(\.[A-Z]\w*)\.\w+$", r"\1", name), []).append(name)
    anchors = {
        owner: "\n".join(f"[](){{#{name}}}" for name in of if name != owner)
        for owner, of in owners.items()
    }
    return "# Code of the paper\n\n" + "\n".join(
        f"{source_of(owner)}{anchors[owner]}\n" for owner in owners
    )


def calls() -> str:
    """A table of the Python API, from signatures and the first sentences of docstrings."""
    functions = {f"nmt.{name}": entry.load() for name, entry in entries_of(PythonEntry).items()}
    rows = [
        (name, function) for name, function in functions.items() if inspect.isfunction(function)
    ]
    rows += [(f"model.{name}", getattr(nmt.Model, name)) for name in MODEL_CALLS]
    table = ["| call | |", "|---|---|"]
    for name, function in rows:
        parameters = [
            str(p).partition(":")[0] for p in inspect.signature(function).parameters.values()
        ]
        call = f"{name}({', '.join(text for text in parameters if text != 'self')})"
        table.append(f"| `{call}` | {cell((inspect.getdoc(function) or '').splitlines()[0])} |")
    return "\n".join(table)


def on_config(config: Any) -> Any:
    """Add the command pages to the reference section."""
    [reference] = [part["Reference"] for part in config.nav if "Reference" in part]
    reference.insert(
        1, {"Commands": [{f"nmt {name}": f"reference/{name}.md"} for name in COMMANDS]}
    )
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the command pages, the notebooks and how/code.md."""
    pages = {f"reference/{name}.md": page_of(name) for name in COMMANDS}
    for notebook in sorted(Path(config.docs_dir).glob("guides/*.ipynb")):
        content = json.loads(notebook.read_text(encoding="utf-8"))
        pages[f"guides/{notebook.stem}.md"] = as_markdown(content)
    pages["how/code.md"] = code_of_paper(Path(config.docs_dir) / "how/paper.md")
    from mkdocs.structure.files import File

    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files
