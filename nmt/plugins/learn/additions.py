"""Find a sentence of a correction that its source lacks, such as an insult."""

from nmt.sentences import split_sentences
from nmt.text import Pair, sentence_vectors

LEAST_SIMILARITY = 0.2
"""To the source or one of its sentences. Of 300 sentences such as "Du Idiot!" beside sources of
three corpora, 292 were below; of 999 translations of several sentences from five corpora, 21 had
such a sentence. With the other limit, 284 and 7 remain."""
LEAST_WITH_WORDS = 0.4
"""To the most similar words of the source in a row, for a sentence that is below the other limit.
"Beeilt euch!" and "Hurry" have 0.5, though the whole source is about a train to be missed."""
NUMBERS_OF_WORDS = (1, 2, 3, 4, 6, 8)
MOST_WINDOWS = 400
"""The largest number of windows of words to compare with a sentence."""


def added_sentence(pair: Pair, languages: tuple[str, str]) -> str:
    """The sentence of a target that is the least like its source; empty if all are alike.

    A target with one sentence has none: its similarity is known already. Needs the encoder.
    """
    source, target = pair
    sentences = []
    for sentence in split_sentences(target, languages[1]):
        if any(map(str.isalpha, sentence)):
            sentences.append(sentence.strip())
    if len(sentences) < 2:
        return ""
    parts = [source, *split_sentences(source, languages[0])]
    vectors = sentence_vectors([*parts, *sentences])
    cosines = vectors[len(parts) :] @ vectors[: len(parts)].T
    most_alike = cosines.max(axis=1)
    stranger = int(most_alike.argmin())
    if most_alike[stranger] >= LEAST_SIMILARITY:
        return ""
    sentence = sentences[stranger]
    return sentence if similarity_to_words(sentence, source) < LEAST_WITH_WORDS else ""


def similarity_to_words(sentence: str, source: str) -> float:
    """The largest similarity of a sentence to some words of the source in a row."""
    vectors = sentence_vectors([sentence, *windows_of(source)])
    return float((vectors[1:] @ vectors[0]).max())


def windows_of(source: str) -> list[str]:
    """Words of the source in a row, of several lengths."""
    words = source.split()
    windows = dict[str, None]()
    for length in NUMBERS_OF_WORDS:
        for start in range(max(1, len(words) - length + 1)):
            windows[" ".join(words[start : start + length])] = None
    return list(windows)[:MOST_WINDOWS]
