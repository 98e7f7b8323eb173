"""Lines cut into segments for a model: sentences, parts of long sentences, and stretches that are copied."""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from nmt.files import ModelDescription, is_parser, positions, within
from nmt.search import Hypothesis
from nmt.text import Tokenizer, split_sentences
from nmt.translation.stages import Line

TAG = re.compile(r"</?[^\W\d_][^<>]*>")
"""A tag of markup, unlike `a < b`."""


@dataclass(frozen=True)
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


def positive_numbers(descriptions: list[ModelDescription], *keys: str) -> list[int]:
    """The positive numbers that the trainings of these models recorded under these keys."""
    values = [within(description.training, *keys) for description in descriptions]
    return [number for number in values if type(number) is int and number > 0]


def limits(descriptions: list[ModelDescription], split: bool) -> Limits:
    """The limits of a model, or those that all models of an ensemble keep."""
    ends = [end for end in map(positions, descriptions) if end]
    most = positive_numbers(descriptions, "lengths", "source", "max")
    most = most or positive_numbers(descriptions, "config", "data", "filters", "max_tokens")
    texts = [within(description.training, "characters", "source") for description in descriptions]
    characters = None
    if all(isinstance(text, str) for text in texts) and not any(map(is_parser, descriptions)):
        characters = frozenset(" ").union(frozenset.intersection(*map(frozenset, texts)))
    return Limits(
        split,
        min([*most, *ends], default=None) if split else None,
        min(ends, default=None),
        descriptions[0].source,
        characters,
        descriptions[0].target,
    )


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


def in_word(character: str) -> bool:
    """True for a letter of a script with capitals, and for an accent on one: these form words.

    Scripts with capitals put blanks between words. In other scripts, characters are looked at one by one.
    """
    return character.lower() != character.upper() or unicodedata.combining(character) > 0


def spans_with(characters: set[str], line: str) -> Iterator[tuple[int, int]]:
    """Spans of tags and words that hold one of these characters, and of such characters outside of words."""
    yield from (tag.span() for tag in TAG.finditer(line) if not characters.isdisjoint(tag[0]))
    for is_word, group in groupby(range(len(line)), lambda index: in_word(line[index])):
        indices = list(group)
        begin, end = indices[0], indices[-1] + 1
        if not is_word:
            yield from ((index, index + 1) for index in indices if line[index] in characters)
        elif not characters.isdisjoint(line[begin:end]):
            yield begin, end


def copied_spans(
    line: str, known: frozenset[str] | None, cut_at: frozenset[str] = frozenset()
) -> list[tuple[int, int]]:
    """Spans to copy, in order: tags, words and characters that the model does not know, or at which the line is cut.

    Spans are joined if there is neither letter nor digit between them, and extended to an end of the line likewise.
    """
    unknown = {
        character for character in set(line) if character in cut_at or (known is not None and character not in known)
    }
    if not unknown:
        return []
    merged, last = list[tuple[int, int]](), 0
    for begin, end in sorted(spans_with(unknown, line)):
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
    """Cuts lines into segments by the limits of a model; lines without a tag of their own get the source prefix."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits, source_prefix: str = "") -> None:
        self.tokenizer, self.limits, self.source_prefix = tokenizer, limits, source_prefix
        self.prefix_tokens = cache(lambda prefix: tokenizer.encode([tokenizer.clean(prefix)])[0])

    def prefix(self, line: Line) -> str:
        return line.tag or self.source_prefix

    def encode(self, texts: list[tuple[str, str]]) -> list[list[int]]:
        """Tokens of texts, each after its prefix; none for a blank text."""
        clean = self.tokenizer.clean
        return self.tokenizer.encode([clean(prefix + text) if text.strip() else "" for prefix, text in texts])

    def segment(self, lines: Sequence[Line]) -> list[list[Segment]]:
        """The segments of each line, none for an empty one."""
        rows = [list(self.stretches(line)) for line in lines]
        searched = [(self.prefix(line), part) for line, row in zip(lines, rows, strict=True) for part in row]
        searched = [(prefix, part) for prefix, part in searched if not part.copied]
        tokens = self.encode([(prefix, part.text) for prefix, part in searched])
        for (_, part), ids in zip(searched, tokens, strict=True):
            part.ids = ids
        return [
            [
                part
                for whole in row
                if whole.ids or whole.copied
                for part in ([whole] if whole.copied else self.sentences(whole, self.prefix(line)))
            ]
            for line, row in zip(lines, rows, strict=True)
        ]

    def too_long(self, segments: list[Segment]) -> str:
        """Why the model has no positions for a line, if so."""
        positions, longest = self.limits.positions, max((len(segment.ids) for segment in segments), default=0)
        if positions is None or longest <= positions:
            return ""
        return (
            f"{longest:,} tokens and an end symbol are more than the model has positions for "
            f"(model.max_positions={positions + 1}); split=auto translates such lines sentence by sentence"
        )

    def stretches(self, line: Line) -> Iterator[Segment]:
        """The stretches of a line that are copied and those between them, or the whole line; not encoded yet."""
        cleaned = self.tokenizer.clean(line.text)
        copied, last = copied_spans(cleaned, self.limits.characters, line.cut_at), 0
        if not copied:
            yield Segment([], line.text)
            return
        for begin, end in copied:
            yield from stretch(cleaned, last, begin, copied=False)
            yield from stretch(cleaned, begin, end, copied=True)
            last = end
        yield from stretch(cleaned, last, len(cleaned), copied=False)

    def sentences(self, segment: Segment, prefix: str) -> list[Segment]:
        """The sentences of a segment, or parts of those that are too long."""
        if not self.limits.split:
            return [segment]
        longest, cleaned = self.limits.longest or math.inf, self.tokenizer.clean(segment.text)
        sentences = split_sentences(cleaned, self.limits.language)
        if len(sentences) == 1 and len(segment.ids) <= longest:
            return [segment]
        segments, start = list[Segment](), 0
        tokens = self.encode([(prefix, sentence) for sentence in sentences])
        for sentence, ids in zip(sentences, tokens, strict=True):
            start = cleaned.index(sentence, start)
            whole = Segment(ids, sentence, segment.start + start)
            segments += [whole] if len(ids) <= longest else self.parts(whole, self.prefix_tokens(prefix), int(longest))
            start += len(sentence)
        segments[0].glued = segment.glued
        return segments

    def parts(self, sentence: Segment, prefix: list[int], longest: int) -> list[Segment]:
        """The fewest parts of at most `longest` tokens, all about equal, of a sentence that is too long."""
        [ids] = self.tokenizer.encode([self.tokenizer.clean(sentence.text)])
        count = -(-len(ids) // (longest - len(prefix)))
        length = -(-len(ids) // count)
        return [
            Segment(prefix + ids[at : at + length], sentence.text, sentence.start, at, len(prefix), part=len(ids))
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
