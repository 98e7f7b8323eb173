"""What is exported where, what is refused, and what is said of it."""

import json
import re
import shutil
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
from nmt.plugins.exchange.ctranslate2_load import converted_folder, read_variables
from nmt.plugins.exchange.export import ExportConfig, certificate, export
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
    return list(export(ExportConfig(str(model), decode=GREEDY, **settings), lambda words: None))


def translated(checkpoint: Path, notices: list[str] | None = None, **settings) -> list[str]:
    config = translator_options(str(checkpoint), decode=GREEDY, **{"engine": "ctranslate2", "threads": 1, **settings})
    translator = load_translator(config, notices.append if notices is not None else lambda words: None)
    return [translations[0].text for translations in translator.translate(LINES)]


def test_a_sample_is_translated_twice_and_compared(model, tmp_path):
    (tmp_path / "sample").write_text("\n".join(LINES) + "\n")
    first, scores, same = exported(model, sample=str(tmp_path / "sample"), output=str(tmp_path / "out"))
    assert first == f"{tmp_path}/out: {model} with format=ctranslate2 precision=float32"
    assert same == f"12 of 12 lines (100.0%) are translated as by CTranslate2: {tmp_path}/sample"
    pattern = r"log P of (\d+) tokens is that of CTranslate2 within (\S+) a token"
    tokens, largest = re.fullmatch(pattern, scores).groups()
    assert int(tokens) >= len(LINES)
    assert 0 < float(largest) < 1e-4
    assert f"{scores}\n{same}" in (tmp_path / "out" / "README.md").read_text()
    exported(model, output=str(tmp_path / "out"))
    assert scores not in (tmp_path / "out" / "README.md").read_text()  # a certificate is of the export beside it


def test_a_certificate_is_the_largest_difference_of_a_token():
    ours = [[-1.0, -2.0], [-3.0], [-9.0]]
    line = "log P of 3 tokens is that of Marian within 1.0e+00 a token"
    assert certificate(ours, [[-1.5, -2.0], [-2.0], []], "Marian") == line
    for others in ([[-1.0, -2.0]], [[-1.0], [-3.0], []]):
        with pytest.raises(NMTError, match="of other lines or tokens"):
            certificate(ours, others, "Marian")


def test_the_validation_set_is_the_sample_where_it_still_is(toy, tmp_path):
    prepared = toy[-1].removeprefix("prepared=")
    for folder, line, text in (
        (prepared, 2, "40 of 40 lines (100.0%)"),
        ("nowhere", 1, "no sample was compared: nowhere: no prepared corpus"),
    ):
        model = make(tmp_path, {"config": {"prepared": folder, "data": {"filters": {"max_tokens": 50}}}})
        assert exported(model)[line].startswith(text)


def test_what_is_there_is_replaced_only_where_it_is_an_exported_model(model, tmp_path):
    with pytest.raises(NMTError, match="no exported model; name another folder"):
        exported(model, output=str(model))
    for precision in ("float32", "int8"):
        exported(model, output=str(tmp_path / "out"), precision=precision)
    assert {path.name for path in tmp_path.iterdir()} == {"out", "model", "tokenizer.model"}


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
    with pytest.raises(NMTError, match=r"cannot write [^\n]*XDG_CACHE_HOME=FOLDER[^\n]*$"):
        translated(model)


def test_a_conversion_belongs_to_the_content_of_a_model(model):
    """By whatever name and time; so a model that came back is not converted again."""
    before = converted_folder(model, "float32")
    for changed in ("model.safetensors", "config.json", "tokenizer.model"):
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
    assert translated(model) == ours != theirs


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"d_k": 4}, "model.d_k=4: .* 8.0 only"),
        ({"attention_window": 5}, "model.attention_window=5: .* None only"),
        ({"device": "cuda"}, "device=cuda: engine=ctranslate2 is for processors.*engine=torch"),
        ({"models": 2}, "2 models, but it has no ensembles"),
        ({"decode": DecodeConfig(length_penalty=1.1)}, "decode.length_penalty=1.1.*engine=torch"),
        ({"models": 0, "engine": "torch"}, "exported for another program"),
    ],
    ids=str,
)
def test_what_the_engine_cannot_do_is_said_in_one_line(model, tmp_path, settings, words):
    if settings.keys() & {"d_k", "attention_window"}:
        model, settings = make(tmp_path, **settings), {}
    else:
        write(model, tmp_path / "out", "float32")
    checkpoint = {0: str(tmp_path / "out"), 2: [str(model), str(model)]}.get(settings.pop("models", 1), str(model))
    config = translator_options(checkpoint, **{"engine": "ctranslate2", "decode": GREEDY, **settings})
    with pytest.raises(NMTError, match=words) as refused:
        load_translator(config, lambda words: None)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_exported_folder_is_a_checkpoint_of_its_own(model, tmp_path, precision):
    """CTranslate2 opens none of its files: a pipe or an endless file there would never end."""
    expected = translated(model, precision=precision)
    write(model, tmp_path / "out", precision)
    model.rename(tmp_path / "away")
    (tmp_path / "out" / "config.json").write_text("no JSON")
    for name in ("shared_vocabulary.json", "source_vocabulary.json", "vmap.txt"):
        (tmp_path / "out" / name).unlink(missing_ok=True)
        (tmp_path / "out" / name).symlink_to("/dev/zero")
    assert translated(tmp_path / "out", precision=precision) == expected


def scalar(name: str, value: int):
    """Change a scalar of model.bin."""

    def change(content: bytes) -> bytes:
        variable = read_variables(content)[f"decoder/{name}"].content
        head = content.index(f"decoder/{name}\0".encode()) + len(f"decoder/{name}\0") + 1 + 1 + 4
        assert content[head : head + len(variable)] == variable
        return content[:head] + value.to_bytes(len(variable), "little", signed=True) + content[head + len(variable) :]

    return change


def spoil(old: bytes, new: bytes):
    def change(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: b"nothing", "it is cut"),
        (lambda content: content[:2000], "it is cut"),
        (lambda content: content[:-1], "it is cut"),
        (lambda content: content + b"\0", "it is longer"),
        (lambda content: struct.pack("<I", 7) + content[4:], "another format"),
        (spoil(b"TransformerSpec", b"WhisperrrrrSpec"), "another format or kind of model"),
        (spoil(b"ffn/linear_0/bias", b"ffn/linear_9/bias"), "linear_9/bias' is"),
        (spoil(b"ffn/linear_0/weight", b"ffn/linear_1/weight"), "there twice"),
        (spoil(b"embeddings_merge", b"embeddings_mergE"), "embeddings_mergE' is 0"),
        (spoil(b"layer_norm/beta\0\1\x10", b"layer_norm/beta\0\1\x11"), "as its shape"),
        (spoil(b"linear_0/weight\0\2\x10\0\0\0\x10\0\0\0", b"linear_0/weight\0\2\x20\0\0\0\x08\0\0\0"), r"\[32, 8\]"),
        (spoil(b"linear_0/weight_scale", b"linear_0/weight_scalE"), "weight_scalE"),
        (scalar("alignment_layer", 100), "alignment_layer' is 100"),
        (scalar("alignment_heads", 100), "alignment_heads' is 100"),
        (scalar("num_heads", 0), "num_heads' is 0"),
        (scalar("activation", 3), "activation' is 3"),
    ],
)
def test_a_model_bin_that_is_not_that_of_its_description_is_refused(model, tmp_path, change, words):
    """CTranslate2 does not check these, and crashes."""
    write(model, tmp_path / "out", "int8" if words == "weight_scalE" else "float32")
    path = tmp_path / "out" / "model.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(NMTError, match=words) as refused:
        translated(tmp_path / "out")
    assert "\n" not in str(refused.value)


def test_a_description_of_what_ctranslate2_cannot_compute_is_refused(model, tmp_path):
    write(model, tmp_path / "out", "float32")
    path = tmp_path / "out" / EXPORTED
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, "model": {**tree["model"], "heads": 3, "d_k": 5, "d_v": 5}}))
    with pytest.raises(NMTError, match=r"model\.d_k=5"):
        translated(tmp_path / "out")


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
