"""`nmt train minutes=30`: settings that suit a corpus, this machine and a time limit; trials of the largest batches."""

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
    add("callback", "memory", "nmt.plugins.minutes.trial:MemoryCheck")
    add("callback", "replan", "nmt.plugins.minutes.replan:Replan")


def leave_to_the_clock(tree: "DictConfig", keys: list[str]) -> None:
    """Let minutes= set each group, except groups that the user chooses by name and keys that the user sets.

    `init` and ssru keep the model.

    With a schedule that ends at the last update, trainer.max_time works like minutes= but sets only the updates.
    """
    from omegaconf import OmegaConf

    from nmt.config import ENDING, SETTLED, ExperimentConfig, NMTError, parse_duration
    from nmt.files import within

    written: Any = OmegaConf.to_container(tree)  # not checked yet: a group may be a number
    if tree.minutes is None:
        ends = (
            within(written, "optim", "schedule") in ENDING
            and within(written, "optim", "decay_steps") is None
        )
        if ends and "trainer.max_time" in keys and "trainer.max_steps" not in keys:
            seconds = parse_duration("trainer.max_time", str(tree.trainer.max_time))
            tree.minutes = seconds / 60
            tree.minutes_settles = []
        return
    if "trainer.max_steps" in keys:
        raise NMTError("trainer.max_steps: minutes= sets this key; pass only one of them")
    if written["minutes_settles"] and "trainer.precision" not in keys:
        tree.trainer.precision = "auto"
    given = {key for key in keys if key in SETTLED}
    # A student of an experiment has a shape of its own; model.decoder=ssru alone is only a key.
    is_student = within(written, "model", "decoder") == "ssru" and (
        "model.decoder" not in keys or "experiment" in keys
    )
    if tree.init or is_student:
        given.add("model")
    kept = []
    for word in keys:
        group, _, key = word.partition(".")
        if key and group in SETTLED and key in SETS.get(group, [key]):
            kept.append(word)
    # Neither the user nor an experiment set the name, and the minutes are not a saved trainer.max_time.
    if written["name"] == ExperimentConfig.name and written["minutes_settles"]:
        tree.name = "${data.name}-${minutes}min"
    settled = [group for group in tree.minutes_settles if group not in given]
    kept = [
        key
        for key in dict.fromkeys([*tree.minutes_keeps, *kept])
        if key.partition(".")[0] in settled
    ]
    tree.minutes_settles = settled
    tree.minutes_keeps = kept
