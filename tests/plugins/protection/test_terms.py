"""Glossaries: files, terms in lines and in the tokens of a vocabulary, and translations."""

import json
import random
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from nmt.commands import compose
from nmt.config import DecodeConfig, ModelConfig, NMTError, TokenizerConfig
from nmt.items.finder import Finder
from nmt.model import Transformer
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.glossary_files import read_glossary
from nmt.plugins.protection.occurrences import term_words
from nmt.plugins.protection.phrases import (
    BEGINS,
    CONTINUES,
    EDGE,
    FOLLOWS,
    GLUED,
    kinds_of_tokens,
    phrases_of,
)
from nmt.plugins.protection.term_stage import Terms, constraint_of
from nmt.plugins.protection.terms import judge
from nmt.search import TorchEngine
from nmt.text import TARGET, train_tokenizer
from nmt.translation import (
    Limits,
    Line,
    Segment,
    Translation,
    Translator,
    load_translator,
    what_affects_output,
)


@pytest.mark.parametrize(
    ("content", "terms"),
    [
        (b"\xef\xbb\xbfprinter\tDrucker", [("printer", ("Drucker",), False)]),
        (
            b"# a\n\n \nUS\tUSA\tcase\r\nus\tuns\t\n",
            [("US", ("USA",), True), ("us", ("uns",), False)],
        ),
        (
            b"house\tHaus\nHouse\tGeb\xc3\xa4ude\nhouse\tHaus\n",
            [("house", ("Haus", "Gebäude"), False)],
        ),
        (b"  open   file\t Datei  \xc3\xb6ffnen\n", [("open file", ("Datei öffnen",), False)]),
    ],
)
def test_glossaries_with_tabs(tmp_path, content, terms):
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    assert list(read_glossary(str(path)).terms.values()) == terms


@pytest.mark.parametrize(
    ("content", "terms"),
    [
        ("printer,Drucker\n", [("printer", ("Drucker",), False)]),
        (
            "# a comment\n\nUS;USA;case\nus;uns;\n",
            [("US", ("USA",), True), ("us", ("uns",), False)],
        ),
        ('"yes, please","ja, ""bitte"""\n', [("yes, please", ('ja, "bitte"',), False)]),
    ],
)
def test_glossaries_with_commas_or_semicolons(tmp_path, content, terms):
    path = tmp_path / "terms.csv"
    path.write_text(content)
    assert list(read_glossary(str(path)).terms.values()) == terms


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("terms.tsv", b"a\tb\nprinter Drucker\n", "line 2: .*no tab"),
        ("terms.tsv", b"printer\t\n", "line 1: .*the target is empty"),
        ("terms.tsv", b"a\tb\tcase\tmore\n", "line 1: .*only a tab and"),
        ("terms.tsv", b"a\tb\nfu\xdf\tfoot\n", "line 2: .*invalid UTF-8"),
        (
            "terms.csv",
            b"a,b\nprinter Drucker\n",
            "line 2: no comma: write a term, a comma and its translation",
        ),
        ("terms.csv", b"a;b\nc;d\ne;f;x\n", 'line 3: only a semicolon and "case"'),
        ("terms.csv", b'a,b\n"c,d\n', "line 2: not valid CSV"),
    ],
)
def test_invalid_glossaries_are_refused_with_the_line(tmp_path, name, content, problem):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(NMTError, match=rf"{name}, {problem}"):
        read_glossary(str(path))


def glossary(*entries: str) -> Glossary:
    """A glossary of entries such as US=USA=case."""
    rows = []
    for entry in entries:
        source, target, *more = entry.split("=")
        rows.append((source, target, more == ["case"]))
    return Glossary(rows)


@pytest.mark.parametrize(
    ("entries", "line", "terms"),
    [
        (["US=USA=case", "us=uns"], "us in the US", ["us", "US"]),
        (["US City=1=case", "us=2"], "us City, US city, US City", ["us", "US", "US City"]),
        (["C++=C++"], "C++ and C", ["C++"]),
        (["a b=1", "b c d=2", "b=3", "a=4"], "a b c d, b c a", ["a b", "b", "a"]),
        (["東京=Tokyo"], "私は東京に", ["東京"]),
        (["Straße=road"], "STRASSE", ["STRASSE"]),
    ],
)
def test_terms_are_whole_words_the_longest_at_each_place(entries, line, terms):
    matches = glossary(*entries).find(line)
    assert [line[match.begin : match.end] for match in matches] == terms


@pytest.mark.parametrize(
    ("entries", "line", "translation", "verdicts"),
    [
        (["printer=Drucker"], "the printers printer", "mit den Druckern", ["missed"]),
        (["printer=Drucker"], "printer, printer", "Geräten Druckern Drucker", ["used", "missed"]),
        (["open file=Datei öffnen"], "open file", "öffnen Datei", ["missed"]),
        (["open=öffnen"], "open it", "Öffnen Sie", ["used"]),
        (["York=York", "New York=New York"], "New York, York", "New York", ["used", "missed"]),
        (["npm=npm"], "npm", "Npm", ["missed"]),
    ],
)
def test_verdicts(entries, line, translation, verdicts):
    terms = glossary(*entries)
    assert judge(terms.find(line), translation) == [verdict == "used" for verdict in verdicts]
    best = Translation(translation, 0.0, 0.0)
    fields = Terms(terms, KINDS["bpe"], Finder([])).report(line, best)["terms"]
    assert [term["verdict"] for term in fields] == verdicts
    assert bool(best.notes) == ("missed" in verdicts)


WORDS = [
    "Haus",
    "haus",
    "Drucker",
    "öffnen",
    "die",
    "Datei",
    "Tür",
    "iPhone",
    "3D",
    "New",
    "York",
    "für",
]
TEXT = [" ".join(random.Random(n).choices(WORDS, k=7)) + "." for n in range(60)]
SIZES = {"bpe": 320, "unigram": 320, "wordpiece": 600}
KINDS = {kind: train_tokenizer(TEXT, TokenizerConfig(kind, size)) for kind, size in SIZES.items()}
PAIRS = [
    ("house", "Haus"),
    ("door", "Tür"),
    ("open file", "Datei öffnen"),
    ("iPhone", "iPhone"),
    ("printer", "Drucker"),
    ("printer", "Gerät-X"),
    ("open", "öffnen"),
    ("x", "ŁŹ ☃"),
]
GLOSSARY = Glossary((source, target, False) for source, target in PAIRS)


def translator(kind: str = "bpe", limits: Limits | None = None, **search) -> Translator:
    tokenizer = KINDS[kind]
    torch.manual_seed(1)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2}
    model = Transformer(ModelConfig(name="tiny", **shape), tokenizer.vocabulary_size)
    config = DecodeConfig(**{"beam_size": 3, "max_extra_length": 8, **search})
    engine = TorchEngine([model], config)
    stage = Terms(GLOSSARY, tokenizer, Finder(["usual"]))
    return Translator(engine, tokenizer, limits or Limits(), stages=(stage,))


def segments(made: Translator, line: str) -> list[Segment]:
    return made.segmenter.segment([Line(line)])[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["Datei öffnen", "ŁŹ ☃", "C++", "3D", "東京", "haustür"])
def test_phrases_spell_their_text_after_any_words(kind, text):
    tokenizer = KINDS[kind]
    is_without_blanks = text == "東京"
    [begin] = phrases_of(tokenizer, text, BEGINS)
    follow, *follow_unspaced = phrases_of(tokenizer, text, FOLLOWS)
    glued = phrases_of(tokenizer, text, GLUED)
    assert tokenizer.decode(begin.tokens) == text

    [before] = tokenizer.encode(["Die Tür für"], TARGET)
    assert tokenizer.decode([*before, *follow.tokens]) == f"Die Tür für {text}"
    unspaced = [tokenizer.decode([*before, *phrase.tokens]) for phrase in follow_unspaced]
    assert unspaced == ([f"Die Tür für{text}"] if is_without_blanks else [])

    [hyphen] = tokenizer.encode(["Die-"], TARGET)
    assert {tokenizer.decode([*hyphen, *phrase.tokens]) for phrase in glued} == {f"Die-{text}"}

    ends_with_word = text[-1].isalnum() and not is_without_blanks
    for phrase in (begin, follow, *follow_unspaced, *glued):
        assert phrase.closed is ends_with_word


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_tokens(kind):
    """Letters without a blank before them continue a word; words can follow most signs."""
    tokenizer = KINDS[kind]
    kinds = kinds_of_tokens(tokenizer)
    for line in TEXT[:20]:
        [ids] = tokenizer.encode([line], TARGET)
        for at in range(1, len(ids)):
            before = tokenizer.decode(ids[:at])
            after = tokenizer.decode(ids[: at + 1])
            if "\ufffd" in before + after:  # within a character
                continue
            first_character = after[len(before) :][:1]
            last_character = after[-1]
            is_edge = not last_character.isalnum() and last_character not in ".,;:!?)"
            assert bool(kinds[ids[at]] & CONTINUES) == first_character.isalnum()
            assert bool(kinds[ids[at]] & EDGE) == is_edge


TERMS_AND_WORDS = ["house", "Door", "open file", "iPhone", "printer", "x", "open", "a", ",", "the"]
words = st.lists(st.sampled_from(TERMS_AND_WORDS), max_size=6)


@pytest.mark.slow
@given(
    st.lists(words.map(" ".join), min_size=1, max_size=4),
    st.sampled_from(list(KINDS)),
    st.integers(1, 4),
)
@settings(max_examples=15, deadline=None)
def test_translations_have_each_term_of_their_line_as_a_word(lines, kind, beam):
    made = translator(kind, beam_size=beam, n_best=beam, max_extra_length=60)
    for line, row in zip(lines, made.translate(lines), strict=True):
        matches = GLOSSARY.find(line)
        for translation in row:
            assert all(judge(matches, translation.text))


@pytest.mark.parametrize(
    ("line", "begins", "elsewhere"),
    [
        ("Open", {"Öffnen"}, {"öffnen", "Öffnen"}),
        ("So open", {"Öffnen"}, {"öffnen"}),
        ("so Open", {"öffnen", "Öffnen"}, {"öffnen", "Öffnen"}),
        ("A printer", {"Drucker", "Gerät-X"}, {"Drucker", "Gerät-X"}),
    ],
)
def test_capitals_follow_the_source(line, begins, elsewhere):
    tokenizer = KINDS["bpe"]
    [match] = GLOSSARY.find(line)
    phrases = constraint_of(tokenizer, match, capital=line[0].isupper())
    texts = {where: set() for where in (BEGINS, FOLLOWS, GLUED)}
    for phrase in phrases:
        texts[phrase.where].add(tokenizer.decode(phrase.tokens))
    assert texts == {BEGINS: begins, FOLLOWS: elsewhere, GLUED: elsewhere}


def test_terms_constrain_the_segment_that_contains_them():
    pytest.importorskip("nmt.sentences.splitting")
    made = translator(limits=Limits(split=True, longest=30, language="en"), max_extra_length=30)
    [stage] = made.stages
    line = "The house is here. An old door. A printer!"
    constraints = stage.constraints(segments(made, line))
    texts = []
    for row in constraints.rows:
        phrases = chain.from_iterable(row)
        texts.append({KINDS["bpe"].decode(phrase.tokens) for phrase in phrases})
    assert texts == [{"Haus"}, {"Tür"}, {"Drucker", "Gerät-X"}]


def test_terms_in_parts_of_a_long_sentence_are_used():
    pytest.importorskip("nmt.sentences.splitting")
    made = translator(limits=Limits(split=True, longest=8, language="en"), max_extra_length=30)
    line = "door and and house and and iPhone and and printer and and and"
    assert len(segments(made, line)) > 3
    [[best]] = made.translate([line])
    assert sum(judge(GLOSSARY.find(line), best.text)) >= 2


@pytest.mark.parametrize(
    ("line", "terms"),
    [
        ("delete door.conf", []),
        ("open file house.conf in the house", ["open file", "house"]),
        ("open file.conf", ["open"]),
        ("`house` or {door}, https://a.org/printer", []),
    ],
)
def test_protected_items_have_no_terms(line, terms):
    made = translator(max_extra_length=30)
    [stage] = made.stages
    constraints = stage.constraints(segments(made, line)[:1])
    row = constraints.rows[0] if constraints else []
    assert len(row) == len(terms)
    report = stage.report(line, Translation("x", 0, 0))
    assert [term["source"] for term in report["terms"]] == terms


TERMS = "ka\tWort\nlo mi\tnu\nlo mi\tZwei Worte\nKA\tKA\tcase\n"
LINES = "ka lo mi so\nnothing\nKA pe\n"


@pytest.fixture
def terms(tmp_path) -> str:
    (tmp_path / "in").write_text(LINES * 60)
    (tmp_path / "terms.tsv").write_text(TERMS)
    return str(tmp_path / "terms.tsv")


def words_in(text: str) -> set[str]:
    return {text[begin:end] for begin, end in term_words(text)}


@pytest.mark.slow
def test_terms_are_in_the_translations_and_in_the_report(nmt, checkpoint, terms):
    more = ["decode.max_length=8", "format=jsonl", "decode.n_best=2"]
    done = nmt("translate", checkpoint, "in", f"glossary={terms}", *more)
    assert "glossary" not in done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["source"] for record in records] == LINES.splitlines() * 60
    assert [len(record["terms"]) for record in records] == [2, 0, 1] * 60
    required = {"ka lo mi so": {"Wort", "nu"}, "nothing": set(), "KA pe": {"KA"}}
    for record in records:
        for translation in record["translations"]:
            # The two translations of "lo mi" are equally acceptable.
            text = translation["text"].replace("Zwei Worte", "nu")
            assert required[record["source"]] <= words_in(text)


def test_missing_terms_are_reported(nmt, checkpoint, terms):
    done = nmt("translate", checkpoint, "in", f"glossary={terms}", "decode.max_length=1")
    assert "line 1: the translation of a glossary term is missing: 'ka'" in done.err
    assert done.err.endswith("120 lines: the translation of a glossary term is missing\n")


def test_glossaries_are_refused_with_sampling(nmt, checkpoint, terms):
    done = nmt("translate", checkpoint, f"glossary={terms}", "decode.do_sample=true")
    done.refused("not supported with decode.do_")


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "n_best"), [("float32", 1), ("float32", 2), ("int8", 1)])
def test_torch_searches_again_only_for_lines_whose_translation_lacks_a_term(
    word_model, terms, precision, n_best
):
    pytest.importorskip("ctranslate2")
    lines = ["va so tu pe mika.", "ri so ka", "mika nu nu pe.", "ri pelowe mika."]
    notices = list[str]()

    def translated(*words: str) -> list[list[Translation]]:
        usual = ["format=jsonl", f"decode.n_best={n_best}", "threads=1", f"run={word_model}"]
        options = compose("translate", [*usual, *words]).translator
        return load_translator(options, notices.append).translate(lines)

    def texts(rows: list[list[Translation]]) -> list[list[str]]:
        return [[translation.text for translation in row] for row in rows]

    ctranslate2 = ("engine=ctranslate2", f"precision={precision}")
    free = translated(*ctranslate2)
    # CTranslate2's best translation has this term, but not every other one.
    Path(terms).write_text("nu nu\tun un\n")
    assert (translated(*ctranslate2, f"glossary={terms}") == free) == (n_best == 1)
    assert ("torch" in "".join(notices)) == (n_best > 1)

    Path(terms).write_text("nu nu\tun un\npelowe\tut\n")
    forced = translated(*ctranslate2, f"glossary={terms}")
    assert forced[1] == free[1]
    assert [row[0] for row in forced[:3]] == [row[0] for row in free[:3]]
    assert texts(forced) == texts(translated("engine=torch", f"glossary={terms}"))
    for row, term in zip(texts(forced)[2:], ("un un", "ut"), strict=True):
        assert all(term in text for text in row)
    for translation in chain(*forced):
        total = sum(translation.details.token_log_probabilities)
        assert translation.log_probability == pytest.approx(total, abs=5e-3)
    notice = (
        "also loading engine=torch precision=float32, because a translation lacks a required term"
    )
    assert notices[-1] == notice


def test_a_file_is_resumed_only_with_the_same_terms(checkpoint, terms, tmp_path):
    config = compose("translate", [f"run={checkpoint}", f"glossary={terms}"])
    before = what_affects_output(config)
    (tmp_path / "terms.tsv").write_text(TERMS + "pe\tnu\n")
    assert what_affects_output(config) != before
