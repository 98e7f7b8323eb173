"""Lines in, lines out: what separates lines, what the formats hold, and what ends a translation."""

import io
import json
from collections import Counter
from pathlib import Path

import pytest
import torch
from options import translate_config, translator_options

from nmt.config import DecodeConfig
from nmt.errors import NMTError
from nmt.translation import Translation, input_lines, load_translator, report, summarize, translate
from nmt.translation.load import render

LINES = [f"ka {a} lo {b} mi {a}{b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va", "we")]
FIXTURES = Path(__file__).parents[1] / "fixtures" / "marian" / "tied"
BOM = b"\xef\xbb\xbf"
TWO = [Translation("Grüße", -0.123456, -0.5, flags=["number"]), Translation("zwei Wörter", -2.0, -3.0)]


def run(checkpoint: str, folder: Path, content: bytes, **settings) -> bytes:
    """What `translate` writes for a file of this content."""
    (folder / "input").write_bytes(content)
    defaults = {
        "run": checkpoint,
        "input": str(folder / "input"),
        "output": str(folder / "output"),
        "device": "cpu",
        "decode": DecodeConfig(beam_size=2, max_extra_length=3),
    }
    translate(translate_config(**{**defaults, **settings}))
    return (folder / "output").read_bytes()


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\n\n\nb\n", ["a", "", "", "b"]),
        (BOM + b"a\n", ["a"]),
        (BOM + BOM + b"a\n", ["\ufeffa"]),
        (b"a\n" + BOM + b"b\n", ["a", "\ufeffb"]),
        ("Ä\u2028b\x85c\x0bd\x0ce\x1cf\u2029g\n".encode(), ["Ä\u2028b\x85c\x0bd\x0ce\x1cf\u2029g"]),
    ],
)
def test_only_lf_and_crlf_separate_lines(content, lines, capsys):
    assert list(input_lines(io.BytesIO(content))) == lines
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "lines", "warnings"),
    [
        (b"ok\na\xffb\n", ["ok", "a\ufffdb"], ["line 2: invalid UTF-8 at byte 2"]),
        (b"\xc3\nok\n\xfe", ["\ufffd", "ok", "\ufffd"], ["line 1: invalid UTF-8 at byte 1, replaced; further"]),
        (b"a\xed\xa0\x80\n", ["a\ufffd\ufffd\ufffd"], ["line 1: invalid UTF-8 at byte 2"]),
    ],
)
def test_invalid_utf8_is_replaced_with_a_warning_that_names_the_line(content, lines, warnings, capsys):
    assert list(input_lines(io.BytesIO(content))) == lines
    said = capsys.readouterr()
    assert said.out == ""
    for warning, line in zip(warnings, said.err.splitlines(), strict=True):
        assert warning in line


def test_a_line_for_each_translation_in_tsv_and_an_object_for_each_line_in_jsonl():
    assert render(7, "zwei", TWO, "tsv", {}) == "7\t-0.1235\tGrüße\n7\t-2.0000\tzwei Wörter\n"
    line = render(7, "zwei", TWO, "jsonl", {"more": 1})
    assert line.index("Grüße") < line.index("\n") == len(line) - 1
    first = {"text": "Grüße", "score": -0.123456, "log_probability": -0.5, "flags": ["number"]}
    second = {"text": "zwei Wörter", "score": -2.0, "log_probability": -3.0, "flags": []}
    assert json.loads(line) == {"line": 7, "source": "zwei", "translations": [first, second], "more": 1}


def test_a_refusal_leaves_an_earlier_output_as_it_was(checkpoint, tmp_path):
    before = run(checkpoint, tmp_path, b"ka\nlo\n")
    for settings in ({"run": "missing"}, {"device": "abacus"}, {"input": str(tmp_path / "missing")}):
        with pytest.raises(NMTError):
            run(checkpoint, tmp_path, b"mi\n", **settings)
    assert (tmp_path / "output").read_bytes() == before


def test_the_first_line_of_a_kind_is_named_shortly_and_lines_are_counted(capsys):
    pytest.importorskip("nmt.plugins.protection")  # which says what its notes mean
    counts = Counter[str]()
    for number in range(1, 13):
        best = Translation("", 0.0, 0.0, copied=["[" * 100_000], notes={"cut": "is"} if number > 10 else {})
        report((), "", best, f"line {number}", counts)
    summarize(counts)
    said = capsys.readouterr().err.splitlines()
    assert [words.split(":")[1] for words in said[:2]] == [" line 1", " line 11"]
    assert len(said[0]) < 200
    assert [words.partition(" lines ")[0] for words in said[2:]] == ["nmt: 12", "nmt: 2"]


def test_in_bfloat16_torch_finds_nearly_what_float32_finds(word_model):
    lines = (FIXTURES / "test.src").read_text().splitlines()
    found = {}
    for precision in ("float32", "bfloat16"):
        decode = DecodeConfig(beam_size=4)
        options = translator_options(str(word_model), "tokens", device="cpu", precision=precision, decode=decode)
        translator = load_translator(options, lambda words: None)
        weights = {parameter.dtype for parameter in translator.engine.models[0].parameters()}
        assert weights == {getattr(torch, precision)}
        found[precision] = [best[0] for best in translator.translate(lines)]
    same = [pair for pair in zip(*found.values(), strict=True) if pair[0].text == pair[1].text]
    assert len(same) >= 0.9 * len(lines)
    for exact, low in same:
        assert exact.details
        # Eight bits of a logit of 10 are off by 0.04 at most.
        assert abs(low.log_probability - exact.log_probability) < 0.04 * len(exact.details.tokens)
        assert low.log_probability != exact.log_probability
        assert low.details
