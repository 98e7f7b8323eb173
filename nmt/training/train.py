"""`nmt train`: from a prepared corpus, and possibly a trained model (`init`), to an averaged model directory."""

import gc
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch.callbacks import Timer
from rich.console import Console

from nmt.config import ExperimentConfig, difference, require, to_tree
from nmt.data import TOKENIZER, PreparedCorpus, UpdateDataModule, accumulation, open_corpus, read_manifest
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.files import (
    ModelDescription,
    architecture,
    check_direction,
    find_model_directory,
    is_exported,
    load_model,
    locked_file,
    only_process,
    read_description,
    remove_leftovers,
    sha256,
    weights_in_words,
    within,
    write_file,
)
from nmt.hardware import versions
from nmt.kernels import forget_old_kernels, keep_freed_memory
from nmt.search import TorchEngine
from nmt.text import load_tokenizer
from nmt.training.averaging import check_skipped, delivered_model, write_average
from nmt.training.callbacks import GradientCheck
from nmt.training.checkpoints import CheckpointCallback, Resumed, RunState, check_run, decisive_files
from nmt.training.metrics import MetricsCallback, ProgressLine
from nmt.training.module import TranslationModule
from nmt.training.processes import is_first_process
from nmt.training.run_folder import (
    averaged_update,
    check_corpus,
    check_installed,
    latest_beside,
    point_latest_to,
    remove_older,
)
from nmt.training.trainer import end_launched_processes, leave_process_group, make_trainer, quiet_lightning, watched
from nmt.training.trials import BeforeTraining, check_positions, settle_micro_batches, settle_precision
from nmt.training.validation import Validation, joint_score, translated
from nmt.translation import Translator

SIDES, LENGTHS, SEARCH = ("source", "target"), ("p99", "max"), ("length_penalty", "length_penalty_kind")


def train(config: ExperimentConfig, console: Console) -> int | None:
    """Train the run of `config`, or resume it, and average its last checkpoints at the end.

    Returns the number of the signal that stopped it early, or None.
    """
    check_installed(config.logger)
    keep_freed_memory()
    forget_old_kernels()
    torch.set_float32_matmul_precision(config.float32_matmul_precision)
    folder, run = Path(config.prepared), Path(config.run)
    with locked_file(
        folder / TOKENIZER, False, f"{folder}: `nmt preprocess` is replacing this corpus; wait for its end"
    ):
        corpus = open_corpus(folder)
        check_corpus(corpus.manifest, config)
        check_positions(corpus, config.model)
        if config.trainer.precision == "auto":
            config = settle_precision(config, console)
        if config.batching.max_tokens is not None:
            config = replace(config, batching=settle_micro_batches(config, corpus))
            gc.collect()  # the trial's model and trainer refer to each other, and would keep the device's memory
        with only_process(run, "run") if is_first_process() else nullcontext():
            return train_on(config, corpus, console)


def train_on(config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> int | None:
    """Train from where the run in that folder stopped."""
    run, max_steps = Path(config.run), config.trainer.max_steps
    assert max_steps is not None
    initial, files = find_initial(config, corpus), decisive_files(corpus)
    resumed = check_run(run, config, corpus, initial.weights if initial else "", files)
    if not initial and resumed.checkpoint is None and "init" in corpus.manifest.content:
        console.print(f"notice: {corpus.folder} has a model's vocabulary, but without init=MODEL weights are random")
    for path in resumed.unreadable:
        console.print(f"{path} cannot be read, and is left aside: the run resumes from {resumed.checkpoint}")
    if resumed.finished and averaged_update(run, corpus.manifest.fingerprint) == resumed.update:
        if is_first_process():
            point_latest_to(run)
        console.print(f"{run} is already trained for {resumed.update:,} updates: its model is in {run / 'model'}")
        return None
    if resumed.update > max_steps:
        console.print(
            f"{run} was trained for {resumed.update:,} updates, more than trainer.max_steps={max_steps:,}: "
            "its model is averaged as it stands"
        )
    if resumed.finished:
        open_run(config, corpus, resumed)
    elif signal := fit(config, corpus, state_of(config, corpus, files, initial), resumed, initial, console):
        return signal
    finish(config, corpus, console)
    return None


@dataclass
class Initial:
    """The model that a training starts from."""

    folder: Path
    description: ModelDescription
    weights: str
    """SHA-256 of its weights."""

    def seen_with(self, seen: dict[str, Any]) -> dict[str, Any]:
        """Its search, and the lengths and characters of its training pairs and of `seen`, where both have them."""
        both = [self.description.training, seen]
        characters = {side: [within(training, "characters", side) for training in both] for side in SIDES}
        lengths = {(side, key): [within(x, "lengths", side, key) for x in both] for side in SIDES for key in LENGTHS}
        joint = {key: value for key in SEARCH if (value := self.description.training.get(key)) is not None}
        if all(isinstance(text, str) for texts in characters.values() for text in texts):
            joint["characters"] = {side: "".join(sorted(set("".join(texts)))) for side, texts in characters.items()}
        if all(isinstance(length, int) for pair in lengths.values() for length in pair):
            joint["lengths"] = {side: {key: max(lengths[side, key]) for key in LENGTHS} for side in SIDES}
        return joint


def find_initial(config: ExperimentConfig, corpus: PreparedCorpus) -> Initial | None:
    """The model of `config.init`, or None; NMTError where vocabulary, shape or direction are not those of the run."""
    if config.init is None:
        return None
    where, folder = f"init={config.init}", find_model_directory(config.init, "init")
    description = read_description(folder)
    if is_exported(folder):
        raise NMTError(f"{where}: exported for another program; name the run, or its model directory")
    if description.tokenizer != corpus.manifest.tokenizer:
        raise NMTError(
            f"{where} has another vocabulary than {corpus.folder}: prepare the corpus with it, "
            f"`nmt preprocess init={config.init} ...`"
        )
    check_direction(where, description, corpus.source_language, corpus.target_language)
    if changed := difference(architecture(description.model), architecture(asdict(config.model))):
        raise NMTError(f"{where} is another model ({changed}): leave model out")
    return Initial(folder, description, sha256(folder / "model.safetensors"))


def open_run(config: ExperimentConfig, corpus: PreparedCorpus, resumed: Resumed) -> None:
    """Write the run's configuration and tokenizer, and put aside what a killed process or a full disk has left."""
    run = Path(config.run)
    try:
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        if is_first_process():
            latest_beside(run)
            write_file(run / "config.yaml", yaml.safe_dump(to_tree(config), sort_keys=False, allow_unicode=True))
            write_file(run / TOKENIZER, corpus.tokenizer_file.read_bytes())
            for path in resumed.unreadable:
                path.replace(path.with_suffix(".unreadable"))
            remove_leftovers(run)
            remove_leftovers(run / "checkpoints")
    except OSError as error:
        raise NMTError(f"cannot write the run directory {run} ({error.strerror}): pass run=FOLDER elsewhere") from error


def state_of(
    config: ExperimentConfig, corpus: PreparedCorpus, files: dict[str, str], initial: Initial | None
) -> RunState:
    """What checkpoints say of a run that begins."""
    manifest = corpus.manifest
    return RunState(
        config=to_tree(config),
        vocabulary_size=manifest.vocabulary_size,
        source=corpus.source_language,
        target=corpus.target_language,
        tokenizer=manifest.tokenizer,
        corpus=manifest.fingerprint,
        files=files,
        init=initial.weights if initial else "",
        seen=initial.seen_with(manifest.seen) if initial else manifest.seen,
        versions=versions(),
    )


def fit(
    config: ExperimentConfig,
    corpus: PreparedCorpus,
    state: RunState,
    resumed: Resumed,
    initial: Initial | None,
    console: Console,
) -> int:
    """Make the remaining updates; returns the number of the signal that stopped them early, or 0."""
    vocabulary_size, run = state.vocabulary_size, Path(config.run)
    sources = corpus.source_vocabulary_size or vocabulary_size
    fits = sources == (config.model.source_vocabulary_size or vocabulary_size)
    require(fits, f"the corpus needs model.source_vocabulary_size={sources}")
    max_seconds = Timer(config.trainer.max_time).time_remaining()
    updates = UpdateDataModule(corpus, config)
    domains = [domain.name for domain in corpus.domains("valid", config.data)]
    line = ProgressLine(console, max_seconds)
    metrics = MetricsCallback(state.config, line, updates, domains if len(domains) > 1 else [])
    validation = Validation(corpus, config, metrics)
    saver = CheckpointCallback(config.checkpoints, state, validation, max_seconds)
    # Lightning calls them in this order: an update is checked, reported and validated before it is saved.
    callbacks = [
        BeforeTraining(updates.planner, config.batching, validation.try_largest, console, max_seconds),
        GradientCheck(run, updates, config.trainer.log_every_n_steps),
        metrics,
        validation,
        saver,
    ]
    micro_batches = config.batching.micro_batches
    with quiet_lightning():
        trainer = make_trainer(config, callbacks)
        trainer.accumulate_grad_batches = accumulation(micro_batches, trainer.world_size)
        module = TranslationModule(config.model, config.optim, vocabulary_size, config.seed, micro_batches)
        if initial and not resumed.checkpoint:
            module.model.load_state_dict(load_model(initial.folder).state_dict())
        open_run(config, corpus, resumed)  # not before now, so that a refused configuration leaves nothing behind
        if trainer.is_global_zero:
            console.print(greeting(module, updates, trainer.max_steps, resumed.update))
            for source in updates.sources:
                if source.start >= trainer.max_steps:
                    console.print(
                        f"notice: data.sources: {source.name} starts at update {source.start:,}, but training ends at "
                        f"trainer.max_steps={trainer.max_steps:,}: it sees no pair of {source.name}"
                    )
        try:
            with watched(trainer):
                trainer.fit(module, updates, ckpt_path=resumed.checkpoint, weights_only=True)
                leave_process_group()
        except SystemExit as error:
            # Lightning's answer to a second interrupt, which must not wait for the end of the update.
            raise KeyboardInterrupt from error
        except Exception as error:
            end_launched_processes(trainer)
            explained = isinstance(error, NMTError) or is_out_of_memory(error)
            if explained or resumed.checkpoint is None or metrics.batch is not None:
                raise
            raise NMTError(f"{resumed.checkpoint}: a run cannot resume from it ({one_line(error)})") from error
        finally:
            metrics.close()
            saver.restore_handlers()
    return saver.stopped_by


def greeting(module: TranslationModule, updates: UpdateDataModule, max_steps: int, update: int) -> str:
    """One line about the training that begins."""
    parameters = sum(parameter.numel() for parameter in module.parameters())
    per_pass = updates.planner.micro_batches_per_pass / updates.planner.micro_batches
    start = f"from update {update:,} " if update else ""
    parts = [f"{name} {share:.1%}" for name, share in updates.shares(update).items() if share]
    mixture = f"; of the sentences, {', '.join(parts)}" if parts else ""
    return (
        f"training {parameters:,} parameters on {len(updates.split):,} pairs {start}to update {max_steps:,}; "
        f"a pass over the corpus is {per_pass:,.{0 if per_pass >= 10 else 1}f} updates, and the learning rate rises to "
        f"{module.learning_rate(module.optim.warmup):.2g} at update {module.optim.warmup:,}{mixture}"
    )


def finish(config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> None:
    """Write the model directory, scored on the validation set, and point `latest` to the run."""
    if not is_first_process():
        return
    require(
        read_manifest(corpus.folder).fingerprint == corpus.manifest.fingerprint,
        f"{corpus.folder} is no longer the corpus that this run trains on: put it back, and the same command writes "
        "the model",
    )
    run = Path(config.run)
    remove_older(run, config.checkpoints)
    gc.collect()  # the trained model is part of reference cycles, which would keep its memory
    device = make_trainer(config).strategy.root_device
    average = delivered_model(run, config.checkpoints, corpus.split("valid"), device)
    check_skipped(average, run)
    console.print(f"the model is the {weights_in_words(average.updates, average.losses)}")
    scored, sentences = None, config.validation.bleu_sentences
    if sentences != 0:
        average.model.to(device)
        translator = Translator(TorchEngine([average.model], config.decode), load_tokenizer(run / TOKENIZER))
        domains = corpus.domains("valid", config.data)
        score = joint_score(corpus, translated(translator, corpus, domains, sentences), config.validation.tokenize)
        average.model.cpu()
        scored = score, sum(len(domain.rows[:sentences]) for domain in domains)
        console.print(f"validation {score.name} {score.value:.2f} on {scored[1]:,} sentences, `{score.signature}`")
    write_average(average, run / TOKENIZER, run / "model", scored)
    console.print(f"the model is in {run / 'model'}")
    if scored and scored[0].value == 0 and (run.parent / "latest" / "model").is_dir():
        console.print(f"notice: {run.parent / 'latest'} still points to the run before it, because this model scored 0")
    else:
        point_latest_to(run)
    max_steps = config.trainer.max_steps
    if max_steps is not None and average.made < max_steps and config.trainer.max_time is not None:
        console.print(
            f"stopped by trainer.max_time at update {average.made:,} of {max_steps:,}; the same command resumes there"
        )
