"""`nmt average`: average checkpoints into a model directory."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.commands import one_run
from nmt.config import Command, NMTError, number, require

if TYPE_CHECKING:
    from nmt.training import Average


@dataclass
class AverageConfig:
    """Options of `nmt average`."""

    run: str = "runs/latest"
    """Run whose last checkpoints are averaged."""
    last: int | None = number(None, 1, 10_000)
    """Number of last checkpoints to average; null: as the run's `checkpoints.average` says."""
    output: str | None = None
    """Model directory to write; null: model/ in the run folder."""


def average_of_run(folder: Path, newest: Path) -> "Average":
    """Return the model that training would deliver now; raise NMTError if the run's corpus is missing."""
    import torch

    from nmt.config import CheckpointConfig, build
    from nmt.data import open_corpus
    from nmt.training import RunState, check_origin, delivered_model, load_checkpoint

    state = RunState(**load_checkpoint(newest)["nmt"])
    rule = build(CheckpointConfig, state.config["checkpoints"], f"{newest}, checkpoints")
    try:
        corpus = open_corpus(Path(state.config["prepared"]))
        check_origin(newest, state, corpus)
    except NMTError as error:
        raise NMTError(f"{error}; pass last=N to average without validation") from error
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return delivered_model(folder, rule, corpus.split("valid"), device)


def run(config: AverageConfig) -> None:
    from nmt.files import only_process, weights_in_words
    from nmt.model import check_ours
    from nmt.training import Average, check_no_links, list_checkpoints, write_average

    folder = Path(config.run)
    check_no_links(folder)
    paths = list_checkpoints(folder)
    require(bool(paths), f"run={folder}: has no checkpoints; train the run first")
    require((config.last or 1) <= len(paths), f"last={config.last}: {folder} has only {len(paths)} checkpoints")
    output = Path(config.output or folder / "model")
    check_ours(output)
    with nullcontext() if config.output else only_process(folder, "output"):
        averaged = Average(*paths[-config.last :]) if config.last else average_of_run(folder, paths[-1])
        write_average(averaged, folder, output)
    print(f"{output} is the {weights_in_words(averaged.updates, averaged.losses)}")


COMMAND = Command(
    *("average", AverageConfig, run, one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min last=3", "runs/corpus-30min last=3 output=runs/averaged"),
    memory="averaging takes about 20 bytes per model parameter",
)
