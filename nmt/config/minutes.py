"""Which keys `nmt train minutes=30` sets, and which it leaves to the user."""

from operator import mul
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from nmt.config.fields import NMTError
from nmt.config.training import ENDING, SETTLED, ExperimentConfig, parse_duration

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
    """Let minutes= set each group, except groups that the user chooses by name and keys that the user sets.

    `init` and ssru keep the model.

    With a schedule that ends at the last update, trainer.max_time works like minutes= but sets only the updates.
    """
    written: Any = OmegaConf.to_container(tree)  # not checked yet: a group may be a number
    if tree.minutes is None:
        ends = (
            value_of(written, "optim", "schedule") in ENDING
            and value_of(written, "optim", "decay_steps") is None
        )
        if ends and "trainer.max_time" in keys and "trainer.max_steps" not in keys:
            parts = map(
                int, parse_duration("trainer.max_time", str(tree.trainer.max_time)).split(":")
            )
            tree.minutes, tree.minutes_settles = sum(map(mul, parts, (1440, 60, 1, 1 / 60))), []
        return
    if "trainer.max_steps" in keys:
        raise NMTError("trainer.max_steps: minutes= sets this key; pass only one of them")
    if written["minutes_settles"] and "trainer.precision" not in keys:
        tree.trainer.precision = "auto"
    given = {key for key in keys if key in SETTLED}
    # A student of an experiment has a shape of its own; model.decoder=ssru alone is only a key.
    is_student = value_of(written, "model", "decoder") == "ssru" and (
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


def value_of(tree: dict[str, Any], group: str, key: str) -> Any:
    """The value of a key; None if the group is not a mapping, which is refused later."""
    values = tree.get(group)
    return values.get(key) if isinstance(values, dict) else None
