"""Lines cut into segments: sentences of a long line, and stretches between characters that can only be copied."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from nmt.errors import NMTError
from nmt.search.engine import Hypothesis
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.limits import Limits

TAG = re.compile(r"</?[^\W\d_][^<>]*>")
"""A tag of markup, unlike `a < b`."""
Item = TypeVar("Item")


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
    cut_from: int = 0
    """The number of tokens of the longer segment that it is cut from, if any."""


class LongLine(NMTError):
    """The model has no positions for the line at `index`, counted from 0."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index, self.problem = index, problem

    def __str__(self) -> str:
        return f"line {self.index + 1}: {self.problem}"


def equal_parts(ids: list[int], longest: int) -> Iterator[list[int]]:
    """Cut `ids` into the fewest parts of at most `longest`, all about equal."""
    length = -(-len(ids) // -(-len(ids) // longest))
    yield from (ids[begin : begin + length] for begin in range(0, len(ids), length))


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


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a line, by the rules of its language or general ones."""
    import sentencex

    return [sentence for sentence in sentencex.segment(language, text) if sentence.strip()]


class Segmenter:
    """Cuts lines into segments by the limits of a model."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits, source_prefix: str) -> None:
        self.tokenizer, self.limits, self.source_prefix = tokenizer, limits, source_prefix
        self.prefix = tokenizer.encode([clean(source_prefix)])[0]

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Tokens of texts, each after the prefix; none for a blank text."""
        return self.tokenizer.encode([clean(self.source_prefix + text) if text.strip() else "" for text in texts])

    def segment(self, lines: list[str]) -> list[list[Segment]]:
        """The segments of each line, none for an empty one; LongLine if the model has no positions for one."""
        segments = [self.of_line(line, ids) for line, ids in zip(lines, self.encode(lines), strict=True)]
        positions = self.limits.positions
        for index, line in enumerate(segments):
            longest = max((len(segment.ids) for segment in line), default=0)
            if positions is not None and longest > positions:
                raise LongLine(
                    index,
                    f"{longest:,} tokens and an end symbol are more than the model has positions for "
                    f"(model.max_positions={positions + 1}); split=auto translates such lines sentence by sentence",
                )
        return segments

    def of_line(self, line: str, ids: list[int]) -> list[Segment]:
        if not ids:
            return []
        known, cleaned = self.limits.characters, clean(line)
        copied = unknown_spans(cleaned, known) if known is not None else []
        if not copied:
            return self.sentences(Segment(ids, line), cleaned)
        segments, last = list[Segment](), 0
        for begin, end in [*copied, (len(cleaned), len(cleaned))]:
            segments += self.stretch(cleaned, last, begin, copied=False)
            segments += self.stretch(cleaned, begin, end, copied=True)
            last = end
        return segments

    def stretch(self, line: str, begin: int, end: int, copied: bool) -> list[Segment]:
        """The segments of a stretch of a clean line; none if it is blank."""
        text = line[begin:end].strip()
        if not text:
            return []
        begin += line[begin:end].index(text)
        segment = Segment([], text, begin, copied=copied, glued=begin > 0 and line[begin - 1] != " ")
        if copied:
            return [segment]
        [segment.ids] = self.encode([text])
        return self.sentences(segment, text)

    def sentences(self, segment: Segment, cleaned: str) -> list[Segment]:
        """A segment, or its sentences if it is too long, or parts of the sentences that are still too long."""
        longest, usual = self.limits.longest, self.limits.usual
        if longest is None or len(segment.ids) <= (longest if usual is None else usual):
            return [segment]
        sentences = split_sentences(cleaned, self.limits.language)
        if len(sentences) == 1 and len(segment.ids) <= longest:
            return [segment]
        segments, start = list[Segment](), 0
        for sentence, ids in zip(sentences, self.encode(sentences), strict=True):
            start = cleaned.index(sentence, start)
            whole = Segment(ids, sentence, segment.start + start)
            segments += [whole] if len(ids) <= longest else self.parts(whole, longest)
            start += len(sentence)
        segments[0].glued = segment.glued
        for part in segments:
            part.cut_from = len(segment.ids)
        return segments

    def parts(self, sentence: Segment, longest: int) -> list[Segment]:
        """Parts of a sentence that is too long, of at most `longest` tokens each, with the prefix."""
        prefix, parts, skipped = self.prefix, list[Segment](), 0
        [ids] = self.tokenizer.encode([clean(sentence.text)])
        for part in equal_parts(ids, longest - len(prefix)):
            parts.append(Segment(prefix + part, sentence.text, sentence.start, skipped, len(prefix)))
            skipped += len(part)
        return parts


@dataclass
class JoinedText:
    """The text of a line's translation, joined from the translations of its segments."""

    text: str
    tokens: list[list[int]] = field(default_factory=list)
    """For each segment, the tokens that became text."""
    first_words: list[int] = field(default_factory=list)
    """For each segment, the index of its first word in the text."""


def join(tokenizer: Tokenizer, segments: list[Segment], parts: list[Hypothesis], prefix: Sequence[int]) -> JoinedText:
    """Join the translations of a line's segments, each of which begins with `prefix`; the text has the prefix once."""
    copied_first = bool(segments) and segments[0].copied
    joined, skipped = JoinedText(text(tokenizer, prefix) if copied_first else ""), len(prefix) if copied_first else 0
    count, blank = len(joined.text.split()), False
    for segment, part in zip(segments, parts, strict=True):
        tokens = part.tokens[skipped:]
        skipped = len(prefix)
        words = segment.text if segment.copied else text(tokenizer, tokens)
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


def nth_of_each(lists: list[list[Item]]) -> Iterator[list[Item]]:
    """The first of each list, the second of each, ...; a shorter list repeats its last. Without lists, [] once."""
    for n in range(max(map(len, lists), default=1)):
        yield [items[min(n, len(items) - 1)] for items in lists]
