"""Which keys `nmt train minutes=30` sets, and which it leaves to the user."""

from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from nmt.config.durations import parse_duration
from nmt.config.training import ENDING, SETTLED, ExperimentConfig
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


def leave_to_the_clock(tree: "DictConfig", keys: list[str]) -> None:
    """Let minutes= set each group, except groups and keys that the user sets, `keys`.

    `init` and ssru keep the model. With a schedule that ends at the last update, trainer.max_time
    works like minutes= but sets only the updates.
    """
    written: Any = OmegaConf.to_container(tree)  # not checked yet: a group may be a number
    if tree.minutes is None:
        if max_time_sets_updates(written, keys):
            tree.minutes = minutes_of(str(tree.trainer.max_time))
            # The time sets only the updates, so it settles no group.
            tree.minutes_settles = []
        return
    if "trainer.max_steps" in keys:
        raise NMTError("trainer.max_steps: minutes= sets this key; pass only one of them")
    # An experiment may have set a precision; with minutes=, the device decides, as for the rest.
    if written["minutes_settles"] and "trainer.precision" not in keys:
        tree.trainer.precision = "auto"
    # Neither the user nor an experiment set the name, and the minutes are not a saved
    # trainer.max_time.
    if written["name"] == ExperimentConfig.name and written["minutes_settles"]:
        tree.name = "${data.name}-${minutes}min"
    settled = groups_to_settle(written, keys)
    tree.minutes_keeps = keys_to_keep(written, keys, settled)
    tree.minutes_settles = settled


def max_time_sets_updates(written: Any, keys: list[str]) -> bool:
    """Whether trainer.max_time works like minutes=."""
    if "trainer.max_time" not in keys or "trainer.max_steps" in keys:
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
    given = {key for key in keys if key in SETTLED}
    # A student in an experiment has its own shape; model.decoder=ssru alone is only a key.
    is_ssru = value_of(written, "model", "decoder") == "ssru"
    is_student = is_ssru and ("model.decoder" not in keys or "experiment" in keys)
    # The weights at `init` fit only their own shape.
    if written["init"] or is_student:
        given.add("model")
    return [group for group in written["minutes_settles"] if group not in given]


def keys_to_keep(written: Any, keys: list[str], settled: list[str]) -> list[str]:
    """The user's keys in the groups that minutes= sets, including keys of a saved configuration."""
    kept: list[str] = []
    # A configuration saved with --cfg lists the keys that the user set when it was saved.
    for key in [*written["minutes_keeps"], *keys]:
        group, _, name = key.partition(".")
        is_saved = key in written["minutes_keeps"]
        is_option = name != "" and group in SETTLED and name in SETS.get(group, [name])
        if (is_saved or is_option) and group in settled and key not in kept:
            kept.append(key)
    return kept


def value_of(written: Any, group: str, key: str) -> Any:
    """The value of a key; None if the group is not a mapping, which is refused later."""
    values = written.get(group)
    return values.get(key) if isinstance(values, dict) else None
