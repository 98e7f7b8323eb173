"""The text that a model learns from: new corrections, earlier ones, and general text."""

from collections.abc import Sequence
from pathlib import Path

from nmt.plugins.learn.division import Division
from nmt.plugins.learn.reading import Correction
from nmt.plugins.learn.replay import GeneralSet, Replay, replayed_pairs
from nmt.plugins.learn.store import Store
from nmt.plugins.learn.training import TOKENS_PER_UPDATE, Course, write_pairs
from nmt.text import TARGET, Pair, Tokenizer

REPLAYED_LINES_PER_TOKEN = 1 / 8
"""The lines of general text to write for each token of all updates; lines are longer than 8."""
VALIDATION_LINES = 300
"""The lines of general validation text that choose the strength."""


def pairs_in(corrections: Sequence[Correction]) -> list[Pair]:
    return [(item.source, item.target) for item in corrections]


def count_tokens(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> int:
    """The number of subwords of all sources or of all targets, whichever is larger."""
    sources = tokenizer.encode([tokenizer.clean(source) for source, _ in pairs])
    targets = [tokenizer.clean(target, TARGET) for _, target in pairs]
    target_ids = tokenizer.encode(targets, TARGET)
    return max(sum(map(len, sources)), sum(map(len, target_ids)))


def validation_of(replay: Replay) -> GeneralSet:
    """The general text that validates the training and chooses the strength."""
    return replay.valid.beginning(VALIDATION_LINES)


def learned_pairs(store: Store, *names: str) -> list[Pair]:
    """The corrections in files of the commands that led to the model in use."""
    pairs = list[Pair]()
    for record, is_part in store.history():
        if not is_part:
            continue
        for name in names:
            path = store.home / str(record.number) / name
            for line in path.read_text(encoding="utf-8").splitlines():
                source, target, *_ = line.split("\t")
                pairs.append((source, target))
    return pairs


def has_news(store: Store, usable: Sequence[Correction]) -> bool:
    """Whether the model in use has not been trained or tested on all these corrections."""
    learned = {*learned_pairs(store, "training.tsv", "tuning.tsv", "held-out.tsv")}
    return any(pair not in learned for pair in pairs_in(usable))


def earlier_corrections(store: Store, training: Sequence[Pair]) -> list[Pair]:
    """The corrections that the model in use has learned before, unless they are here again."""
    sources = {source for source, _ in training}
    earlier = learned_pairs(store, "training.tsv")
    return [pair for pair in earlier if pair[0] not in sources]


def write_texts(
    folder: Path,
    division: Division,
    store: Store,
    replay: Replay,
    tokenizer: Tokenizer,
    course: Course,
    languages: tuple[str, str],
) -> None:
    """Write the texts to train and validate on into an attempt's folder."""
    training = pairs_in(division.training)
    write_pairs(folder / "training", languages, training)
    lines = round(course.updates * TOKENS_PER_UPDATE * REPLAYED_LINES_PER_TOKEN)
    general = replayed_pairs(replay, tokenizer, lines, course.seed)
    known = [*general, *earlier_corrections(store, training)]
    write_pairs(folder / "replay", languages, known)
    valid = validation_of(replay)
    validation = pairs_in(division.tuning)
    validation += zip(valid.sources, valid.references, strict=True)
    write_pairs(folder / "valid", languages, validation)
