"""What is exported where, what is refused, and what is said of it."""

import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

pytest.importorskip("ctranslate2")

from options import translator_options

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig
from nmt.errors import NMTError
from nmt.files import EXPORTED, ModelDescription, sha256
from nmt.model import Transformer, write_model_directory
from nmt.plugins.exchange.ctranslate2 import write
from nmt.plugins.exchange.ctranslate2_file import read_index
from nmt.plugins.exchange.ctranslate2_load import converted_folder
from nmt.plugins.exchange.export import ExportConfig, export
from nmt.plugins.exchange.foreign import Sample, largest_difference, same_translations, word_scores
from nmt.text import train_tokenizer
from nmt.translation import load_translator

LINES = [f"ka {a} lo {b} mi {a}{b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va", "we")]
GREEDY = DecodeConfig(beam_size=1, max_extra_length=3)


def make(folder: Path, training: dict | None = None, **settings) -> Path:
    """A model directory with a random model."""
    tokenizer, tokenizer_file = train_tokenizer(LINES, TokenizerConfig("bpe", 300)), folder / "tokenizer.model"
    tokenizer.save(tokenizer_file)
    torch.manual_seed(1)
    base = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2}
    config = ModelConfig(name="tiny", **{**base, **settings})
    size, fingerprint = tokenizer.vocabulary_size, sha256(tokenizer_file)
    description = ModelDescription(asdict(config), size, "en", "de", fingerprint, training or {})
    write_model_directory(folder / "model", Transformer(config, size), tokenizer_file, description, "")
    return folder / "model"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """Where nmt keeps what it converted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nmt"


@pytest.fixture
def model(tmp_path) -> Path:
    return make(tmp_path)


def said(model: Path, **settings) -> list[str]:
    return list(export(ExportConfig(str(model), decode=GREEDY, **settings), lambda words: None))


def translated(checkpoint: Path, notices: list[str] | None = None, **settings) -> list[str]:
    config = translator_options(str(checkpoint), decode=GREEDY, **{"engine": "ctranslate2", "threads": 1, **settings})
    translator = load_translator(config, notices.append if notices is not None else lambda words: None)
    return [translations[0].text for translations in translator.translate(LINES)]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"d_k": 4}, "model.d_k=4: .* 8.0 only"),
        ({"attention": "additive"}, "model.attention=additive: .* scaled_dot_product only"),
        ({"attention_window": 5}, "model.attention_window=5: .* None only"),
    ],
)
def test_a_model_that_ctranslate2_has_not_is_refused_with_the_reason(tmp_path, settings, reason):
    with pytest.raises(NMTError, match=reason):
        said(make(tmp_path, **settings))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        *("README.md", "config.json", "model.safetensors", "tokenizer.model")
    ]


def test_a_sample_is_translated_twice_and_compared(model, tmp_path):
    (tmp_path / "sample").write_text("\n".join(LINES) + "\n")
    lines = said(model, sample=str(tmp_path / "sample"), output=str(tmp_path / "out"))
    first, certificate, same = lines
    assert first == f"{tmp_path}/out: {model} with format=ctranslate2 precision=float32"
    assert same == f"12 of 12 lines (100.0%) are translated as by CTranslate2: {tmp_path}/sample"
    pattern = r"log P of (\d+) tokens is that of CTranslate2 within (\S+) a token"
    tokens, largest = re.fullmatch(pattern, certificate).groups()
    assert int(tokens) >= len(LINES)
    assert 0 < float(largest) < 1e-4
    card = (tmp_path / "out" / "README.md").read_text()
    assert "\n".join(lines[1:]) in card
    assert "\n".join(lines[1:]) not in said_again(model, tmp_path)


def said_again(model: Path, tmp_path: Path) -> str:
    """The card without a sample: a certificate is of the export beside it."""
    said(model, output=str(tmp_path / "out"))
    return (tmp_path / "out" / "README.md").read_text()


def test_lines_that_differ_are_shown():
    sample = Sample(["one", "two", "three", "four"], "x")
    assert list(same_translations(sample, ["1", "2", "3", "4"], ["1", "zwei", "drei", "vier"], "Marian")) == [
        "1 of 4 lines (25.0%) are translated as by Marian: x",
        *("line 2: two", "  Marian: zwei", "  nmt:    2"),
        *("line 3: three", "  Marian: drei", "  nmt:    3"),
    ]


def test_a_certificate_is_the_largest_difference_of_a_token():
    assert largest_difference([[-1.0, -2.0], [-3.0], [-9.0]], [[-1.5, -2.0], [-2.0], []]) == (3, 1.0)
    for others in ([[-1.0, -2.0]], [[-1.0], [-3.0]]):
        with pytest.raises(NMTError, match="of other lines or tokens"):
            largest_difference([[-1.0, -2.0], [-3.0]], others)
    assert word_scores("-3 ||| WordScores= -1.5 -1.5\n", "file") == [[-1.5, -1.5]]
    with pytest.raises(NMTError, match="file: not what"):
        word_scores("-3\n", "file")


def test_the_validation_set_is_the_sample_where_it_still_is(toy, tmp_path):
    prepared = toy[-1].removeprefix("prepared=")
    for folder, line, text in (
        (prepared, 2, "40 of 40 lines (100.0%)"),
        ("nowhere", 1, "no sample was compared: nowhere: no prepared corpus"),
    ):
        model = make(tmp_path, {"config": {"prepared": folder, "data": {"filters": {"max_tokens": 50}}}})
        assert said(model)[line].startswith(text)


def test_what_is_there_is_replaced_only_where_it_is_an_exported_model(model, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with pytest.raises(NMTError, match="no exported model; name another folder"):
        said(model, output=str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "letter").read_text() == "dear"
    for precision in ("float32", "int8"):
        said(model, output=str(tmp_path / "out"), precision=precision)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "out", "model", "tokenizer.model"}


def test_a_model_directory_is_converted_at_its_first_use(model, cache):
    notices, before = [], sorted(model.iterdir())
    first = translated(model, notices)
    [folder] = (cache / "ctranslate2").iterdir()
    assert notices == [f"converting the model for CTranslate2, once: {folder}"]
    assert translated(model, notices) == first == translated(model, engine="torch", device="cpu")
    assert len(notices) == 1
    assert sorted(model.iterdir()) == before


@pytest.mark.parametrize("changed", ["model.safetensors", "config.json", "tokenizer.model"])
def test_a_conversion_belongs_to_the_content_of_a_model(model, changed):
    """By whatever name and time; so a model that came back is not converted again."""
    before = converted_folder(model, "float32")
    content = (model / changed).read_bytes()
    (model / changed).write_bytes(content + b" ")
    assert converted_folder(model, "float32") not in (before, converted_folder(model, "int8"))
    (model / changed).write_bytes(content)
    assert converted_folder(model.rename(model.with_name("other")), "float32") == before


def test_a_conversion_that_came_with_a_model_is_not_trusted(model, tmp_path):
    """Whatever it says of itself, and however new it is."""
    (tmp_path / "stranger").mkdir()
    stranger = make(tmp_path / "stranger", d_ff=32)
    write(stranger, model / "ctranslate2-float32", "float32")
    (model / "ctranslate2-float32" / EXPORTED).write_bytes((model / "config.json").read_bytes())
    ours, theirs = (translated(folder, engine="torch", device="cpu") for folder in (model, stranger))
    assert ours != theirs
    assert translated(model) == ours


def test_a_cache_that_cannot_be_written_is_one_line_that_names_another(model, cache):
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("no folder")
    with pytest.raises(NMTError, match=r"cannot write .*XDG_CACHE_HOME=FOLDER") as refused:
        translated(model)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_exported_folder_is_a_checkpoint_of_its_own(model, tmp_path, precision):
    expected = translated(model, precision=precision)
    write(model, tmp_path / "out", precision)
    model.rename(tmp_path / "away")
    assert translated(tmp_path / "out", precision=precision) == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "cuda"}, "device=cuda: engine=ctranslate2 is for processors.*engine=torch"),
        ({"checkpoint": 2}, "2 models, but it has no ensembles"),
        ({"decode": DecodeConfig(do_sample=True)}, "decode.do_sample=true.*engine=torch"),
        ({"target_prefix": "ka"}, "target_prefix=ka.*engine=torch"),
        ({"decode": DecodeConfig(length_penalty=1.1)}, "decode.length_penalty=1.1.*engine=torch"),
        ({"checkpoint": 0, "engine": "torch"}, "exported for another program"),
    ],
    ids=str,
)
def test_what_the_engine_cannot_do_is_said_in_one_line(model, tmp_path, settings, words):
    write(model, tmp_path / "out", "float32")
    checkpoint = {0: str(tmp_path / "out"), 2: [str(model), str(model)]}.get(settings.pop("checkpoint", 1), str(model))
    config = translator_options(checkpoint, **{"engine": "ctranslate2", "decode": GREEDY, **settings})
    with pytest.raises(NMTError, match=words) as refused:
        load_translator(config, lambda words: None)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "number"), [("layer", 100), ("layer", -2), ("heads", 100)])
def test_an_export_that_aligns_by_what_is_not_there_is_refused(model, tmp_path, name, number):
    """CTranslate2 does not check these numbers, and crashes."""
    write(model, tmp_path / "out", "int8")
    path = tmp_path / "out" / "model.bin"
    with path.open("rb") as file:
        stored = read_index(file, path.stat().st_size)[f"decoder/alignment_{name}"]
    content = bytearray(path.read_bytes())
    content[stored.offset : stored.offset + 2] = struct.pack("<h", number)
    path.write_bytes(content)
    with pytest.raises(NMTError, match=f"its alignment_{name} is not one of its own"):
        translated(tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "model.bin").write_bytes(b"nothing"), "not a model of CTranslate2"),
        (lambda folder: swap(folder / "shared_vocabulary.json"), "not that of tokenizer.model"),
        (lambda folder: os.truncate(folder / "model.bin", 2000), "it is cut"),
    ],
)
def test_an_export_that_does_not_fit_is_named(model, tmp_path, change, words):
    write(model, tmp_path / "out", "float32")
    change(tmp_path / "out")
    with pytest.raises(NMTError, match=words):
        translated(tmp_path / "out")


def swap(path: Path) -> None:
    tokens = json.loads(path.read_text())
    path.write_text(json.dumps([*tokens[:-2], tokens[-1], tokens[-2]]))


def test_a_converted_model_translates_without_torch(model, tmp_path):
    program = (
        "import sys\nfrom nmt.cli import main\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules, 'lightning' in sys.modules, file=sys.stderr)"
    )
    for precision in ("float32", "int8"):
        translated(model, precision=precision)
        words = [
            "translate",
            f"run={model}",
            "engine=ctranslate2",
            f"precision={precision}",
            "decode.max_extra_length=3",
        ]
        done = subprocess.run(
            [sys.executable, "-c", program, *words], input="\n".join(LINES) + "\n", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") == len(LINES)
        assert done.stderr.splitlines()[-1] == "False False"
