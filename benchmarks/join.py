"""Measure translation by paragraph, with models that were trained with and without data.join.

    python benchmarks/join.py DOCUMENTS.en DOCUMENTS.de SENTENCES.en SENTENCES.de SINGLE JOINED

A line of DOCUMENTS is a document of several sentences, and a line of SENTENCES a sentence. The
names end in the languages. SINGLE and JOINED are runs. Both translate the sentences, and the
documents sentence by sentence. JOINED also translates the documents in chunks of up to data.join
sentences (split=paragraph), with and without a second search for chunks that lost a sentence.

- BLEU: of sentences, and of documents as single segments.
- lost: how many fewer sentences translations have than their sources, by nmt's rules for ends of
  sentences.
- consistent: of all pairs of occurrences of a word of five letters or more within a document, the
  share that has the same translation: the words that the model's alignment names, by their first
  five letters. Pairs without an aligned word on one side do not count.
"""

import sys
from collections import defaultdict
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path

import nmt
from nmt.evaluation import score
from nmt.sentences import split_sentences
from nmt.text import word_spans
from nmt.translation import Translation, Translator

LETTERS = 5


class OneSearch(Translator):
    """A translator that does not translate chunks again that lost a sentence."""

    def is_lost(self, *arguments: object) -> bool:
        return False


@dataclass
class Corpus:
    sources: list[str]
    references: list[str]
    source: str
    """The language of the sources."""
    target: str

    @classmethod
    def read(cls, source: str, reference: str) -> "Corpus":
        paths = [Path(name) for name in (source, reference)]
        sides = [path.read_text(encoding="utf-8").splitlines() for path in paths]
        languages = [path.suffix[1:] for path in paths]
        return cls(*sides, *languages)


def translator_of(run: str, split: str, searches: type[Translator] = Translator) -> Translator:
    """A translator that also aligns words."""
    translator = nmt.load(run, split=split, threads=1).translator
    values = {field.name: getattr(translator, field.name) for field in fields(Translator)}
    return searches(**{**values, "details": True})


def letters_of(word: str) -> str:
    return "".join(filter(str.isalpha, word)).casefold()


def stems(translation: Translation, source: str) -> dict[str, list[frozenset[str]]]:
    """For each source word of five letters or more, the beginnings of its translations."""
    words = [source[begin:end] for begin, end in word_spans(source)]
    text = translation.text
    targets = [text[begin:end] for begin, end in word_spans(text)]
    partners = defaultdict[int, set[str]](set)
    assert translation.details is not None
    for word, target in translation.details.alignment:
        stem = letters_of(targets[target])[:LETTERS]
        if len(stem) == LETTERS:
            partners[word].add(stem)
    occurrences = defaultdict[str, list[frozenset[str]]](list)
    for number, word in enumerate(words):
        letters = letters_of(word)
        if len(letters) >= LETTERS and number in partners:
            occurrences[letters].append(frozenset(partners[number]))
    return occurrences


def consistency(translations: list[Translation], sources: list[str]) -> tuple[int, int]:
    """Pairs of occurrences with a common translation, and all pairs."""
    same = 0
    pairs = 0
    for translation, source in zip(translations, sources, strict=True):
        for occurrences in stems(translation, source).values():
            for first, second in combinations(occurrences, 2):
                pairs += 1
                same += bool(first & second)
    return same, pairs


def lost_sentences(translations: list[Translation], corpus: Corpus) -> tuple[int, int]:
    """Sentences that translations lack, and all sentences."""
    lost = 0
    total = 0
    for translation, source in zip(translations, corpus.sources, strict=True):
        expected = len(split_sentences(source, corpus.source))
        actual = len(split_sentences(translation.text, corpus.target))
        lost += max(0, expected - actual)
        total += expected
    return lost, total


def report(name: str, translator: Translator, corpus: Corpus, is_document: bool) -> None:
    translations = [best for best, *_ in translator.translate(corpus.sources)]
    texts = [translation.text for translation in translations]
    [bleu] = score(texts, corpus.references, ["bleu"])
    row = f"{name:42} {bleu.value:5.1f}"
    if is_document:
        lost, total = lost_sentences(translations, corpus)
        same, pairs = consistency(translations, corpus.sources)
        row += f"  lost {lost} of {total}  consistent {same} of {pairs}"
    print(row, flush=True)


def main(documents: Corpus, sentences: Corpus, single: str, joined: str) -> None:
    for name, run in (("single", single), ("joined", joined)):
        translator = translator_of(run, "auto")
        report(f"{name}, sentences", translator, sentences, False)
        report(f"{name}, documents by sentence", translator, documents, True)
    once = translator_of(joined, "paragraph", OneSearch)
    report("joined, documents in chunks, one search", once, documents, True)
    report("joined, documents in chunks", translator_of(joined, "paragraph"), documents, True)
    report("single, documents as a whole", translator_of(single, "never"), documents, True)


if __name__ == "__main__":
    names = sys.argv[1:]
    main(Corpus.read(*names[:2]), Corpus.read(*names[2:4]), *names[4:6])
