"""`nmt train`: train on a prepared corpus, optionally starting from a model (`init`), and average checkpoints."""

import os
from contextlib import nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import LambdaCallback, Timer
from rich.console import Console

from nmt import compat, files, hardware, kernels, model
from nmt.config import ExperimentConfig, difference, require, to_tree
from nmt.data import (
    TOKENIZER,
    Manifest,
    PreparedCorpus,
    UpdateDataModule,
    accumulation,
    decisive,
    open_corpus,
)
from nmt.errors import NMTError, SameForAll, how_to_install, is_out_of_memory, one_line
from nmt.training.checkpoints import CheckpointCallback, RunState, check_run, deliver
from nmt.training.exports import exports_in_words
from nmt.training.identity import corpus_hashes
from nmt.training.initial import initial_directory
from nmt.training.loss import training_losses
from nmt.training.metrics import MetricsCallback, ProgressLine, devices_in_words
from nmt.training.module import TranslationModule, make_trainer, quiet_lightning, settle_trainer
from nmt.training.replan import Replan
from nmt.training.run_folder import is_finished, is_first_process, open_folder
from nmt.training.trial import MemoryCheck
from nmt.training.validation import Validation
from nmt.training.warm_up import WarmUp
from nmt.training.watch import watched

ENOUGH_TOKENS = 12_500
"""Tokens per micro-batch that keep a fast GPU busy for longer than Python takes to start its kernels."""


def train(config: ExperimentConfig, console: Console) -> int | None:
    """Start or resume a run and average its checkpoints; return the number of the signal that stopped it, or None."""
    config = settle_trainer(config)
    if "wandb" in config.logger and find_spec("wandb") is None:
        raise NMTError(f"logger=wandb: wandb is not installed; {how_to_install('wandb')}")
    folder, run, most = Path(config.prepared), Path(config.run), config.model.max_positions
    busy = f"{folder}: `nmt preprocess` is replacing this corpus; wait until it finishes"
    with files.locked_file(folder / TOKENIZER, False, busy):
        corpus = open_corpus(folder)
        check_corpus(corpus.manifest, config)
        for name in ("train", "valid") if config.model.positions == "learned" else ():
            longest = max(
                corpus.split(name).source_lengths.max(), corpus.split(name).target_lengths.max()
            )
            if longest > most:  # otherwise training would fail hours later
                raise SameForAll(
                    f"a line of {name} has {longest} tokens, more than model.max_positions={most}"
                )
        with files.only_process(run, "run") if is_first_process() else nullcontext():
            return Training(config, corpus, console).run()


def check_corpus(manifest: Manifest, config: ExperimentConfig) -> None:
    """Raise NMTError if the corpus was prepared with different `data` or `tokenizer` options."""
    trees = manifest.content, to_tree(config)
    changed = difference(
        *({"data": decisive(x["data"]), "tokenizer": x["tokenizer"]} for x in trees)
    )
    advice = "pass the same options to nmt train or prepare it again"
    require(
        not changed,
        f"{Path(config.prepared)} was prepared with a different configuration ({changed}): {advice}",
    )


def joined(before: Any, now: Any) -> Any:
    """Merge the records of two corpora: the union of their characters and the greater of each length."""
    if isinstance(before, dict):
        return {key: joined(before[key], now[key]) for key in before if key in now}
    return "".join(sorted({*before, *now})) if isinstance(before, str) else max(before, now)


def initial_model(config: ExperimentConfig, corpus: PreparedCorpus) -> tuple[Path, dict[str, Any]]:
    """The model directory of `init` and the training record it contains; NMTError if the model does not fit the run."""
    where = f"init={config.init}"
    folder = initial_directory(config.init or "", corpus.folder, corpus.manifest)
    description = files.read_description(folder)
    files.check_direction(where, description, corpus.source_language, corpus.target_language)
    changed = difference(
        files.architecture(description.model), files.architecture(asdict(config.model))
    )
    require(not changed, f"{where} has a different architecture ({changed}): omit model=")
    return folder, description.training


def check_launcher(nodes: int) -> None:
    """Raise NMTError if nothing has told this process where the processes on other machines are."""
    variables = ("TORCHELASTIC_RUN_ID", "SLURM_NTASKS", "MASTER_ADDR")
    if nodes > 1 and not any(name in os.environ for name in variables):
        raise NMTError(
            f"trainer.num_nodes={nodes}: start this command on each machine with torchrun or srun "
            "(docs/guides/clusters.md)"
        )


class Training:
    """One process's part in a training run."""

    def __init__(self, config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> None:
        self.config, self.corpus, self.console, self.folder = (
            config,
            corpus,
            console,
            Path(config.run),
        )
        kernels.prepare()
        kernels.forget_old_kernels()
        torch.set_float32_matmul_precision(config.float32_matmul_precision)
        self.initial, init, seen, manifest = None, "", corpus.manifest.seen, corpus.manifest
        if config.init is not None:
            self.initial, before = initial_model(config, corpus)
            search = {
                key: before[key]
                for key in ("length_penalty", "length_penalty_kind")
                if before.get(key)
            }
            seen = search | joined({key: before[key] for key in seen if before.get(key)}, seen)
            init = files.sha256(self.initial / "model.safetensors")
        self.state = RunState(
            config=to_tree(config),
            vocabulary_size=manifest.vocabulary_size,
            source=corpus.source_language,
            target=corpus.target_language,
            tokenizer=manifest.tokenizer,
            corpus=manifest.fingerprint,
            files=corpus_hashes(corpus),
            init=init,
            seen=seen,
            versions=hardware.versions(),
            environment={"processor": hardware.processor(), **kernels.environment_record()},
        )
        self.checkpoint, self.update, self.finished = check_run(config, corpus, self.state)

    def run(self) -> int | None:
        """Make the remaining updates and the model; return the number of the signal that stopped the run, or None."""
        if self.finished and is_finished(self.folder, self.update, self.state.corpus):
            trained = f"{self.folder} is already trained for {self.update:,} updates"
            self.console.print(f"{trained}: its model is in {self.folder}/model")
            return None
        if self.finished:
            open_folder(self.folder, self.state.config, self.corpus.tokenizer_file)
        elif signal := self.fit():
            return signal
        if is_first_process():
            deliver(self.config, self.corpus, self.console)
        return None

    def fit(self) -> int:
        """Make the remaining updates; return the number of the signal that stopped them, or 0."""
        config, size, checkpoint = self.config, self.state.vocabulary_size, self.checkpoint
        needed, sources = (x.source_vocabulary_size or size for x in (self.corpus, config.model))
        require(
            needed == sources,
            f"model.source_vocabulary_size={sources}: must be {needed} for this corpus",
        )
        max_seconds, updates = (
            Timer(config.trainer.max_time).time_remaining(),
            UpdateDataModule(self.corpus, config),
        )
        metrics = MetricsCallback(self.state.config, ProgressLine(self.console, max_seconds))
        validation = Validation(self.corpus, config, metrics)
        saver = CheckpointCallback(config.checkpoints, self.state, validation, max_seconds)
        warm_up = WarmUp(config, size, updates.planner, saver, self.console)
        memory_check = MemoryCheck(config, updates.planner, metrics)
        replan = Replan(config, updates.planner, metrics)
        # Lightning calls them in this order: an update is reported and validated before it is saved.
        started = LambdaCallback(on_train_start=saver.catch_signals)
        callbacks = [warm_up, started, memory_check, replan, metrics, validation, saver]
        with quiet_lightning():
            trainer = make_trainer(config, callbacks)
            trainer.accumulate_grad_batches = accumulation(
                config.batching.micro_batches, trainer.world_size
            )
            check_launcher(config.trainer.num_nodes)
            self.prepare_device(trainer.strategy.root_device, trainer.accumulate_grad_batches)
            losses = training_losses(config)
            reduction = config.trainer.reduction
            module = TranslationModule(
                config.model, config.optim, size, config.seed, losses, reduction
            )
            if module.has_fixed_order(trainer):
                compat.without_ddp_wrapper(trainer)
            if self.initial and not checkpoint:
                module.model.load_state_dict(model.load_model(self.initial).state_dict())
            # Opened only now, so that a rejected configuration leaves nothing behind.
            open_folder(self.folder, self.state.config, self.corpus.tokenizer_file)
            if trainer.is_global_zero:
                self.greet(module, updates, devices_in_words(trainer))
            try:
                with watched(trainer):
                    trainer.fit(module, updates, ckpt_path=checkpoint, weights_only=True)
                    if (
                        dist.is_initialized()
                    ):  # leaving before all processes get here would break their communication
                        dist.gather_object(
                            None, [None] * trainer.world_size if trainer.is_global_zero else None
                        )
                        dist.destroy_process_group()
            except SystemExit as error:
                # Lightning raises this on a second interrupt, which must not wait for the update to finish.
                raise KeyboardInterrupt from error
            except Exception as error:
                explained = isinstance(error, NMTError) or is_out_of_memory(error)
                if explained or checkpoint is None or metrics.batch is not None:
                    raise
                raise NMTError(
                    f"{checkpoint}: the run cannot resume from it ({one_line(error)})"
                ) from error
            finally:
                metrics.close()
                saver.restore_handlers()
        return saver.stopped_by

    def prepare_device(self, device: torch.device, micro_batches: int) -> None:
        """Choose deterministic kernels on a GPU; print a notice if it would be slower than need be."""
        if device.type != "cuda":
            if (
                which("nvidia-smi")
                and not torch.cuda.is_available()
                and self.config.trainer.accelerator == "auto"
            ):
                self.notice(
                    f"this machine has a GPU, but torch {torch.__version__} cannot use it; install torch for CUDA "
                    "(docs/guides/clusters.md), or pass trainer.accelerator=cpu"
                )
            return
        if self.config.trainer.deterministic in (None, True):
            kernels.use_deterministic_kernels(True)
        batching = self.config.batching
        tokens = batching.tokens_per_update // batching.micro_batches
        if micro_batches > 1 and tokens < ENOUGH_TOKENS:
            devices = batching.micro_batches // micro_batches
            self.notice(
                f"each GPU computes {micro_batches} micro-batches of {tokens:,} tokens, one after another; "
                f"batching.micro_batches={devices} makes updates faster (with name=OTHER if the run has begun)"
            )

    def notice(self, text: str) -> None:
        if is_first_process():
            self.console.print(f"notice: {text}")

    def greet(self, module: TranslationModule, updates: UpdateDataModule, devices: str) -> None:
        update, warmup = self.update, module.optim.warmup
        parameters = sum(parameter.numel() for parameter in module.parameters())
        per_pass = updates.planner.micro_batches_per_pass / updates.planner.micro_batches
        parts = [f"{name} {share:.1%}" for name, share in updates.shares().items()]
        chosen = f"trainer.precision={self.config.trainer.precision}"
        if self.config.trainer.compile:
            chosen += " trainer.compile=true"
        self.console.print(
            f"training {parameters:,} parameters on {devices} ({chosen}) with {len(updates.split):,} pairs"
            f"{f' from update {update:,}' if update else ''} to update {self.config.trainer.max_steps:,}; "
            f"a pass over the corpus takes {per_pass:,.{0 if per_pass >= 10 else 1}f} updates, and the learning rate "
            f"rises to {module.learning_rate(warmup):.2g} at update {warmup:,}"
            f"{'; shares of sentences: ' if parts else ''}{', '.join(parts)}"
        )
        exports = exports_in_words(self.config, self.state.vocabulary_size)
        if exports:
            self.console.print(exports)
