"""What a model already knows: its training corpus to train on again, and its held-out sets."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt import data
from nmt.config import NMTError
from nmt.files import ModelDescription
from nmt.text import SOURCE, TARGET, Pair, Tokenizer

MOST_PAIRS = 50_000
"""The largest number of pairs to train on again; a short training does not use more."""


@dataclass(frozen=True)
class GeneralSet:
    """Pairs that the corrections do not come from."""

    sources: list[str]
    references: list[str]

    def beginning(self, lines: int) -> "GeneralSet":
        return GeneralSet(self.sources[:lines], self.references[:lines])


@dataclass(frozen=True)
class Replay:
    """A prepared corpus with the vocabulary of a model."""

    corpus: data.PreparedCorpus
    valid: GeneralSet
    test: GeneralSet


def open_replay(model: Path, description: ModelDescription, replay: str | None) -> Replay:
    """The corpus that a model was trained on, or the corpus `replay`.

    Raises NMTError if it is missing, has another vocabulary, or lacks held-out sets.
    """
    advice = "pass replay=FOLDER, a corpus that `nmt preprocess init=RUN` prepared"
    try:
        # A given corpus need not be the one that the model was trained on.
        record = {} if replay else description.training
        corpus = data.corpus_of(model, record, replay)
    except NMTError as error:
        raise NMTError(f"{str(error).partition('; ')[0]}; {advice}") from error
    if corpus.manifest.tokenizer != description.tokenizer:
        raise NMTError(f"{corpus.folder}: has another vocabulary than {model}; {advice}")
    sets = list[GeneralSet]()
    for name in ("valid", "test"):
        if not corpus.manifest.counts.get(name, {}).get("kept"):
            problem = f"{corpus.folder}: has no {name} set, which shows what the model forgets"
            raise NMTError(f"{problem}; {advice}")
        sets.append(GeneralSet(*corpus.text(name)))
    return Replay(corpus, *sets)


def replayed_pairs(replay: Replay, tokenizer: Tokenizer, most: int, seed: int) -> list[Pair]:
    """A sample of the training pairs as text.

    The prepared corpus has subwords; vocabularies spell every text that nmt has cleaned.
    """
    split = replay.corpus.split("train")
    size = min(most, MOST_PAIRS, len(split))
    rows = np.sort(np.random.default_rng(seed).permutation(len(split))[:size])
    sources, targets = split.rows(rows)
    pairs = list[Pair]()
    for source_ids, target_ids in zip(sources.to_pylist(), targets.to_pylist(), strict=True):
        source = " ".join(tokenizer.decode(source_ids, SOURCE).split())
        target = " ".join(tokenizer.decode(target_ids, TARGET).split())
        if source and target:
            pairs.append((source, target))
    return pairs
