"""The commands, by name; each is imported when it is used. `register` adds all that the core contains."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.config import Command


class Commands(Mapping[str, "Command"]):
    """Name -> command."""

    def __getitem__(self, name: str) -> "Command":
        return cast("Command", entries_of("command")[name].load())

    def __iter__(self) -> Iterator[str]:
        return iter(entries_of("command"))

    def __len__(self) -> int:
        return len(entries_of("command"))


COMMANDS = Commands()


def compose(command: str, overrides: list[str], config_dir: Path | None = None) -> Any:
    """The options of a command, as its dataclass, checked."""
    from nmt.config import compose

    return compose(COMMANDS[command], overrides, config_dir)


def register(add: Callable[..., None]) -> None:
    for name, summary in (
        ("preprocess", "Prepare a parallel corpus for training."),
        ("train", "Train a model, or resume a run."),
        ("translate", "Translate raw text, line by line."),
        ("score", "Score translations, with signatures; or by a model, as to filter a corpus."),
        ("average", "Average checkpoints into a model."),
        ("plugins", "List the plugins, and what each adds."),
    ):
        add("command", name, f"nmt.commands.{name}:COMMAND", summary=summary)
    for metric in ("bleu", "chrf", "chrf++", "ter"):
        add("metric", metric, "nmt.evaluation.scores:sacrebleu_score", text=True, paired=True)
    add("engine", "torch", "nmt.search.torch_engine:load", precisions=("float32", "bfloat16"))
    add("corpus", "files", "nmt.preparation.corpora:Files")
    add("optimizer", "adam", "nmt.training.module:adam")
    add("stage", "tags", "nmt.translation.translator:tags", order=10)
    add("stage", "characters", "nmt.translation.translator:characters", order=25)
