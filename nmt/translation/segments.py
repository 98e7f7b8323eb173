"""Cut lines into segments for a model: sentences, parts of long sentences, and stretches to copy."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, pairwise
from typing import Any

import regex

from nmt import sentences
from nmt.files import RARE_LETTERS, ModelDescription, is_parser, positions, within
from nmt.text import WITHOUT_BLANKS, Tokenizer, clusters, origins, single_blanks

MARKUP_TAG = re.compile(r"</?[^\W\d_][^<>]*>")  # a markup tag, unlike `a < b`
# A word with its accents, joiners and apostrophes (also Hebrew's), in scripts that separate words with spaces;
# otherwise a grapheme cluster.
LETTER = rf"(?!{WITHOUT_BLANKS.pattern})[\p{{L}}\p{{N}}]"
COPIED_UNIT = regex.compile(
    rf"(?:{LETTER}\p{{M}}*+[\u200c\u200d]*+(?:['\u2019\u02bc\u05f3\u05f4](?={LETTER}))?+)++|\X"
)
# Matches backwards, from the end.
PUNCTUATION_BEFORE = regex.compile(r"(?r)[\p{P}--[_]]+", regex.VERSION1)
PUNCTUATION_AFTER = regex.compile(r"[\p{P}--[_]]+", regex.VERSION1)
HAS_LETTER = regex.compile(r"\p{L}")
IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
EMOJI = regex.compile(r"\p{Extended_Pictographic}")
# White space that would break a line, or a row of a table.
BREAKING = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]")
PLAIN_SIGNS = {
    **dict.fromkeys("\u2018\u2019", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u2010\u2011\u2013\u2014", "-"),
    "\u2026": "...",
}
"""Plain signs that a model may know instead of typographic ones."""
Span = tuple[int, int]


@dataclass(frozen=True)
class Limits:
    """What a model can read; None means no limit."""

    split: bool = False  # lines are translated sentence by sentence
    longest: int | None = None  # with `split`, a sentence with more tokens is translated in parts
    positions: int | None = None  # number of tokens that the model has positions for
    language: str = ""  # source language, whose rules split lines into sentences
    characters: frozenset[str] | None = (
        None  # seen in training sources; words with other characters are copied
    )
    rare: frozenset[str] = (
        frozenset()
    )  # those of `characters` that are letters too rare to be learned
    copies_signs: bool = False  # text without a letter is copied, such as a rule or a smiley
    target: str = ""  # target language, as the model states it


def limits(descriptions: list[ModelDescription], split: bool) -> Limits:
    """The limits that suit all models of an ensemble."""

    def recorded(*keys: str) -> list[Any]:
        return [within(description.training, *keys) for description in descriptions]

    ends = [end for end in map(positions, descriptions) if end]
    lengths = [
        number
        for number in recorded("lengths", "source", "max")
        if type(number) is int and number > 0
    ]
    texts = recorded("characters", "source")
    characters = None
    rare = frozenset[str]()
    if all(isinstance(text, str) for text in texts) and not any(map(is_parser, descriptions)):
        # Models of earlier versions do not record rare letters.
        seen = [
            frozenset(text + (letters or ""))
            for text, letters in zip(texts, recorded("characters", RARE_LETTERS), strict=True)
        ]
        characters = frozenset(" ").union(frozenset.intersection(*seen))
        rare = characters.difference(" ", frozenset.intersection(*map(frozenset, texts)))
    longest = min([*lengths, *ends], default=None) if split else None
    # Toy models, which reverse digits for example, have never seen a letter.
    reads_letters = characters is None or any(map(str.isalpha, characters))
    return Limits(
        split,
        longest,
        min(ends, default=None),
        descriptions[0].source,
        characters,
        rare,
        copies_signs=reads_letters and not any(map(is_parser, descriptions)),
        target=descriptions[0].target,
    )


@dataclass(frozen=True)
class Line:
    """A line on its way to the search."""

    text: str
    tag: str = ""  # target language tag and a space, removed from the text
    align: bool = False  # add details to its translations
    cut_at: frozenset[str] = frozenset()  # characters to copy as if the model did not know them


@dataclass
class Segment:
    """A line, or a stretch of one, that is translated as a unit or copied."""

    ids: list[int]  # empty if the segment is copied
    text: str  # the text to translate or copy; for part of a sentence, the whole sentence
    start: int = 0  # index of the segment's first character in the line as the model reads it
    skipped: int = 0  # for part of a sentence, the number of tokens of `text` before it
    prefixed: int = 0  # for part of a sentence, the number of source prefix tokens at its beginning
    copied: bool = False
    glued: bool = False  # not preceded by a space
    part: int = 0  # for part of a sentence, the number of tokens in the whole sentence


def copied_spans(
    line: str, characters: frozenset[str] | None, cut_at: frozenset[str] = frozenset()
) -> list[Span]:
    """Spans to copy, in order: characters unknown to the model or in `cut_at`, each with the tag or word around it.

    In scripts without spaces between words, and among symbols, only the grapheme cluster is copied. Spans with no
    letter or digit between them are joined. The first span begins with the line if no letter or digit precedes it;
    likewise, the last span ends with the line if none follows.
    """
    used = set(line)
    unknown = used & cut_at if characters is None else used - characters | used & cut_at
    if not unknown:
        return []
    spans = [tag.span() for tag in MARKUP_TAG.finditer(line) if not unknown.isdisjoint(tag[0])]
    spans += [unit.span() for unit in COPIED_UNIT.finditer(line) if not unknown.isdisjoint(unit[0])]
    merged, last = list[Span](), 0
    for begin, end in sorted(with_punctuation(line, span) for span in spans):
        if not any(map(str.isalnum, line[last:begin])):
            begin = merged.pop()[0] if merged else 0
        last = max(last, end)
        merged.append((begin, last))
    if not any(map(str.isalnum, line[last:])):
        merged[-1] = (merged[-1][0], len(line))
    return merged


def with_punctuation(line: str, span: Span) -> Span:
    """A span with the punctuation that directly adjoins it, which a model would lose without the words beside it."""
    begin = PUNCTUATION_BEFORE.match(line, 0, span[0])
    end = PUNCTUATION_AFTER.match(line, span[1])
    return begin.start() if begin else span[0], end.end() if end else span[1]


class ReadLine:
    """A line as the model reads it: `text` is the normalized form of `typed`."""

    def __init__(self, typed: str, normalize: Callable[[str], str]) -> None:
        self.typed = typed
        self.normalize = normalize
        self.text = normalize(typed)

    @cached_property
    def origins(self) -> list[int] | None:
        return None if self.text == self.typed else origins(self.typed, self.normalize)

    def as_typed(self, begin: int, end: int) -> str:
        """What the user typed for a span of `text`, on a single line."""
        origin = self.text[begin:end]
        if self.origins:
            origin = self.typed[self.origins[begin] : self.origins[end]]
        return BREAKING.sub(" ", origin).strip()

    def copied(self, begin: int, end: int, glued: bool) -> Segment:
        return Segment([], self.as_typed(begin, end), begin, copied=True, glued=glued)


class Segmenter:
    """Cuts lines into segments within a model's limits; a line without a tag gets the source prefix."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits, source_prefix: str = "") -> None:
        self.tokenizer, self.limits, self.source_prefix = tokenizer, limits, source_prefix
        self.prefix_tokens = cache(lambda prefix: tokenizer.encode([self.clean(prefix)])[0])
        # Takes a line and its language.
        self.splitter: Callable[[str, str], list[str]] = sentences.split_sentences

    @cached_property
    def plain_signs(self) -> dict[int, str]:
        """Plain signs to read instead of typographic ones that the model does not know."""
        characters = self.limits.characters
        if characters is None:
            return {}
        return {
            ord(sign): plain
            for sign, plain in PLAIN_SIGNS.items()
            if sign not in characters and characters.issuperset(plain)
        }

    @cached_property
    def learned(self) -> frozenset[str]:
        """The characters that occur often enough in the training sources."""
        return (self.limits.characters or frozenset()) - self.limits.rare

    def in_learned_case(self, text: str) -> str:
        """The text, with letters that the model has learned only in the other case in that case."""
        cases = dict[int, str]()
        for letter in set(text) - self.learned:
            for other in (letter.lower(), letter.upper()):
                if other in self.learned:
                    cases[ord(letter)] = other
        return text.translate(cases) if cases else text

    def clean(self, text: str) -> str:
        """A text as the model reads it, without invisible characters that it does not know."""
        text = self.tokenizer.clean(text)
        characters = self.limits.characters
        if characters is None:
            return text
        text = self.in_learned_case(text)
        if text.isascii():
            return text
        text = text.translate(self.plain_signs)
        unknown = {sign for sign in IGNORABLE.findall(text) if sign not in characters}
        if not unknown:
            return text
        pieces = list[str]()
        for begin, end in clusters(text):
            cluster = text[begin:end]
            # In an emoji, such characters are joiners, or select a picture instead of a sign.
            if not unknown.isdisjoint(cluster) and not EMOJI.search(cluster):
                cluster = "".join(sign for sign in cluster if sign not in unknown)
            pieces.append(cluster)
        return single_blanks("".join(pieces))

    def encode(self, texts: list[tuple[str, str]]) -> list[list[int]]:
        """Encode each prefix and text as one string; a blank text yields no tokens, whatever its prefix."""
        return self.tokenizer.encode(
            [self.clean(prefix + text) if text.strip() else "" for prefix, text in texts]
        )

    def segment(self, lines: Sequence[Line]) -> list[list[Segment]]:
        sentences = [self.sentences_of(line) for line in lines]
        rows = [
            (line.tag or self.source_prefix, row)
            for line, row in zip(lines, sentences, strict=True)
        ]
        searched = [
            (prefix, sentence) for prefix, row in rows for sentence in row if not sentence.copied
        ]
        tokens = self.encode([(prefix, sentence.text) for prefix, sentence in searched])
        for (_, sentence), ids in zip(searched, tokens, strict=True):
            sentence.ids = ids
        return [
            [part for sentence in row for part in self.parts(sentence, prefix)]
            for prefix, row in rows
        ]

    def too_long(self, segments: list[Segment]) -> str:
        """Why the model cannot read a line; empty if it can."""
        positions, longest = (
            self.limits.positions,
            max((len(segment.ids) for segment in segments), default=0),
        )
        if positions is None or longest <= positions:
            return ""
        limit = f"the model has positions for {positions:,} (model.max_positions={positions + 1} with the end symbol)"
        return f"{longest:,} tokens, but {limit}; split=auto translates such lines sentence by sentence"

    def sentences_of(self, line: Line) -> list[Segment]:
        """A line's sentences and copied stretches, not encoded yet."""
        read = ReadLine(line.text, self.clean)
        stretches = self.stretches(read, line.cut_at)
        sentences = [sentence for stretch in stretches for sentence in self.sentences(stretch)]
        if not self.limits.copies_signs:
            return sentences
        return [
            sentence
            if sentence.copied or self.has_words(sentence.text)
            else self.copy_of(sentence, read)
            for sentence in sentences
        ]

    def has_words(self, text: str) -> bool:
        """Whether a text has something to translate; a blank text has nothing to copy, either."""
        return not text or HAS_LETTER.search(text) is not None

    def copy_of(self, sentence: Segment, read: ReadLine) -> Segment:
        return read.copied(sentence.start, sentence.start + len(sentence.text), sentence.glued)

    def stretches(self, read: ReadLine, cut_at: frozenset[str]) -> list[Segment]:
        """A line's copied stretches and the text between, or the whole line if nothing is copied."""
        text = read.text
        copied = copied_spans(text, self.limits.characters, cut_at)
        borders = [0, *chain.from_iterable(copied), len(text)] if copied else [0, len(text)]
        segments = list[Segment]()
        for number, (begin, end) in enumerate(pairwise(borders)):
            stretch = text[begin:end].strip()
            begin += len(text[begin:end]) - len(text[begin:end].lstrip())
            end = begin + len(stretch)
            glued = begin > 0 and text[begin - 1] != " "
            if stretch and number % 2:
                segments.append(read.copied(begin, end, glued))
            elif stretch:
                segments.append(Segment([], stretch, begin, glued=glued))
        return segments

    def sentences(self, stretch: Segment) -> list[Segment]:
        """The sentences of a stretch."""
        if stretch.copied or not self.limits.split:
            return [stretch]
        start = 0
        segments = list[Segment]()
        for sentence in self.splitter(stretch.text, self.limits.language):
            start = stretch.text.index(sentence, start)
            glued = stretch.glued and not segments
            segments.append(Segment([], sentence, stretch.start + start, glued=glued))
            start += len(sentence)
        return segments

    def parts(self, sentence: Segment, prefix: str) -> list[Segment]:
        """The sentence, unless it is blank; if it is too long, as few parts as possible, of similar length."""
        longest = self.limits.longest if self.limits.split else None
        if longest is None or len(sentence.ids) <= longest:
            return [sentence] if sentence.ids or sentence.copied else []
        before, [ids] = (
            self.prefix_tokens(prefix),
            self.tokenizer.encode([self.clean(sentence.text)]),
        )
        length = -(-len(ids) // -(-len(ids) // (longest - len(before))))
        whole = replace(sentence, prefixed=len(before), part=len(ids))
        return [
            replace(
                whole, ids=before + ids[at : at + length], skipped=at, glued=whole.glued and at == 0
            )
            for at in range(0, len(ids), length)
        ]
