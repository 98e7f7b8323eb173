"""Pairs of words that place markup in translations from a memory, which no model has aligned.

A sentence corresponds to its translation as a whole: their first words are a pair, their last words
are, and the words between them are paired by their places. So an element around a sentence encloses
its translation, and a line break between two sentences stays there.
"""

from bisect import bisect_left
from collections.abc import Sequence

from nmt.sentences import split_sentences
from nmt.text import word_spans
from nmt.translation import Details, Direction

Span = tuple[int, int]
WordPairs = list[tuple[int, int]]


def sentences_of(text: str, language: str) -> list[Span]:
    """The spans of a text's sentences."""
    spans = list[Span]()
    begin = 0
    # Some splitters return the blank after a sentence, too.
    for sentence in map(str.strip, split_sentences(text, language)):
        # The search begins after the previous sentence, because a text may repeat one.
        begin = text.index(sentence, begin)
        spans.append((begin, begin + len(sentence)))
        begin += len(sentence)
    return spans


def details_of_sentence(source: str, target: str) -> Details:
    """The details of a translation from a memory, as of a single sentence."""
    words_of_source = range(len(word_spans(source)))
    words_of_target = range(len(word_spans(target)))
    return details_of(target, paired(words_of_source, words_of_target))


def details_of_line(source: str, target: str, direction: Direction) -> Details:
    """The details of a line's translation from a memory.

    Its sentences are paired in order if the line has as many.
    """
    sentences_of_source = sentences_of(source, direction.source)
    # The usual case, which is worth the speed.
    if len(sentences_of_source) < 2:
        return details_of_sentence(source, target)
    sentences_of_target = sentences_of(target, direction.target)
    if len(sentences_of_source) != len(sentences_of_target):
        return details_of_sentence(source, target)
    pairs = WordPairs()
    rows = zip(
        words_of_sentences(source, sentences_of_source),
        words_of_sentences(target, sentences_of_target),
        strict=True,
    )
    for words_of_source, words_of_target in rows:
        pairs += paired(words_of_source, words_of_target)
    return details_of(target, pairs)


def details_of(target: str, pairs: WordPairs) -> Details:
    """Details without scores, because the model has not written the translation."""
    return Details(
        tokens=[],
        token_log_probabilities=[],
        alignment=pairs,
        word_log_probabilities=[None] * len(word_spans(target)),
    )


def words_of_sentences(text: str, sentences: Sequence[Span]) -> list[range]:
    """The numbers of the words in each sentence of a text."""
    begins = [begin for begin, _ in word_spans(text)]
    words = list[range]()
    first = 0
    for _, end in sentences:
        stop = bisect_left(begins, end)
        words.append(range(first, stop))
        first = stop
    return words


def paired(source: range, target: range) -> WordPairs:
    """Pair two runs of words from their first to their last ones; nothing if one is empty."""
    if not source or not target:
        return []
    # The longer side takes each word once; the shorter one repeats words.
    steps = max(len(source), len(target))
    pairs = WordPairs()
    for step in range(steps):
        pairs.append((source[step * len(source) // steps], target[step * len(target) // steps]))
    return pairs
