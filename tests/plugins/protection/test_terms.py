"""Glossaries: their files, terms in lines and in the tokens of a vocabulary, and whole translations."""

import json
import random
from itertools import chain
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from nmt.commands import compose
from nmt.config import DecodeConfig, ModelConfig, NMTError, TokenizerConfig
from nmt.model import Transformer
from nmt.plugins.protection.finder import Finder
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


def test_a_file_of_terms(tmp_path):
    for content, entries in (
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
    ):
        (tmp_path / "terms.tsv").write_bytes(content)
        assert list(read_glossary(str(tmp_path / "terms.tsv")).terms.values()) == entries


def test_a_file_of_terms_separated_by_commas_or_semicolons(tmp_path):
    path = tmp_path / "terms.csv"
    for content, entries in (
        ("printer,Drucker\n", [("printer", ("Drucker",), False)]),
        (
            "# a comment\n\nUS;USA;case\nus;uns;\n",
            [("US", ("USA",), True), ("us", ("uns",), False)],
        ),
        ('"yes, please","ja, ""bitte"""\n', [("yes, please", ('ja, "bitte"',), False)]),
    ):
        path.write_text(content)
        assert list(read_glossary(str(path)).terms.values()) == entries
    for content, problem in (
        ("a,b\nprinter Drucker\n", "line 2: no comma: write a term, a comma and its translation"),
        ("a;b\nc;d\ne;f;x\n", 'line 3: only a semicolon and "case"'),
        ('a,b\n"c,d\n', "line 2: not valid CSV"),
    ):
        path.write_text(content)
        with pytest.raises(NMTError, match=rf"terms\.csv, {problem}"):
            read_glossary(str(path))


def test_what_is_no_file_of_terms_is_named_with_its_line(tmp_path):
    for content, line, problem in (
        (b"a\tb\nprinter Drucker\n", 2, "no tab"),
        (b"printer\t\n", 1, "the target is empty"),
        (b"a\tb\tcase\tmore\n", 1, "only a tab and"),
        (b"a\tb\nfu\xdf\tfoot\n", 2, "invalid UTF-8"),
    ):
        (tmp_path / "terms.tsv").write_bytes(content)
        with pytest.raises(NMTError, match=rf"terms.tsv, line {line}: .*{problem}"):
            read_glossary(str(tmp_path / "terms.tsv"))


def glossary(*entries: str) -> Glossary:
    return Glossary([(*entry.split("=")[:2], entry.endswith("=case")) for entry in entries])


def test_terms_are_whole_words_the_longest_at_each_place():
    for entries, line, found in (
        (["US=USA=case", "us=uns"], "us in the US", ["us", "US"]),
        (["US City=1=case", "us=2"], "us City, US city, US City", ["us", "US", "US City"]),
        (["C++=C++"], "C++ and C", ["C++"]),
        (["a b=1", "b c d=2", "b=3", "a=4"], "a b c d, b c a", ["a b", "b", "a"]),
        (["東京=Tokyo"], "私は東京に", ["東京"]),
        (["Straße=road"], "STRASSE", ["STRASSE"]),
    ):
        assert [line[match.begin : match.end] for match in glossary(*entries).find(line)] == found


def test_verdicts():
    for entries, line, translation, verdicts in (
        (["printer=Drucker"], "the printers printer", "mit den Druckern", ["missed"]),
        (["printer=Drucker"], "printer, printer", "Geräten Druckern Drucker", ["used", "missed"]),
        (["open file=Datei öffnen"], "open file", "öffnen Datei", ["missed"]),
        (["open=öffnen"], "open it", "Öffnen Sie", ["used"]),
        (["York=York", "New York=New York"], "New York, York", "New York", ["used", "missed"]),
        (["npm=npm"], "npm", "Npm", ["missed"]),
    ):
        terms, best = glossary(*entries), Translation(translation, 0.0, 0.0)
        assert judge(terms.find(line), translation) == [verdict == "used" for verdict in verdicts]
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
PAIRS = [("house", "Haus"), ("door", "Tür"), ("open file", "Datei öffnen"), ("iPhone", "iPhone")]
PAIRS += [("printer", "Drucker"), ("printer", "Gerät-X"), ("open", "öffnen"), ("x", "ŁŹ ☃")]
GLOSSARY = Glossary((source, target, False) for source, target in PAIRS)


def translator(kind: str = "bpe", limits: Limits | None = None, **search) -> Translator:
    tokenizer = KINDS[kind]
    torch.manual_seed(1)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2}
    model = Transformer(ModelConfig(name="tiny", **shape), tokenizer.vocabulary_size)
    engine = TorchEngine([model], DecodeConfig(**{"beam_size": 3, "max_extra_length": 8, **search}))
    return Translator(
        engine,
        tokenizer,
        limits or Limits(),
        stages=(Terms(GLOSSARY, tokenizer, Finder(["usual"])),),
    )


def segments(made: Translator, line: str) -> list[Segment]:
    return made.segmenter.segment([Line(line)])[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["Datei öffnen", "ŁŹ ☃", "C++", "3D", "東京", "haustür"])
def test_phrases_spell_their_text_behind_any_words(kind, text):
    tokenizer = KINDS[kind]
    [begin], others, glued = (
        phrases_of(tokenizer, text, where) for where in (BEGINS, FOLLOWS, GLUED)
    )
    assert tokenizer.decode(begin.tokens) == text
    before = tokenizer.encode(["Die Tür für"], TARGET)[0]
    assert tokenizer.decode([*before, *others[0].tokens]) == f"Die Tür für {text}"
    unspaced = [tokenizer.decode([*before, *other.tokens]) for other in others[1:]]
    assert unspaced == [f"Die Tür für{text}"] * (text == "東京")
    hyphen = tokenizer.encode(["Die-"], TARGET)[0]
    assert {tokenizer.decode([*hyphen, *phrase.tokens]) for phrase in glued} == {f"Die-{text}"}
    assert all(
        phrase.closed is (text[-1].isalnum() and text != "東京")
        for phrase in (begin, *others, *glued)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_continues_a_word_are_letters_behind_no_blank(kind):
    tokenizer = KINDS[kind]
    for line in TEXT[:20]:
        ids = tokenizer.encode([line], TARGET)[0]
        for at in range(1, len(ids)):
            before, after = tokenizer.decode(ids[:at]), tokenizer.decode(ids[: at + 1])
            if "\ufffd" not in before + after:
                joined = after[len(before) :][:1]
                assert bool(kinds_of_tokens(tokenizer)[ids[at]] & CONTINUES) == joined.isalnum()
                glues = not after[-1].isalnum() and after[-1] not in ".,;:!?)"
                assert bool(kinds_of_tokens(tokenizer)[ids[at]] & EDGE) == glues


TERMS_AND_WORDS = ["house", "Door", "open file", "iPhone", "printer", "x", "open", "a", ",", "the"]
words = st.lists(st.sampled_from(TERMS_AND_WORDS), max_size=6)


@given(
    st.lists(words.map(" ".join), min_size=1, max_size=4),
    st.sampled_from(list(KINDS)),
    st.integers(1, 4),
)
@settings(max_examples=15, deadline=None)
def test_each_term_of_a_line_is_in_its_translation_as_a_word(lines, kind, beam):
    made = translator(kind, beam_size=beam, n_best=beam, max_extra_length=60)
    for line, found in zip(lines, made.translate(lines), strict=True):
        for each in found:
            assert all(judge(GLOSSARY.find(line), each.text))


def test_capitals_follow_the_source():
    spelled = KINDS["bpe"].decode
    for line, begins, elsewhere in (
        ("Open", {"Öffnen"}, {"öffnen", "Öffnen"}),
        ("So open", {"Öffnen"}, {"öffnen"}),
        ("so Open", {"öffnen", "Öffnen"}, {"öffnen", "Öffnen"}),
        ("A printer", {"Drucker", "Gerät-X"}, {"Drucker", "Gerät-X"}),
    ):
        found = constraint_of(KINDS["bpe"], *GLOSSARY.find(line), line[0].isupper())
        written = [
            {spelled(p.tokens) for p in found if p.where == where}
            for where in (BEGINS, FOLLOWS, GLUED)
        ]
        assert written == [begins, elsewhere, elsewhere]


def test_terms_go_with_the_segment_that_they_stand_in():
    pytest.importorskip("nmt.plugins.sentences.sentences")
    made = translator(limits=Limits(split=True, longest=30, language="en"), max_extra_length=30)
    constraints = made.stages[0].constraints(
        segments(made, "The house is here. An old door. A printer!")
    )
    written = [{KINDS["bpe"].decode(p.tokens) for c in row for p in c} for row in constraints.rows]
    assert written == [{"Haus"}, {"Tür"}, {"Drucker", "Gerät-X"}]
    made = translator(limits=Limits(split=True, longest=8, language="en"), max_extra_length=30)
    line = "door and and house and and iPhone and and printer and and and"
    assert len(segments(made, line)) > 3
    [[found]] = made.translate([line])
    assert sum(judge(GLOSSARY.find(line), found.text)) >= 2


def test_what_is_protected_has_no_terms():
    for line, terms in (
        ("delete door.conf", []),
        ("open file house.conf in the house", ["open file", "house"]),
        ("open file.conf", ["open"]),
        ("`house` or {door}, https://a.org/printer", []),
    ):
        made = translator(max_extra_length=30)
        [stage] = made.stages
        constraints = stage.constraints(segments(made, line)[:1])
        assert len(constraints.rows[0] if constraints else []) == len(terms)
        assert [
            term["source"] for term in stage.report(line, Translation("x", 0, 0))["terms"]
        ] == terms


TERMS = "ka\tWort\nlo mi\tnu\nlo mi\tZwei Worte\nKA\tKA\tcase\n"
LINES = "ka lo mi so\nnothing\nKA pe\n"


@pytest.fixture
def terms(tmp_path) -> str:
    (tmp_path / "in").write_text(LINES * 60)
    (tmp_path / "terms.tsv").write_text(TERMS)
    return str(tmp_path / "terms.tsv")


def test_terms_are_in_the_translations_and_in_the_report(nmt, checkpoint, terms):
    more = ["decode.max_length=8", "format=jsonl", "decode.n_best=2"]
    done = nmt("translate", checkpoint, "in", f"glossary={terms}", *more)
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [line["source"] for line in records] == LINES.splitlines() * 60
    assert [len(line["terms"]) for line in records] == [2, 0, 1] * 60
    for line in records:
        for translation in line["translations"]:
            text = translation["text"].replace("Zwei Worte", "nu")
            words = [text[begin:end] for begin, end in term_words(text)]
            assert {"Wort", "nu"} <= {*words} or line["source"] != "ka lo mi so"
            assert "KA" in words or line["source"] != "KA pe"
    assert "glossary" not in done.err
    done = nmt("translate", checkpoint, "in", f"glossary={terms}", "decode.max_length=1")
    assert "line 1: the translation of a glossary term is missing: 'ka'" in done.err
    assert done.err.endswith("120 lines: the translation of a glossary term is missing\n")
    nmt("translate", checkpoint, f"glossary={terms}", "decode.do_sample=true").refused(
        "not supported with decode.do_"
    )


@pytest.mark.parametrize(("precision", "n_best"), [("float32", 1), ("float32", 2), ("int8", 1)])
def test_torch_searches_again_only_for_lines_whose_translation_lacks_a_term(
    word_model, terms, precision, n_best
):
    pytest.importorskip("ctranslate2")
    lines, notices = (
        ["va so tu pe mika.", "ri so ka", "mika nu nu pe.", "ri pelowe mika."],
        list[str](),
    )

    def translated(*words: str) -> list[list[Translation]]:
        words = (
            "format=jsonl",
            f"decode.n_best={n_best}",
            "threads=1",
            f"run={word_model}",
            *words,
        )
        return load_translator(compose("translate", [*words]).translator, notices.append).translate(
            lines
        )

    fast = "engine=ctranslate2", f"precision={precision}"
    free = translated(*fast)
    Path(terms).write_text("nu nu\tun un\n")
    assert (translated(*fast, f"glossary={terms}") == free) == (n_best == 1)
    assert ("torch" in "".join(notices)) == (n_best > 1)
    Path(terms).write_text("nu nu\tun un\npelowe\tut\n")
    forced, expected = (
        translated(*fast, f"glossary={terms}"),
        translated("engine=torch", f"glossary={terms}"),
    )
    assert (forced[1], [row[0] for row in forced[:3]]) == (free[1], [row[0] for row in free[:3]])
    assert [[best.text for best in row] for row in forced] == [
        [best.text for best in row] for row in expected
    ]
    assert all(
        term in best.text
        for row, term in zip(forced[2:], ("un un", "ut"), strict=True)
        for best in row
    )
    for best in chain(*forced):
        assert best.log_probability == pytest.approx(
            sum(best.details.token_log_probabilities), abs=5e-3
        )
    assert (
        notices[-1]
        == "also loading engine=torch precision=float32, because a translation lacks a required term"
    )


def test_a_file_is_resumed_only_with_the_same_terms(checkpoint, terms, tmp_path):
    config = compose("translate", [f"run={checkpoint}", f"glossary={terms}"])
    before = what_affects_output(config)
    (tmp_path / "terms.tsv").write_text(TERMS + "pe\tnu\n")
    assert what_affects_output(config) != before
