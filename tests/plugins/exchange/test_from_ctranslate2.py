"""Models of CTranslate2 that others made, read for our Transformer: log P is that of CTranslate2 itself."""

import io
import json
import math
import os
import random
import struct
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch

pytest.importorskip("ctranslate2")

import ctranslate2
from ctranslate2.specs import Activation, TransformerSpec

from nmt.config import BOS, EOS, ModelConfig, TokenizerConfig
from nmt.errors import NMTError
from nmt.files import ModelDescription, read_description, sha256
from nmt.model import Transformer, write_model_directory
from nmt.plugins.exchange.ctranslate2 import write
from nmt.plugins.exchange.ctranslate2_reader import CTranslate2Model, read_model
from nmt.text import train_tokenizer

WIDTH, INNER, WORDS = 16, 24, 30
OPENNMT = ["<unk>", "<blank>", "<s>", "</s>"]


def paper(length: int, width: int = WIDTH) -> np.ndarray:
    angles = np.arange(length)[:, None] * np.exp(np.arange(0, width, 2) * -(math.log(10000.0) / width))
    return np.stack((np.sin(angles), np.cos(angles)), axis=2).reshape(length, width).astype(np.float32)


def in_halves(table: np.ndarray) -> np.ndarray:
    return np.concatenate((table[:, 0::2], table[:, 1::2]), axis=1)


def marians(length: int) -> np.ndarray:
    angles = np.arange(length)[:, None] * np.exp(-np.arange(WIDTH // 2) * math.log(10000) / (WIDTH // 2 - 1))
    return np.concatenate((np.sin(angles), np.cos(angles)), axis=1).astype(np.float32)


TABLES = {
    "paper": paper(60),
    "halves": in_halves(paper(60)),
    "marian": marians(60),
    "learned": np.random.default_rng(3).normal(size=(40, WIDTH)).astype(np.float32),
    "generated": None,
}


def write_model(folder: Path, precision: str = "float32", **kind) -> Path:
    """A model of CTranslate2 with random weights, by default as a converter makes it of one of OpenNMT-py."""
    kind = {
        **{"symbols": OPENNMT, "positions": "paper", "biases": True, "tied": "all", "shared": True, "norm": "pre"},
        **{"activation": "RELU", "output_bias": True, "source_end": False, "zero_start": False},
        **{"decoder_heads": 4, "words": [f"w{number}" for number in range(WORDS)], **kind},
    }
    draw = np.random.default_rng(1)

    def random_array(*shape: int, around: float = 0.0) -> np.ndarray:
        return (around + draw.normal(size=shape) * 0.3).astype(np.float32)

    activation = Activation[kind["activation"]]
    spec = TransformerSpec.from_config((2, 3), 4, pre_norm=kind["norm"] == "pre", activation=activation)
    spec.config.add_source_eos = kind["source_end"]
    spec.decoder.start_from_zero_embedding = kind["zero_start"]
    spec.decoder.num_heads = np.int16(kind["decoder_heads"])
    target = [*kind["symbols"], *kind["words"]]
    source = target if kind["shared"] else [*kind["symbols"], *(f"s{number}" for number in range(WORDS + 5))]
    for layer in (*spec.encoder.layer, *spec.decoder.layer):
        blocks = [(layer.self_attention, (3, 1))] + (
            [(layer.attention, (1, 2, 1))] if hasattr(layer, "attention") else []
        )
        for attention, parts in blocks:
            for linear, part in zip(attention.linear, parts, strict=True):
                linear.weight = random_array(part * WIDTH, WIDTH)
                if kind["biases"]:
                    linear.bias = random_array(part * WIDTH)
        for linear, rows, columns in ((layer.ffn.linear_0, INNER, WIDTH), (layer.ffn.linear_1, WIDTH, INNER)):
            linear.weight, linear.bias = random_array(rows, columns), random_array(rows)
        for block in (*(attention for attention, _ in blocks), layer.ffn):
            block.layer_norm.gamma, block.layer_norm.beta = random_array(WIDTH, around=1), random_array(WIDTH)
    for side in (spec.encoder, spec.decoder):
        if TABLES[kind["positions"]] is not None:
            side.position_encodings.encodings = TABLES[kind["positions"]]
        if kind["norm"] == "pre":
            side.layer_norm.gamma, side.layer_norm.beta = random_array(WIDTH, around=1), random_array(WIDTH)
    embedding = random_array(len(target), WIDTH)
    spec.decoder.embeddings.weight = embedding
    spec.encoder.embeddings[0].weight = embedding if kind["tied"] == "all" else random_array(len(source), WIDTH)
    spec.decoder.projection.weight = embedding if kind["tied"] else random_array(len(target), WIDTH)
    if kind["output_bias"]:
        spec.decoder.projection.bias = random_array(len(target))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.validate()
    spec.optimize(precision)
    folder.mkdir()
    spec.save(str(folder))
    return folder


def pairs(model: CTranslate2Model) -> list[tuple[list[int], list[int]]]:
    """Sentences of our ids, a long one among them."""
    draw = random.Random(2)
    sizes = [len(vocabulary) for vocabulary in model.vocabularies]
    lengths = [(draw.randint(1, 12), draw.randint(0, 12)) for _ in range(8)] + [(38, 38)]
    return [tuple(draw.choices(range(3, size), k=k) for size, k in zip(sizes, both, strict=True)) for both in lengths]


def load(model: CTranslate2Model) -> Transformer:
    transformer = Transformer(replace(model.config, dropout=0.0), len(model.vocabularies[1]))
    transformer.load_state_dict({name: torch.from_numpy(array) for name, array in model.weights.items()})
    return transformer.eval()


def log_probabilities(transformer: Transformer, source: list[int], target: list[int]) -> list[float]:
    with torch.no_grad():
        logits = transformer(torch.tensor([source]), torch.tensor([[BOS, *target]]))
    return logits[0].log_softmax(1).gather(1, torch.tensor([[*target, EOS]]).T)[:, 0].tolist()


def assert_same_scores(folder: Path, model: CTranslate2Model) -> None:
    """log P of each token as CTranslate2 has it, computed in float32."""
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    transformer = load(model)
    assert not transformer.training
    for source, target in pairs(model):
        tokens = [[side[id] for id in ids] for side, ids in zip(model.vocabularies, (source, target), strict=True)]
        results = translator.score_batch(tokens[:1], tokens[1:])[0].log_probs
        assert log_probabilities(transformer, [*source, EOS], target) == pytest.approx(results, abs=1e-4)


KINDS = {
    "opennmt": (
        {},
        {
            "source_end": False,
            "positions": "sinusoidal",
            "output_bias": True,
            "attention_bias": True,
            "tied_embeddings": True,
        },
    ),
    "separate": ({"shared": False, "tied": "target"}, {"source_vocabulary_size": WORDS + 9, "tied_embeddings": True}),
    "untied": ({"tied": None}, {"source_vocabulary_size": None, "tied_embeddings": False}),
    "source alone": ({"tied": "target"}, {"source_vocabulary_size": WORDS + 4, "tied_embeddings": True}),
    "post": ({"norm": "post", "source_end": True}, {"norm": "post"}),
    "without biases": ({"biases": False, "output_bias": False}, {"attention_bias": False, "output_bias": False}),
    "swish": ({"activation": "SWISH"}, {"activation": "swish"}),
    "gelu": ({"activation": "GELU"}, {"activation": "gelu"}),
    "quick gelu": ({"activation": "GELUSigmoid"}, {"activation": "quick_gelu"}),
    "halves": ({"positions": "halves"}, {"positions": "sinusoidal"}),
    "marian": ({"positions": "marian", "shared": False, "tied": "target"}, {"positions": "tensor2tensor"}),
    "learned": ({"positions": "learned"}, {"positions": "learned", "max_positions": 40}),
    "generated": ({"positions": "generated"}, {"positions": "learned", "max_positions": 1024}),
    "no padding": ({"symbols": ["</s>", "<unk>", "<s>"]}, {"padding_probability": False}),
    "zero start": (
        {"symbols": ["</s>", "<unk>"], "zero_start": True, "source_end": True, "positions": "marian"},
        {"zero_start": True, "padding_probability": True},
    ),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_scores_are_those_of_ctranslate2(kind, tmp_path):
    settings, expected = KINDS[kind]
    model = read_model(write_model(tmp_path / "model", **settings))
    assert {name: getattr(model.config, name) for name in expected} == expected
    assert_same_scores(tmp_path / "model", model)
    missing = 4 - len(settings.get("symbols", OPENNMT))  # these are the first of ours, and have no numbers
    assert [row.any() for row in model.weights["output.weight"][:4]] == [False] * missing + [True] * (4 - missing)


@pytest.mark.parametrize("precision", ["int8", "int16", "float16", "bfloat16", "int8_float16"])
def test_other_types_are_dequantised(precision, tmp_path):
    """CTranslate2 dequantises the same file, when it is to compute in float32."""
    assert read_model(write_model(tmp_path / "sinusoids", precision)).config.positions == "sinusoidal"
    model = read_model(write_model(tmp_path / "model", precision, positions="learned"))
    assert model.precision == precision.removesuffix("_float16")
    assert_same_scores(tmp_path / "model", model)


def test_long_tables_of_float32_are_sinusoids(tmp_path, monkeypatch):
    """OpenNMT-py computes 5,000 positions in float32."""
    frequencies = torch.exp(torch.arange(0, WIDTH, 2, dtype=torch.float) * -(math.log(10000.0) / WIDTH))
    angles = torch.arange(5000)[:, None].float() * frequencies
    table = torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).numpy()
    monkeypatch.setitem(TABLES, "paper", table)
    assert read_model(write_model(tmp_path / "model")).config.positions == "sinusoidal"
    monkeypatch.setitem(TABLES, "paper", table + np.float32(0.01))
    assert read_model(write_model(tmp_path / "other")).config.positions == "learned"


def test_tied_matrices_are_one_array(tmp_path):
    weights = read_model(write_model(tmp_path / "model", positions="halves")).weights
    assert weights["source_embedding.weight"] is weights["target_embedding.weight"] is weights["output.weight"]


def change_settings(folder: Path, **settings) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"activation": "GELUTanh"}, "activation"),
        ({"symbols": ["<unk>", "<blank>", "</s>"]}, "start from '<s>'"),
        ({"zero_start": True}, "zeros"),
        ({"decoder_heads": 2}, "heads"),
        ({"symbols": [*OPENNMT, "w1"]}, "twice"),
    ],
)
def test_what_our_transformer_lacks_is_refused(settings, words, tmp_path):
    with pytest.raises(NMTError, match=words):
        read_model(write_model(tmp_path / "model", **settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"decoder_start_token": "</s>"}, "start from '</s>'"),
        ({"quantization_type": 1}, "AWQ"),
        ({"eos_token": "<unk>"}, "symbols"),
        ({"add_source_bos": True}, "start symbol"),
    ],
)
def test_other_settings_are_refused(settings, words, tmp_path):
    folder = write_model(tmp_path / "model")
    change_settings(folder, **settings)
    with pytest.raises(NMTError, match=words):
        read_model(folder)


def spoil(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new, 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content[:-1], "cut"),
        (lambda content: content + b"\0", "longer"),
        (lambda content: struct.pack("<I", 7) + content[4:], "version 7"),
        (lambda content: spoil(content, b"TransformerSpec", b"WhisperrrrrSpec"), "no Transformer"),
        (lambda content: spoil(content, b"ffn/linear_0/bias", b"ffn/linear_9/bias"), "linear_9"),
        (lambda content: spoil(content, b"ffn/linear_0/weight", b"ffn/linear_9/weight"), "linear_0/weight is nothing"),
        (lambda content: spoil(content, b"layer_norm/beta\0\1\x10", b"layer_norm/beta\0\1\x11"), "as its shape"),
        (lambda content: spoil(content, struct.pack("<f", TABLES["paper"][1, 0]), b"\0\0\xc0\x7f"), "not finite"),
    ],
)
def test_damaged_models_are_refused(change, words, tmp_path):
    path = write_model(tmp_path / "model") / "model.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(NMTError, match=words) as raised:
        read_model(path.parent)
    assert "\n" not in str(raised.value)


def test_a_matrix_of_many_names_takes_no_memory(tmp_path):
    """10,000 layers, each of them the same matrix."""
    folder = write_model(tmp_path / "model")
    content = (folder / "model.bin").read_bytes()
    names = [f"encoder/layer_{number}/ffn/linear_0/weight" for number in range(2, 10_002)]
    other = b"encoder/layer_0/ffn/linear_0/weight"
    aliases = b"".join(
        struct.pack("<H", len(n) + 1) + n.encode() + struct.pack("<xH", 36) + other + b"\0" for n in names
    )
    tail = content.index(struct.pack("<H", 26) + b"decoder/projection/weight")
    count = struct.unpack_from("<I", content, tail - 4)[0]
    spoilt = content[: tail - 4] + struct.pack("<I", count + len(names)) + aliases + content[tail:]
    (folder / "model.bin").write_bytes(spoilt)
    with pytest.raises(NMTError, match="more numbers"):
        read_model(folder)


EXPORTED = {
    "paper": {},
    "pre-norm": {"norm": "pre", "positions": "learned", "max_positions": 40},
    "untied": {"tied_embeddings": False, "output_bias": True, "padding_probability": False},
    "marian": {
        **{"attention_bias": True, "activation": "swish", "positions": "tensor2tensor", "zero_start": True},
        **{"output_bias": True, "norm_epsilon": 1e-6},
    },
}


@pytest.mark.parametrize("kind", list(EXPORTED))
def test_an_exported_model_comes_back_as_it_was(nmt, kind, tmp_path):
    tokenizer = train_tokenizer(
        [f"ka {a} lo {b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va")], TokenizerConfig("bpe", 300)
    )
    tokenizer.save(tmp_path / "tokenizer.model")
    sizes = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 8, "d_ff": 12, "heads": 2, "dropout": 0.0}
    config = ModelConfig(name="x", **sizes, **EXPORTED[kind])
    torch.manual_seed(1)
    model = Transformer(config, tokenizer.vocabulary_size)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    with torch.no_grad():  # rows and biases of symbols without probability are not used, and not exported
        for parameter in (model.output.bias,) if config.output_bias else ():
            parameter[: config.unpredicted] = 0
    fingerprint = sha256(tmp_path / "tokenizer.model")
    description = ModelDescription(asdict(config), tokenizer.vocabulary_size, "en", "de", fingerprint, {"updates": 7})
    write_model_directory(tmp_path / "model", model, tmp_path / "tokenizer.model", description, "")
    write(tmp_path / "model", tmp_path / "exported", "float32")
    results = read_model(tmp_path / "exported")
    (tmp_path / "sample").write_text("ka nu lo\n")
    done = nmt("import", "exported", "output=back", *SAMPLE, "reference=sample")
    assert done.code == 0, done.err
    for name in ("model.safetensors", "tokenizer.model"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()
    back = read_description(tmp_path / "back")
    assert (back.target, back.training["updates"], back.training["length_penalty_kind"]) == ("de", 7, "gnmt")
    assert replace(results.config, name="x", dropout=0.0) == config
    assert results.vocabularies == (tokenizer.vocabulary(), tokenizer.vocabulary())
    expected = model.state_dict()
    assert results.weights.keys() == expected.keys()
    for name, array in results.weights.items():
        assert np.array_equal(array, expected[name].numpy()), name


# Through the command.

SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu"]
SHORT = ("decode.beam_size=1", "decode.max_extra_length=20")
"""Greedy search, as CTranslate2's beam search ends earlier than ours."""
SAMPLE = ("sample=sample", *SHORT)
LINES = "kalo minu peri\nso tu kalo.\nrisotu lo\nminuka nupe\n"


@pytest.fixture(scope="module")
def pieces() -> bytes:
    """A sentencepiece model for both languages."""
    draw, model = random.Random(1), io.BytesIO()
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(60)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(draw.choices(words, k=8)) + "." for _ in range(300)]),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture
def folder(pieces, tmp_path) -> Path:
    """A folder of CTranslate2 whose vocabulary is that of sentencepiece.model in it."""
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    words = [model.id_to_piece(number) for number in range(3, model.vocab_size())]
    folder = write_model(tmp_path / "converted", "int8", words=words, tied=None, output_bias=False)
    (folder / "sentencepiece.model").write_bytes(pieces)
    (tmp_path / "sample").write_text(LINES)
    return folder


def largest_difference(out: str) -> float:
    return float(out.split("within ")[1].split()[0])


def test_a_folder_becomes_a_model_directory_and_is_exported_again(nmt, folder, tmp_path):
    done = nmt("import", "converted", "output=es", "source=en", "target=es", *SAMPLE)
    assert done.code == 0, done.err
    first, certificate, same, *_ = done.out.splitlines()
    assert first == "es: converted, a model of CTranslate2, dequantized from int8"
    assert largest_difference(certificate) < 1e-5
    assert same == "4 of 4 lines (100.0%) are translated as by CTranslate2: sample"
    card = (tmp_path / "es" / "README.md").read_text()
    assert "from en to es, a model of CTranslate2, dequantized from int8," in card
    assert certificate in card
    description = read_description(tmp_path / "es")
    assert description.training["length_penalty"] == 1.0
    assert description.training["length_penalty_kind"] == "marian"
    done = nmt("export", "es", "output=again", *SAMPLE)
    assert done.code == 0, done.err
    assert "4 of 4 lines" in done.out
    assert largest_difference(done.out) < 1e-5
    assert json.loads((tmp_path / "again" / "config.json").read_text())["add_source_eos"] is False
    translations = nmt("translate", "es", "input=sample", *SHORT, "device=cpu").out
    assert len(set(translations.replace(" ", ""))) > 10
    assert nmt("translate", "again", "engine=ctranslate2", "input=sample", *SHORT).out == translations
    done = nmt("import", "again", "output=back", *SAMPLE)
    assert done.code == 0, done.err
    for name in ("model.safetensors", "tokenizer.model"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "es" / name).read_bytes()


def test_the_tokenizer_of_a_folder(nmt, folder, pieces, tmp_path):
    (folder / "sentencepiece.model").rename(tmp_path / "mine.spm")
    nmt("import", "converted", "output=out").refused("sentencepiece.model: not there", "sentencepiece=FILE")
    done = nmt("import", "converted", "output=out", "sentencepiece=mine.spm", "decode.max_extra_length=3")
    assert done.code == 0, done.err
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(pieces)
    again = nmt("import", "converted", "output=out", "decode.max_extra_length=3")
    assert again.out == done.out
    (folder / "target.spm").unlink()
    nmt("import", "converted", "output=other").refused("target.spm: not there")
    assert not (tmp_path / "other").exists()


def other_words(folder: Path) -> None:
    path = folder / "shared_vocabulary.json"
    tokens = json.loads(path.read_text())
    path.write_text(json.dumps([*tokens[:4], *(f"w{number}" for number in range(len(tokens) - 4))]))


def linked(folder: Path) -> None:
    (folder / "model.bin").rename(folder / "other.bin")
    (folder / "model.bin").symlink_to("other.bin")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: os.truncate(folder / "model.bin", 3000), "model.bin: not a model of CTranslate2"),
        (linked, "model.bin: cannot be read (a link"),
        (other_words, "knows 0 of the"),
        (lambda folder: (folder / "source_vocabulary.json").write_text("[]"), "each side has one vocabulary"),
        (lambda folder: (folder / "sentencepiece.model").write_bytes(b"nonsense"), "no tokenizer"),
    ],
)
def test_what_does_not_fit_is_one_line(nmt, folder, tmp_path, change, words):
    change(folder)
    nmt("import", str(folder), "output=out").refused(str(folder), words)
    assert not (tmp_path / "out").exists()
