"""`nmt train`: train on a prepared corpus, optionally starting from a model (`init`)."""

from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import torch
import torch.distributed as dist
from lightning import Callback, Trainer
from lightning.pytorch.callbacks import LambdaCallback, Timer
from rich.console import Console

from nmt import compat, files, hardware, kernels, model
from nmt.config import ExperimentConfig, difference, languages_of, to_tree
from nmt.data import (
    TOKENIZER,
    Manifest,
    Planner,
    PreparedCorpus,
    UpdateDataModule,
    accumulation,
    decisive,
    open_corpus,
)
from nmt.errors import NMTError, SameForAll, how_to_install, is_out_of_memory, one_line
from nmt.training.automatic import settle_trainer
from nmt.training.checkpoints import RunState
from nmt.training.delivery import deliver
from nmt.training.exports import exports_in_words
from nmt.training.greeting import opening_line
from nmt.training.identity import corpus_hashes
from nmt.training.initial import initial_model, origin_of, seen_by_both
from nmt.training.launcher import check_launcher, is_first_process
from nmt.training.loss import training_losses
from nmt.training.machine import devices_in_words
from nmt.training.memory import MemoryCheck
from nmt.training.metrics import MetricsCallback
from nmt.training.module import TranslationModule
from nmt.training.progress import ProgressLine
from nmt.training.replan import Replan
from nmt.training.resumption import check_run
from nmt.training.run_folder import is_finished, open_folder
from nmt.training.saving import CheckpointCallback
from nmt.training.trainer import make_trainer, quiet_lightning
from nmt.training.validation import Validation
from nmt.training.warm_up import WarmUp
from nmt.training.watch import watched

ENOUGH_TOKENS = 12_500
"""With fewer tokens per micro-batch, a fast GPU waits for Python to start its kernels."""


def train(config: ExperimentConfig, console: Console) -> int | None:
    """Start or resume a run and average its checkpoints.

    Returns the number of the signal that stopped the run, or None.
    """
    # First, because the identity of a run names its precision and compilation, never `auto`.
    config = settle_trainer(config)
    # WandbLogger is created only when training starts, and would fail then.
    if "wandb" in config.logger and find_spec("wandb") is None:
        raise NMTError(f"logger=wandb: wandb is not installed; {how_to_install('wandb')}")
    folder = Path(config.prepared)
    busy = f"{folder}: `nmt preprocess` is replacing this corpus; wait until it finishes"
    # A shared lock: any number of runs may train on a corpus, but while they do, `nmt preprocess`,
    # which locks the same file for itself, cannot replace it.
    with files.locked_file(folder / TOKENIZER, False, busy):
        corpus = open_corpus(folder)
        check_corpus(corpus.manifest, config)
        if config.model.positions == "learned":
            check_lengths(corpus, config.model.max_positions)
        run = Path(config.run)
        # All processes of a training share the run folder; only the first takes its exclusive lock.
        with files.only_process(run, "run") if is_first_process() else nullcontext():
            return Training(config, corpus, console).run()


def check_corpus(manifest: Manifest, config: ExperimentConfig) -> None:
    """Raise NMTError if the corpus was prepared with different `data` or `tokenizer` options."""
    changed = difference(
        preparation_settings(manifest.content), preparation_settings(to_tree(config))
    )
    if changed:
        raise NMTError(
            f"{Path(config.prepared)} was prepared with a different configuration ({changed}): "
            "pass the same options to nmt train or prepare it again"
        )


def preparation_settings(tree: dict[str, Any]) -> dict[str, Any]:
    return {"data": decisive(tree["data"]), "tokenizer": tree["tokenizer"]}


def check_lengths(corpus: PreparedCorpus, max_positions: int) -> None:
    """Raise NMTError if a line exceeds the learned positions: training would fail hours later."""
    for name in ("train", "valid"):
        split = corpus.split(name)
        longest = max(split.source_lengths.max(), split.target_lengths.max())
        if longest > max_positions:
            raise SameForAll(
                f"a line of {name} has {longest} tokens, "
                f"more than model.max_positions={max_positions}"
            )


def check_source_vocabulary(config: ExperimentConfig, corpus: PreparedCorpus, size: int) -> None:
    """Raise NMTError if the model has another number of source embeddings than the corpus needs."""
    needed = corpus.source_vocabulary_size or size
    actual = config.model.source_vocabulary_size or size
    if needed != actual:
        raise NMTError(f"model.source_vocabulary_size={actual}: must be {needed} for this corpus")


def part_together(trainer: Trainer) -> None:
    """End training in all processes: leaving before all get here would break communication."""
    if dist.is_initialized():
        # Gathering waits for every process, as a barrier does. Only the process that collects
        # passes a list to fill.
        received = [None] * trainer.world_size if trainer.is_global_zero else None
        dist.gather_object(None, received)
        dist.destroy_process_group()


class Training:
    """One process's part in a training run."""

    def __init__(self, config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> None:
        self.config = config
        self.corpus = corpus
        self.console = console
        self.folder = Path(config.run)
        # Before the first tensor: these settings choose kernels and the size of their caches.
        kernels.prepare()
        kernels.forget_old_kernels()
        torch.set_float32_matmul_precision(config.float32_matmul_precision)
        manifest = corpus.manifest
        self.initial: Path | None = None
        init = ""
        origin = dict[str, str]()
        # The lengths and characters that the model was trained on, which translation compares with
        # its input. A model that is trained further has also seen those of `init`.
        seen = manifest.seen
        if config.init is not None:
            self.initial, record = initial_model(config, corpus)
            init = files.sha256(self.initial / "model.safetensors")
            origin = origin_of(config.init, record)
            seen = seen_by_both(record, seen)
        source, target = languages_of(config.data)
        # Everything that identifies the run. It is compared with the last checkpoint before a model
        # is built, so that a run that cannot resume ends early.
        self.state = RunState(
            config=to_tree(config),
            vocabulary_size=manifest.vocabulary_size,
            source=source,
            target=target,
            tokenizer=manifest.tokenizer,
            corpus=manifest.fingerprint,
            files=corpus_hashes(corpus),
            init=init,
            origin=origin,
            seen=seen,
            versions=hardware.versions(),
            environment={
                "processor": hardware.processor(),
                **kernels.environment_record(),
            },
        )
        resumption = check_run(config, corpus, self.state)
        self.checkpoint = resumption.checkpoint
        self.update = resumption.update
        self.finished = resumption.finished

    def run(self) -> int | None:
        """Make the remaining updates, then write the model.

        Returns the number of the signal that stopped the run, or None.
        """
        if self.finished and is_finished(self.folder, self.update, self.state.corpus):
            self.console.print(
                f"{self.folder} is already trained for {self.update:,} updates: "
                f"its model is in {self.folder}/model"
            )
            return None
        # Only the delivery is left: the model is missing, or is from before the run was extended.
        if self.finished:
            open_folder(self.folder, self.state.config, self.corpus.tokenizer_file)
        else:
            signal = self.fit()
            if signal:
                return signal
        if is_first_process():
            deliver(self.config, self.corpus, self.console)
        return None

    def fit(self) -> int:
        """Make the remaining updates; return the number of the signal that stopped them, or 0."""
        config = self.config
        check_source_vocabulary(config, self.corpus, self.state.vocabulary_size)
        # Lightning's Timer only parses trainer.max_time here; CheckpointCallback stops the run,
        # because Lightning's own limit would stop it in the middle of an update. None: no limit.
        max_seconds = Timer(config.trainer.max_time).time_remaining()
        updates = UpdateDataModule(self.corpus, config)
        planner = updates.planner
        if planner.unshared:
            gigabytes = planner.order_bytes / 1e9
            self.notice(f"each process plans in {gigabytes:.1f} GB of memory: {planner.unshared}")
        metrics = MetricsCallback(self.state.config, ProgressLine(self.console, max_seconds))
        validation = Validation(self.corpus, config, metrics)
        saver = CheckpointCallback(config.checkpoints, self.state, validation, max_seconds)
        callbacks = self.callbacks(planner, metrics, validation, saver)
        with quiet_lightning():
            trainer = make_trainer(config, callbacks)
            # Not an argument of the trainer, which alone knows how many devices `auto` means.
            trainer.accumulate_grad_batches = accumulation(
                config.batching.micro_batches, trainer.world_size
            )
            # Without a launcher, this process would wait forever for the other machines.
            check_launcher(config.trainer.num_nodes)
            self.prepare_device(trainer.strategy.root_device, trainer.accumulate_grad_batches)
            module = self.make_module(trainer)
            # Opened only now, so that a rejected configuration leaves nothing behind.
            open_folder(self.folder, self.state.config, self.corpus.tokenizer_file)
            if trainer.is_global_zero:
                self.greet(module, updates, devices_in_words(trainer))
            try:
                self.make_updates(trainer, module, updates)
            except SystemExit as error:
                # Lightning raises this on a second interrupt, which must not wait for the update to
                # finish.
                raise KeyboardInterrupt from error
            except Exception as error:
                is_explained = isinstance(error, NMTError) or is_out_of_memory(error)
                # After the first update, the checkpoint can no longer be the cause.
                has_updated = metrics.batch is not None
                if is_explained or self.checkpoint is None or has_updated:
                    raise
                raise NMTError(
                    f"{self.checkpoint}: the run cannot resume from it ({one_line(error)})"
                ) from error
            finally:
                metrics.close()
                saver.restore_handlers()
        return saver.stopped_by

    def callbacks(
        self,
        planner: Planner,
        metrics: MetricsCallback,
        validation: Validation,
        saver: CheckpointCallback,
    ) -> Sequence[Callback]:
        """All callbacks, in the order in which Lightning calls them.

        An update is reported and validated before it is saved, so that a checkpoint contains both.
        """
        # The order matters. WarmUp comes before signals are caught, so that Ctrl-C ends it at once,
        # and before the memory check, which runs what it compiled. Replan comes before the
        # callbacks whose time counts as the pause after an update, and before the checkpoints that
        # contain its changes.
        warm_up = WarmUp(self.config, self.state.vocabulary_size, planner, saver, self.console)
        start = LambdaCallback(on_train_start=saver.catch_signals)
        memory_check = MemoryCheck(self.config, planner)
        replan = Replan(self.config, planner, metrics)
        return [warm_up, start, memory_check, replan, metrics, validation, saver]

    def make_module(self, trainer: Trainer) -> TranslationModule:
        """The model to train, with the weights of `init` if the run starts from scratch."""
        config = self.config
        module = TranslationModule(
            config.model,
            config.optim,
            self.state.vocabulary_size,
            config.seed,
            training_losses(config),
            config.trainer.reduction,
        )
        # FixedOrderSum takes the place of DistributedDataParallel.
        if module.has_fixed_order(trainer):
            compat.without_ddp_wrapper(trainer)
        # A checkpoint contains the weights that `init` has become, so it takes precedence.
        if self.initial and not self.checkpoint:
            module.model.load_state_dict(model.load_model(self.initial).state_dict())
        return module

    def make_updates(
        self, trainer: Trainer, module: TranslationModule, updates: UpdateDataModule
    ) -> None:
        with watched(trainer):
            # weights_only: a checkpoint from another user must not be able to run code.
            trainer.fit(module, updates, ckpt_path=self.checkpoint, weights_only=True)
            # Within the watch: if a process dies now, the others would wait for it here forever.
            part_together(trainer)

    def prepare_device(self, device: torch.device, micro_batches: int) -> None:
        """Choose deterministic kernels on a GPU; print a notice if training is needlessly slow.

        `micro_batches` is the number of micro-batches that this device computes in an update.
        """
        if device.type != "cuda":
            # The driver installs nvidia-smi, so another build of torch could use a GPU here.
            has_gpu = which("nvidia-smi") is not None
            is_auto = self.config.trainer.accelerator == "auto"
            if has_gpu and is_auto and not torch.cuda.is_available():
                self.notice(
                    f"this machine has a GPU, but torch {torch.__version__} cannot use it; "
                    "install torch for CUDA (docs/guides/clusters.md), "
                    "or pass trainer.accelerator=cpu"
                )
            return
        # null means true here. Even true is set again: Lightning has set it already, but leaves
        # torch's filling of new tensors on.
        if self.config.trainer.deterministic in (None, True):
            kernels.use_deterministic_kernels(True)
        batching = self.config.batching
        tokens = batching.tokens_per_update // batching.micro_batches
        if micro_batches > 1 and tokens < ENOUGH_TOKENS:
            devices = batching.micro_batches // micro_batches
            self.notice(
                f"each GPU computes {micro_batches} micro-batches of {tokens:,} tokens, "
                f"one after another; batching.micro_batches={devices} makes updates faster "
                "(with name=OTHER if the run has begun)"
            )

    def notice(self, text: str) -> None:
        if is_first_process():
            self.console.print(f"notice: {text}")

    def greet(self, module: TranslationModule, updates: UpdateDataModule, devices: str) -> None:
        """Print what the run trains, and which programs its model can be exported to."""
        self.console.print(opening_line(self.config, module, updates, devices, self.update))
        # The model that training starts from has decided this.
        if self.config.init:
            return
        exports = exports_in_words(self.config, self.state.vocabulary_size)
        if exports:
            self.console.print(exports)
