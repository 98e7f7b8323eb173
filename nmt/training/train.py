"""`nmt train`: from a prepared corpus to an averaged model directory."""

import gc
import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning import Trainer
from lightning.fabric.utilities.exceptions import MisconfigurationException
from rich.console import Console

from nmt.config import PreprocessAndTrainConfig
from nmt.data.datamodule import UpdateModule, accumulation
from nmt.data.prepared import PreparedCorpus, open_corpus
from nmt.decoding.model_directory import read_description
from nmt.decoding.torch_engine import torch_translator
from nmt.errors import NMTError, one_line
from nmt.model.memory import forget_old_kernels, keep_freed_memory
from nmt.storage.whole import write_file
from nmt.text.tokenizers import load_tokenizer
from nmt.training.averaging import averaged_model, write_average
from nmt.training.checkpoints import Checkpoints, RunDescription, load_checkpoint, remove_leftovers
from nmt.training.finite import FiniteGradients
from nmt.training.logbook import check_installed
from nmt.training.meters import Meters
from nmt.training.micro_batches import settle_shards
from nmt.training.module import TranslationModule
from nmt.training.processes import is_first_process
from nmt.training.rehearsal import Rehearsal, check_positions
from nmt.training.run_folder import (
    check_configuration,
    check_corpus,
    checkpoint_step,
    list_checkpoints,
    point_latest_to,
)
from nmt.training.strategies import SameFolder, end_launched_processes, launch_flags, leave_process_group
from nmt.training.validation import Validation, validation_score


def open_training_corpus(config: PreprocessAndTrainConfig) -> PreparedCorpus:
    """The prepared corpus; NMTError where it was prepared with another configuration of data or tokenizer."""
    corpus = open_corpus(Path(config.prepared))
    check_corpus(corpus.manifest, config)
    check_positions(corpus, config.model)
    return corpus


def check_run(run: Path, config: PreprocessAndTrainConfig, corpus: PreparedCorpus) -> tuple[int, bool]:
    """The update that the run in that folder has got to, 0 where there is none; and whether that is its last.

    Raises NMTError where it cannot go on: its configuration or its corpus was another, or its checkpoint is unreadable.
    """
    check_configuration(run, config)
    checkpoints = list_checkpoints(run)
    if not checkpoints:
        return 0, False
    resumed = load_checkpoint(checkpoints[-1])
    for part, then, now in (
        ("tokenizer", resumed["nmt"]["tokenizer"], corpus.manifest.tokenizer),
        ("corpus", resumed["nmt"]["corpus"], corpus.manifest.fingerprint),
    ):
        if then != now:
            raise NMTError(
                f"{checkpoints[-1]} was trained with another {part} than the one in {corpus.folder}: "
                "prepare the corpus as it was, or pass name=OTHER for a new run"
            )
    made, patience = int(resumed["global_step"]), config.validation.patience
    stopped_early = patience is not None and resumed["callbacks"]["Validation"]["worse"] >= patience
    return made, made >= config.trainer["max_steps"] or stopped_early


def averaged_update(run: Path) -> int | None:
    """The update that the model directory of a run is the average up to; None where there is none.

    A run that was extended, and killed before it was averaged again, still has that of its first end.
    """
    model = run / "model"
    return read_description(model).training["updates"] if model.exists() else None


def open_run(run: Path, config: PreprocessAndTrainConfig, corpus: PreparedCorpus) -> None:
    """Make the run's folder, with its configuration and its tokenizer; NMTError where that cannot be written."""
    try:
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        if is_first_process():
            write_file(run / "config.yaml", yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True))
            shutil.copyfile(corpus.tokenizer_file, run / "tokenizer.model")
            remove_leftovers(run, config.checkpoints.keep)
            point_latest_to(run)
    except OSError as error:
        raise NMTError(f"cannot write the run directory {run} ({error.strerror}): pass run=FOLDER elsewhere") from error


def make_trainer(config: PreprocessAndTrainConfig, callbacks: list[Any]) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    flags = {key: value for key, value in config.trainer.items() if value is not None}
    try:
        return Trainer(
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


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Without Lightning's advertisements, and its warnings about what is meant here."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        yield


def train(config: PreprocessAndTrainConfig, console: Console) -> int | None:
    """Train, or go on training, the run of `config`, and average it at the end.

    Talks to `console`. Gives the number of the signal that stopped it early, if one did.
    """
    check_installed(config.logger)
    keep_freed_memory()
    forget_old_kernels()
    torch.set_float32_matmul_precision(config.float32_matmul_precision)
    corpus = open_training_corpus(config)
    run = Path(config.run)
    if config.batching.tokens_per_device is not None:
        config = replace(config, batching=settle_shards(config, run, corpus, *devices(config)))
    made, done = check_run(run, config, corpus)
    if done and averaged_update(run) == made:
        if is_first_process():
            point_latest_to(run)
        console.print(f"{run} is already trained for {made:,} updates: its model is in {run / 'model'}")
        return None
    if not done:
        signal = fit(config, corpus, run, console)
        if signal is not None:
            return signal
    else:
        open_run(run, config, corpus)
    finish(config, corpus, run, console)
    return None


def devices(config: PreprocessAndTrainConfig) -> tuple[int, torch.device]:
    """How many devices the Trainer of this configuration trains on, and which one is this process's."""
    with quiet_lightning():
        trainer = make_trainer(config, [])
    return trainer.world_size, trainer.strategy.root_device


def fit(config: PreprocessAndTrainConfig, corpus: PreparedCorpus, run: Path, console: Console) -> int | None:
    """The updates that are still to be made; the number of the signal that stopped them early, if one did."""
    about = RunDescription(
        config=asdict(config),
        vocabulary_size=corpus.manifest.vocabulary_size,
        source=corpus.source_language,
        target=corpus.target_language,
        tokenizer=corpus.manifest.tokenizer,
        corpus=corpus.manifest.fingerprint,
    )
    updates = UpdateModule(corpus, config.batching, config.seed, config.model.restricted_to, config.num_workers)
    every = config.trainer["log_every_n_steps"]
    meters = Meters(run, every, console, config.logger, asdict(config))
    validation = Validation(corpus, config.validation, config.decode, meters)
    saver = Checkpoints(run, config.checkpoints, about, validation)
    with quiet_lightning():
        callbacks = [
            SameFolder(run),
            Rehearsal(updates, config.batching, validation),
            FiniteGradients(run, updates, every),
            meters,
            validation,
            saver,
        ]
        trainer = make_trainer(config, callbacks)
        trainer.accumulate_grad_batches = accumulation(config.batching.shards, trainer.world_size)
        module = TranslationModule(
            config.model, config.optim, corpus.manifest.vocabulary_size, config.seed, config.compile
        )
        open_run(run, config, corpus)  # not before now: what was refused until here leaves nothing behind
        last = list_checkpoints(run)[-1:]
        if trainer.is_global_zero:
            greet(console, module, updates, trainer, last)
        try:
            trainer.fit(module, updates, ckpt_path=last[0] if last else None, weights_only=True)
        except SystemExit as error:
            # Lightning's answer to a second interrupt, which is not to wait for the end of the update.
            raise KeyboardInterrupt from error
        except Exception:
            end_launched_processes(trainer)
            raise
        finally:
            meters.close()
            saver.restore_handlers()
    return saver.signal


def greet(
    console: Console, module: TranslationModule, updates: UpdateModule, trainer: Trainer, last: list[Path]
) -> None:
    """Say what is going to happen."""
    parameters = sum(parameter.numel() for parameter in module.parameters())
    per_pass = updates.planner.micro_batches / updates.planner.shards
    start = f"from update {checkpoint_step(last[0]):,} " if last else ""
    console.print(
        f"training {parameters:,} parameters on {len(updates.split):,} pairs {start}to update {trainer.max_steps:,}; "
        f"a pass over the corpus is {per_pass:,.0f} updates",
    )


def finish(config: PreprocessAndTrainConfig, corpus: PreparedCorpus, run: Path, console: Console) -> None:
    """Average the last checkpoints into the model directory, scored on the validation set."""
    leave_process_group()
    if not is_first_process():
        return
    gc.collect()  # what was trained hangs together in circles, and would keep its memory
    average = averaged_model(list_checkpoints(run)[-config.checkpoints.keep :])
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
    write_average(average, corpus.tokenizer_file, run / "model", said)
    console.print(f"the model is in {run / 'model'}")
