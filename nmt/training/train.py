"""`nmt train`: from a prepared corpus to an averaged model directory."""

import gc
import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning import Trainer
from lightning.fabric.utilities.exceptions import MisconfigurationException
from rich.console import Console

from nmt.config import CheckpointConfig, ExperimentConfig
from nmt.config.trainer import check_precision
from nmt.data.datamodule import UpdateDataModule, accumulation
from nmt.data.prepared import PreparedCorpus, open_corpus
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.evaluation.scores import Score
from nmt.kernels.memory import forget_old_kernels, keep_freed_memory
from nmt.model_directory.description import read_description
from nmt.model_directory.weights import check_ours
from nmt.storage.lock import only_process
from nmt.storage.whole import copy_file, remove_leftovers, write_file
from nmt.text.tokenizers import load_tokenizer
from nmt.training.averaging import averaged_model, write_average
from nmt.training.checkpoints import Checkpoints, RunDescription, UnreadableCheckpoint, load_checkpoint
from nmt.training.gradient_check import GradientCheck
from nmt.training.logbook import check_installed
from nmt.training.memory_check import MemoryCheck, check_positions
from nmt.training.metrics import MetricsCallback
from nmt.training.micro_batches import settle_shards
from nmt.training.module import TranslationModule
from nmt.training.processes import is_first_process
from nmt.training.run_folder import (
    check_configuration,
    check_corpus,
    check_no_links,
    checkpoint_step,
    kept_checkpoints,
    list_checkpoints,
    point_latest_to,
    read_metrics,
    remove_older,
)
from nmt.training.stopping import Interruptions, seconds_of
from nmt.training.strategies import SharedFilesystemCheck, end_launched_processes, launch_flags, leave_process_group
from nmt.training.updates import Progress
from nmt.training.validation import Validation, validation_score
from nmt.translation.torch_translator import torch_translator


def open_training_corpus(config: ExperimentConfig) -> PreparedCorpus:
    """The prepared corpus; NMTError where it was prepared with another configuration of data or tokenizer."""
    corpus = open_corpus(Path(config.prepared))
    check_corpus(corpus.manifest, config)
    check_positions(corpus, config.model)
    return corpus


@dataclass
class Resumed:
    """How far a run has got."""

    checkpoint: Path | None = None
    """From which it goes on; None: it begins."""
    update: int = 0
    finished: bool = False
    unreadable: tuple[Path, ...] = ()
    """Newer checkpoints than that."""


def check_run(run: Path, config: ExperimentConfig, corpus: PreparedCorpus) -> Resumed:
    """How far the run in that folder has got, by its newest checkpoint that can be read.

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
        check_origin(path, content["nmt"], corpus)
        update, patience = int(content["global_step"]), config.validation.patience
        stopped_early = patience is not None and content["callbacks"]["Validation"]["worse"] >= patience
        return Resumed(path, update, update >= config.trainer["max_steps"] or stopped_early, tuple(unreadable))
    for reason in unreadable.values():
        raise NMTError(f"{reason}; none of {run} can be read: remove that folder to begin anew, or pass name=OTHER")
    return Resumed()


def check_origin(path: Path, about: dict[str, Any], corpus: PreparedCorpus) -> None:
    """NMTError where a checkpoint was trained on another corpus, or with another vocabulary."""
    manifest = corpus.manifest
    for part, now in (("tokenizer", manifest.tokenizer), ("corpus", manifest.fingerprint)):
        if about[part] != now:
            raise NMTError(
                f"{path} was trained with another {part} than the one in {corpus.folder}: "
                "prepare the corpus as it was, or pass name=OTHER for a new run"
            )


def averaged_update(run: Path) -> int | None:
    """The update that the model directory of a run is the average up to; None where there is none.

    A run that was extended, and killed before it was averaged again, still has that of its first end.
    """
    model = run / "model"
    return read_description(model).training.get("updates") if model.exists() else None


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


def make_trainer(config: ExperimentConfig, callbacks: list[Any]) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    # Lightning would stop within an update when the time is up.
    flags = {key: value for key, value in config.trainer.items() if value is not None and key != "max_time"}
    try:
        trainer = Trainer(
            **{"enable_model_summary": False, **flags, **launch_flags(flags)},
            max_epochs=-1,
            callbacks=callbacks,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            use_distributed_sampler=False,
            limit_val_batches=0,
        )
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    check_precision(config.trainer["precision"], on_processor=trainer.strategy.root_device.type == "cpu")
    return trainer


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Without Lightning's advertisements, and its warnings about what is meant here."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        yield


def train(config: ExperimentConfig, console: Console) -> int | None:
    """Train, or go on training, the run of `config`, and average it at the end.

    Talks to `console`. Gives the number of the signal that stopped it early, if one did.
    """
    check_installed(config.logger)
    keep_freed_memory()
    forget_old_kernels()
    torch.set_float32_matmul_precision(config.float32_matmul_precision)
    corpus = open_training_corpus(config)
    run = Path(config.run)
    if config.batching.max_tokens is not None:
        config = replace(config, batching=settle_shards(config, run, corpus, *devices(config)))
    with only_process(run, "run") if is_first_process() else nullcontext():
        return train_on(config, corpus, run, console)


def train_on(config: ExperimentConfig, corpus: PreparedCorpus, run: Path, console: Console) -> int | None:
    """Train from where the run in that folder stands."""
    resumed = check_run(run, config, corpus)
    for path in resumed.unreadable:
        console.print(f"{path} cannot be read, and is left aside: the run goes on from {resumed.checkpoint}")
    if resumed.finished and averaged_update(run) == resumed.update:
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


def devices(config: ExperimentConfig) -> tuple[int, torch.device]:
    """How many devices the Trainer of this configuration trains on, and which one is this process's."""
    with quiet_lightning():
        trainer = make_trainer(config, [])
    return trainer.world_size, trainer.strategy.root_device


def fit(config: ExperimentConfig, corpus: PreparedCorpus, run: Path, resumed: Resumed, console: Console) -> int:
    """The updates that are still to be made; gives the number of the signal that stopped them early, or 0."""
    interruptions = Interruptions(config.checkpoints.every_minutes, seconds_of(config.trainer["max_time"]))
    about = RunDescription(
        config=asdict(config),
        vocabulary_size=corpus.manifest.vocabulary_size,
        source=corpus.source_language,
        target=corpus.target_language,
        tokenizer=corpus.manifest.tokenizer,
        corpus=corpus.manifest.fingerprint,
        seen=corpus.manifest.seen,
    )
    updates = UpdateDataModule(corpus, config.batching, config.seed, config.model.attention_window, config.num_workers)
    every = config.trainer["log_every_n_steps"]
    meters = MetricsCallback(run, every, console, config.logger, asdict(config))
    validation = Validation(corpus, config.validation, config.decode, meters)
    saver = Checkpoints(run, config.checkpoints, about, validation, interruptions)
    with quiet_lightning():
        progress = Progress()
        callbacks = [
            SharedFilesystemCheck(run),
            progress,
            MemoryCheck(updates, config.batching, validation),
            GradientCheck(run, updates, every),
            meters,
            validation,
            saver,
        ]
        trainer = make_trainer(config, callbacks)
        # Lightning asks the other processes before each micro-batch whether SIGTERM came; Interruptions asks enough.
        trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]
        trainer.accumulate_grad_batches = accumulation(config.batching.micro_batches, trainer.world_size)
        module = TranslationModule(
            config.model, config.optim, corpus.manifest.vocabulary_size, config.seed, config.compile
        )
        open_run(run, config, corpus, resumed)  # not before now: what was refused until here leaves nothing behind
        if trainer.is_global_zero:
            greet(console, module, updates, trainer, resumed.update)
        try:
            trainer.fit(module, updates, ckpt_path=resumed.checkpoint, weights_only=True)
        except SystemExit as error:
            # Lightning's answer to a second interrupt, which is not to wait for the end of the update.
            raise KeyboardInterrupt from error
        except Exception as error:
            end_launched_processes(trainer)
            known = isinstance(error, NMTError) or is_out_of_memory(error)
            if known or progress.started or resumed.checkpoint is None:
                raise
            raise NMTError(f"{resumed.checkpoint}: a run cannot go on from it ({one_line(error)})") from error
        finally:
            meters.close()
            interruptions.restore_handlers()
    return saver.stopped_by


def greet(
    console: Console, module: TranslationModule, updates: UpdateDataModule, trainer: Trainer, update: int
) -> None:
    """Say what is going to happen."""
    parameters = sum(parameter.numel() for parameter in module.parameters())
    per_pass = updates.planner.micro_batches_per_pass / updates.planner.micro_batches
    start = f"from update {update:,} " if update else ""
    console.print(
        f"training {parameters:,} parameters on {len(updates.split):,} pairs {start}to update {trainer.max_steps:,}; "
        f"a pass over the corpus is {per_pass:,.0f} updates",
    )


def finish(config: ExperimentConfig, corpus: PreparedCorpus, run: Path, console: Console) -> None:
    """Average the last checkpoints into the model directory, scored on the validation set."""
    leave_process_group()
    if not is_first_process():
        return
    remove_older(run, config.checkpoints)
    gc.collect()  # what was trained hangs together in circles, and would keep its memory
    average = averaged_model(average_of(run, config.checkpoints, console))
    said = None
    if config.validation.bleu_sentences != 0:
        average.model.to(devices(config)[1])
        translator = torch_translator([average.model], load_tokenizer(corpus.tokenizer_file), config.decode)
        score = validation_score(translator, corpus, config.validation.bleu_sentences)
        average.model.cpu()
        whole = len(corpus.split("valid"))
        sentences = min(config.validation.bleu_sentences or whole, whole)
        said = f"validation {score.name} {score.value:.2f} on {sentences:,} sentences, `{score.signature}`"
        console.print(f"average of {len(average.updates)} checkpoints: {said}")
        compare_with_last(run, average.updates, score, console)
    write_average(average, corpus.tokenizer_file, run / "model", said)
    console.print(f"the model is in {run / 'model'}")
    made, wanted = average.updates[-1], config.trainer["max_steps"]
    if made < wanted and config.trainer["max_time"] is not None:
        console.print(
            f"stopped by trainer.max_time at update {made:,} of {wanted:,}; the same command goes on from there"
        )


def compare_with_last(run: Path, updates: list[int], score: Score, console: Console) -> None:
    """Tell where the average is worse than its last checkpoint, as when a young model still changes a lot."""
    key = f"valid_{'f1' if score.metric == 'brackets' else 'bleu'}"
    last = [float(row[key]) for row in read_metrics(run) if row["step"] == str(updates[-1]) and row.get(key)]
    if last and len(updates) > 1 and score.value < last[-1] - 1:
        console.print(
            f"notice: the last checkpoint alone had {last[-1]:.2f}; while a model still learns fast, `nmt average "
            f"run={run} last=1`, or fewer updates between checkpoints (checkpoints.every_steps), may be better"
        )


def average_of(run: Path, config: CheckpointConfig, console: Console) -> list[Path]:
    """The checkpoints that a run's model is the average of; tells where some of them are no longer there."""
    paths = kept_checkpoints(run, config.every_steps, config.keep)
    wanted = min(config.keep, math.ceil(checkpoint_step(paths[-1]) / config.every_steps))
    if len(paths) < wanted:
        console.print(
            f"notice: the average is of {len(paths)} checkpoints, not of {wanted}: the others were removed, or never "
            "written, under other checkpoints.keep and checkpoints.every_steps"
        )
    return paths
