"""Lines of which a memory has some sentences: their stretches, and how translations are joined."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.config import EOS
from nmt.plugins.memory.pairing import details_of_sentence
from nmt.text import SYMBOLS, blank_between, word_spans
from nmt.translation import Details, MemoryEntry, Translation


@dataclass
class Piece:
    """A stretch of a line."""

    begin: int
    """Where it begins in the line."""
    text: str
    entry: MemoryEntry | None
    """The entry of a sentence that is in the memory; None: the model translates the stretch."""


def join_pieces(
    pieces: Sequence[Piece], rows: Sequence[list[Translation]], align: bool
) -> list[Translation]:
    """The translations of a line, best first, from those of its pieces.

    `rows` are the translations of the pieces that the model translated. With `align`, the result
    has details; the words of sentences from the memory are paired by their places.
    """
    translations = list[Translation]()
    # Also one translation if all sentences are in the memory.
    for rank in range(max(map(len, rows), default=1)):
        remaining = iter(rows)
        parts = list[Translation]()
        for piece in pieces:
            if piece.entry:
                target = piece.entry.target
                details = details_of_sentence(piece.text, target)
                parts.append(Translation(target, 0.0, 0.0, details))
            else:
                row = next(remaining)
                # A piece with fewer translations repeats its last one.
                parts.append(row[min(rank, len(row) - 1)])
        translations.append(joined(pieces, parts, align))
    # With its own length penalty, a translation joined from second ones may rank higher.
    return sorted(translations, key=lambda translation: -translation.score)


def joined(pieces: Sequence[Piece], parts: Sequence[Translation], align: bool) -> Translation:
    """The translation of a line, given that of each piece."""
    result = Translation("", 0.0, 0.0)
    details = Details([], [], [], [])
    scores = list[float]()
    source_words = 0
    target_words = 0
    for piece, part in zip(pieces, parts, strict=True):
        separator = ""
        if result.text and part.text:
            separator = blank_between(result.text, part.text)
        result.text += separator + part.text
        result.log_probability += part.log_probability
        # As the log probability, without the sentences from the memory, which have no tokens.
        result.tokens += part.tokens
        result.copied += part.copied
        result.notes |= part.notes
        result.flags += part.flags
        if not piece.entry:
            scores.append(part.score)
        words = len(word_spans(part.text))
        add_details(details, part.details, (source_words, target_words), words)
        source_words += len(word_spans(piece.text))
        target_words += words
    # Lengths are unknown here, so the mean stands for the score of the line.
    result.score = sum(scores) / max(len(scores), 1)
    return replace(result, details=details if align else None)


def add_details(
    details: Details, part: Details | None, first_words: tuple[int, int], words: int
) -> None:
    """Add the details of a part, whose first words have these numbers in the line."""
    if part is None:
        details.word_log_probabilities += [None] * words
        return
    first_source, first_target = first_words
    for source, target in part.alignment:
        details.alignment.append((first_source + source, first_target + target))
    if details.tokens and part.tokens:
        details.tokens.append(SYMBOLS[EOS])  # as between segments
    details.tokens += part.tokens
    details.token_log_probabilities += part.token_log_probabilities
    details.word_log_probabilities += part.word_log_probabilities
