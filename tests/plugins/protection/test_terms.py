"""Terms in the tokens of a vocabulary, in segments, and in whole translations."""

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig
from nmt.model import Transformer
from nmt.plugins.protection.constraints import BEGINS, CONTINUES, EDGE, FOLLOWS, GLUED
from nmt.plugins.protection.items import Finder
from nmt.plugins.protection.terms import Glossary, Terms, constraint_of, judge, kinds, phrases
from nmt.search import TorchEngine
from nmt.text import TARGET, train_tokenizer
from nmt.translation import Limits, Line, Segment, Translation, Translator

WORDS = ["Haus", "haus", "Drucker", "öffnen", "die", "Datei", "Tür", "iPhone", "3D", "New", "York", "für"]
TEXT = [" ".join(random.Random(n).choices(WORDS, k=7)) + "." for n in range(60)]
SIZES = {"bpe": 320, "unigram": 320, "wordpiece": 600}
KINDS = {kind: train_tokenizer(TEXT, TokenizerConfig(kind, size)) for kind, size in SIZES.items()}
PAIRS = [("house", "Haus"), ("door", "Tür"), ("open file", "Datei öffnen"), ("iPhone", "iPhone")]
PAIRS += [("printer", "Drucker"), ("printer", "Gerät-X"), ("open", "öffnen"), ("x", "ŁŹ ☃")]
GLOSSARY = Glossary((source, target, False) for source, target in PAIRS)


def translator(kind: str = "bpe", limits: Limits | None = None, **search) -> Translator:
    tokenizer = KINDS[kind]
    torch.manual_seed(1)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2}
    model = Transformer(ModelConfig(name="tiny", **shape), tokenizer.vocabulary_size)
    engine = TorchEngine([model], DecodeConfig(**{"beam_size": 3, "max_extra_length": 8, **search}))
    return Translator(engine, tokenizer, limits or Limits(), stages=(Terms(GLOSSARY, tokenizer, Finder(["usual"])),))


def segments(made: Translator, line: str) -> list[Segment]:
    return made.segmenter.segment([Line(line)])[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["Datei öffnen", "ŁŹ ☃", "C++", "3D", "東京", "haustür"])
def test_phrases_spell_their_text_behind_any_words(kind, text):
    tokenizer = KINDS[kind]
    [begin], others, glued = (phrases(tokenizer, text, where) for where in (BEGINS, FOLLOWS, GLUED))
    assert tokenizer.decode(begin.tokens) == text
    before = tokenizer.encode(["Die Tür für"], TARGET)[0]
    assert tokenizer.decode([*before, *others[0].tokens]) == f"Die Tür für {text}"
    assert [tokenizer.decode([*before, *other.tokens]) for other in others[1:]] == [f"Die Tür für{text}"] * (
        text == "東京"
    )
    hyphen = tokenizer.encode(["Die-"], TARGET)[0]
    assert {tokenizer.decode([*hyphen, *phrase.tokens]) for phrase in glued} == {f"Die-{text}"}
    assert all(phrase.closed is (text[-1].isalnum() and text != "東京") for phrase in (begin, *others, *glued))


@pytest.mark.parametrize("kind", KINDS)
def test_what_continues_a_word_are_letters_behind_no_blank(kind):
    tokenizer = KINDS[kind]
    for line in TEXT[:20]:
        ids = tokenizer.encode([line], TARGET)[0]
        for at in range(1, len(ids)):
            before, after = tokenizer.decode(ids[:at]), tokenizer.decode(ids[: at + 1])
            if "\ufffd" not in before + after:
                joined = after[len(before) :][:1]
                assert bool(kinds(tokenizer)[ids[at]] & CONTINUES) == joined.isalnum()
                glues = not after[-1].isalnum() and after[-1] not in ".,;:!?)"
                assert bool(kinds(tokenizer)[ids[at]] & EDGE) == glues


words = st.lists(
    st.sampled_from(["house", "Door", "open file", "iPhone", "printer", "x", "open", "a", ",", "the"]), max_size=6
)


@given(st.lists(words.map(" ".join), min_size=1, max_size=4), st.sampled_from(list(KINDS)), st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_each_term_of_a_line_is_in_its_translation_as_a_word(lines, kind, beam):
    made = translator(kind, beam_size=beam, n_best=beam, max_extra_length=30)
    for line, found in zip(lines, made.translate(lines), strict=True):
        for each in found:
            assert all(judge(GLOSSARY.find(line), each.text))


@pytest.mark.parametrize(
    ("line", "begins", "elsewhere"),
    [
        ("Open", {"Öffnen"}, {"öffnen", "Öffnen"}),
        ("So open", {"Öffnen"}, {"öffnen"}),
        ("so Open", {"öffnen", "Öffnen"}, {"öffnen", "Öffnen"}),
        ("IPhone", {"iPhone"}, {"iPhone"}),
        ("A printer", {"Drucker", "Gerät-X"}, {"Drucker", "Gerät-X"}),
    ],
)
def test_capitals_follow_the_source(line, begins, elsewhere):
    [match] = GLOSSARY.find(line)
    found = constraint_of(KINDS["bpe"], match, line[0].isupper())
    written = [{KINDS["bpe"].decode(p.tokens) for p in found if p.where == where} for where in (BEGINS, FOLLOWS, GLUED)]
    assert written == [begins, elsewhere, elsewhere]


def test_terms_go_with_the_segment_that_they_stand_in():
    made = translator(limits=Limits(split=True, longest=30, language="en"), max_extra_length=30)
    constraints = made.stages[0].constraints(segments(made, "The house is here. An old door. A printer!"))
    written = [{KINDS["bpe"].decode(p.tokens) for c in row for p in c} for row in constraints.rows]
    assert written == [{"Haus"}, {"Tür"}, {"Drucker", "Gerät-X"}]
    made = translator(limits=Limits(split=True, longest=8, language="en"), max_extra_length=30)
    line = "door and and house and and iPhone and and printer and and and"
    assert len(segments(made, line)) > 3
    [[found]] = made.translate([line])
    assert sum(judge(GLOSSARY.find(line), found.text)) >= 2


@pytest.mark.parametrize(
    ("line", "terms"),
    [
        ("delete door.conf", []),
        ("open file house.conf in the house", ["open file", "house"]),
        ("open file.conf", ["open"]),
        ("`house` or {door}, https://a.org/printer", []),
    ],
)
def test_what_is_protected_has_no_terms(line, terms):
    made = translator(max_extra_length=30)
    [stage] = made.stages
    constraints = stage.constraints(segments(made, line)[:1])
    assert len(constraints.rows[0] if constraints else []) == len(terms)
    assert [term["source"] for term in stage.report(line, Translation("x", 0, 0))["terms"]] == terms


def test_lines_without_terms_and_a_prefix_of_the_target():
    made = translator(n_best=2)
    free = replace(made, stages=())
    lines = ["a b c", "the house", "d e"]
    found, plain = made.translate(lines), free.translate(lines)
    for row, other in ((found[0], plain[0]), (found[2], plain[2])):
        assert [best.text for best in row] == [best.text for best in other]
        assert [best.score for best in row] == pytest.approx([best.score for best in other], abs=1e-4)
    begun = replace(made, target_prefix="Die Tür")
    for each in begun.translate(["the house"])[0]:
        assert each.text.startswith("Die Tür")
        assert "Haus" in each.text.replace(",", " ").split()
