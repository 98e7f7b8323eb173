"""`nmt train`: from a prepared corpus, and possibly a trained model (`init`), to an averaged model directory."""

import gc
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch.callbacks import LambdaCallback, Timer
from rich.console import Console

from nmt.config import ExperimentConfig, difference, require, to_tree
from nmt.data import TOKENIZER, PreparedCorpus, UpdateDataModule, accumulation, open_corpus
from nmt.errors import NMTError, SameForAll, how_to_install, is_out_of_memory, one_line
from nmt.files import (
    architecture,
    check_direction,
    find_model_directory,
    locked_file,
    only_process,
    read_description,
    remove_leftovers,
    sha256,
    weights_in_words,
    write_file,
)
from nmt.hardware import versions
from nmt.kernels import forget_old_kernels, keep_freed_memory
from nmt.model import load_model
from nmt.search import TorchEngine
from nmt.text import load_tokenizer
from nmt.training.checkpoints import (
    CheckpointCallback,
    RunState,
    check_corpus,
    check_run,
    delivered_model,
    write_average,
)
from nmt.training.metrics import MetricsCallback, ProgressLine
from nmt.training.module import TranslationModule
from nmt.training.run_folder import is_finished, is_first_process, latest_beside, point_latest_to, remove_older
from nmt.training.trainer import MemoryCheck, end_launched_processes, make_trainer, quiet_lightning, watched
from nmt.training.validation import Validation, joint_score, translated
from nmt.translation import Translator


def train(config: ExperimentConfig, console: Console) -> int | None:
    """Start or resume a run and average its checkpoints; returns the number of the signal that stopped it, or None."""
    if "wandb" in config.logger and find_spec("wandb") is None:
        raise NMTError(f"logger=wandb: it is not installed; {how_to_install('wandb')}")
    keep_freed_memory()
    forget_old_kernels()
    torch.set_float32_matmul_precision(config.float32_matmul_precision)
    folder, run, most = Path(config.prepared), Path(config.run), config.model.max_positions
    busy = f"{folder}: `nmt preprocess` is replacing this corpus; wait until it ends"
    with locked_file(folder / TOKENIZER, False, busy):
        corpus = open_corpus(folder)
        check_corpus(corpus.manifest, config)
        for name in ("train", "valid") if config.model.positions == "learned" else ():
            longest = max(corpus.split(name).source_lengths.max(), corpus.split(name).target_lengths.max())
            if longest > most:  # otherwise training would fail hours later
                raise SameForAll(f"a line of {name} has {longest} tokens, more than model.max_positions={most}")
        with only_process(run, "run") if is_first_process() else nullcontext():
            return Training(config, corpus, console).run()


def joined(before: Any, now: Any) -> Any:
    """The union of the characters of two corpora, and the greater lengths."""
    if isinstance(before, dict):
        return {key: joined(before[key], now[key]) for key in before if key in now}
    return "".join(sorted({*before, *now})) if isinstance(before, str) else max(before, now)


@dataclass
class Training:
    """One process's part in a training."""

    config: ExperimentConfig
    corpus: PreparedCorpus
    console: Console

    def __post_init__(self) -> None:
        corpus, manifest, seen = self.corpus, self.corpus.manifest, self.corpus.manifest.seen
        self.folder, self.initial = Path(self.config.run), self.find_initial()
        if self.initial:
            before = read_description(self.initial).training
            search = {key: before[key] for key in ("length_penalty", "length_penalty_kind") if before.get(key)}
            seen = search | joined({key: before[key] for key in seen if before.get(key)}, seen)
        files = {f"train/{path.name}": sha256(path) for path in sorted(corpus.folder.glob("train/*.arrow"))}
        init = sha256(self.initial / "model.safetensors") if self.initial else ""
        run = to_tree(self.config), manifest.vocabulary_size, corpus.source_language, corpus.target_language
        identities = manifest.tokenizer, manifest.fingerprint, files, init
        self.state = RunState(*run, *identities, seen, versions=versions())
        self.resumed = check_run(self.config, corpus, self.state)

    def find_initial(self) -> Path | None:
        """The model directory of `init`; NMTError where vocabulary, shape or direction are not those of the run."""
        if self.config.init is None:
            return None
        where, folder = f"init={self.config.init}", find_model_directory(self.config.init, "init")
        description, corpus = read_description(folder), self.corpus
        same = description.tokenizer == corpus.manifest.tokenizer
        advice = f"prepare the corpus with it, `nmt preprocess {where} ...`"
        require(same, f"{where} has another vocabulary than {corpus.folder}: {advice}")
        check_direction(where, description, corpus.source_language, corpus.target_language)
        changed = difference(architecture(description.model), architecture(asdict(self.config.model)))
        require(not changed, f"{where} is another model ({changed}): leave model out")
        return folder

    def run(self) -> int | None:
        """Make the remaining updates and the model; returns the number of the signal that stopped the run, or None."""
        folder, resumed = self.folder, self.resumed
        if resumed.finished and is_finished(folder, resumed.update, self.state.corpus):
            if is_first_process():
                point_latest_to(folder)
            trained = f"{folder} is already trained for {resumed.update:,} updates"
            self.console.print(f"{trained}: its model is in {folder}/model")
            return None
        if resumed.finished:
            self.open_folder()
        elif signal := self.fit():
            return signal
        if is_first_process():
            finish(self.config, self.corpus, self.console)
        return None

    def open_folder(self) -> None:
        """Write the run's configuration and tokenizer, and remove what a killed process left."""
        try:
            (self.folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            if is_first_process():
                latest_beside(self.folder)
                text = yaml.safe_dump(self.state.config, sort_keys=False, allow_unicode=True)
                write_file(self.folder / "config.yaml", text)
                write_file(self.folder / TOKENIZER, self.corpus.tokenizer_file.read_bytes())
                remove_leftovers(self.folder)
                remove_leftovers(self.folder / "checkpoints")
        except OSError as error:
            raise NMTError(f"cannot write the run folder {self.folder} ({error.strerror}): pass run=FOLDER") from error

    def fit(self) -> int:
        """Make the remaining updates; returns the number of the signal that stopped them, or 0."""
        config, size, checkpoint = self.config, self.state.vocabulary_size, self.resumed.checkpoint
        needed, sources = (x.source_vocabulary_size or size for x in (self.corpus, config.model))
        require(needed == sources, f"the corpus needs model.source_vocabulary_size={needed}")
        max_seconds, updates = Timer(config.trainer.max_time).time_remaining(), UpdateDataModule(self.corpus, config)
        metrics = MetricsCallback(self.state.config, ProgressLine(self.console, max_seconds))
        validation = Validation(self.corpus, config, metrics)
        saver = CheckpointCallback(config.checkpoints, self.state, validation, max_seconds)
        # Lightning calls them in this order: an update is reported and validated before it is saved.
        before = LambdaCallback(on_train_start=saver.catch_signals), MemoryCheck(updates.planner, config.batching)
        with quiet_lightning():
            trainer = make_trainer(config, [*before, metrics, validation, saver])
            trainer.accumulate_grad_batches = accumulation(config.batching.micro_batches, trainer.world_size)
            module = TranslationModule(config.model, config.optim, size, config.seed, config.batching.micro_batches)
            if self.initial and not checkpoint:
                module.model.load_state_dict(load_model(self.initial).state_dict())
            self.open_folder()  # not before now, so that a refused configuration leaves nothing behind
            if trainer.is_global_zero:
                self.greet(module, updates)
            try:
                with watched(trainer):
                    trainer.fit(module, updates, ckpt_path=checkpoint, weights_only=True)
            except SystemExit as error:
                # Lightning's answer to a second interrupt, which must not wait for the end of the update.
                raise KeyboardInterrupt from error
            except Exception as error:
                end_launched_processes(trainer)
                explained = isinstance(error, NMTError) or is_out_of_memory(error)
                if explained or checkpoint is None or metrics.batch is not None:
                    raise
                raise NMTError(f"{checkpoint}: the run cannot resume from it ({one_line(error)})") from error
            finally:
                metrics.close()
                saver.restore_handlers()
        return saver.stopped_by

    def greet(self, module: TranslationModule, updates: UpdateDataModule) -> None:
        update, warmup = self.resumed.update, module.optim.warmup
        parameters = sum(parameter.numel() for parameter in module.parameters())
        per_pass = updates.planner.micro_batches_per_pass / updates.planner.micro_batches
        parts = [f"{name} {share:.1%}" for name, share in updates.shares().items()]
        self.console.print(
            f"training {parameters:,} parameters on {len(updates.split):,} pairs"
            f"{f' from update {update:,}' if update else ''} to update {self.config.trainer.max_steps:,}; "
            f"a pass over the corpus is {per_pass:,.{0 if per_pass >= 10 else 1}f} updates, and the learning rate "
            f"rises to {module.learning_rate(warmup):.2g} at update {warmup:,}"
            f"{'; of the sentences, ' if parts else ''}{', '.join(parts)}"
        )


def finish(config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> None:
    """Write the model directory, scored on the validation set, and point `latest` to the run."""
    run, sentences, max_steps = Path(config.run), config.validation.bleu_sentences, config.trainer.max_steps
    remove_older(run, config.checkpoints)
    gc.collect()  # the trained model is part of reference cycles, which would keep its memory
    device = make_trainer(config).strategy.root_device
    average = delivered_model(run, config.checkpoints, corpus.split("valid"), device)
    console.print(f"the model is the {weights_in_words(average.updates, average.losses)}")
    scored = None
    if sentences != 0:
        engine = TorchEngine([average.make_model().to(device)], config.decode)
        translator = Translator(engine, load_tokenizer(run / TOKENIZER))
        texts = translated(translator, corpus, corpus.domains("valid", config.data), sentences)
        score = joint_score(corpus, texts, config.validation.tokenize)
        scored = score, sum(len(references) for _, references in texts)
        console.print(f"validation {score.name} {score.value:.2f} on {scored[1]:,} sentences, `{score.signature}`")
    write_average(average, run / TOKENIZER, run / "model", scored)
    point_latest_to(run)
    console.print(f"the model is in {run / 'model'}")
    if max_steps is not None and average.made < max_steps and config.trainer.max_time is not None:
        made = f"update {average.made:,} of {max_steps:,}"
        console.print(f"stopped by trainer.max_time at {made}; the same command resumes there")
