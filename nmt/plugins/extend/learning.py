"""Learn subwords for text that a vocabulary spells in many pieces.

The subwords continue those of the vocabulary, as in byte-pair encoding (Sennrich et al. 2016): the
text is encoded with the vocabulary, and the most frequent pair of neighbors within words becomes a
subword, again and again.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from nmt.text import META, parse_sentencepiece

LONGEST_PIECE = 16
"""The maximum length of a subword in characters, as in sentencepiece."""
Word = list[str]
"""The pieces of a word."""


@dataclass
class NewPiece:
    """A subword that is added to a vocabulary."""

    text: str
    count: int
    """How often the text contains it."""
    parts: list[str]
    """The older pieces that it consists of; empty for a character that the vocabulary lacks."""


@dataclass
class Merges:
    """Counts pairs of neighboring pieces in words, and merges them."""

    words: list[Word]
    counts: list[int]
    """How often each word occurs."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Pair -> the numbers of words that may contain it."""
    queue: list[tuple[int, tuple[str, str]]] = field(default_factory=list)
    """Pairs by count, the most frequent first; counts may be out of date."""

    def __post_init__(self) -> None:
        for number in range(len(self.words)):
            self.count_pairs(number, 1)
        self.queue = [(-count, pair) for pair, count in self.pairs.items()]
        heapq.heapify(self.queue)

    def count_pairs(self, number: int, sign: int) -> set[tuple[str, str]]:
        """Add a word's pairs to the counts, or subtract them; returns the pairs."""
        word = self.words[number]
        pairs = list(pairwise(word))
        for pair in pairs:
            self.pairs[pair] += sign * self.counts[number]
            if sign > 0:
                self.places[pair].add(number)
        return set(pairs)

    def most_frequent(self) -> tuple[tuple[str, str], int]:
        """The most frequent pair and its count; a count of 0 if there is none."""
        while self.queue:
            count, pair = heapq.heappop(self.queue)
            if self.pairs[pair] == -count:
                return pair, -count
            # Merging other pairs has changed its count since.
            if self.pairs[pair] > 0:
                heapq.heappush(self.queue, (-self.pairs[pair], pair))
        return ("", ""), 0

    def merge(self, pair: tuple[str, str]) -> None:
        """Make each occurrence of a pair one piece."""
        changed = set[tuple[str, str]]()
        for number in sorted(self.places.pop(pair, ())):
            changed |= self.count_pairs(number, -1)
            self.words[number] = merged(self.words[number], pair)
            changed |= self.count_pairs(number, 1)
        for other in changed:
            if self.pairs[other] > 0:
                heapq.heappush(self.queue, (-self.pairs[other], other))


def merged(word: Word, pair: tuple[str, str]) -> Word:
    """A word in which each occurrence of a pair is one piece."""
    result = Word()
    place = 0
    while place < len(word):
        if tuple(word[place : place + 2]) == pair:
            result.append(pair[0] + pair[1])
            place += 2
        else:
            result.append(word[place])
            place += 1
    return result


def words_in(pieces: list[str]) -> Iterable[Word]:
    """Split the pieces of a line into words, which begin with META."""
    word = Word()
    for piece in pieces:
        if piece.startswith(META) and word:
            yield word
            word = Word()
        word.append(piece)
    if word:
        yield word


def lacking_characters(
    processor: Any, texts: list[str], excluded: set[str], least: int
) -> list[NewPiece]:
    """The characters of the texts that are not excluded, the most frequent first."""
    counts = Counter[str]()
    for text in texts:
        # As the model reads the text: its normalization may replace a character.
        counts.update(processor.normalize(text))
    lacking = []
    for character, count in counts.most_common():
        if count >= least and character not in excluded:
            lacking.append(NewPiece(character, count, []))
    return lacking


def learn_pieces(
    model: bytes, texts: list[str], entries: set[str], most: int, least: int
) -> list[NewPiece]:
    """The pieces to add to a sentencepiece model for the texts: characters, then subwords.

    `entries` are those of the vocabulary, including tags and symbols, which no text becomes. At
    most `most` subwords are added. Each added piece occurs at least `least` times.
    """
    import sentencepiece

    # Not the pieces that spell bytes of unknown characters.
    known = entries.intersection(normal_pieces(model))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    # sentencepiece refuses pieces with NUL, and META stands for a blank.
    new = lacking_characters(processor, texts, entries | {META, "\0"}, least)
    with_characters = extended_model(model, new)
    processor = sentencepiece.SentencePieceProcessor(model_proto=with_characters)
    usable = known | {piece.text for piece in new}
    counts = Counter[tuple[str, ...]]()
    for pieces in processor.encode(texts, out_type=str):
        counts.update(map(tuple, words_in(pieces)))
    # Sorted, because the order of equal counts decides which pair is merged first.
    words = sorted(counts)
    merges = Merges([list(word) for word in words], [counts[word] for word in words])
    added = 0
    while added < most:
        pair, count = merges.most_frequent()
        if count < max(least, 1):
            break
        merges.merge(pair)
        text = pair[0] + pair[1]
        # Pieces for bytes and for unknown characters are no parts of subwords.
        if not usable.issuperset(pair) or len(text) > LONGEST_PIECE:
            continue
        if text in usable or text in entries:
            continue
        usable.add(text)
        new.append(NewPiece(text, count, list(pair)))
        added += 1
    return new


def normal_pieces(model: bytes) -> set[str]:
    """The pieces of a sentencepiece model that are text."""
    tree = parse_sentencepiece(model)
    return {piece.piece for piece in tree.pieces if piece.type == piece.NORMAL}


def extended_model(model: bytes, pieces: list[NewPiece]) -> bytes:
    """A sentencepiece model with more pieces, which come last in its order."""
    tree = parse_sentencepiece(model)
    is_unigram = tree.trainer_spec.model_type == tree.trainer_spec.UNIGRAM
    lowest = min((piece.score for piece in tree.pieces), default=0.0)
    total = sum(piece.count for piece in pieces)
    for rank, piece in enumerate(pieces, 1):
        # In BPE, merges with higher scores come first, so old text is merged as before. In a
        # unigram model, scores are log probabilities.
        score = math.log(piece.count / total) if is_unigram else lowest - rank
        tree.pieces.add(piece=piece.text, score=score)
    content: bytes = tree.SerializeToString()
    return content
