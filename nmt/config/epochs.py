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
    has_steps = "trainer.max_steps" in keys
    has_minutes = tree.minutes is not None
    if "epochs" in keys:
        # What an experiment sets gives way, but not what the user sets next to epochs.
        if has_steps or (has_minutes and "minutes" in keys):
            other = "trainer.max_steps" if has_steps else "minutes"
            raise contradiction(tree.epochs, f"{other} also sets the number of updates")
        tree.minutes = None
    elif has_steps or (has_minutes and "minutes" in keys):
        tree.epochs = None
    elif has_minutes:
        raise contradiction(tree.epochs, "the experiment also sets minutes")


def contradiction(epochs: Any, problem: str) -> NMTError:
    return NMTError(f"epochs={shown(epochs)}: {problem}; pass only one of them")
