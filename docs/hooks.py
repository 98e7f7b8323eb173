"""MkDocs hooks that generate pages from the code."""

import inspect
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from omegaconf import OmegaConf

from nmt.commands import COMMANDS
from nmt.config import flatten, in_words, keys_of
from nmt.config.composition import hydra_tree
from nmt.registry import entries_of, import_attribute


def cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def page_of(name: str) -> str:
    """Return the usage, example and keys of a command as Markdown."""
    command = COMMANDS[name]
    tree: Any = OmegaConf.to_container(hydra_tree(command, []))
    values = {key: in_words(value).replace("???", "(required)") for key, value in flatten(tree).items()}
    hidden = [f"{key}." for key in command.hides.split()]
    rows = [
        f"| `{key}` | `{cell(values.get(key, 'null'))}` | {cell(member.help)} |"
        for key, member in sorted(keys_of(command.config).items(), key=lambda item: "." in item[0])
        if not f"{key}.".startswith(tuple(hidden) or ("\0",))
    ]
    usage = " ".join(filter(None, ("nmt", name, command.usage, "[KEY=VALUE]... [OPTIONS]")))
    example = f"\nnmt {name} {command.example}" if command.example else ""
    parts = [f"# nmt {name}", entries_of("command")[name].facts["summary"], f"```text\n{usage}{example}\n```"]
    options = "\n".join(f"- `{option}`: {about.help}" for option, about in command.all_options.items())
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
    anchors = {owner: "\n".join(f"[](){{#{name}}}" for name in of if name != owner) for owner, of in owners.items()}
    return "# Code of the paper\n\n" + "\n".join(f"{source_of(owner)}{anchors[owner]}\n" for owner in owners)


def on_config(config: Any) -> Any:
    """Add the command pages to the reference section."""
    [reference] = [part["Reference"] for part in config.nav if "Reference" in part]
    reference.insert(1, {"Commands": [{f"nmt {name}": f"reference/{name}.md"} for name in COMMANDS]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the command pages and how/code.md."""
    pages = {f"reference/{name}.md": page_of(name) for name in COMMANDS}
    pages["how/code.md"] = code_of_paper(Path(config.docs_dir) / "how/paper.md")
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files
