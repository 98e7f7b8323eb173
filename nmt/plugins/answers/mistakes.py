"""Answers to two kinds of mistakes: words of other toolkits, and mistakes in the user's own YAML files.

The keys, options and commands of other toolkits are in foreign_words.tsv.
"""

import math
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import yaml

from nmt import config, data, files
from nmt.commands import COMMANDS, compose
from nmt.config import (
    Command,
    NMTError,
    explain,
    groups,
    is_bare,
    keys_of,
    nearest,
    require,
    user_folders,
)

TABLE = Path(__file__).with_name("foreign_words.tsv")
OPTION = re.compile(r"-(?![\d.]+$)\S+")  # neither text nor a number nor `-`
WARMUP_PART = 10  # of a short training
OF_EPOCHS = "trainer.max_steps=20000"  # the example for a number of epochs
SLOT = re.compile(r"(?:([\w.]+)=[^\s<]*)?<([^\s>]+)>")  # KEY=<DEFAULT>


@cache
def foreign_words() -> dict[tuple[str, str], tuple[str, str]]:
    """Map (command, another toolkit's key or option) to the answer's two parts: an example with our key, and a note."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    for line in filter(None, TABLE.read_text(encoding="utf-8").splitlines()):
        if line[0] != "#":
            commands, words, example, note = line.split("\t")
            table |= dict.fromkeys(product(commands.split(","), words.split()), (example, note))
    return table


def answer(command: str, words: list[str]) -> str:
    """One line about all words of other toolkits and all our keys with dashes; empty if there are none.

    A value follows = or is the next word. Of several answers, only the first clauses are given.
    """
    answers: dict[str, list[str]] = {}
    for word, following in pairwise([*words, "--"]):
        name, equals, value = word.partition("=")
        if OPTION.fullmatch(word) or equals or command == "nmt":
            is_value = not equals and is_bare(following) and not OPTION.fullmatch(following)
            value = following if is_value else value
            shown, text = answer_to(command, name, equals or " ", value)
            if text.startswith(f"use {OF_EPOCHS};") and (
                updates := updates_of_epochs(value, words)
            ):
                shown, text = f"{name}{equals or ' '}{value}", updates
            answers.setdefault(text, []).append(shown)
        if command == "nmt":
            break
    answers.pop("", None)
    lines = [f"{', '.join(names)}: {text}" for text, names in answers.items()]
    return (
        "; ".join(line.partition("; ")[0] for line in lines) if len(lines) > 1 else "".join(lines)
    )


def answer_to(command: str, name: str, joint: str, value: str) -> tuple[str, str]:
    """The word with its value if the answer contains it, and the answer; empty if there is none."""
    key, has_dash = name.lstrip("+~-").replace("-", "_").lower(), name.startswith("-")
    ours = (
        [] if command == "nmt" else [*keys_of(COMMANDS[command].config), *groups(COMMANDS[command])]
    )
    is_ours = any(f"{our}.".startswith(f"{key}.") for our in ours)
    near = get_close_matches(
        key, [word for name, word in foreign_words() if name == command], 1, cutoff=0.9
    )
    names = [key, key.rpartition(".")[2], *near] if not is_ours else [key] if has_dash else []
    example, note = next(
        (row for name in names if (row := foreign_words().get((command, name)))), ("", "")
    )
    same = [our for our in ours if our == key] or [
        our for our in ours if not is_ours and our.endswith(f".{key}")
    ]
    if len(same) == 1 and (has_dash or not is_ours) and not example + note:
        is_switch = accepts(command, same[0], "true") and not accepts(command, same[0], "x")
        example = f"{same[0]}=<{'true' if is_switch else 'VALUE'}>"
    slot = SLOT.search(example)
    is_used = bool(slot and value and fits_slot(command, slot, value))
    if is_used:
        name = f"{name}{joint}{value}"
    filled = SLOT.sub(
        lambda m: m[0].replace(f"<{m[2]}>", shlex.quote(value) if is_used else m[2]), example
    )
    return name, "; ".join(filter(None, (filled and f"use {filled}", note)))


def fits_slot(command: str, slot: re.Match[str], value: str) -> bool:
    """True if an example can use the user's value instead of the slot's default."""
    key, default = slot.groups()
    if re.search(r"[./]", value) and re.fullmatch("[a-z]+", default):  # a file instead of a name
        return False
    if (
        key == "input" and re.fullmatch(r"[a-z]{2,3}([-_]\w+)?", value) and not config.exists(value)
    ):  # a language
        return False
    if key == "init" and (Path(value) / "manifest.json").exists():  # a corpus
        return False
    return default == "VALUE" or accepts(command, key, value)


def updates_of_epochs(epochs: str, words: list[str]) -> str:
    """The answer to a number of epochs: updates on the corpus that `words` name; empty if there is none."""
    values = dict(word.split("=", 1) for word in words if "=" in word)
    folders = [values.get("prepared", ""), *(word for word in words if is_bare(word))]
    corpus = next(
        (folder for folder in folders if folder and (Path(folder) / "manifest.json").is_file()),
        None,
    )
    ours = {*keys_of(COMMANDS["train"].config), *groups(COMMANDS["train"])}
    with suppress(NMTError, ValueError):
        passes = float(epochs)
        if corpus and 0 < passes < 1e6:
            known = [
                f"{key}={value}"
                for key, value in values.items()
                if key in ours and key != "prepared"
            ]
            settings = compose("train", [corpus, *known])
            tokens = max(data.read_manifest(Path(corpus)).counts["train"]["tokens"].values())
            updates = math.ceil(passes * tokens / settings.batching.tokens_per_update)
            keys = f"trainer.max_steps={updates}"
            if (
                settings.optim.warmup >= updates
            ):  # the command would be refused, or never leave the warm-up
                keys += f" optim.warmup={max(1, updates // WARMUP_PART)}"
            unit = "pass" if passes == 1 else "passes"
            return f"use {keys}; about {passes:g} {unit} over {corpus}"
    return ""


def accepts(command: str, key: str, value: str) -> bool:
    """True if a key of a command, or the place of a command's name, accepts a value from a command line."""
    if command == "nmt":
        return bool(key) or value in COMMANDS
    if key in (options := groups(COMMANDS[command])):
        return value in options[key][1]
    member, override = keys_of(COMMANDS[command].config)[key], config.parse(f"{key}={value}")
    try:
        config.checked(
            key,
            value if member.is_text else override.value() if override else config.MISSING,
            member,
        )
    except NMTError:
        return False
    return True


def check_files(
    command: Command, words: list[str], config_dir: Path | None, error: Exception | None
) -> None:
    """Raise NMTError with file and line if a file of the user caused `error` or leaves a word without effect."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark: Any = error.context_mark if "simple key" in str(error.context) else error.problem_mark
        advice = "; indent with spaces, not tabs" if "\\t" in str(error.problem) else ""
        raise NMTError(
            f"{os.path.relpath(mark.name)}, line {mark.line + 1}: {error.problem}{advice}"
        ) from error
    if not user_folders(config_dir):
        return
    options = {group: names for group, (_, names) in groups(command, config_dir).items()}
    chosen = [
        (group, option)
        for group, _, option in (word.partition("=") for word in words)
        if group in options
    ]
    chosen.sort(key=lambda choice: choice[0] != "experiment")  # its keys take precedence
    for group, option in chosen:
        paths = [folder / group / f"{option}.yaml" for folder in user_folders(config_dir)]
        for path in [path for path in paths if path.is_file()][:1]:
            text = files.read_text(Path(os.path.relpath(path.resolve())))
            require(
                text[:1] != "\ufeff",
                f"{os.path.relpath(path)}, line 1: save the file without a byte order mark",
            )
            require(bool(text.strip()), f"{os.path.relpath(path)}, line 1: the file is empty")
            with suppress(RecursionError, yaml.YAMLError):
                is_global = re.match(r"(#.*\n|\s*\n)*?# *@package _global_", text) is not None
                advice = "line 1: an experiment begins with the line # @package _global_"
                require(is_global or group != "experiment", f"{os.path.relpath(path)}, {advice}")
                lines = [
                    *lines_of(yaml.compose(text, yaml.SafeLoader), "" if is_global else f"{group}.")
                ]
                for line, problem in mistakes(command, words, options, group, lines, error):
                    raise NMTError(f"{os.path.relpath(path)}, line {line}: {problem}") from error
                names = [
                    (entry_group(name) or group, value)
                    for name, _, value in lines
                    if "defaults." in name
                ]
                chosen += [
                    choice for choice in names if choice not in chosen and choice[0] in options
                ]


def mistakes(
    command: Command,
    words: list[str],
    options: dict[str, list[str]],
    group: str,
    lines: list[tuple[str, int, str]],
    error: Exception | None,
) -> Iterator[tuple[int, str]]:
    """The mistakes in a file of a group, with their lines."""
    keys, names = [*keys_of(command.config)], {name for name, _, _ in lines}
    for word in words if group == "experiment" and not error else ():
        of_group = {key for key in keys if key.startswith(f"{word.partition('=')[0]}.")}
        if of_group and of_group <= names:
            yield (
                1,
                f"sets every key of the group, so {word} would have no effect; delete the group from the file",
            )
    message = re.sub(r"^\w+ raised while [\w ]+: |\n.*", "", str(error), flags=re.S)
    cause = getattr(error, "full_key", None) or re.sub(r"unknown key |[^\w.].*", "", message)
    for name, line, value in lines if error else ():
        if "defaults." in name:
            target = entry_group(name) or group
            if target not in options:
                yield line, f"defaults: no such group {target}; {nearest(target, options)}"
            if value not in (*options[target], "null", "_self_") and "${" not in value:
                yield (
                    line,
                    f"defaults: {target}={value}: no such option; {nearest(value, options[target])}",
                )
            if target != group and "override /" not in name:
                yield line, f"defaults: write - override /{target}: {value}"
            if target == group and isinstance(error, RecursionError):
                yield line, f"defaults: {target}={value} builds on itself"
        elif name in options and value:
            yield (
                line,
                f"{name} is a group: indent its keys below it, or under defaults: - override /{name}: {value}",
            )
        elif name == cause and not any(word.startswith(f"{name}=") for word in words):
            advice = (
                f"{name}: write one name per line, each indented below its group"
                if name in keys
                else ""
            )
            unknown = advice or explain(command.name, [f"{name}={value}"], name, [*keys, *options])
            yield line, unknown if message.startswith("unknown key") else message


def lines_of(node: Any, name: str) -> Iterator[tuple[str, int, str]]:
    """Dotted keys with their lines and values; an entry under `defaults` has the key `defaults.` and its group."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (
                f"{name}{key.value}",
                key.start_mark.line + 1,
                value.value if isinstance(value.value, str) else "",
            )
            yield from lines_of(value, f"{name}{key.value}.")
    elif isinstance(node, yaml.SequenceNode) and name.endswith("defaults."):
        for item in node.value:
            is_text = isinstance(item, yaml.ScalarNode)
            yield from (
                [(name, item.start_mark.line + 1, item.value)] if is_text else lines_of(item, name)
            )


def entry_group(name: str) -> str:
    """The group in the key of an entry under `defaults`, such as `defaults.override /model`; empty if there is none."""
    return re.sub(r".*defaults\.(\w+ )?/?", "", name)
