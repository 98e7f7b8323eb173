"""The model directory that a run delivers."""

import gc
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import evaluation, search, text, translation
from nmt.config import ExperimentConfig
from nmt.data import TOKENIZER, PreparedCorpus
from nmt.errors import NMTError
from nmt.files import ModelDescription, is_part_of_another, model_card, sha256, weights_in_words
from nmt.model import Transformer, write_model_directory
from nmt.training.averaging import Average, delivered_model
from nmt.training.run_folder import latest_link, point_latest_to, prune
from nmt.training.scoring import joint_score, translated
from nmt.training.trainer import make_trainer


@dataclass
class ValidationScore:
    """The score of a model on the validation set."""

    score: evaluation.Score
    sentences: int
    """The number of sentences scored."""


def describe(average: Average, validation: ValidationScore | None = None) -> ModelDescription:
    """The description of an average, with its score if it has one."""
    state = average.state
    # In the order of the keys in config.json.
    training: dict[str, Any] = {
        "updates": average.made,
        "averaged": average.updates,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "devices": state.devices,
        "versions": state.versions,
        "corpus": state.corpus,
        "config": state.config,
        **state.seen,
        **state.origin,
    }
    if state.init:
        training["init"] = state.init
    if average.losses:
        training["candidates"] = average.losses
    if validation:
        training["score"] = {**asdict(validation.score), "sentences": validation.sentences}
    return ModelDescription(
        model=state.config["model"],
        vocabulary_size=state.vocabulary_size,
        source=state.source,
        target=state.target,
        tokenizer=state.tokenizer,
        training=training,
    )


def write_average(
    average: Average,
    run: Path,
    output: Path,
    validation: ValidationScore | None = None,
) -> str:
    """Write an average as a model directory, and return a notice for the user, or an empty string.

    Exports of an older model in that directory are removed with it. Raises NMTError if the
    tokenizer in the run folder is missing or is not the one used in training.
    """
    tokenizer = run / TOKENIZER
    # With another vocabulary, the model would translate into fluent nonsense without any error.
    if not tokenizer.is_file() or sha256(tokenizer) != average.state.tokenizer:
        raise NMTError(
            f"{tokenizer}: missing, or not the tokenizer that the checkpoints were trained with"
        )
    description = describe(average, validation)
    model = average.make_model()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    card = model_card(description, parameters)
    # Listed before the directory is replaced. Each export is a folder in the directory.
    entries = output.iterdir() if output.is_dir() else []
    exports = sorted(path.name for path in entries if path.is_dir())
    write_model_directory(output, model, tokenizer, description, card)
    if not exports:
        return ""
    return (
        f"; removed exports of the previous model: {', '.join(exports)} "
        "(`nmt export` writes new ones)"
    )


def moved_link(run: Path) -> str:
    """Point the run's link `latest` to the run; return a message about the result.

    The folder of the link may belong to another user. A run that is part of another run stays
    unmentioned: no user asked for it.
    """
    if is_part_of_another(run):
        return ""
    try:
        return f"; {point_latest_to(run)} now leads to {run}"
    except OSError as error:
        return f"; {latest_link(run)} stays as it is ({error.strerror})"


def validation_score(
    model: Transformer, config: ExperimentConfig, corpus: PreparedCorpus
) -> ValidationScore:
    """The score of a model for the first validation.bleu_sentences of each domain."""
    # PyTorch, as in validation during training, so that the two scores are comparable.
    engine = search.TorchEngine([model], config.decode)
    tokenizer = text.load_tokenizer(Path(config.run) / TOKENIZER)
    translator = translation.Translator(engine, tokenizer)
    domains = corpus.domains("valid", config.data)
    texts = translated(translator, corpus, domains, config.validation.bleu_sentences)
    score = joint_score(corpus, texts, config.validation.tokenize)
    sentences = sum(len(domain.references) for domain in texts)
    return ValidationScore(score, sentences)


def deliver(config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> None:
    """Score the model on the validation set, write its directory, and point `latest` to the run."""
    run = Path(config.run)
    # There are too many checkpoints if a process was killed between a save and its pruning, or if
    # checkpoints.keep has changed.
    prune(run, config.checkpoints)
    gc.collect()  # reference cycles would otherwise keep the trained model in memory
    # The trainer of the run is gone, but candidates are validated on the same kind of device.
    device = make_trainer(config).strategy.root_device
    average = delivered_model(run, config.checkpoints, corpus.split("valid"), device)
    console.print(f"the model is the {weights_in_words(average.updates, average.losses)}")
    validation = None
    if config.validation.bleu_sentences != 0:
        validation = validation_score(average.make_model().to(device), config, corpus)
        score = validation.score
        console.print(
            f"validation {score.name} {score.value:.2f} on {validation.sentences:,} sentences, "
            f"`{score.signature}`"
        )
    removed = write_average(average, run, run / "model", validation)
    console.print(f"the model is in {run / 'model'}{moved_link(run)}{removed}")
    # A time limit may have changed the number that the user planned.
    planned = average.state.config["trainer"]["max_steps"]
    if average.made < planned and config.trainer.max_time is not None:
        console.print(
            f"stopped by trainer.max_time at update {average.made:,} of {planned:,}; "
            "the same command resumes from there"
        )
