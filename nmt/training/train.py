"""`nmt train`: from a prepared corpus to an averaged model directory."""

import gc
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import torch
import yaml
from lightning.pytorch.callbacks import Timer
from rich.console import Console

from nmt.config import ExperimentConfig
from nmt.data.datamodule import UpdateDataModule, accumulation
from nmt.data.prepared import PreparedCorpus, open_corpus
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.kernels.memory import forget_old_kernels, keep_freed_memory
from nmt.storage.lock import only_process
from nmt.storage.whole import copy_file, remove_leftovers, write_file
from nmt.training.checkpoints import RunState
from nmt.training.environment import versions
from nmt.training.finish import finish
from nmt.training.gradient_check import GradientCheck
from nmt.training.logbook import check_installed
from nmt.training.memory_check import MemoryCheck, check_positions
from nmt.training.metrics import MetricsCallback
from nmt.training.micro_batches import settle_micro_batches
from nmt.training.module import TranslationModule
from nmt.training.processes import is_first_process
from nmt.training.resuming import Resumed, check_run
from nmt.training.run_folder import averaged_update, check_corpus, point_latest_to
from nmt.training.saving import CheckpointCallback
from nmt.training.stopping import Interruptions
from nmt.training.strategies import SharedFilesystemCheck
from nmt.training.time_estimate import TimeEstimate
from nmt.training.trainer import end_launched_processes, make_trainer, quiet_lightning
from nmt.training.updates import MicroBatchCount
from nmt.training.validation import Validation


def train(config: ExperimentConfig, console: Console) -> int | None:
    """Train, or go on training, the run of `config`, and average it at the end.

    Talks to `console`. Gives the number of the signal that stopped it early, if one did.
    """
    check_installed(config.logger)
    keep_freed_memory()
    forget_old_kernels()
    torch.set_float32_matmul_precision(config.float32_matmul_precision)
    corpus = open_corpus(Path(config.prepared))
    check_corpus(corpus.manifest, config)
    check_positions(corpus, config.model)
    run = Path(config.run)
    if config.batching.max_tokens is not None:
        config = replace(config, batching=settle_micro_batches(config, run, corpus, make_trainer(config)))
        gc.collect()  # a trial's model and its trainer hold each other, and would keep the device's memory
    with only_process(run, "run") if is_first_process() else nullcontext():
        return train_on(config, corpus, run, console)


def train_on(config: ExperimentConfig, corpus: PreparedCorpus, run: Path, console: Console) -> int | None:
    """Train from where the run in that folder stands."""
    resumed = check_run(run, config, corpus)
    for path in resumed.unreadable:
        console.print(f"{path} cannot be read, and is left aside: the run goes on from {resumed.checkpoint}")
    if resumed.finished and averaged_update(run, corpus.manifest.fingerprint) == resumed.update:
        if is_first_process():
            point_latest_to(run)
        console.print(f"{run} is already trained for {resumed.update:,} updates: its model is in {run / 'model'}")
        return None
    if resumed.update > config.trainer["max_steps"]:
        console.print(
            f"{run} was trained for {resumed.update:,} updates, more than trainer.max_steps="
            f"{config.trainer['max_steps']:,}: its model is averaged as it stands"
        )
    if resumed.finished:
        open_run(run, config, corpus, resumed)
    elif signal := fit(config, corpus, run, resumed, console):
        return signal
    finish(config, corpus, run, console)
    return None


def open_run(run: Path, config: ExperimentConfig, corpus: PreparedCorpus, resumed: Resumed) -> None:
    """Make the run's folder, with its configuration and its tokenizer; NMTError where that cannot be written.

    What a killed process did not get to is removed; a checkpoint that cannot be read gets another name.
    """
    try:
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        if is_first_process():
            write_file(run / "config.yaml", yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True))
            copy_file(corpus.tokenizer_file, run / "tokenizer.model")
            for path in resumed.unreadable:
                path.replace(path.with_suffix(".unreadable"))
            remove_leftovers(run)
            remove_leftovers(run / "checkpoints")
            point_latest_to(run)
    except OSError as error:
        raise NMTError(f"cannot write the run directory {run} ({error.strerror}): pass run=FOLDER elsewhere") from error


def fit(config: ExperimentConfig, corpus: PreparedCorpus, run: Path, resumed: Resumed, console: Console) -> int:
    """The updates that are still to be made; gives the number of the signal that stopped them early, or 0."""
    tree, manifest = asdict(config), corpus.manifest
    max_seconds = Timer(config.trainer["max_time"]).time_remaining()
    interruptions = Interruptions(config.checkpoints.every_minutes, max_seconds)
    state = RunState(
        config=tree,
        vocabulary_size=manifest.vocabulary_size,
        source=corpus.source_language,
        target=corpus.target_language,
        tokenizer=manifest.tokenizer,
        corpus=manifest.fingerprint,
        seen=manifest.seen,
        versions=versions(),
    )
    updates = UpdateDataModule(corpus, config.batching, config.seed, config.model.attention_window, config.num_workers)
    metrics = MetricsCallback(run, tree, console, max_seconds)
    validation = Validation(corpus, config.validation, config.decode, metrics)
    saver = CheckpointCallback(run, config.checkpoints, state, metrics, validation, interruptions)
    # Lightning calls them in this order: an update is looked at, reported and validated before it is saved.
    callbacks = [
        SharedFilesystemCheck(run),
        MicroBatchCount(),
        MemoryCheck(updates.planner, config.batching, validation),
        TimeEstimate(updates.planner, console, max_seconds),
        GradientCheck(run, updates, config.trainer["log_every_n_steps"]),
        metrics,
        validation,
        saver,
    ]
    micro_batches = config.batching.micro_batches
    with quiet_lightning():
        trainer = make_trainer(config, callbacks)
        trainer.accumulate_grad_batches = accumulation(micro_batches, trainer.world_size)
        module = TranslationModule(config.model, config.optim, manifest.vocabulary_size, config.seed, micro_batches)
        open_run(run, config, corpus, resumed)  # not before now: what was refused until here leaves nothing behind
        if trainer.is_global_zero:
            console.print(greeting(module, updates, trainer.max_steps, resumed.update))
        try:
            trainer.fit(module, updates, ckpt_path=resumed.checkpoint, weights_only=True)
        except SystemExit as error:
            # Lightning's answer to a second interrupt, which is not to wait for the end of the update.
            raise KeyboardInterrupt from error
        except Exception as error:
            end_launched_processes(trainer)
            known = isinstance(error, NMTError) or is_out_of_memory(error)
            if known or resumed.checkpoint is None or metrics.batch is not None:
                raise
            raise NMTError(f"{resumed.checkpoint}: a run cannot go on from it ({one_line(error)})") from error
        finally:
            metrics.close()
            interruptions.restore_handlers()
    return saver.stopped_by


def greeting(module: TranslationModule, updates: UpdateDataModule, max_steps: int, update: int) -> str:
    """One line about the training that begins."""
    parameters = sum(parameter.numel() for parameter in module.parameters())
    per_pass = updates.planner.micro_batches_per_pass / updates.planner.micro_batches
    start = f"from update {update:,} " if update else ""
    return (
        f"training {parameters:,} parameters on {len(updates.split):,} pairs {start}to update {max_steps:,}; "
        f"a pass over the corpus is {per_pass:,.0f} updates"
    )
