"""Packages for Argos Translate: what they hold, what they make of text, and which models cannot go."""

import json
import random
import re
import unicodedata
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ctranslate2")

from safetensors.numpy import load_file
from sentencepiece import SentencePieceProcessor
from test_export import LINES, make

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.errors import NMTError
from nmt.files import read_tokenizer, sha256
from nmt.plugins.exchange.argos_sentences import sentences
from nmt.plugins.exchange.export import ExportConfig, export
from nmt.plugins.exchange.protobuf import message, varint
from nmt.plugins.exchange.to_argos import SEARCH, sentencepiece_model, spellings
from nmt.text import Tokenizer, clean, language_name, train_tokenizer

NAME = "translate-en_de-1_0"
MEMBERS = [
    *("metadata.json", "sentencepiece.model", "model/config.json", "model/shared_vocabulary.json", "model/model.bin"),
    *("minisbd/sentences.onnx", "README.md"),
]
ODD = [
    *("", "   ", "\u3000", "\uff2b\uff41 nu", "cafe\u0301 \ufb01 \u2460", "a\tb\u00a0c\u2028d\x1ce\r", "\U0001f600"),
    *("\u2581ka \ue000 a\u2581", "a\u0323\u0302 \u00e2\u0323 \u1ea1\u0302 a\u0302\u0323", "\u0041\u030a \u212b"),
    *("\uff76\uff9e \u1100\u1161\u11a8", "\ufdfa", "\u200bx\u00ad\ufeff", "ka_nu", " ka  nu "),
]


def said(model: Path, output: Path | None = None, **settings) -> list[str]:
    config = ExportConfig(str(model), "argos", output=output and str(output), decode=DecodeConfig(), **settings)
    return list(export(config, lambda words: None))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([*LINES, "a\u0323 cafe \u00e9 K"], TokenizerConfig("bpe", 320))


@pytest.fixture(scope="module")
def packaged(tokenizer) -> SentencePieceProcessor:
    """The model for Argos, which is given text as it is."""
    return SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_package_is_the_same_bytes_each_time_and_lies_in_one_folder(tmp_path, precision):
    model, first, second = make(tmp_path), tmp_path / "1.argosmodel", tmp_path / "new" / "2.argosmodel"
    for output in (first, second):
        assert said(model, output, precision=precision)[0] == (
            f"{output}: {model} with format=argos precision={precision}"
        )
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.namelist() == [f"{NAME}/{name}" for name in MEMBERS]
        described = json.loads(archive.read(f"{NAME}/metadata.json"))
    names = {"from_name": language_name("en"), "to_name": language_name("de")}
    assert described == {
        **{"package_version": "1.0", "argos_version": "1.11.0", "from_code": "en", "to_code": "de", "links": []},
        **names,
    }


def test_languages_have_names_where_babel_is_there():
    pytest.importorskip("babel")
    assert [language_name(code) for code in ("de", "zh-Hant", "pt_BR", "xx", "no language")] == [
        *("German", "Chinese (Traditional)", "Portuguese (Brazil)", "xx", "no language")
    ]


def test_a_sample_is_compared_and_the_card_says_so(tmp_path):
    model = make(tmp_path)
    (tmp_path / "sample").write_text("\n".join([*LINES, *LINES[:2], ""]) + "\n")
    first, share, *rest = said(model, sample=str(tmp_path / "sample"))
    path = model / f"{NAME}.argosmodel"
    assert first.startswith(f"{path}: ")
    same = int(re.match(r"(\d+) of 15 lines", share)[1])
    assert same >= 10  # a random model: both searches stop at other places
    [certificate] = [line for line in rest if line.startswith("log P of ")]
    assert float(re.search(r"within (\S+) a token", certificate)[1]) < 1e-4
    with zipfile.ZipFile(path) as archive:
        assert "\n".join([share, *rest]) in archive.read(f"{NAME}/README.md").decode()
        assert archive.namelist() == [f"{NAME}/{name}" for name in MEMBERS]


def test_a_package_comes_back_with_the_same_weights(tmp_path, nmt):
    model = make(tmp_path)
    said(model)
    done = nmt("import", str(model / f"{NAME}.argosmodel"), f"output={tmp_path}/back")
    assert done.code == 0, done.err
    before, after = (load_file(folder / "model.safetensors") for folder in (model, tmp_path / "back"))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    found = read_tokenizer(tmp_path / "back")
    assert [found.encode([line])[0] for line in ODD] == [read_tokenizer(model).encode([clean(line)])[0] for line in ODD]


@pytest.mark.parametrize("line", ODD, ids=ascii)
def test_text_becomes_the_pieces_of_the_clean_line(tokenizer, packaged, line):
    assert packaged.encode(line) == tokenizer.encode([clean(line)])[0]


def test_every_character_and_its_decomposition_becomes_the_pieces_of_the_clean_line(tokenizer, packaged):
    letters = [chr(n) for n in range(1, 0x110000) if unicodedata.category(chr(n)) not in ("Cn", "Cs", "Co", "Lo")]
    for lines in (letters, [unicodedata.normalize("NFD", letter) for letter in letters]):
        ours = tokenizer.encode([clean(line) for line in lines])
        assert [
            ascii(line) for line, one, other in zip(lines, ours, packaged.encode(lines), strict=True) if one != other
        ] == []


def test_accents_in_any_order_are_one_letter():
    assert set(spellings("\u1ead")) == {"a\u0323\u0302", "\u1ea1\u0302", "a\u0302\u0323", "\u00e2\u0323"}
    assert list(spellings("\u00e9")) == list(spellings("x")) == []


def test_pieces_become_text_with_what_was_escaped(tokenizer, packaged):
    for line in ODD:
        ids = tokenizer.encode([clean(line)])[0]
        pieces = [packaged.id_to_piece(number) for number in ids]
        assert packaged.decode_pieces(pieces) == tokenizer.decode(ids)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        (" \t ", []),
        ("Up to ten", ["Up to ten"]),
        ("Yes. No. So it is.", ["Yes.", "No.", "So it is."]),
        ('He said "Go!" They went.', ['He said "Go!"', "They went."]),
        ("That is, e.g. this... and that.  End", ["That is, e.g. this... and that.", "End"]),
        ("\u4eca\u65e5\u3002\u300c\u884c\u304f\u3002\u300d\u306f\u3044\uff01\uff1f\u305d\u3046",
         ["\u4eca\u65e5\u3002", "\u300c\u884c\u304f\u3002\u300d", "\u306f\u3044\uff01\uff1f", "\u305d\u3046"]),
        ("\u0412\u043e\u0442. \u0414\u0430. \u0438 ...", ["\u0412\u043e\u0442.", "\u0414\u0430. \u0438 ..."]),
    ],
)  # fmt: skip
def test_sentences(line, expected):
    assert sentences(line, 8) == ([line.strip()] if len(expected) == 1 else expected)
    assert sentences(line, 99) == ([" ".join(line.split())] if expected else [])


def test_messages_of_protocol_buffers():
    """The examples of its page on encoding."""
    assert varint(150) == bytes.fromhex("9601")
    assert message((1, 150)) == bytes.fromhex("089601")
    assert message((2, "testing")) == bytes.fromhex("120774657374696e67")
    assert message((3, message((1, 150)))) == bytes.fromhex("1a03089601")


def test_what_the_search_of_argos_finds_is_what_ours_finds_with_its_keys(tmp_path):
    """A package is compared with a search of the same keys, whatever decode says."""
    assert replace(SEARCH, batch_tokens=1) == DecodeConfig(
        4, 0.2, "marian", max_length=256, max_extra_length=256, batch_tokens=1
    )


def test_models_that_cannot_go_are_refused_in_one_line(tmp_path, nmt):
    model = make(tmp_path)
    for words, *expected in (
        (["output=x"], "output=x", "a file, whose name ends in .argosmodel"),
        (["decode=greedy"], "format=argos", "its own search"),
        (["precision=int4"], "precision=int4", "float32, int8"),
    ):
        nmt("export", str(model), "format=argos", *words).refused(*expected)
    (tmp_path / "mine.argosmodel").write_bytes(b"dear")
    nmt("export", str(model), "format=argos", f"output={tmp_path}/mine.argosmodel").refused("not of nmt")
    assert (tmp_path / "mine.argosmodel").read_bytes() == b"dear"
    for changes, expected in (({"source": "und"}, "'und' and 'de'"), ({"target": "two words"}, "'two words'")):
        changed(model, **changes)
        nmt("export", str(model), "format=argos").refused(expected, "source=")
        changed(model, source="en", target="de")
    for kind, tags, expected in (
        ("wordpiece", [], "tokenizer.kind=bpe"),
        ("bpe", ["<2de>", "<2fr>"], "pass target=, of de, fr"),
    ):
        tokenizer = train_tokenizer(LINES, TokenizerConfig(kind, 600), tags=tags)
        tokenizer.save(model / "tokenizer.model")
        changed(model, tokenizer=sha256(model / "tokenizer.model"), vocabulary_size=tokenizer.vocabulary_size)
        nmt("export", str(model), "format=argos").refused("format=argos", expected)
    assert not list(model.glob("*.argosmodel"))


def changed(model: Path, **keys) -> None:
    path = model / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


@pytest.mark.parametrize(("kind", "target"), [("tied", None), ("separate", None), ("tagged", "fra")])
def test_a_model_of_marian_goes_with_the_vocabulary_of_its_source(tmp_path, nmt, kind, target):
    """Its pieces of the target, which that does not know, are text as well; a tag comes first without being typed."""
    fixture = Path(__file__).parents[2] / "fixtures" / "marian" / kind
    done = nmt("import", str(fixture), f"output={tmp_path}/model", "source=en", "target=de")
    assert done.code == 0, done.err
    lines = [re.sub(">>.*?<<", "", line).strip() for line in (fixture / "test.src").read_text().splitlines()]
    (tmp_path / "sample").write_text("\n".join(lines) + "\n")
    first, share, *rest = said(tmp_path / "model", sample=str(tmp_path / "sample"), target=target)
    assert first.startswith(f"{tmp_path}/model/translate-en_{target or 'de'}-1_0.argosmodel: ")
    same, count = map(int, re.match(r"(\d+) of (\d+) lines", share).groups())
    assert same >= count - 1, share
    [certificate] = [line for line in rest if line.startswith("log P of ")]
    assert float(re.search(r"within (\S+) a token", certificate)[1]) < 1e-4


def test_a_bare_exported_folder_is_no_model_to_export(tmp_path):
    model = make(tmp_path)
    list(export(ExportConfig(str(model), output=str(tmp_path / "out"), decode=DecodeConfig()), lambda words: None))
    with pytest.raises(NMTError, match="exported already"):
        said(tmp_path / "out")


def test_random_lines_are_split_without_losing_anything():
    chance = random.Random(1)
    for _ in range(300):
        line = "".join(chance.choices("aB .!?\"'\u3002\u300d\t1", k=chance.randint(0, 30)))
        assert "".join("".join(sentences(line, 5)).split()) == "".join(line.split())
