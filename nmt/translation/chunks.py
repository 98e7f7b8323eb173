"""Join neighboring sentences into chunks, for a model that was trained on joined pairs."""

import math
from collections.abc import Callable, Iterator, Sequence

from nmt.sentences import split_sentences
from nmt.translation.lines import Segment


def chunked(sentences: Sequence[Segment], most: int, longest: int | None) -> list[Segment]:
    """The sentences of a line, with neighbors joined; the text of a chunk is not encoded yet.

    A chunk has at most `most` sentences, and at most `longest` tokens. Copied stretches stay alone,
    and so does a sentence that is longer than that.
    """
    segments = list[Segment]()
    for run in runs(sentences):
        # As few chunks as possible, of similar sizes: a last chunk of a single sentence would have
        # no context.
        chunks = math.ceil(len(run) / most)
        size = math.ceil(len(run) / chunks)
        chunk = list[Segment]()
        tokens = 0
        for sentence in run:
            is_too_long = longest is not None and tokens + len(sentence.ids) > longest
            if chunk and (len(chunk) == size or is_too_long):
                segments.append(joined(chunk))
                chunk = []
                tokens = 0
            chunk.append(sentence)
            tokens += len(sentence.ids)
        segments.append(joined(chunk))
    return segments


def runs(sentences: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Neighbors that may be joined; a copied or blank segment is alone."""
    run = list[Segment]()
    for sentence in sentences:
        if sentence.copied or not sentence.ids:
            if run:
                yield run
            yield [sentence]
            run = []
        else:
            run.append(sentence)
    if run:
        yield run


def joined(sentences: Sequence[Segment]) -> Segment:
    """A chunk of sentences; a single sentence stays as it is."""
    first = sentences[0]
    if len(sentences) == 1:
        return first
    text = ""
    for sentence in sentences:
        # Between sentences, a line has at most blanks.
        blanks = sentence.start - first.start - len(text)
        text += " " * blanks + sentence.text
    return Segment([], text, first.start, glued=first.glued, sentences=tuple(sentences))


def has_lost_sentence(chunk: Segment, translation: str, language: str) -> bool:
    """Whether the translation of a chunk into `language` has fewer sentences than the chunk."""
    return len(split_sentences(translation, language)) < len(chunk.sentences)


def with_sentences_of(
    segments: Sequence[Segment], is_lost: Callable[[Segment], bool]
) -> list[Segment]:
    """The segments, with the sentences of each lost chunk in its place."""
    result = list[Segment]()
    for segment in segments:
        if is_lost(segment):
            result += segment.sentences
        else:
            result.append(segment)
    return result
