"""Which of `epochs=`, `minutes=` and `trainer.max_steps=` sets the number of updates."""

from typing import TYPE_CHECKING, Any

from nmt.config.values import shown
from nmt.errors import NMTError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def choose_what_sets_updates(tree: "DictConfig", keys: list[str]) -> None:
    """Let one key set the number of updates: the key of the command line, or of the experiment.

    `keys` are the keys that the command line sets. NMTError if there are several.
    """
    if tree.epochs is None:
        return
    rivals = [key for key in ("trainer.max_steps", "minutes") if key in keys]
    # minutes=null sets nothing.
    if tree.minutes is None and "minutes" in rivals:
        rivals.remove("minutes")
    # What an experiment sets gives way to the command line.
    if "epochs" in keys:
        if rivals:
            raise contradiction(tree.epochs, f"{rivals[0]} also sets the number of updates")
        tree.minutes = None
    elif rivals:
        tree.epochs = None
    elif tree.minutes is not None:
        raise contradiction(tree.epochs, "the experiment also sets minutes")


def contradiction(epochs: Any, problem: str) -> NMTError:
    return NMTError(f"epochs={shown(epochs)}: {problem}; pass only one of them")
