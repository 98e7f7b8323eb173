"""Train a model on corrections, mixed with what it was trained on before.

The result is a line of models between the old weights and the trained ones (Wortsman et al. 2022,
https://arxiv.org/abs/2109.01903): the strength chooses how far to go. Weights in between forget
less and need no further training.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from nmt import commands, files, preparation
from nmt.config import literal, set_text, set_value
from nmt.files import (
    ModelDescription,
    find_model_directory,
    model_card,
    read_description,
    write_file,
)
from nmt.model import Transformer, load_model, write_model_directory
from nmt.text import Pair

FEWEST_UPDATES = 60
MOST_UPDATES = 1500
TOKENS_PER_UPDATE = 2000
GENTLE = 0.5
"""Factor for the learning rate of experiment=adapt, with which a small model forgets much."""
WARMUP_PART = 10
"""The warm-up takes 1 / WARMUP_PART of the updates."""
STRENGTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
RECORDED_BY_TRAINING = ("lengths", "characters")
"""Entries of a training record about the text that a model has seen."""
OUTDATED = ("score", "candidates")
"""Entries of a training record about the weights before."""


@dataclass(frozen=True)
class Course:
    """What to train on and for how long."""

    updates: int
    share: float
    """The share of the corrections in the sentences of each update."""
    seed: int
    learning_rate: float | None


def updates_for(tokens: int, passes: float, share: float) -> int:
    """The number of updates that see each correction about `passes` times.

    `tokens` is the number of subwords on the longer side of all corrections.
    """
    updates = math.ceil(passes * tokens / (share * TOKENS_PER_UPDATE))
    return max(FEWEST_UPDATES, min(MOST_UPDATES, updates))


def write_pairs(prefix: Path, languages: tuple[str, str], pairs: Sequence[Pair]) -> None:
    """Write parallel files, PREFIX.en and PREFIX.de."""
    for side, language in enumerate(languages):
        content = "".join(f"{pair[side]}\n" for pair in pairs)
        write_file(prefix.with_name(f"{prefix.name}.{language}"), content)


def fine_tune(folder: Path, parent: Path, languages: tuple[str, str], course: Course) -> Path:
    """Train in `folder`, which has the files of pairs; returns the folder of the trained model.

    A run that was interrupted resumes. Raises KeyboardInterrupt if training was stopped.
    """
    corpus = folder / "corpus"
    prepared = commands.compose(
        "preprocess", options_of_mixture(folder, corpus, parent, languages, course)
    )
    # Its notices are for people who can choose the text or the vocabulary.
    with without_notices():
        preparation.preprocess(prepared, lambda words: None)
    run = folder / "run"
    words = [
        str(corpus),
        set_text("init", literal(str(parent))),
        "experiment=adapt",
        "name=learned",
        set_text("run", literal(str(run))),
        f"seed={course.seed}",
        f"trainer.max_steps={course.updates}",
        f"optim.warmup={max(1, course.updates // WARMUP_PART)}",
        f"batching.tokens_per_update={TOKENS_PER_UPDATE}",
        # The strength is chosen later, on other text, so all updates count.
        "checkpoints.average=all",
        "checkpoints.keep=1",
        f"checkpoints.every_steps={course.updates}",
        f"validation.every_steps={course.updates}",
        "validation.bleu_sentences=0",
        "logger=[]",
    ]
    if course.learning_rate is None:
        words.append(f"optim.factor={GENTLE}")
    else:
        words.append(f"optim.learning_rate={course.learning_rate}")
    training = commands.compose("train", words)
    stopped = commands.COMMANDS["train"].run(training)
    if stopped:
        raise KeyboardInterrupt
    return find_model_directory(str(run))


def options_of_mixture(
    folder: Path, corpus: Path, parent: Path, languages: tuple[str, str], course: Course
) -> list[str]:
    """The words of `nmt preprocess` for the mixture of corrections and general text."""
    source, target = languages
    mixture = [
        {"name": "corrections", "train": str(folder / "training"), "share": course.share},
        {"name": "replay", "train": str(folder / "replay")},
    ]
    return [
        "data=files",
        "data.name=corrections",
        set_text("data.source", literal(source)),
        set_text("data.target", literal(target)),
        set_text("data.valid", [literal(str(folder / "valid"))]),
        set_value("data.sources", literal(mixture)),
        "data.test_size=0",
        set_text("init", literal(str(parent))),
        set_text("prepared", literal(str(corpus))),
    ]


@contextmanager
def without_notices() -> Iterator[None]:
    """Keep nmt from logging notices."""
    logger = logging.getLogger("nmt")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def between(parent: Transformer, trained: Transformer, strength: float) -> Transformer:
    """The model whose weights are the parent's at strength 0 and the trained ones at 1."""
    weights = {}
    new = trained.state_dict()
    for name, old in parent.state_dict().items():
        # The difference is rounded once; strength 1 gives the trained weights themselves.
        weights[name] = new[name] if strength == 1 else torch.lerp(old, new[name], strength)
    model = Transformer(parent.config, parent.vocabulary_size)
    model.load_state_dict(weights)
    return model.eval()


def write_candidates(parent: Path, trained: Path, folder: Path) -> dict[float, Path]:
    """Write a model directory for each strength."""
    old = load_model(parent)
    new = load_model(trained)
    description = description_of(parent, trained)
    candidates = {}
    for strength in STRENGTHS:
        model = between(old, new, strength)
        path = folder / f"strength-{strength:g}"
        parameters = sum(parameter.numel() for parameter in model.parameters())
        learned = {
            "learned": {"strength": strength, "parent": files.sha256(parent / "model.safetensors")}
        }
        described = replace(description, training={**description.training, **learned})
        card = model_card(described, parameters)
        write_model_directory(path, model, parent / "tokenizer.model", described, card)
        candidates[strength] = path
    return candidates


def description_of(parent: Path, trained: Path) -> ModelDescription:
    """The parent's description, with the text that the trained model has seen as well.

    Still the parent's corpus: it has the test set, and the next `nmt learn` trains on it again.
    """
    description = read_description(parent)
    seen = read_description(trained).training
    training = {key: value for key, value in description.training.items() if key not in OUTDATED}
    for key in RECORDED_BY_TRAINING:
        if key in training and key in seen:
            training[key] = seen[key]
    training["init"] = files.sha256(parent / "model.safetensors")
    return replace(description, training=training)
