"""`nmt train`: from a prepared corpus to an averaged model directory."""

import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
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
from nmt.decoding.translator import Translator
from nmt.errors import NMTError
from nmt.text.files import replace_file
from nmt.text.manifest import difference
from nmt.text.tokenizers import load_tokenizer
from nmt.training.averaging import averaged_model, write_average
from nmt.training.checkpoints import Checkpoints, RunDescription, checkpoint_step, list_checkpoints, load_checkpoint
from nmt.training.memory import keep_freed_memory
from nmt.training.meters import Meters
from nmt.training.module import TranslationModule
from nmt.training.processes import is_first_process
from nmt.training.strategies import SameFolder, end_launched_processes, launch_flags
from nmt.training.validation import Validation, validation_bleu

# What decides the weights after n updates; all else may change while a run goes on.
DECISIVE = ("seed", "data", "tokenizer", "model", "optim", "batching")
DECISIVE_TRAINER_FLAGS = ("precision", "gradient_clip_val", "gradient_clip_algorithm")


def decisive(tree: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that must not change within a run."""
    flags = {flag: tree["trainer"].get(flag) for flag in DECISIVE_TRAINER_FLAGS}
    return {**{key: tree[key] for key in DECISIVE}, "trainer": flags}


def open_training_corpus(config: PreprocessAndTrainConfig) -> PreparedCorpus:
    """The prepared corpus; NMTError where it was prepared with another configuration of data or tokenizer."""
    corpus = open_corpus(Path(config.prepared))
    prepared = {key: corpus.manifest.content[key] for key in ("data", "tokenizer")}
    changed = difference(prepared, {"data": asdict(config.data), "tokenizer": asdict(config.tokenizer)})
    if changed:
        raise NMTError(
            f"{corpus.folder} was prepared with another configuration ({changed}): "
            "pass the same options to nmt train, or prepare it anew"
        )
    return corpus


def check_run(run: Path, config: PreprocessAndTrainConfig, corpus: PreparedCorpus) -> int:
    """The update that the run in that folder has got to, 0 where there is none.

    Raises NMTError where it cannot go on: its configuration or its corpus was another, or its checkpoint is unreadable.
    """
    path = run / "config.yaml"
    if path.is_file():
        changed = difference(decisive(yaml.safe_load(path.read_text(encoding="utf-8"))), decisive(asdict(config)))
        if changed:
            raise NMTError(
                f"{run} holds a run of another configuration ({changed}): "
                "pass name=OTHER for a new run, or remove that folder"
            )
    checkpoints = list_checkpoints(run)
    if not checkpoints:
        return 0
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
    return int(resumed["global_step"])


def open_run(run: Path, config: PreprocessAndTrainConfig, corpus: PreparedCorpus) -> None:
    """Make the run's folder, with its configuration and its tokenizer; NMTError where that cannot be written."""
    try:
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        if is_first_process():
            replace_file(run / "config.yaml", yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True))
            shutil.copyfile(corpus.tokenizer_file, run / "tokenizer.model")
            point_latest_to(run)
    except OSError as error:
        raise NMTError(f"cannot write the run directory {run} ({error.strerror}): pass run=FOLDER elsewhere") from error


def point_latest_to(run: Path) -> None:
    """Let `latest` beside the run be a link to it."""
    link = run.parent / "latest"
    if link.is_dir() and not link.is_symlink():
        raise NMTError(f"{link} is a folder, where the link to the newest run should be: move it away")
    temporary = link.with_name(f".latest-{os.getpid()}")
    temporary.symlink_to(run.name)
    temporary.replace(link)


def make_trainer(config: PreprocessAndTrainConfig, callbacks: list[Any]) -> Trainer:
    """The Lightning trainer of `config.trainer`; NMTError where a flag is wrong."""
    flags = {key: value for key, value in config.trainer.items() if value is not None}
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
        raise NMTError(f"trainer: {' '.join(str(error).split())}") from error
    trainer.accumulate_grad_batches = accumulation(config.batching.shards, trainer.world_size)
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


def train(config: PreprocessAndTrainConfig, console: Console) -> int | None:
    """Train, or go on training, the run of `config`, and average it at the end.

    Talks to `console`. Gives the number of the signal that stopped it early, if one did.
    """
    keep_freed_memory()
    corpus = open_training_corpus(config)
    run, updates = Path(config.run), config.trainer["max_steps"]
    made = check_run(run, config, corpus)
    if made >= updates and (run / "model").exists():
        if is_first_process():
            point_latest_to(run)
        console.print(f"{run} is already trained for {made:,} updates: its model is in {run / 'model'}")
        return None
    if made < updates:
        signal = fit(config, corpus, run, console)
        if signal is not None:
            return signal
    else:
        open_run(run, config, corpus)
    finish(config, corpus, run, console)
    return None


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
    meters = Meters(run, config.trainer["log_every_n_steps"], console)
    saver = Checkpoints(run, config.checkpoints, about)
    validation = Validation(corpus, config.validation, config.decode, meters)
    with quiet_lightning():
        trainer = make_trainer(config, [SameFolder(run), meters, validation, saver])
        module = TranslationModule(config.model, config.optim, corpus.manifest.vocabulary_size, config.seed)
        updates = UpdateModule(corpus, config.batching, config.seed)
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
    if not is_first_process():
        return
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    average = averaged_model(list_checkpoints(run)[-config.checkpoints.keep :])
    said = None
    if config.validation.bleu_sentences != 0:
        gpu = torch.cuda.is_available() and config.trainer["accelerator"] in ("auto", "gpu", "cuda")
        average.model.to("cuda" if gpu else "cpu")
        translator = Translator(average.model, load_tokenizer(corpus.tokenizer_file), config.decode)
        score = validation_bleu(translator, corpus, config.validation.bleu_sentences)
        average.model.cpu()
        whole = len(corpus.split("valid"))
        sentences = min(config.validation.bleu_sentences or whole, whole)
        said = f"validation BLEU {score.value:.2f} on {sentences:,} sentences, `{score.signature}`"
        console.print(f"average of {len(average.updates)} checkpoints: {said}")
    write_average(average, corpus.tokenizer_file, run / "model", said)
    console.print(f"the model is in {run / 'model'}")
