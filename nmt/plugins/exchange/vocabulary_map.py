"""CTranslate2's vocabulary map: the softmax over the likely tokens of a line, instead of the whole vocabulary.

vmap.txt has a line for each token of the source, a tab, and tokens of the target that may translate it; those of the
line without a token are always there. The candidates are the likeliest of IBM model 1, the token itself, and the most
frequent tokens; their number is doubled until the translations of a sample change little.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from nmt.config import UNK, DecodeConfig, require
from nmt.data import open_corpus
from nmt.errors import NMTError
from nmt.files import EXPORTED, MAP, read_description, read_tokenizer, within, write_file
from nmt.plugins.exchange.ctranslate2 import vocabularies
from nmt.plugins.exchange.ctranslate2_engine import MAP_BEAM, CTranslate2Engine
from nmt.plugins.exchange.word_translation import Tokens, Translations, word_translations
from nmt.text import SOURCE

PAIRS = 200_000
"""Pairs that the probabilities are learnt from, spread evenly over the corpus."""
FIRST, FREQUENT = 4, 64
"""Candidates of a token, and frequent tokens, that are tried first."""
SAMPLE = 1000
"""Lines of the validation set that are translated with and without the map."""
WORTHLESS = 0.5
"""Share of the vocabulary in a line's candidates from which on a search is not faster by them."""
Candidates = dict[int, NDArray[np.int64]]
"""Tokens of the target by those of the source; NULL has those that are always there."""
NULL = 0


def corpus_of(folder: Path) -> Path:
    """The prepared corpus that a model was trained on; NMTError where that is not there any more."""
    description = read_description(folder)
    prepared = within(description.training, "config", "prepared")
    require(isinstance(prepared, str), "vmap: the model does not say what it was trained on; leave vmap out")
    corpus = Path(str(prepared))
    if open_corpus(corpus).manifest.tokenizer != description.tokenizer:
        raise NMTError(f"vmap: {corpus} has another vocabulary than the model; prepare it again, or leave vmap out")
    return corpus


def learn(folder: Path, corpus: Path) -> tuple[Translations, NDArray[np.int64]]:
    """The probabilities of translations, NULL included, and how often each token of the target occurs."""
    split, size = open_corpus(corpus).split("train"), read_description(folder).vocabulary_size
    table = split.table[np.arange(0, len(split), max(1, -(-len(split) // PAIRS)))]
    source, target = (table.column(side).combine_chunks() for side in ("source", "target"))
    lengths, wanted = (side.value_lengths().to_numpy().astype(np.int64) for side in (source, target))
    starts = np.cumsum(lengths) - lengths
    sources = Tokens(np.insert(source.flatten().to_numpy().astype(np.int64), starts, NULL), lengths + 1)
    targets = Tokens(target.flatten().to_numpy().astype(np.int64), wanted)
    return word_translations(sources, targets, size), np.bincount(targets.ids, minlength=size)


def candidates(found: Translations, counts: NDArray[np.int64], each: int, frequent: int) -> Candidates:
    """The likeliest tokens for each token of the source, so many at most, and the most frequent ones for all."""
    order = np.lexsort((found.target, -found.probability, found.source))
    source, target = found.source[order], found.target[order]
    tokens, starts = np.unique(source, return_index=True)
    rows = dict(zip(tokens.tolist(), np.split(target, starts[1:]), strict=True))
    always = np.argsort(-counts, kind="stable")[:frequent]
    return {token: row[:each] for token, row in rows.items()} | {NULL: np.union1d(always, rows[NULL][:each])}


def render(found: Candidates, source_entries: Sequence[str], entries: Sequence[str]) -> str:
    """The content of vmap.txt; an entry with white space, which it cannot hold, is left out."""
    ids = {entry: number for number, entry in enumerate(entries)}
    lines = list[str]()
    for token, entry in enumerate(source_entries):
        own = [] if token == NULL or entry not in ids else [ids[entry]]  # a name may stay as it is
        names = [entries[other] for other in dict.fromkeys([*own, *found.get(token, np.zeros(0, int)).tolist()])]
        key = "" if token == NULL else entry
        if (token == NULL or token > UNK) and len(key.split()) <= 1 and names:
            lines.append(f"{key}\t{' '.join(name for name in names if len(name.split()) == 1)}\n")
    return "".join(lines)


def usual_count(found: Candidates, sentences: Sequence[list[int]]) -> float:
    """The mean number of candidates of a sentence."""
    nothing = np.zeros(0, np.int64)
    return float(
        np.mean([len(np.unique(np.concatenate([found.get(id, nothing) for id in {NULL, *ids}]))) for ids in sentences])
    )


def sample_of(folder: Path, corpus: Path) -> list[list[int]]:
    """The tokens of the first lines of the validation set; NMTError if there are none."""
    tokenizer = read_tokenizer(folder)
    lines = open_corpus(corpus).text("valid")[0][:SAMPLE]
    found = [ids for ids in tokenizer.encode([tokenizer.clean(line) for line in lines], SOURCE) if ids]
    require(bool(found), f"vmap: {corpus} has no validation set to try the map on; leave vmap out")
    return found


def best_tokens(output: Path, decode: DecodeConfig, sentences: Sequence[list[int]]) -> list[list[int]]:
    """The translation of each sentence by itself: in a batch, they would share their candidates."""
    engine = CTranslate2Engine(output, replace(decode, batch_tokens=1), scores=False)
    engine.map_beam = decode.beam_size * (output / MAP).is_file()
    return [row[0].tokens for row in engine.search(sentences, [[]] * len(sentences))]


def note_beam(file: Path, size: int) -> None:
    """Write the largest beam that the map is for into the model's description."""
    content = json.loads(file.read_text(encoding="utf-8"))
    content["training"][MAP_BEAM] = size
    write_file(file, json.dumps(content, indent=2) + "\n")


def write_map(folder: Path, output: Path, corpus: Path, share: float, decode: DecodeConfig) -> str:
    """Write the map of a model that was exported without one; returns what it came to.

    At most that share of a sample's lines has another translation. Raises NMTError where the corpus is not there.
    """
    with TemporaryDirectory() as scratch:  # after a kill, no map is left that was not tried to its end
        trial = Path(shutil.copytree(output, Path(scratch) / "trial"))
        content, told = find_map(folder, trial, corpus, share, decode)
    if content is None:
        return f"no vmap: it saves no time where {told}; a larger share, or a larger vocabulary, would"
    write_file(output / MAP, content)
    note_beam(output / EXPORTED, decode.beam_size)
    return f"{output / MAP}: {told}"


def find_map(folder: Path, trial: Path, corpus: Path, share: float, decode: DecodeConfig) -> tuple[str | None, str]:
    """The smallest map that changes few enough lines, tried in a folder of its own, and how many; None for none."""
    found, counts = learn(folder, corpus)
    sentences, entries = sample_of(folder, corpus), vocabularies(read_tokenizer(folder))
    expected = best_tokens(trial, decode, sentences)
    each, frequent, size = FIRST, FREQUENT, len(counts)
    while True:
        rows = candidates(found, counts, each, frequent)
        content, usual = render(rows, *entries), usual_count(rows, sentences)
        write_file(trial / MAP, content)
        changed = sum(map(ne, best_tokens(trial, decode, sentences), expected))
        told = (
            f"{usual:,.0f} of {size:,} tokens are candidates of a line, and {changed:,} of "
            f"{len(sentences):,} lines of {corpus}, valid, change ({changed / len(sentences):.2%})"
        )
        if usual > WORTHLESS * size:
            return None, told
        if changed <= share * len(sentences):
            return content, told
        each, frequent = 2 * each, 2 * frequent
