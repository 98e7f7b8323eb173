"""`nmt train minutes=30`: settings that suit a corpus, a machine and a time limit.

Each run first tries its largest batches, with `minutes=` or without.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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


def register(add: Callable[..., None]) -> None:
    add("plan", "minutes", "nmt.plugins.minutes.minutes:settle", compose=leave_to_the_clock)
    add("callback", "memory", "nmt.plugins.minutes.memory:MemoryCheck")
    add("callback", "replan", "nmt.plugins.minutes.replan:Replan")


def leave_to_the_clock(tree: "DictConfig", keys: list[str]) -> None:
    """Let minutes= set each group, except groups and keys that the user sets, `keys`.

    `init` and ssru keep the model. With a schedule that ends at the last update, trainer.max_time
    works like minutes= but sets only the updates.
    """
    from omegaconf import OmegaConf

    from nmt.config import ExperimentConfig, NMTError

    written: Any = OmegaConf.to_container(tree)  # not checked yet: a group may be a number
    if tree.minutes is None:
        if max_time_sets_updates(written, keys):
            tree.minutes = minutes_of(str(tree.trainer.max_time))
            tree.minutes_settles = []
        return
    if "trainer.max_steps" in keys:
        raise NMTError("trainer.max_steps: minutes= sets this key; pass only one of them")
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
    from nmt.config import ENDING
    from nmt.files import within

    if "trainer.max_time" not in keys or "trainer.max_steps" in keys:
        return False
    ends = within(written, "optim", "schedule") in ENDING
    return ends and within(written, "optim", "decay_steps") is None


def minutes_of(duration: str) -> float:
    """The minutes of trainer.max_time."""
    from nmt.config import parse_duration

    parts = parse_duration("trainer.max_time", duration).split(":")
    days, hours, minutes, seconds = map(int, parts)
    # Multiplied by 1 / 60, not divided by 60: existing runs record the bits of this number.
    return 1440 * days + 60 * hours + minutes + seconds * (1 / 60)


def groups_to_settle(written: Any, keys: list[str]) -> list[str]:
    """The groups that minutes= sets, without groups that the user chooses by name."""
    from nmt.config import SETTLED
    from nmt.files import within

    given = {key for key in keys if key in SETTLED}
    # A student of an experiment has a shape of its own; model.decoder=ssru alone is only a key.
    is_ssru = within(written, "model", "decoder") == "ssru"
    is_student = is_ssru and ("model.decoder" not in keys or "experiment" in keys)
    if written["init"] or is_student:
        given.add("model")
    return [group for group in written["minutes_settles"] if group not in given]


def keys_to_keep(written: Any, keys: list[str], settled: list[str]) -> list[str]:
    """The user's keys in the groups that minutes= sets, including keys of a saved configuration."""
    from nmt.config import SETTLED

    kept: list[str] = []
    for key in [*written["minutes_keeps"], *keys]:
        group, _, name = key.partition(".")
        is_saved = key in written["minutes_keeps"]
        is_option = name != "" and group in SETTLED and name in SETS.get(group, [name])
        if (is_saved or is_option) and group in settled and key not in kept:
            kept.append(key)
    return kept
