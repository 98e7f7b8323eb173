"""`nmt train minutes=30`: settings that suit a corpus, this machine and a time limit; trials of the largest batches."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig


def register(add: Callable[..., None]) -> None:
    add("plan", "minutes", "nmt.plugins.minutes.minutes:settle", compose=leave_to_the_clock)
    add("callback", "memory", "nmt.plugins.minutes.trials:MemoryCheck")
    add("callback", "replan", "nmt.plugins.minutes.replan:Replan")


def leave_to_the_clock(tree: "DictConfig", keys: list[str]) -> None:
    """Let minutes= settle the groups for which no keys are given; `init` fixes the model's size."""
    from omegaconf import OmegaConf

    from nmt.config import ExperimentConfig, NMTError

    if tree.minutes is None:
        return
    if "trainer.max_steps" in keys:
        raise NMTError("minutes= chooses trainer.max_steps: pass only one of them")
    given = {key.split(".")[0] for key in keys} | ({"model", "optim"} if tree.init else set())
    written: Any = OmegaConf.to_container(tree)
    if written["name"] == ExperimentConfig.name:  # neither the user nor an experiment set it
        tree.name = "${data.name}-${minutes}min"
    tree.minutes_settles = [group for group in tree.minutes_settles if group not in given]
