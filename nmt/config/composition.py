"""Compose the options of a command from YAML groups and `KEY=VALUE` arguments, with Hydra."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

import yaml
from hydra import compose as hydra_compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigSource
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

from nmt.config.arguments import Arguments, check_hidden_keys, read_words
from nmt.config.building import build
from nmt.config.command import OPTIONAL, Command, conf_folders, user_folders
from nmt.config.epochs import choose_what_sets_updates
from nmt.config.fields import MISSING
from nmt.config.members import keys_of
from nmt.config.minutes import set_scope_of_minutes
from nmt.config.overrides import literal, set_text
from nmt.config.trees import flatten, is_inside
from nmt.errors import NMTError, SettingError, one_line
from nmt.extensions import AnswerEntry, import_attribute
from nmt.registry import entries_of

REFUSALS = (
    NMTError,
    HydraException,
    OmegaConfBaseException,
    yaml.YAMLError,
    # For example a number of thousands of digits, which Python refuses to convert.
    ValueError,
    RecursionError,  # groups that build on each other
)
"""The exceptions that a mistake in an argument or a YAML file raises."""
SOURCES: Any = {source.__name__: source for source in Plugins.instance().discover(ConfigSource)}
"""Hydra's readers of groups, which its own packages do not export."""


def power_law(x1: float, y1: float, x2: float, y2: float, x: Any) -> float:
    """The power of `x` that is `y1` at `x1` and `y2` at `x2`.

    For defaults in YAML that depend on another key. An `x` that is not a positive number is refused
    later, by the name of its key.
    """
    # A message about a logarithm would not name the key that is wrong.
    if not isinstance(x, int | float) or x <= 0:
        return y1
    exponent = log(y2 / y1) / log(x2 / x1)
    value = y1 * (x / x1) ** exponent
    # Rounding gives y1 and y2 exactly at x1 and x2, and short numbers between them.
    return float(f"{value:.6g}")


OmegaConf.register_new_resolver("power_law", power_law, replace=True)


class OurGroups(SOURCES["FileConfigSource"]):  # type: ignore[misc,name-defined]
    """A folder of groups.

    Hydra must not read its hydra/config.yaml, which may belong to another program.
    """

    @staticmethod
    def scheme() -> str:
        return "groups"

    def is_config(self, config_path: str) -> bool:
        # The user's ./conf is on the search path, and may be that of any program that uses Hydra.
        return not config_path.startswith("hydra/") and super().is_config(config_path)


class MissingValue(SettingError):
    """A key refers to a value that is missing."""


def compose(command: Command, words: list[str], config_dir: Path | None = None) -> Any:
    """Compose and check a command's options; NMTError at the first mistake."""
    options, _ = options_and_tree(command, words, config_dir)
    return options


def to_yaml(command: Command, words: list[str], config_dir: Path | None = None) -> str:
    """The options as YAML; if the command has experiments, the YAML is an experiment."""
    _, tree = options_and_tree(command, words, config_dir)
    text = OmegaConf.to_yaml(OmegaConf.create(tree))
    # Without this comment, Hydra would put the keys of the file below `experiment`.
    if f"{OPTIONAL}experiment" in command.groups:
        return f"# @package _global_\n{text}"
    return text


def default_tree(command: Command) -> dict[str, Any]:
    """The defaults of a command's keys, from fields and groups; interpolations are not resolved."""
    tree: Any = OmegaConf.to_container(hydra_tree(command, []))
    return dict(tree)


def resolved(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A tree in which interpolations are resolved; NMTError if one cannot be."""
    try:
        container: Any = OmegaConf.to_container(OmegaConf.create(dict(tree)), resolve=True)
    except OmegaConfBaseException as error:
        raise NMTError(one_line(error)) from error
    return dict(container)


def options_and_tree(
    command: Command,
    words: list[str],
    config_dir: Path | None,
) -> tuple[Any, Any]:
    """A command's checked options, and their tree, in which interpolations are not resolved."""
    # Not in the `try`: these errors are about arguments, so no file is their cause.
    arguments = read_words(command, words, config_dir)
    check_hidden_keys(command, words)
    try:
        tree = composed_tree(command, arguments, config_dir)
        with missing_values_of(tree):
            # `build` gets plain dicts and knows nothing about OmegaConf.
            resolved = OmegaConf.to_container(tree, resolve=True)
        options: Any = build(command.config, resolved)
    # Its message already names the key and says what to pass.
    except MissingValue:
        raise
    except REFUSALS as error:
        cause = cause_of(error)
        # Hydra names the key of most mistakes, but not the file and the line.
        check_files(command, arguments, config_dir, cause)
        if isinstance(cause, NMTError):
            raise cause from error
        # OmegaConf ends its messages with full_key and object_type, which say nothing to users.
        raise NMTError(one_line(cause).partition(" full_key:")[0]) from error
    # A file may also leave an argument without effect. Hydra does not report that.
    check_files(command, arguments, config_dir, None)
    # Unresolved: in a configuration saved with --cfg, the run's name still follows from other keys.
    return options, OmegaConf.to_container(tree)


def composed_tree(command: Command, arguments: Arguments, config_dir: Path | None) -> Any:
    """The tree of a command line, as an OmegaConf configuration, not checked yet.

    It merges YAML groups, the settings of the model at `init`, an experiment, and the keys of the
    command line; the later ones take precedence. One exception: if the command line sets `init`,
    the model's settings take precedence over the experiment's.
    """
    given = arguments.keys
    tree = hydra_tree(command, arguments.overrides, config_dir)
    # Only a composed tree has `init`, because an experiment may set it.
    with missing_values_of(tree):
        init = tree.get("init")
    of_model = command.initial(str(init)) if init else {}
    if of_model and "init" not in given:
        # Composed again, because only Hydra can put the model's settings before the experiment's.
        below_experiment = {name: keys for name, keys in of_model.items() if name not in given}
        tree = hydra_tree(command, arguments.overrides, config_dir, below_experiment)
        above_experiment = arguments.whole_groups
    else:
        above_experiment = {**of_model, **arguments.whole_groups}
    # Keys on the command line take precedence. They are checked against the model or corpus later.
    for key, value in flatten(above_experiment).items():
        if not any(is_inside(key, name) for name in given):
            OmegaConf.update(tree, key, literal(value))
    if "minutes" in tree:
        choose_what_sets_updates(tree, given)
        set_scope_of_minutes(tree, given)
    return tree


@contextmanager
def missing_values_of(tree: Any) -> Iterator[None]:
    """Raise MissingValue, which names the key, if an interpolation refers to a missing value."""
    try:
        yield
    except InterpolationToMissingValueError as error:
        values = flatten(OmegaConf.to_container(tree))  # type: ignore[arg-type]
        key = next(key for key, value in values.items() if value == MISSING)
        raise MissingValue(f"{key}: a value is needed; pass {key}=VALUE", key=key) from error


def cause_of(error: BaseException) -> BaseException:
    """The original error that Hydra has wrapped in its own exception."""
    if isinstance(error, NMTError):
        return error
    # Hydra keeps the useful part of an error in its cause.
    return error.__cause__ or error


def check_files(
    command: Command,
    arguments: Arguments,
    config_dir: Path | None,
    cause: BaseException | None,
) -> None:
    """Let plugins raise an NMTError with the line of a YAML file that is the cause."""
    for entry in entries_of(AnswerEntry).values():
        check = import_attribute(entry.check_files)
        check(command, arguments.overrides, config_dir, cause)


def hydra_tree(
    command: Command,
    overrides: list[str],
    config_dir: Path | None = None,
    initial: Any = None,
) -> Any:
    """The tree that Hydra composes.

    `initial` replaces the groups' options but not the keys of an experiment.
    """
    name = f"nmt {command.name}"  # a file of this name would take precedence
    defaults: list[Any] = ["_self_"]
    # `_self_` comes first: options of groups replace the defaults of the fields.
    defaults += [{group: option} for group, option in command.groups.items()]
    # The last group is the experiment, whose keys take precedence over those of a model.
    defaults.insert(-1, f"{name} init")
    tree: dict[str, Any] = {"defaults": defaults}
    # Every key gets its field's default. So YAML files need only what differs, and Hydra knows all
    # keys.
    for key, member in keys_of(command.config).items():
        set_at(tree, key, member.default)
    ConfigStore.instance().store(name, tree)
    ConfigStore.instance().store(f"{name} init", literal(initial or {}))
    # Hydra takes an option from the first folder that has it, so no user's file replaces one of
    # nmt.
    core, *of_plugins = conf_folders()
    folders = [f"groups://{folder}" for folder in (*of_plugins, *user_folders(config_dir))]
    Plugins.instance().register(OurGroups)
    # Hydra refuses a second initialization in a process, but the Python API composes many times.
    GlobalHydra.instance().clear()
    # Not `hydra.main`: it rewrites sys.argv, from which Lightning starts its other processes. Each
    # of these composes the same tree again. With `version_base`, Hydra does not warn about defaults
    # of earlier versions.
    with initialize_config_dir(str(core), version_base="1.3"):
        # Quoted, because a folder's name may contain commas, brackets or ${}.
        return hydra_compose(name, [set_text("hydra.searchpath", folders), *overrides])


def set_at(tree: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of a tree, and add the groups that it lacks."""
    *groups, last = key.split(".")
    for group in groups:
        tree = tree.setdefault(group, {})
    tree[last] = value
