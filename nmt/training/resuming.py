"""Where a run goes on: the newest checkpoint that can be read, checked against configuration and corpus."""

from dataclasses import dataclass
from pathlib import Path

from nmt.config import ExperimentConfig
from nmt.data.prepared import PreparedCorpus
from nmt.errors import NMTError
from nmt.model_directory.weights import check_ours
from nmt.training.checkpoints import RunState, UnreadableCheckpoint, load_checkpoint
from nmt.training.run_folder import check_configuration, check_no_links, list_checkpoints


@dataclass
class Resumed:
    """Where a run goes on."""

    checkpoint: Path | None = None
    """From which it goes on; None: it begins."""
    update: int = 0
    finished: bool = False
    unreadable: tuple[Path, ...] = ()
    """Newer checkpoints than that."""


def check_run(run: Path, config: ExperimentConfig, corpus: PreparedCorpus) -> Resumed:
    """Find where the run in a folder goes on: at its newest checkpoint that can be read.

    Raises NMTError where it cannot go on: its configuration or its corpus was another, or no checkpoint can be read.
    """
    check_no_links(run)
    check_ours(run / "model")
    check_configuration(run, config)
    unreadable: dict[Path, UnreadableCheckpoint] = {}
    for path in reversed(list_checkpoints(run)):
        try:
            content = load_checkpoint(path)
        except UnreadableCheckpoint as error:
            unreadable[path] = error
            continue
        state = RunState(**content["nmt"])
        check_origin(path, state, corpus)
        update, patience = int(content["global_step"]), config.validation.patience
        stopped_early = patience is not None and state.validation["worse"] >= patience
        return Resumed(path, update, update >= config.trainer["max_steps"] or stopped_early, tuple(unreadable))
    for reason in unreadable.values():
        raise NMTError(f"{reason}; none of {run} can be read: remove that folder to begin anew, or pass name=OTHER")
    return Resumed()


def check_origin(path: Path, state: RunState, corpus: PreparedCorpus) -> None:
    """NMTError where a checkpoint was trained on another corpus, or with another vocabulary."""
    manifest = corpus.manifest
    for part, before, now in (
        ("tokenizer", state.tokenizer, manifest.tokenizer),
        ("corpus", state.corpus, manifest.fingerprint),
    ):
        if before != now:
            raise NMTError(
                f"{path} was trained with another {part} than the one in {corpus.folder}: "
                "prepare the corpus as it was, or pass name=OTHER for a new run"
            )
