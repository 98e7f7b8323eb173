"""`nmt config`: show the configuration that a run, model or prepared corpus records."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

import yaml

from nmt import data, files, training
from nmt.commands import COMMANDS, LATEST_RUN, find_folder, no_such_path, talker
from nmt.config import (
    Command,
    ExperimentConfig,
    NMTError,
    build_stored,
    choice,
    default_tree,
    flatten,
    in_words,
    keys_of,
    literal,
    require,
    resolved,
    set_value,
    to_tree,
    with_defaults,
)

Tree = dict[str, Any]


@dataclass
class ConfigConfig:
    """Options of `nmt config`."""

    run: str = LATEST_RUN
    """Run, model directory or prepared corpus; may be given without run=."""
    other: str | None = None
    """Second run, model or corpus, to compare with the first; may be given without other=."""
    all: bool = False
    """Print the whole configuration as YAML, which is an experiment."""
    format: str = choice("text", "text", "json")
    """Output format: text or json."""


@dataclass
class Difference:
    """A key with two values."""

    key: str
    value: Any
    other: Any
    """The value of the other run, or the default."""


def run(config: ConfigConfig) -> None:
    tree = recorded_tree(config.run)
    require(
        not (config.all and config.other),
        "all=true: prints one configuration; pass one run, or leave out all=true",
    )
    if config.all and config.format == "text":
        print(as_experiment(tree), end="")
        return
    name = "default"
    if config.other is None:
        differences = differences_from_defaults(tree)
    else:
        differences = differences_between(tree, recorded_tree(config.other))
        name = f"{config.other}:"
    if config.format == "json":
        print(as_json(config, tree, differences))
        return
    if not differences:
        # On standard error, so that the output is an empty list.
        others = "the defaults"
        if config.other is not None:
            others = f"{config.other}, among the keys that both record"
        talker().print(f"{config.run}: no key differs from {others}")
    for difference in differences:
        print(line_of(difference, name))


def recorded_tree(name: str) -> Tree:
    """The keys that a run, model directory or prepared corpus records.

    A corpus has only the groups data and tokenizer, and the seed; an imported model only the model
    and the tokenizer.
    """
    folder = files.named_model(name).folder if files.is_prefixed(name) else find_folder(name)
    if folder is None:
        raise no_such_path(name, "`nmt runs` lists runs and corpora")
    kind = files.kind_of_folder(folder)
    if kind == "corpus":
        content = data.read_manifest(folder).content
        return {key: content[key] for key in ("seed", "data", "tokenizer") if key in content}
    if (folder / "config.yaml").is_file():
        return training.read_config(folder)
    description = files.read_description(files.find_model_directory(str(folder)))
    recorded = files.within(description.training, "config")
    if isinstance(recorded, dict):
        return with_defaults(ExperimentConfig, recorded)
    tokenizer = files.tokenizer_settings(description)
    return {"tokenizer": tokenizer, "model": description.model}


def differences_from_defaults(tree: Tree) -> list[Difference]:
    """The keys whose values are neither the defaults of `nmt train` nor follow from them."""
    defaults = default_tree(COMMANDS["train"])
    flat_defaults = flatten(defaults)
    known = keys_of(ExperimentConfig)
    # A corpus or an imported model lacks groups.
    complete = literal({**resolved(defaults), **tree})
    differences = []
    for key, value in flatten(tree).items():
        default = flat_defaults.get(key)
        if value == default:
            continue
        # The key of another version of nmt has no default, and follows from nothing.
        if key not in known or not follows(complete, key, default, value):
            differences.append(Difference(key, value, default))
    return differences


def follows(tree: Tree, key: str, default: Any, value: Any) -> bool:
    """Whether a key has a value if it is set to its default, and all other keys stay.

    A run records model.d_k, for example, which follows from model.d_model and model.heads.
    """
    changed = with_value(tree, key.split("."), default)
    try:
        built = build_stored(ExperimentConfig, resolved(changed), "")
    # Such as a default that the other keys exclude.
    except NMTError:
        return False
    values = flatten(to_tree(built))
    return key in values and bool(values[key] == value)


def with_value(tree: Tree, path: list[str], value: Any) -> Tree:
    """A copy of a tree with another value of one key."""
    first, *rest = path
    return {**tree, first: with_value(tree[first], rest, value) if rest else value}


def differences_between(tree: Tree, other: Tree) -> list[Difference]:
    """The keys with different values in two trees, unless both values follow from other keys."""
    # A corpus and a run are compared by the groups that both record.
    common = tree.keys() & other.keys()
    values = flatten({name: tree[name] for name in tree if name in common})
    other_values = flatten({name: other[name] for name in other if name in common})
    chosen = {difference.key for difference in differences_from_defaults(tree)}
    chosen |= {difference.key for difference in differences_from_defaults(other)}
    differences = []
    for key in {**values, **other_values}:
        difference = Difference(key, values.get(key), other_values.get(key))
        if key in chosen and difference.value != difference.other:
            differences.append(difference)
    return differences


def line_of(difference: Difference, name: str) -> str:
    """A difference as a word of a command line, and the other value with its name."""
    word = shlex.quote(set_value(difference.key, literal(difference.value)))
    # Values may come from other people's files: no control characters reach the terminal.
    return files.printable(f"{word} ({name} {in_words(difference.other)})")


def as_experiment(tree: Tree) -> str:
    """A tree as YAML that `nmt train experiment=NAME` reads."""
    # The values are resolved, so each ${} in them is text.
    text = yaml.safe_dump(literal(tree), sort_keys=False, allow_unicode=True)
    return f"# @package _global_\n{text}"


def as_json(config: ConfigConfig, tree: Tree, differences: list[Difference]) -> str:
    name = "default" if config.other is None else "other"
    rows = []
    for difference in differences:
        rows.append({"key": difference.key, "value": difference.value, name: difference.other})
    report: Tree = {"run": config.run, "other": config.other, "differences": rows}
    if config.other is None:
        report["config"] = tree
    return json.dumps(report, indent=2, ensure_ascii=False)


def one_or_two(words: list[str]) -> dict[str, Any]:
    if len(words) > 2:
        raise NMTError(f"{words[-1]}: this command takes one run, or two to compare")
    return dict(zip(("run", "other"), words, strict=False))


COMMAND = Command(
    name="config",
    config=ConfigConfig,
    run=run,
    words=one_or_two,
    usage="[RUN or CORPUS] [OTHER RUN or CORPUS]",
    examples=("runs/mine", "runs/mine runs/other"),
    options={"--all": "all=true", "--json": "format=json"},
)
