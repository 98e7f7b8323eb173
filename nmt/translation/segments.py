"""Lines cut into segments for a model: sentences, parts of long sentences, and stretches that are copied."""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from nmt.errors import NMTError
from nmt.files import ModelDescription, is_parser, positions, within
from nmt.search import Hypothesis
from nmt.text import Tokenizer, split_sentences

TAG = re.compile(r"</?[^\W\d_][^<>]*>")
"""A tag of markup, unlike `a < b`."""

LOOK_ALIKES = dict(zip("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014", "''\"\"----", strict=True))
"""What a model knows in place of typographic quotes and dashes that it does not know."""


@dataclass
class Limits:
    """Where lines are cut, and the known characters; None: no limit."""

    split: bool = False
    """Lines are translated sentence by sentence."""
    longest: int | None = None
    """With `split`, a sentence with more tokens is translated in parts."""
    positions: int | None = None
    """The model has positions for this many tokens."""
    language: str = ""
    """Language of the lines, whose rules split them into sentences."""
    characters: frozenset[str] | None = None
    """Characters of the training sources; words with other characters are copied."""
    target: str = ""
    """Language of the translations."""

    @cached_property
    def look_alikes(self) -> dict[int, str]:
        """What is written in place of unknown quotes and dashes."""
        known = self.characters
        return {ord(a): b for a, b in LOOK_ALIKES.items() if known is not None and a not in known and b in known}


def numbers(descriptions: list[ModelDescription], *keys: str) -> list[int]:
    """The positive numbers that the trainings of these models recorded under these keys."""
    found = [within(description.training, *keys) for description in descriptions]
    return [number for number in found if type(number) is int and number > 0]


def limits(descriptions: list[ModelDescription], split: bool) -> Limits:
    """The limits of a model, or those that all models of an ensemble keep."""
    ends = [end for end in map(positions, descriptions) if end]
    most = numbers(descriptions, "lengths", "source", "max")
    most = most or numbers(descriptions, "config", "data", "filters", "max_tokens")
    return Limits(
        split,
        min([*most, *ends], default=None) if split else None,
        min(ends, default=None),
        descriptions[0].source,
        known_characters(descriptions),
        descriptions[0].target,
    )


def known_characters(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The characters that the sources of all these models held; None if that is not known, and for parsers."""
    known = [within(description.training, "characters", "source") for description in descriptions]
    if any(map(is_parser, descriptions)) or not all(isinstance(found, str) for found in known):
        return None
    return frozenset(" ").union(frozenset.intersection(*map(frozenset, known)))


@dataclass
class Segment:
    """A line, or a stretch of it, that is translated as one or copied."""

    ids: list[int]
    """Its tokens; none if it is copied."""
    text: str
    start: int = 0
    """Index in the clean line of the first character of `text`."""
    skipped: int = 0
    """For a part of a sentence, the number of tokens of `text` before it."""
    prefixed: int = 0
    """For a part of a sentence, the number of tokens of the source prefix at its beginning."""
    copied: bool = False
    glued: bool = False
    """There is no blank before it."""
    part: int = 0
    """The number of tokens of the whole sentence in `text`, for a part of it."""


class RefusedLine(NMTError):
    """The line at `index`, counted from 0, is too long for the model, or has a tag that it does not have."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index, self.problem = index, problem

    def __str__(self) -> str:
        return f"line {self.index + 1}: {self.problem}"


def in_word(character: str) -> bool:
    """True for a letter of a script with capitals, and for an accent on one: these form words.

    Scripts with capitals put blanks between words. In other scripts, characters are looked at one by one.
    """
    return character.lower() != character.upper() or unicodedata.combining(character) > 0


def unknown_words(line: str, known: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Spans of words with unknown characters, and of unknown characters outside of words."""
    for is_word, group in groupby(range(len(line)), lambda index: in_word(line[index])):
        indices = list(group)
        begin, end = indices[0], indices[-1] + 1
        if not is_word:
            yield from ((index, index + 1) for index in indices if line[index] not in known)
        elif not known.issuperset(line[begin:end]):
            yield begin, end


def unknown_spans(line: str, known: frozenset[str]) -> list[tuple[int, int]]:
    """Spans to copy, in order: tags, words and characters that are not known.

    Spans are joined if there is neither letter nor digit between them, and extended to an end of the line likewise.
    """
    if known.issuperset(line):
        return []
    tags = [found.span() for found in TAG.finditer(line) if not known.issuperset(found[0])]
    merged, last = list[tuple[int, int]](), 0
    for begin, end in sorted([*tags, *unknown_words(line, known)]):
        if not any(map(str.isalnum, line[last:begin])):
            begin = merged.pop()[0] if merged else 0
        last = max(last, end)
        merged.append((begin, last))
    if not any(map(str.isalnum, line[last:])):
        merged[-1] = (merged[-1][0], len(line))
    return merged


def stretch(line: str, begin: int, end: int, copied: bool) -> Iterator[Segment]:
    """The segment of a stretch of a clean line; none if it is blank."""
    text = line[begin:end].strip()
    if text:
        begin += line[begin:end].index(text)
        yield Segment([], text, begin, copied=copied, glued=begin > 0 and line[begin - 1] != " ")


class Segmenter:
    """Cuts lines into segments by the limits of a model."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits, source_prefix: str) -> None:
        self.tokenizer, self.limits, self.source_prefix = tokenizer, limits, source_prefix
        self.prefix = tokenizer.encode([tokenizer.clean(source_prefix)])[0]

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Tokens of texts, each after the prefix; none for a blank text."""
        clean = self.tokenizer.clean
        return self.tokenizer.encode([clean(self.source_prefix + text) if text.strip() else "" for text in texts])

    def segment(self, lines: list[str]) -> list[list[Segment]]:
        """The segments of each line, none for an empty one."""
        rows = [list(self.stretches(line)) for line in lines]
        translated = [stretch for row in rows for stretch in row if not stretch.copied]
        for stretch, ids in zip(translated, self.encode([stretch.text for stretch in translated]), strict=True):
            stretch.ids = ids
        return [[part for each in row if each.ids or each.copied for part in self.sentences(each)] for row in rows]

    def too_long(self, segments: list[Segment]) -> str:
        """Why the model has no positions for a line, if so."""
        positions = self.limits.positions
        if positions is None:
            return ""
        longest = max((len(segment.ids) for segment in segments), default=0)
        if longest <= positions:
            return ""
        return (
            f"{longest:,} tokens and an end symbol are more than the model has positions for "
            f"(model.max_positions={positions + 1}); split=auto translates such lines sentence by sentence"
        )

    def stretches(self, line: str) -> Iterator[Segment]:
        """The stretches of a line that are copied and those between them, or the whole line; not encoded yet."""
        cleaned = self.tokenizer.clean(line)
        copied = unknown_spans(cleaned, self.limits.characters) if self.limits.characters is not None else []
        if not copied:
            yield Segment([], line)
            return
        last = 0
        for span in copied:
            yield from stretch(cleaned, last, span[0], copied=False)
            yield from stretch(cleaned, *span, copied=True)
            last = span[1]
        yield from stretch(cleaned, last, len(cleaned), copied=False)

    def sentences(self, segment: Segment) -> list[Segment]:
        """The sentences of a segment, or parts of those that are too long."""
        if not self.limits.split:
            return [segment]
        longest, cleaned = self.limits.longest or math.inf, self.tokenizer.clean(segment.text)
        sentences = split_sentences(cleaned, self.limits.language)
        if len(sentences) == 1 and len(segment.ids) <= longest:
            return [segment]
        segments, start = list[Segment](), 0
        for sentence, ids in zip(sentences, self.encode(sentences), strict=True):
            start = cleaned.index(sentence, start)
            whole = Segment(ids, sentence, segment.start + start)
            segments += [whole] if len(ids) <= longest else self.parts(whole, int(longest))
            start += len(sentence)
        segments[0].glued = segment.glued
        return segments

    def parts(self, sentence: Segment, longest: int) -> list[Segment]:
        """The fewest parts of at most `longest` tokens, all about equal, of a sentence that is too long."""
        [ids] = self.tokenizer.encode([self.tokenizer.clean(sentence.text)])
        count = -(-len(ids) // (longest - len(self.prefix)))
        length = -(-len(ids) // count)
        return [
            Segment(
                self.prefix + ids[at : at + length], sentence.text, sentence.start, at, len(self.prefix), part=len(ids)
            )
            for at in range(0, len(ids), length)
        ]


@dataclass
class JoinedText:
    """The text of a line's translation, joined from the translations of its segments."""

    text: str
    tokens: list[list[int]] = field(default_factory=list)
    """For each segment, the tokens that became text."""
    first_words: list[int] = field(default_factory=list)
    """For each segment, the index of its first word in the text."""


NOUNS_WITH_CAPITALS = ("de", "lb")
"""Languages in which a capital does not say that a sentence begins."""


def without_capital(words: str) -> str:
    """The translation of words from the middle of a sentence, without the capital of a sentence's beginning."""
    first = words.split(" ", 1)[0]
    return words[0].lower() + words[1:] if len(first) > 1 and first[1:].islower() else words


def join(
    tokenizer: Tokenizer,
    segments: list[Segment],
    parts: list[Hypothesis],
    prefix: Sequence[int],
    language: str = "",
) -> JoinedText:
    """Join the translations of a line's segments, each of which begins with `prefix`; the text has the prefix once.

    Behind a copied segment, a source in small letters keeps them in the translation into `language`, if that is known.
    """
    keeps_capitals = not language or language.split("-")[0] in NOUNS_WITH_CAPITALS
    if len(segments) == 1 and not segments[0].copied:
        return JoinedText(text(tokenizer, parts[0].tokens), [parts[0].tokens], [0])
    copied_first = bool(segments) and segments[0].copied
    joined, skipped = JoinedText(text(tokenizer, prefix) if copied_first else ""), len(prefix) if copied_first else 0
    count, blank, behind_copy = len(joined.text.split()), False, False
    for segment, part in zip(segments, parts, strict=True):
        tokens = part.tokens[skipped:]
        skipped = len(prefix)
        words = segment.text if segment.copied else text(tokenizer, tokens)
        if behind_copy and words and not (segment.copied or keeps_capitals) and segment.text[:1].islower():
            words = without_capital(words)
        behind_copy = segment.copied
        # After an empty translation the next one still needs the blank. Without one, its first word continues the last.
        blank = bool(joined.text) and (blank or not segment.glued)
        goes_on = bool(joined.text) and bool(words) and not blank
        joined.tokens.append(tokens)
        joined.first_words.append(count - goes_on)
        if words:
            joined.text += " " * blank + words
            count += len(words.split()) - goes_on
            blank = False
    return joined


def text(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """The text of tokens on one line: bytes that spell a line end must not end it, as line i translates line i."""
    return " ".join(tokenizer.decode(tokens).split())
