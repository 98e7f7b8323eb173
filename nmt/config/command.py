"""Commands, their options, the YAML groups that they compose, and their help. Imports Hydra only to show help."""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nmt.config.fields import (
    MISSING,
    NMTError,
    exists,
    flatten,
    in_words,
    keys_of,
    nearest,
    require,
)
from nmt.registry import entries_of

WIDTH = 100  # columns of help
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: folder of your own options, searched before ./conf.",
    "--help": "Print this page, the keys of a group (--help GROUP) or all keys (--help all).",
}
"""The options of every command."""


@dataclass(frozen=True)
class Command:
    name: str
    config: type  # the dataclass of its keys
    run: Callable[[Any], int | None]  # returns the exit code; None means 0
    words: Callable[[list[str]], dict[str, Any]] | None = None
    """Converts arguments without = to keys and values; a value that is a mapping sets a whole group."""
    initial: Callable[[str], dict[str, dict[str, Any]]] = (
        lambda init: {}
    )  # groups set by the model at `init`
    usage: str = ""  # arguments without =, as shown in the help
    examples: tuple[str, ...] = ()  # the words of two command lines
    hides: str = ""  # groups and keys that the command does not read
    instead: Mapping[str, str] = field(
        default_factory=dict
    )  # hidden key -> the key that users mistake it for
    groups: Mapping[str, str | None] = field(default_factory=dict)
    """The YAML groups in composition order, each with its default option."""
    entries: str = (
        ""  # the key that NAME=[A,B] or NAME=PATH adds an entry to, unless NAME is itself a key
    )
    options: Mapping[str, str] = field(
        default_factory=dict
    )  # an option -> the override that it is short for
    memory: str = (
        "close other programs, or use a machine with more memory"  # advice if memory runs out
    )


@cache
def conf_folders() -> tuple[Path, ...]:
    package = Path(__file__).resolve().parents[1]
    core = package / "conf"  # in a wheel; in a clone, conf/ is next to the package
    return (
        core if core.is_dir() else package.parent / "conf",
        *sorted((package / "plugins").glob("*/conf")),
    )


def user_folders(config_dir: Path | None) -> list[Path]:
    """The folders of the user's own options: `--config-dir` and ./conf, unless it is nmt's own."""
    require(config_dir is None or config_dir.is_dir(), f"--config-dir {config_dir}: no such folder")
    folders = [
        folder.resolve() for folder in (config_dir, Path("conf")) if folder and folder.is_dir()
    ]
    return [folder for folder in folders if folder not in conf_folders()]


def groups(command: Command, config_dir: Path | None = None) -> dict[str, tuple[str, list[str]]]:
    """Each of a command's groups -> its default option and all its options (FOLDER/NAME for those in a subfolder)."""
    groups = {}
    for group, default in sorted(
        (name.removeprefix("optional "), option) for name, option in command.groups.items()
    ):
        folders = [folder / group for folder in (*conf_folders(), *user_folders(config_dir))]
        files = [
            (folder, file)
            for folder in folders
            for file in folder.rglob("*.yaml")
            if file.is_file()
        ]
        names = {file.relative_to(folder).with_suffix("").as_posix() for folder, file in files}
        groups[group] = (default or "", sorted(names))
    return groups


def help_text(command: Command, words: list[str], config_dir: Path | None) -> str:
    """The first page, or the keys of the group named in `words`; NMTError if the group is unknown."""
    from omegaconf import OmegaConf

    from nmt.config.composition import hydra_tree, is_bare

    options, keys = groups(command, config_dir), keys_of(command.config)
    about: dict[str, str] = {}
    for name, key in keys.items():
        if "." in name:
            about.setdefault(name.split(".")[0], first_sentence(key.record.__doc__))
    about |= {name: offered(choices) for name, (_, choices) in options.items() if len(choices) > 1}
    tree: Any = OmegaConf.to_container(hydra_tree(command, []))
    values = {
        name: in_words(value).replace(MISSING, "REQUIRED") for name, value in flatten(tree).items()
    }
    texts = {
        name: re.sub(f"^{command.name}: (.)", lambda m: m[1].upper(), key.help)
        for name, key in keys.items()
    }
    rows = {name: (f"{name}={values.get(name, 'null')}", text) for name, text in texts.items()}
    read = {name: row for name, row in rows.items() if is_read(command, name, row[1])}
    topic = next((word for word in words if is_bare(word) and not exists(word)), None)
    if topic is None:
        sections = {
            "Keys": [
                (name, first_sentence(text)) for key, (name, text) in read.items() if "." not in key
            ],
            "Groups of keys; list them with --help GROUP or --help all": [
                (f"{name}={options[name][0] or 'null'}" if name in options else name, text)
                for name, text in about.items()
                if is_read(command, name)
            ],
            "Options": [
                *OPTIONS.items(),
                *((name, f"Short for {word}.") for name, word in command.options.items()),
            ],
        }
        usage = " ".join(
            filter(None, ("Usage: nmt", command.name, command.usage, "[KEY=VALUE]... [OPTIONS]"))
        )
        examples = [f"  nmt {command.name} {example}".rstrip() for example in command.examples]
        lines = [usage, "", entries_of("command")[command.name].facts["summary"]]
        if examples:  # a plugin's command may have none
            lines += ["", "Examples", *examples]
        return (
            "\n".join(
                [*lines, *(f"\n{title}\n{table(part)}" for title, part in sections.items() if part)]
            )
            + "\n"
        )
    if topic not in ("all", *about):
        raise NMTError(f"--help {topic}: no such group; {nearest(topic, ['all', *about])}")
    if topic == "all":  # keys outside any group come first
        listed = [read[name] for name in sorted(read, key=lambda name: "." in name)]
    else:
        listed = [
            (topic, about[topic]),
            *(row for name, row in rows.items() if name.startswith(f"{topic}.")),
        ]
    return f"Keys of nmt {command.name}, with their defaults and meanings\n{table(listed)}\n"


def is_read(command: Command, key: str, text: str = "") -> bool:
    """False for a key that the command hides or whose help begins with the name of another command."""
    reader = text.partition(":")[0]
    is_of_other = reader != command.name and reader in entries_of("command")
    return not is_of_other and not any(
        f"{key}.".startswith(f"{name}.") for name in command.hides.split()
    )


def offered(options: list[str]) -> str:
    """List a group's options; for each subfolder, give only the number of its options."""
    folders = [option.split("/")[0] for option in options if "/" in option]
    counted = [f"{folder}/... ({folders.count(folder)})" for folder in dict.fromkeys(folders)]
    return ", ".join([*(option for option in options if "/" not in option), *counted])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".;")


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Format rows as two columns and wrap the second, which starts on a new line if the first is too long."""
    rows, lines = [*rows], list[str]()
    left = min(max((len(name) for name, _ in rows), default=0), 34)
    for name, text in rows:
        wrapped = textwrap.wrap(text, WIDTH - left - 4)
        first, *others = wrapped if len(name) <= left else ["", *wrapped]
        lines += [
            f"  {name:{left}}  {first}".rstrip(),
            *(f"  {'':{left}}  {line}" for line in others),
        ]
    return "\n".join(lines)
