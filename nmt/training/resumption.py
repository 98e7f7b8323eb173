"""Whether, and from which checkpoint, a run resumes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import ExperimentConfig, build_stored, difference, flatten, to_tree
from nmt.data import PreparedCorpus
from nmt.errors import NMTError
from nmt.model import check_ours
from nmt.training.checkpoints import RunState, load_checkpoint
from nmt.training.identity import decisive_settings, in_division_of, split_of
from nmt.training.run_folder import check_configuration, checkpoint_step, list_checkpoints


@dataclass
class Resumption:
    """Where a run resumes."""

    checkpoint: Path | None = None
    """The newest checkpoint; None: the run starts from scratch."""
    update: int = 0
    """The number of updates already made."""
    finished: bool = False
    """Whether no updates remain, because of trainer.max_steps or validation.patience."""


def check_run(config: ExperimentConfig, corpus: PreparedCorpus, now: RunState) -> Resumption:
    """Where a run resumes; `now` is the state that it would have if it started now.

    Raises NMTError if the run cannot resume, or if its options or files changed.
    """
    run = Path(config.run)
    # The folder first, before anything large is read.
    check_configuration(run, config)
    check_ours(run / "model")  # training would fail at its end if it must not replace this folder
    paths = list_checkpoints(run)
    if not paths:
        return Resumption()
    path = paths[-1]
    content = load_checkpoint(path)
    state = RunState(**content["nmt"])
    check_settings(path, content, config)
    check_origin(path, state, corpus, now.files)
    check_characters(path, state, now)
    if state.init != now.init:
        raise NMTError(
            f"{path} began with different weights than init={config.init or 'null'}: "
            "pass name=OTHER"
        )
    update = content["global_step"]
    patience = config.validation.patience
    lost_patience = patience is not None and state.validation["worse"] >= patience
    finished = update >= config.trainer.max_steps or lost_patience
    # A finished run needs no optimizer, because only its weights are averaged.
    if not finished and lacks_optimizer_state(content):
        raise NMTError(
            f"{path} has no optimizer state to resume with: run `nmt average {run} output=FOLDER` "
            "and pass init=FOLDER name=OTHER for a new run from its weights"
        )
    # If somebody renamed or copied the file, its name would mislead averaging and pruning.
    if update != checkpoint_step(path):
        raise NMTError(
            f"{path} is the checkpoint of update {update:,}: restore the file, or delete it"
        )
    return Resumption(path, update, finished)


def lacks_optimizer_state(content: dict[str, Any]) -> bool:
    """Whether a checkpoint lacks the optimizer's state that resuming needs.

    For example, somebody has removed the state to make the file smaller. A checkpoint from before
    the first update that changed the weights has no state either, but needs none. Updates that
    change nothing are those that optim.not_finite=skip or the loss scaler of 16-mixed skipped.
    """
    if any(optimizer.get("state") for optimizer in content["optimizer_states"]):
        return False
    all_updates_skipped = content["skipped"] >= content["global_step"]
    if all_updates_skipped:
        return False
    # Lightning saves the scaler under this name. `_growth_tracker` counts the updates since the
    # last one that it skipped. With 0, it may have skipped all of them.
    scaler = content.get("MixedPrecision")
    may_have_skipped_all = isinstance(scaler, dict) and scaler.get("_growth_tracker") == 0
    return not may_have_skipped_all


def changed_settings(content: dict[str, Any], tree: dict[str, Any]) -> str:
    """How the decisive settings differ from a checkpoint's; empty if they do not.

    Changes of the schedule's end after the checkpoint do not count: a run that was killed may have
    written them to config.yaml, but not yet to a checkpoint.
    """
    update = content["global_step"]
    before = settings_until(content["nmt"]["config"], update)
    return difference(before, settings_until(tree, update))


def settings_until(tree: dict[str, Any], update: int) -> dict[str, Any]:
    """The decisive settings, without changes of the schedule's end after an update."""
    complete = to_tree(build_stored(ExperimentConfig, tree, "configuration"))
    changes = complete["optim"]["decay_changes"] or []
    made = [change for change in changes if change[0] <= update]
    complete["optim"]["decay_changes"] = made or None
    return decisive_settings(complete)


def check_settings(path: Path, content: dict[str, Any], config: ExperimentConfig) -> None:
    """Raise NMTError if a checkpoint has other settings; config.yaml may be missing or edited."""
    changed = changed_settings(content, to_tree(config))
    if changed:
        raise NMTError(
            f"{path} has a different configuration ({changed}): "
            "pass the same values to resume it, or pass name=OTHER for a new run"
        )


def check_origin(
    path: Path, state: RunState, corpus: PreparedCorpus, files: dict[str, str]
) -> None:
    """Raise NMTError if a checkpoint was trained on other data or with another vocabulary.

    `files` are the `corpus_hashes` of the splits to compare. Files that an older version of nmt did
    not record are not compared.
    """
    # `nmt average` compares only the validation set.
    splits = {split_of(name) for name in files}
    before = {"tokenizer": state.tokenizer, "corpus": state.corpus}
    for name, identity in state.files.items():
        if split_of(name) in splits:
            before[name] = identity
    files = in_division_of(state.files, files, corpus)
    now = {"tokenizer": corpus.manifest.tokenizer, "corpus": corpus.manifest.fingerprint, **files}
    for name, identity in before.items():
        if now.get(name) != identity:
            raise NMTError(
                f"{path} was trained with a different {name} than {corpus.folder} has now: "
                "restore it, or pass name=OTHER for a new run"
            )


def check_characters(path: Path, state: RunState, now: RunState) -> None:
    """Raise NMTError if the corpus's record of lengths and characters changed.

    The model stores this record. Keys that an older version of nmt did not record are not compared.
    """
    before = flatten(state.seen)
    after = flatten(now.seen)
    changed = [key for key in before if key in after and before[key] != after[key]]
    if changed:
        raise NMTError(
            f"{path} was trained with a different record of {', '.join(changed[:4])}: "
            "restore the corpus's manifest.json and the model of init=, "
            "or pass name=OTHER for a new run"
        )
