"""Which keys `nmt train minutes=30` sets, and which it leaves to the user."""

from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from nmt.config.durations import parse_duration
from nmt.config.training import ENDING, SETTLED, ExperimentConfig
from nmt.config.values import as_list
from nmt.errors import NMTError

if TYPE_CHECKING:
    from omegaconf import DictConfig

SETS = {
    "optim": (
        "optimizer",
        "schedule",
        "learning_rate",
        "weight_decay",
        "warmup",
        "decay_steps",
        "decay_changes",
    ),
    "checkpoints": ("every_steps", "keep"),
    "validation": ("every_steps",),
}
"""The keys that minutes= sets in these groups. In all other groups, it sets every key."""


def set_scope_of_minutes(tree: "DictConfig", keys: list[str]) -> None:
    """Record in the tree of `nmt train` which groups and keys minutes= may set, and which not.

    `keys` are the keys and groups that the command line sets. minutes= itself chooses the settings
    later, when the corpus is known: those of the groups in `minutes_settles`, except the keys in
    `minutes_keeps`. With `minutes=30 model=base optim.warmup=100`, the group model leaves
    `minutes_settles`, and `minutes_keeps` becomes [optim.warmup].
    """
    written: Any = OmegaConf.to_container(tree)  # not checked yet: a group may be a number
    # As for any list, null means no items, and a string is the only item.
    for key in ("minutes_settles", "minutes_keeps"):
        written[key] = as_list(written[key])
    if tree.minutes is not None:
        set_scope_of_given_minutes(tree, written, keys)
    elif max_time_sets_updates(written, keys):
        # The same as minutes=, but the time sets only the number of updates and no group.
        tree.minutes = minutes_of(str(tree.trainer.max_time))
        tree.minutes_settles = []


def set_scope_of_given_minutes(tree: "DictConfig", written: Any, keys: list[str]) -> None:
    """Set the scope if the tree has minutes; `written` is the tree as plain dicts."""
    if "trainer.max_steps" in keys:
        raise NMTError("trainer.max_steps: minutes= sets this key; pass only one of them")
    # A saved configuration of a run with trainer.max_time has minutes, but they settle no group.
    if written["minutes_settles"]:
        # An experiment may have set a precision; with minutes=, the device decides.
        if "trainer.precision" not in keys:
            tree.trainer.precision = "auto"
        # Neither the user nor an experiment set the name.
        if written["name"] == ExperimentConfig.name:
            tree.name = "${data.name}-${minutes}min"
    settled = groups_to_settle(written, keys)
    tree.minutes_keeps = keys_to_keep(written, keys, settled)
    tree.minutes_settles = settled


def max_time_sets_updates(written: Any, keys: list[str]) -> bool:
    """Whether trainer.max_time must set the number of updates, as minutes= does.

    True if the schedule of the learning rate ends at the last update, whose number neither
    trainer.max_steps nor epochs sets.
    """
    if "trainer.max_time" not in keys or "trainer.max_steps" in keys:
        return False
    if written["epochs"] is not None:
        return False
    # A schedule that never ends need not know its last update: training may stop at any one.
    ends = value_of(written, "optim", "schedule") in ENDING
    return ends and value_of(written, "optim", "decay_steps") is None


def minutes_of(duration: str) -> float:
    """The minutes of trainer.max_time."""
    minutes, seconds = divmod(parse_duration("trainer.max_time", duration), 60)
    # Multiplied by 1 / 60, not divided by 60: existing runs record the bits of this number.
    return minutes + seconds * (1 / 60)


def groups_to_settle(written: Any, keys: list[str]) -> list[str]:
    """The groups that minutes= sets, without groups that the user chooses by name."""
    chosen = {key for key in keys if key in SETTLED}
    # A student of an experiment has a shape of its own; model.decoder=ssru alone is only a key.
    is_ssru = value_of(written, "model", "decoder") == "ssru"
    is_student = is_ssru and ("model.decoder" not in keys or "experiment" in keys)
    # The weights at `init` fit only their own shape.
    if written["init"] or is_student:
        chosen.add("model")
    return [group for group in written["minutes_settles"] if group not in chosen]


def keys_to_keep(written: Any, keys: list[str], settled: list[str]) -> list[str]:
    """The keys of the groups in `settled` that minutes= leaves as they are.

    These are the keys that the command line sets, and the keys that `minutes_keeps` lists in a
    configuration saved with --cfg: the user set them when it was saved.
    """
    saved: list[str] = written["minutes_keeps"]
    of_command_line = [key for key in keys if is_set_by_minutes(key)]
    kept: list[str] = []
    for key in [*saved, *of_command_line]:
        group = key.partition(".")[0]
        if group in settled and key not in kept:
            kept.append(key)
    return kept


def is_set_by_minutes(key: str) -> bool:
    """Whether minutes= sets a key, such as optim.warmup, unless the user keeps it."""
    group, _, name = key.partition(".")
    if name == "" or group not in SETTLED:
        return False
    return group not in SETS or name in SETS[group]


def value_of(written: Any, group: str, key: str) -> Any:
    """The value of a key; None if the group is not a mapping, which is refused later."""
    values = written.get(group)
    return values.get(key) if isinstance(values, dict) else None
