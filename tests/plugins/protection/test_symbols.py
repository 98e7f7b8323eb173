"""Symbols for what is protected: in vocabularies, in noise, and in lines to translate."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.errors import NMTError
from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.noise import noisy, sentence_generator
from nmt.plugins.augment.subword_sampling import subword_sampler
from nmt.plugins.exchange.huggingface_tokenizer import fast_tokenizer
from nmt.plugins.protection.protection import Protection
from nmt.search import Hypothesis, TokenScores
from nmt.text import SOURCE, Finder, clean, fast_encode, items as protected, train_tokenizer, with_symbols
from nmt.text.items import SYMBOL
from nmt.text.remembered_words import RememberedWords
from nmt.translation import Translator

PAIR = ("Anna has 12 old houses", "Anna hat 12 alte Häuser")
SYMBOLS = [f"⟦{number}⟧" for number in range(1, 9)]
BPE, UNIGRAM = (
    train_tokenizer([*PAIR, "⟧ 1 ⟦"] * 20, TokenizerConfig(kind=kind, vocabulary_size=330, symbols=8), tags=["<2de>"])
    for kind in ("bpe", "unigram")
)
texts = st.lists(st.sampled_from([*SYMBOLS, "⟦9⟧", "⟦", "1", " ", "  ", "Anna", "ß", "<2de>", "▁"])).map("".join)


@given(texts)
@pytest.mark.parametrize("tokenizer", [BPE, UNIGRAM], ids=["bpe", "unigram"])
def test_a_symbol_is_one_entry_everywhere_and_text_stays_lossless(tokenizer, line):
    assert tokenizer.symbols == SYMBOLS
    line = clean(line)
    [ids] = tokenizer.encode([line], 1)
    assert tokenizer.decode(ids) == line
    found = Counter(tokenizer.symbol(id) for id in ids if tokenizer.symbol(id) in SYMBOLS)
    assert found == Counter(symbol for symbol in SYMBOL.findall(line) if symbol in SYMBOLS)
    assert fast_encode(tokenizer)([line], SOURCE) == tokenizer.encode([line], SOURCE)


def test_words_are_remembered_with_symbols():
    assert fast_encode(BPE).__self__.__class__ is RememberedWords


def test_noise_puts_the_same_symbols_into_both_sides_and_each_once():
    config, replaced = NoiseConfig(protected=1.0), 0
    for row in range(200):
        pair = noisy(PAIR, config, sentence_generator(1, 2, 3, row), SYMBOLS)
        sides = [SYMBOL.findall(side) for side in pair]
        assert 1 <= len(sides[0]) <= 3
        assert sorted(sides[0]) == sorted(sides[1])
        assert len(set(sides[0])) == len(sides[0])
        assert all("⟦" not in clean(SYMBOL.sub("", side)) for side in pair)
        replaced += "Anna" not in pair[0] or "12" not in pair[0]
        assert pair == noisy(PAIR, config, sentence_generator(1, 2, 3, row), SYMBOLS)
    assert 110 < replaced < 170


def test_noise_brings_no_symbol_that_a_pair_has():
    for row in range(50):
        source, target = noisy(
            ("see ⟦1⟧ now", "siehe ⟦1⟧ nun"), NoiseConfig(protected=1.0), sentence_generator(1, 2, 3, row), SYMBOLS[:2]
        )
        assert sorted(SYMBOL.findall(source)) == sorted(SYMBOL.findall(target))
        assert source.count("⟦1⟧") < 2


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("No {x} in %s", "In %s kein {x}", ("No ⟦1⟧ in ⟦2⟧", "In ⟦2⟧ kein ⟦1⟧")),
        ("%s of %s", "%s von %s", ("⟦1⟧ of ⟦2⟧", "⟦1⟧ von ⟦2⟧")),
        ("Wait 1.5 GB", "Warte 1,5 GB", ("Wait ⟦1⟧", "Warte ⟦1⟧")),
        ("Press <b>File</b> at {x}", "{x}: <b>Datei</b>", ("Press ⟦1⟧File⟦2⟧ at ⟦3⟧", "⟦3⟧: ⟦1⟧Datei⟦2⟧")),
        ("{x} and {y}", "{y} und {y}", ("{x} and {y}", "{y} und {y}")),  # neither is there as often
        ("{x} and {y}", "{x}", ("⟦1⟧ and {y}", "⟦1⟧")),
        ("{x} ⟦1⟧", "{x} ⟦1⟧", ("⟦2⟧ ⟦3⟧", "⟦2⟧ ⟦3⟧")),
        ("{a}, {b}, {c}, {d}", "{a}, {b}, {c}, {d}", ("{a}, {b}, {c}, {d}",) * 2),  # there are three symbols
        ("plain", "glatt", ("plain", "glatt")),
    ],
)
def test_symbols_stand_in_training_pairs_for_what_both_sides_have(source, target, expected):
    assert with_symbols((source, target), 3) == expected
    assert with_symbols((source, target), 0) == (source, target)


@given(st.lists(st.sampled_from(["{x}", "%s", "{}", "5 GB", "a.py", "⟦2⟧", "und", "<b>"])))
def test_training_pairs_have_what_a_model_is_asked_with(words):
    line = " ".join(words)
    translator = Translator(Copying(), BPE)
    translator.protection = Protection(Finder(["usual"]), BPE.symbols)
    translator.translate([line])
    masked = with_symbols((line, line), 8)
    if "⟦" in masked[0].replace("⟦2⟧", ""):
        assert masked == (translator.engine.searched[0],) * 2


def test_noise_of_other_kinds_is_what_it_was():
    for row in range(50):
        generators = [sentence_generator(1, 2, 3, row) for _ in range(2)]
        plain = noisy(PAIR, NoiseConfig(numbers=0.5, upper=0.5), generators[0])
        both = noisy(PAIR, NoiseConfig(numbers=0.5, upper=0.5, protected=1e-9), generators[1], SYMBOLS)
        assert ("ANNA" in plain[0]) == ("ANNA" in both[0])


def test_what_has_no_symbols_is_told():
    plain = train_tokenizer(PAIR, TokenizerConfig(kind="bpe", vocabulary_size=330))
    assert plain.symbols == []
    with pytest.raises(NMTError, match=r"tokenizer\.symbols=8"):
        subword_sampler(plain, NoiseConfig(protected=0.1))
    with pytest.raises(NMTError, match=r"tokenizer\.symbols=8"):
        TokenizerConfig(kind="wordpiece", vocabulary_size=700, symbols=8)
    with pytest.raises(NMTError, match="huggingface"):
        fast_tokenizer(BPE)


class Copying:
    """An engine that copies symbols and words, and forgets everything else."""

    config = DecodeConfig()

    def __init__(self) -> None:
        self.searched: list[str] = []

    def search(self, sentences, prefixes, constraints=None):
        lines = [BPE.decode(ids) for ids in sentences]
        self.searched += lines
        kept = [[word for word in line.split() if word.isalnum() or SYMBOL.fullmatch(word)] for line in lines]
        return [[Hypothesis(BPE.encode([" ".join(words)], 1)[0], -1.0, -1.0)] for words in kept]

    def token_scores(self, pairs):
        return [TokenScores([-0.1] * (len(t) + 1), np.eye(len(t), max(len(s), 1), dtype=np.float32)) for s, t in pairs]


def test_a_line_that_a_pattern_takes_too_long_for_does_no_harm_to_others(monkeypatch):
    monkeypatch.setattr(protected, "SECONDS", 0.2)
    translator = Translator(Copying(), BPE)
    translator.protection = Protection(Finder(["(a|aa)+$"]), BPE.symbols)
    refused, other = translator.translate_each(["a" * 60 + "!", "Anna hat"])
    assert "takes more than 0.2 s" in refused.problem
    assert other[0].text == "Anna hat"


def test_a_model_with_symbols_is_asked_once():
    translator = Translator(Copying(), BPE)
    translator.protection = Protection(Finder(["usual"]), BPE.symbols)
    found = translator.translate(["Anna {name} hat %s", "Anna hat", "⟦1⟧ hat {x}"])
    assert [row[0].text for row in found] == ["Anna {name} hat %s", "Anna hat", "⟦1⟧ hat {x}"]
    assert translator.engine.searched == ["Anna ⟦1⟧ hat ⟦2⟧", "Anna hat", "⟦2⟧ hat ⟦3⟧"]
