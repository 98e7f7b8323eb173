"""Cut lines into segments: sentences, parts of long sentences, and stretches to copy."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import regex

from nmt import sentences
from nmt.text import Tokenizer
from nmt.translation.chunks import chunked
from nmt.translation.copying import copied_spans
from nmt.translation.limits import Limits
from nmt.translation.lines import Line, Segment, Span
from nmt.translation.reading import ReadLine, SourceReader

HAS_LETTER = regex.compile(r"\p{L}")


class Segmenter(SourceReader):
    """Cuts lines into segments within a model's limits, and encodes them.

    A line without a tag gets the source prefix.
    """

    def __init__(self, tokenizer: Tokenizer, limits: Limits, source_prefix: str = "") -> None:
        super().__init__(tokenizer, limits)
        self.source_prefix = source_prefix
        # An attribute, so that a test can cut lines at simpler borders.
        self.splitter = sentences.split_sentences
        self.encoded_prefixes = dict[str, list[int]]()

    def segment(self, lines: Sequence[Line]) -> list[list[Segment]]:
        """The segments of each line; a blank line has none."""
        prefixes = [line.tag or self.source_prefix for line in lines]
        rows = [self.sentences_of(line) for line in lines]
        self.encode(rows, prefixes)
        if self.limits.split and self.limits.together > 1:
            rows = [chunked(row, self.limits.together, self.limits.longest) for row in rows]
            self.encode([chunks_in(row) for row in rows], prefixes)
        segments = []
        for row, prefix in zip(rows, prefixes, strict=True):
            parts = list[Segment]()
            for sentence in row:
                parts += self.parts(sentence, prefix)
            segments.append(parts)
        return segments

    def encode(self, rows: Sequence[list[Segment]], prefixes: Sequence[str]) -> None:
        """Set the tokens of all sentences that are not copied.

        A prefix and a sentence are encoded as one string. A blank sentence has no tokens, whatever
        its prefix.
        """
        sentences = []
        texts = []
        for row, prefix in zip(rows, prefixes, strict=True):
            for sentence in row:
                if sentence.copied:
                    continue
                # Its tag alone would otherwise count as a sentence to translate.
                is_blank = not sentence.text.strip()
                sentences.append(sentence)
                texts.append("" if is_blank else self.clean(prefix + sentence.text))
        # A single call for all lines, because the tokenizer encodes many texts in threads.
        for sentence, ids in zip(sentences, self.tokenizer.encode(texts), strict=True):
            sentence.ids = ids

    def prefix_tokens(self, prefix: str) -> list[int]:
        """The tokens of a source prefix."""
        if prefix not in self.encoded_prefixes:
            [ids] = self.tokenizer.encode([self.clean(prefix)])
            self.encoded_prefixes[prefix] = ids
        return self.encoded_prefixes[prefix]

    def too_long(self, segments: list[Segment]) -> str:
        """Why the model cannot read a line; empty if it can."""
        positions = self.limits.positions
        # Only split=never can exceed the positions: otherwise, `parts` has cut longer sentences.
        longest = max((len(segment.ids) for segment in segments), default=0)
        if positions is None or longest <= positions:
            return ""
        return (
            f"{longest:,} tokens, but the model has positions for {positions:,} "
            f"(model.max_positions={positions + 1} with the end symbol); "
            "split=auto translates such lines sentence by sentence"
        )

    def sentences_of(self, line: Line) -> list[Segment]:
        """A line's sentences and copied stretches, not encoded yet."""
        # Segments are spans of the line as the model reads
        # it; copies are looked up in what the user typed.
        read = ReadLine(line.text, self.clean)
        sentences = list[Segment]()
        # No sentence crosses a copied stretch.
        language = self.language_of(line)
        for stretch in self.stretches(read, line.cut_at):
            sentences += self.split(stretch, language)
        if self.limits.copies_signs:
            sentences = [copied_if_signs(sentence, read) for sentence in sentences]
        return sentences

    def stretches(self, read: ReadLine, cut_at: frozenset[str]) -> list[Segment]:
        """A line's copied stretches and the text between them; the whole line if there are none."""
        copied = copied_spans(read.text, self.limits.characters, cut_at)
        segments = list[Segment]()
        for span, is_copied in with_spans_between(copied, len(read.text)):
            begin, end = stripped(read.text, span)
            if begin == end:
                continue
            # `clean` leaves single spaces only, so one character decides.
            glued = begin > 0 and read.text[begin - 1] != " "
            stretch = Segment([], read.text[begin:end], begin, glued=glued)
            segments.append(copy_of(stretch, read) if is_copied else stretch)
        return segments

    def language_of(self, line: Line) -> str:
        """The source language of a line; empty if it is unknown."""
        source, _ = self.tokenizer.languages_of(line.tag.strip())
        return source or self.limits.language

    def split(self, stretch: Segment, language: str) -> list[Segment]:
        """The sentences of a stretch."""
        if stretch.copied or not self.limits.split:
            return [stretch]
        start = 0
        segments = list[Segment]()
        for sentence in self.splitter(stretch.text, language):
            # The splitter returns texts without positions. The search begins after the previous
            # sentence, because a line may repeat a sentence.
            start = stretch.text.index(sentence, start)
            glued = stretch.glued and not segments
            segments.append(Segment([], sentence, stretch.start + start, glued=glued))
            start += len(sentence)
        return segments

    def parts(self, sentence: Segment, prefix: str) -> list[Segment]:
        """The sentence, unless it is blank; its parts if it is too long.

        The parts are as few as possible, and of similar length. Each begins with the prefix.
        """
        longest = self.limits.longest if self.limits.split else None
        if longest is None or len(sentence.ids) <= longest:
            is_blank = not sentence.ids and not sentence.copied
            return [] if is_blank else [sentence]
        # Encoded again without the prefix, which each part repeats.
        prefix_ids = self.prefix_tokens(prefix)
        [ids] = self.tokenizer.encode([self.clean(sentence.text)])
        # `Translator` has checked that a token fits beside the prefix, so the divisor is positive.
        count = math.ceil(len(ids) / (longest - len(prefix_ids)))
        # Equal parts: cutting at the limit could leave
        # a last part of one token, without any context.
        length = math.ceil(len(ids) / count)
        parts = []
        for start in range(0, len(ids), length):
            part = replace(
                sentence,
                ids=prefix_ids + ids[start : start + length],
                skipped=start,
                prefixed=len(prefix_ids),
                # Only the first part adjoins the segment
                # before; all others are preceded by a space.
                glued=sentence.glued and start == 0,
                sentence_tokens=len(ids),
            )
            parts.append(part)
        return parts


def chunks_in(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.sentences]


def copy_of(segment: Segment, read: ReadLine) -> Segment:
    """A segment of a line that is copied as the user typed it."""
    typed = read.as_typed(segment.start, segment.start + len(segment.text))
    return Segment([], typed, segment.start, copied=True, glued=segment.glued)


def copied_if_signs(sentence: Segment, read: ReadLine) -> Segment:
    """The sentence, or a copy of it if it has no letter to translate."""
    is_translated = not sentence.text or HAS_LETTER.search(sentence.text) is not None
    if sentence.copied or is_translated:
        return sentence
    return copy_of(sentence, read)


def with_spans_between(copied: list[Span], size: int) -> Iterator[tuple[Span, bool]]:
    """All spans of a text with `size` characters, in order, and whether they are copied."""
    end = 0
    for span in copied:
        yield (end, span[0]), False
        yield span, True
        end = span[1]
    yield (end, size), False


def stripped(text: str, span: Span) -> Span:
    """A span without white space at its ends."""
    begin, end = span
    without_beginning = text[begin:end].lstrip()
    begin = end - len(without_beginning)
    return begin, begin + len(without_beginning.rstrip())
