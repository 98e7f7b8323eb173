"""`nmt average`: average checkpoints into a model directory."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from nmt import commands, data, files, model, training
from nmt.config import CheckpointConfig, Command, NMTError, build_stored, number, require


@dataclass
class AverageConfig:
    """Options of `nmt average`."""

    run: str = "runs/latest"
    """Run whose last checkpoints are averaged."""
    last: int | None = number(None, 1, 10_000)
    """Number of last checkpoints to average; null: as the run's `checkpoints.average` says."""
    output: str | None = None
    """Model directory to write; null: model/ in the run folder."""


def average_of_run(folder: Path, newest: Path) -> "training.Average":
    """Return the model that training would deliver now; raise NMTError if the run's corpus is missing."""
    import torch

    state = training.RunState(**training.load_checkpoint(newest)["nmt"])
    rule = build_stored(CheckpointConfig, state.config["checkpoints"], f"{newest}, checkpoints")
    try:
        corpus = data.open_corpus(Path(state.config["prepared"]))
        training.check_origin(newest, state, corpus, training.corpus_hashes(corpus, ["valid"]))
    except NMTError as error:
        raise NMTError(f"{error}; pass last=N to average without validation") from error
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return training.delivered_model(folder, rule, corpus.split("valid"), device)


def run(config: AverageConfig) -> None:
    folder = Path(config.run)
    training.check_no_links(folder)
    paths = training.list_checkpoints(folder)
    require(bool(paths), f"run={folder}: has no checkpoints; train the run first")
    require(
        (config.last or 1) <= len(paths),
        f"last={config.last}: {folder} has only {len(paths)} checkpoints",
    )
    output = Path(config.output or folder / "model")
    model.check_ours(output)
    with nullcontext() if config.output else files.only_process(folder, "output"):
        averaged = (
            training.Average(*paths[-config.last :])
            if config.last
            else average_of_run(folder, paths[-1])
        )
        removed = training.write_average(averaged, folder, output)
    print(f"{output} is the {files.weights_in_words(averaged.updates, averaged.losses)}{removed}")


COMMAND = Command(
    *("average", AverageConfig, run, commands.one_run),
    usage="[RUN]",
    examples=("runs/corpus-30min last=3", "runs/corpus-30min last=3 output=runs/averaged"),
    memory="averaging takes about 20 bytes per model parameter",
)
