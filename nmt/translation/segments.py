"""What is translated at once: a line, its sentences where it is long, the stretches between what can only be copied."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nmt.errors import NMTError
from nmt.search.engine import Hypothesis
from nmt.text.sentences import split_sentences
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.limits import Limits

TAG = re.compile(r"</?[^\W\d_][^<>]*>")
"""Of markup; `a < b` is none."""


@dataclass
class Piece:
    """Tokens that are translated at once: those of a line, or of a stretch of it; or a stretch that is copied."""

    ids: list[int]
    text: str
    start: int = 0
    """The character of the clean line that `text` begins at."""
    skipped: int = 0
    """Tokens of `text` before these ones."""
    prefixed: int = 0
    """Tokens of the source prefix that stand before those of a part of `text`."""
    copied: bool = False
    glued: bool = False
    """No blank stands before it."""
    of: int = 0
    """Tokens of what it was cut from, where those were too many."""


class LongLine(NMTError):
    """A line that the model has no positions for; `place` is counted from 0."""

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(f"line {place + 1}: {problem}")
        self.place, self.problem = place, problem


def equal_parts(ids: list[int], longest: int) -> Iterator[list[int]]:
    """All of `ids`, in as few parts of at most `longest` as can be."""
    length = -(-len(ids) // -(-len(ids) // longest))
    yield from (ids[begin : begin + length] for begin in range(0, len(ids), length))


def of_a_word(character: str) -> bool:
    """Whether a character is a part of the word around it: a letter of a script with capitals, which all have blanks.

    Scripts without blanks have words that cannot be told, and none of those is cased.
    """
    return character.lower() != character.upper() or unicodedata.combining(character) > 0


def unseen(line: str, known: frozenset[str]) -> list[tuple[int, int]]:
    """Where characters stand that are not known, in order: whole tags, whole words, or the characters themselves.

    What has neither letter nor digit between two of them, or between one and an end of the line, goes with them.
    """
    if known.issuperset(line):
        return []
    tags = [found.span() for found in TAG.finditer(line) if not known.issuperset(found[0])]
    merged, last = list[tuple[int, int]](), 0
    for begin, end in sorted([*tags, *unseen_words(line, known)]):
        if not any(map(str.isalnum, line[last:begin])):
            begin = merged.pop()[0] if merged else 0
        last = max(last, end)
        merged.append((begin, last))
    if not any(map(str.isalnum, line[last:])):
        merged[-1] = (merged[-1][0], len(line))
    return merged


def unseen_words(line: str, known: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where words of characters stand that are not all known, or such characters outside of words."""
    end = 0
    for place, character in enumerate(line):
        if place < end or character in known:
            continue
        begin, end = place, place + 1
        if of_a_word(character):
            while begin > 0 and of_a_word(line[begin - 1]):
                begin -= 1
            while end < len(line) and of_a_word(line[end]):
                end += 1
        yield begin, end


class Cutter:
    """Cuts lines into pieces by the limits of a model. `language` is that of the sentences."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits, source_prefix: str, language: str) -> None:
        self.tokenizer, self.limits, self.source_prefix, self.language = tokenizer, limits, source_prefix, language
        self.prefix = tokenizer.encode([clean(source_prefix)])[0]

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Tokens of texts behind the prefix; none of a blank one."""
        return self.tokenizer.encode([clean(self.source_prefix + text) if text.strip() else "" for text in texts])

    def cut(self, lines: list[str]) -> list[list[Piece]]:
        """The pieces of each line, none of an empty one; LongLine where one is longer than the model's positions."""
        pieces = []
        for place, (line, ids) in enumerate(zip(lines, self.encode(lines), strict=True)):
            try:
                pieces.append(self.pieces(line, ids))
            except LongLine as error:
                raise LongLine(place, error.problem) from error
        return pieces

    def pieces(self, line: str, ids: list[int]) -> list[Piece]:
        if not ids:
            return []
        known = self.limits.characters
        cleaned = clean(line)
        copied = unseen(cleaned, known) if known is not None else []
        if not copied:
            return self.sentences(Piece(ids, line), cleaned)
        found, last = list[Piece](), 0
        for begin, end in [*copied, (len(cleaned), len(cleaned))]:
            for stretch, is_copied in (((last, begin), False), ((begin, end), True)):
                found += self.stretch(cleaned, *stretch, is_copied)
            last = end
        return found

    def stretch(self, line: str, begin: int, end: int, copied: bool) -> list[Piece]:
        """The pieces of a stretch of a clean line; none where that is blank."""
        text = line[begin:end].strip()
        if not text:
            return []
        begin += line[begin:end].index(text)
        piece = Piece([], text, begin, copied=copied, glued=begin > 0 and line[begin - 1] != " ")
        if copied:
            return [piece]
        [piece.ids] = self.encode([text])
        return self.sentences(piece, text)

    def sentences(self, piece: Piece, cleaned: str) -> list[Piece]:
        """A piece, or its sentences where it is too long; parts of those that are too long themselves."""
        limits = self.limits
        if limits.longest is None:
            if limits.positions is not None and len(piece.ids) > limits.positions:
                raise LongLine(
                    0,
                    f"{len(piece.ids):,} tokens and an end symbol are more than the model has positions for "
                    f"(model.max_positions={limits.positions + 1}); split=auto translates such lines in pieces",
                )
            return [piece]
        if len(piece.ids) <= (limits.longest if limits.usual is None else limits.usual):
            return [piece]
        sentences = split_sentences(cleaned, self.language)
        if len(sentences) == 1 and len(piece.ids) <= limits.longest:
            return [piece]
        found, start = list[Piece](), 0
        for sentence, ids in zip(sentences, self.encode(sentences), strict=True):
            start = cleaned.index(sentence, start)
            whole = Piece(ids, sentence, piece.start + start)
            found += [whole] if len(ids) <= limits.longest else self.parts(whole, limits.longest)
            start += len(sentence)
        found[0].glued = piece.glued
        for part in found:
            part.of = len(piece.ids)
        return found

    def parts(self, piece: Piece, longest: int) -> list[Piece]:
        """A sentence that is too long itself, in parts of at most `longest` tokens, behind the prefix each."""
        prefix, parts, skipped = self.prefix, list[Piece](), 0
        [ids] = self.tokenizer.encode([clean(piece.text)])
        for part in equal_parts(ids, longest - len(prefix)):
            parts.append(Piece(prefix + part, piece.text, piece.start, skipped, len(prefix)))
            skipped += len(part)
        return parts


@dataclass
class Told:
    """A translation that is made of pieces: its text, and of each piece the tokens it tells and its first word."""

    text: str = ""
    tokens: list[list[int]] = field(default_factory=list)
    first_words: list[int] = field(default_factory=list)
    words: int = 0
    blank: bool = False

    def add(self, text: str, tokens: list[int], glued: bool) -> None:
        """A text goes on with the word before it where it is glued to that."""
        self.blank = bool(self.text) and (self.blank or not glued)
        joins = bool(self.text) and not self.blank and bool(text)
        self.tokens.append(tokens)
        self.first_words.append(self.words - joins)
        if text:
            self.text += " " * self.blank + text
            self.words += len(text.split()) - joins
            self.blank = False


def tell(tokenizer: Tokenizer, pieces: list[Piece], parts: list[Hypothesis], prefix: Sequence[int]) -> Told:
    """The translation of a line from hypotheses of its pieces, which begin with `prefix` each: it does so once."""
    copied_first = bool(pieces) and pieces[0].copied
    opening = text(tokenizer, prefix) if copied_first else ""
    told, skipped = Told(opening, words=len(opening.split())), len(prefix) if copied_first else 0
    for piece, part in zip(pieces, parts, strict=True):
        tokens = part.tokens[skipped:]
        told.add(piece.text if piece.copied else text(tokenizer, tokens), tokens, piece.glued)
        skipped = len(prefix)
    return told


def text(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """What tokens say, on one line: bytes that spell a line end must not become one, as line i answers line i."""
    return " ".join(tokenizer.decode(tokens).split())
