"""`nmt average`: average checkpoints into a model directory."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from nmt import commands, data, files, model, training
from nmt.config import CheckpointConfig, Command, NMTError, build_stored, number


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
    """The model that training would deliver now; `newest` is the run's last checkpoint.

    Raises NMTError if the run's corpus is missing.
    """
    # Late, so that help and completion of this command do not load it.
    import torch

    state = training.RunState(**training.load_checkpoint(newest)["nmt"])
    # From the checkpoint, not from config.yaml, which may have been edited since.
    rule = build_stored(CheckpointConfig, state.config["checkpoints"], f"{newest}, checkpoints")
    try:
        corpus = data.open_corpus(Path(state.config["prepared"]))
        # Only the validation set, which chooses the checkpoints; the training pairs may be gone.
        hashes = training.corpus_hashes(corpus, ["valid"])
        training.check_origin(newest, state, corpus, hashes)
    except NMTError as error:
        raise NMTError(f"{error}; pass last=N to average without validation") from error
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return training.delivered_model(folder, rule, corpus.split("valid"), device)


def run(config: AverageConfig) -> None:
    """Write the average of a run's last checkpoints to `output`, or to the run's model directory.

    With `last`, it is the average of that many. Without, validation chooses the number.
    """
    folder = Path(config.run)
    # All checks come before the lock and the work, which reads gigabytes.
    training.check_no_links(folder)
    paths = training.list_checkpoints(folder)
    if not paths:
        raise NMTError(f"run={folder}: has no checkpoints; train the run first")
    if config.last and config.last > len(paths):
        raise NMTError(f"last={config.last}: {folder} has only {len(paths)} checkpoints")
    output = Path(config.output or folder / "model")
    model.check_ours(output)
    # A folder outside the run needs no lock of the run, which may be training.
    with nullcontext() if config.output else files.only_process(folder, "output"):
        # An explicit number needs no validation and so no corpus.
        if config.last:
            average = training.Average(*paths[-config.last :])
        else:
            average = average_of_run(folder, paths[-1])
        removed = training.write_average(average, folder, output)
    weights = files.weights_in_words(average.updates, average.losses)
    print(f"{output} is the {weights}{removed}")


COMMAND = Command(
    "average",
    AverageConfig,
    run,
    commands.one_run,
    usage="[RUN]",
    examples=(
        "runs/corpus-30min last=3",
        "runs/corpus-30min last=3 output=runs/averaged",
    ),
    memory="averaging takes about 20 bytes per model parameter",
)
