"""IBM model 1 beside EM over dictionaries, and CTranslate2's searches with a vocabulary map beside those without."""

import random
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("ctranslate2")

from nmt.config import DecodeConfig, TranslateConfig
from nmt.errors import NMTError
from nmt.files import find_model_directory, read_tokenizer
from nmt.plugins.exchange import vocabulary_map, word_translation
from nmt.plugins.exchange.ctranslate2 import check_exported, write
from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
from nmt.plugins.exchange.export import ExportConfig, export
from nmt.plugins.exchange.vocabulary_map import NULL, note_beam, render
from nmt.plugins.exchange.word_translation import Tokens, word_translations
from nmt.text import SOURCE, TARGET
from nmt.translation import load_translator, model_hash

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]


def tokens(sentences: list[list[int]]) -> Tokens:
    return Tokens(np.array([*chain(*sentences)], np.int64), np.array(list(map(len, sentences)), np.int64))


def brute_force(pairs: list[tuple[list[int], list[int]]], iterations: int) -> dict[tuple[int, int], float]:
    t = {(e, f): 1.0 for source, target in pairs for e in source for f in target}
    for _ in range(iterations):
        expected, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for f in target:
                norm = sum(t[e, f] for e in source)
                for e in source:
                    expected[e, f] += t[e, f] / norm
                    totals[e] += t[e, f] / norm
        t = {(e, f): expected[e, f] / totals[e] for e, f in t}
    return t


PAIR = st.tuples(
    st.lists(st.integers(1, 5), max_size=4).map(lambda ids: [0, *ids]), st.lists(st.integers(0, 5), max_size=4)
)


@given(st.lists(PAIR, min_size=1, max_size=6), st.integers(1, 40))
def test_ibm_model_1_is_that_of_em_over_dictionaries(pairs, occurrences):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_translation, "OCCURRENCES", occurrences)
        found = word_translations(*(tokens([pair[side] for pair in pairs]) for side in (0, 1)), 6, 3)
    keys = list(zip(found.source.tolist(), found.target.tolist(), strict=True))
    expected = brute_force(pairs, 3)
    assert keys == sorted(expected)
    assert found.probability.tolist() == pytest.approx([expected[key] for key in keys])


def test_ibm_model_1_finds_the_words_of_a_shuffled_lexicon():
    draw = random.Random(1)
    sources = [draw.sample(range(1, 11), 4) for _ in range(200)]
    targets = [draw.sample([word * 3 for word in source], 4) for source in sources]
    found = word_translations(tokens([[0, *s] for s in sources]), tokens(targets), 40, 10)
    for word in range(1, 11):
        own = found.source == word
        assert found.target[own][found.probability[own].argmax()] == 3 * word


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "float32"
    write(find_model_directory(str(finished)), folder, "float32")
    return folder


def searched(folder: Path, count: int = 40, **settings) -> list[tuple[list[int], float]]:
    draw = random.Random(2)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in range(count)]
    engine = CTranslate2Engine(folder, DecodeConfig(max_extra_length=5, **settings), threads=1)
    found = engine.search(read_tokenizer(folder).encode(lines, SOURCE), [[]] * count)
    return [(row[0].tokens, row[0].log_probability) for row in found]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_with_a_map_of_the_whole_vocabulary_nothing_changes(exported, beam_size):
    expected = searched(exported, beam_size=beam_size)
    size = len(read_tokenizer(exported).vocabulary(TARGET))
    entries = [read_tokenizer(exported).vocabulary(side) for side in (SOURCE, TARGET)]
    (exported / "vmap.txt").write_text(render({NULL: np.arange(size)}, *entries))
    note_beam(exported / "nmt.json", 4)
    check_exported(exported)
    assert searched(exported, beam_size=beam_size) == [(ids, pytest.approx(logp, abs=1e-4)) for ids, logp in expected]
    (exported / "vmap.txt").unlink()


def test_with_a_map_nothing_else_is_written_and_scores_are_those_of_the_whole_softmax(exported):
    entries = [read_tokenizer(exported).vocabulary(side) for side in (SOURCE, TARGET)]
    allowed = range(20, 60)
    (exported / "vmap.txt").write_text(render({NULL: np.array(allowed)}, [""], entries[1]))
    note_beam(exported / "nmt.json", 4)
    found = searched(exported)
    engine = CTranslate2Engine(exported, DecodeConfig(), vmap=False)
    (exported / "vmap.txt").unlink()
    assert found != searched(exported)
    assert {*chain(*(ids for ids, _ in found))} <= {*allowed}
    draw = random.Random(2)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in range(40)]
    sources = read_tokenizer(exported).encode(lines, SOURCE)
    scores = engine.forced_decoding([(source, ids) for source, (ids, _) in zip(sources, found, strict=True)])
    assert [logp for _, logp in found] == pytest.approx(list(map(sum, scores)), abs=1e-3)


@pytest.mark.parametrize("content", ["", "\n", "ka\n", "\tzz\n", "zz\t▁ka\n", "\t\n", "ka\t▁ka\tka\n", "\t▁ka  ka\n"])
def test_the_map_of_a_stranger_is_refused(exported, content):
    (exported / "vmap.txt").write_text(content)
    with pytest.raises(NMTError, match="not a map of this vocabulary"):
        check_exported(exported)
    (exported / "vmap.txt").unlink()


def test_export_writes_a_map_and_says_how_many_lines_change(finished, tmp_path, monkeypatch):
    output, decode = tmp_path / "exported", DecodeConfig(beam_size=1, max_extra_length=5)
    settings = ExportConfig(str(finished), output=str(output), decode=decode, vmap=1.0)
    told = list(export(settings, lambda words: None))
    [line] = [line for line in told if "candidates of a line" in line]
    assert line.startswith(f"{output}/vmap.txt: ")
    check_exported(output)
    with_map, without = (
        load_translator(TranslateConfig(str(output), engine="ctranslate2", vmap=vmap, decode=decode), print)
        for vmap in (True, False)
    )
    assert (with_map.engine.has_map, without.engine.has_map) == (True, False)
    said, wider = list[str](), replace(decode, beam_size=4)
    other = load_translator(TranslateConfig(str(output), engine="ctranslate2", decode=wider), said.append)
    assert not other.engine.has_map
    assert said == [f"{output}: its vocabulary map is for decode.beam_size=1 at most, and is left out"]
    told = list(export(replace(settings, vmap=0.0), lambda words: None))
    [line] = [line for line in told if "candidates of a line" in line]
    assert "0.00%" in line or line.startswith("no vmap")
    assert (output / "vmap.txt").exists() == ("no vmap" not in line)


def test_an_export_that_ends_while_maps_are_tried_has_none(finished, tmp_path, monkeypatch):
    output, tried = tmp_path / "exported", []

    def stop(folder, decode, sentences):
        tried.append(folder)
        if (folder / "vmap.txt").exists():
            raise KeyboardInterrupt
        return [[]] * len(sentences)

    monkeypatch.setattr(vocabulary_map, "best_tokens", stop)
    with pytest.raises(KeyboardInterrupt):
        list(
            export(ExportConfig(str(finished), output=str(output), decode=DecodeConfig(), vmap=1.0), lambda words: None)
        )
    assert len(tried) == 2
    assert output not in tried
    assert not (output / "vmap.txt").exists()


def test_a_map_decides_translations(exported):
    before = model_hash(exported)
    (exported / "vmap.txt").write_text("\t\u2581\n")
    assert model_hash(exported) != before
    (exported / "vmap.txt").unlink()
    assert model_hash(exported) == before


def test_a_map_is_for_ctranslate2_alone():
    with pytest.raises(NMTError, match="format=huggingface"):
        ExportConfig("run", format="huggingface", vmap=True, decode=DecodeConfig())
    with pytest.raises(NMTError, match=r"vmap=2\.0: must be a number between 0 and 1, or true"):
        ExportConfig("run", vmap=2.0, decode=DecodeConfig())
