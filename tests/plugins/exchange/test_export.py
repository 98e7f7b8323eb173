"""What is exported where, what is refused, and what is said of it."""

import re
import shutil
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
from nmt.files import ModelDescription, sha256
from nmt.model import Transformer, write_model_directory
from nmt.plugins.exchange.commands import ExportConfig, export
from nmt.plugins.exchange.ctranslate2_engine import weights
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


def exported(model: Path, **settings) -> list[str]:
    return export(ExportConfig(str(model), decode=GREEDY, **settings), lambda words: None)


def translated(checkpoint: Path, notices: list[str] | None = None, **settings) -> list[str]:
    config = translator_options(str(checkpoint), decode=GREEDY, **{"engine": "ctranslate2", "threads": 1, **settings})
    translator = load_translator(config, notices.append if notices is not None else lambda words: None)
    return [translations[0].text for translations in translator.translate(LINES)]


def test_a_sample_is_translated_twice_and_compared(model, tmp_path):
    (tmp_path / "sample").write_text("\n".join(LINES) + "\n")
    first, scores, same = exported(model, sample=str(tmp_path / "sample"), output=str(tmp_path / "out"))
    assert first == f"{tmp_path}/out: {model} with format=ctranslate2 precision=float32"
    assert same == f"CTranslate2 translates 12 of 12 lines (100.0%) alike: {tmp_path}/sample"
    pattern = r"log P of (\d+) tokens equals that of CTranslate2 within (\S+) per token"
    tokens, largest = re.fullmatch(pattern, scores).groups()
    assert int(tokens) >= len(LINES)
    assert 0 < float(largest) < 1e-4
    assert f"{scores}\n{same}" in (tmp_path / "out" / "README.md").read_text()
    exported(model, output=str(tmp_path / "out"))
    assert scores not in (tmp_path / "out" / "README.md").read_text()  # a certificate is of the export beside it


def test_the_validation_set_is_the_sample_where_it_still_is(toy, tmp_path):
    prepared = toy[-1].removeprefix("prepared=")
    for folder, line, text in (
        (prepared, 2, "CTranslate2 translates 40 of 40 lines (100.0%)"),
        ("nowhere", 1, "no sample was compared: nowhere: no prepared corpus"),
    ):
        model = make(tmp_path, {"config": {"prepared": folder, "data": {"filters": {"max_tokens": 50}}}})
        assert exported(model)[line].startswith(text)


def test_only_an_earlier_export_is_replaced_and_translates_only_elsewhere(model, tmp_path):
    with pytest.raises(NMTError, match="not an earlier export; name another folder"):
        exported(model, output=str(model))
    for settings in ({}, {"precision": "int8"}, {"format": "huggingface"}, {}):
        exported(model, output=str(tmp_path / "out"), **settings)
        with pytest.raises(NMTError, match=r"config\.json: not a model of nmt.*name the run or its model directory$"):
            translated(tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "model", "tokenizer.model", "cache"}


def test_a_model_directory_is_converted_at_its_first_use(model, cache):
    notices, before = [], sorted(model.iterdir())
    first = translated(model, notices)
    [folder] = (cache / "ctranslate2").iterdir()
    assert notices == [f"converting the model for CTranslate2, once: {folder}"]
    assert translated(model, notices) == first == translated(model, engine="torch", device="cpu")
    assert len(notices) == 1
    assert sorted(model.iterdir()) == before
    shutil.rmtree(cache)
    cache.write_text("no folder")
    with pytest.raises(NMTError, match=r"cannot write [^\n]*XDG_CACHE_HOME[^\n]*$"):
        translated(model)


def test_a_conversion_belongs_to_the_content_of_a_model(model):
    """By whatever name and time; so a model that came back is not converted again."""
    before = weights(model, "float32")
    for changed in ("model.safetensors", "config.json", "tokenizer.model"):
        content = (model / changed).read_bytes()
        (model / changed).write_bytes(content + b" ")
        assert weights(model, "float32") not in (before, weights(model, "int8"))
        (model / changed).write_bytes(content)
    assert weights(model.rename(model.with_name("other")), "float32") == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"d_k": 4}, "model.d_k=4: .* 8.0 only"),
        ({"attention_window": 5}, "model.attention_window=5: .* None only"),
        ({"device": "cuda"}, "device=cuda: engine=ctranslate2 is for processors.*engine=torch"),
        ({"models": 2}, "2 models, but it has no ensembles"),
        ({"decode": DecodeConfig(length_penalty=1.1)}, "decode.length_penalty=1.1.*engine=torch"),
    ],
    ids=str,
)
def test_what_the_engine_cannot_do_is_said_in_one_line(model, tmp_path, settings, words):
    if settings.keys() & {"d_k", "attention_window"}:
        model, settings = make(tmp_path, **settings), {}
    models = [str(model)] * settings.pop("models", 1)
    config = translator_options(models, **{"engine": "ctranslate2", "decode": GREEDY, **settings})
    with pytest.raises(NMTError, match=words) as refused:
        load_translator(config, lambda words: None)
    assert "\n" not in str(refused.value)


def test_a_converted_model_translates_without_torch(model):
    program = (
        "import sys\nfrom nmt.cli import main\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules, 'lightning' in sys.modules, file=sys.stderr)"
    )
    translated(model, precision="int8")
    words = ["translate", f"run={model}", "engine=ctranslate2", "precision=int8", "decode.max_extra_length=3"]
    command, lines = [sys.executable, "-c", program, *words], "\n".join(LINES) + "\n"
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == len(LINES)
    assert done.stderr.splitlines()[-1] == "False False"
