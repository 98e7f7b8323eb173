"""Imported models against the scores and translations of Marian and against transformers."""

import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentencepiece import sentencepiece_model_pb2

from nmt.config import BOS, PAD, UNK
from nmt.plugins.exchange.huggingface import write
from nmt.plugins.exchange.marian_hub import read_hub
from nmt.plugins.exchange.marian_vocabulary import read_table, rows_of, tokenizer_of
from nmt.text import SOURCE, TARGET, load_tokenizer
from nmt.translation import load_translator, score_pairs
from tests.helpers.options import translator_options

FIXTURES = Path(__file__).parents[2] / "fixtures" / "marian"
SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
SPM = ("source.spm", "target.spm")
NAMES = ["tied", "separate", "tagged"]
"""Models that Marian trained, in FIXTURES."""
FC1 = "model__encoder__layers__0__fc1__bias"
SYMBOLS = {"</s>": 0, "<unk>": 1}


@pytest.mark.parametrize("name", NAMES)
def test_import_is_reproducible(nmt, tmp_path, name):
    folder = FIXTURES / name
    for output in ("a", "b"):
        done = nmt("import", str(folder), f"output={output}")
        assert done.out == f"{output}: {folder}, trained by marian\n"
    for file in ("README.md", "config.json", "model.safetensors", "tokenizer.model"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.fixture
def imported(nmt, request) -> str:
    """The name of one of Marian's models, which is imported to the folder a."""
    assert nmt("import", str(FIXTURES / request.param), "output=a").code == 0
    return request.param


def pairs_of(name: str) -> list[tuple[str, str]]:
    """Test sentences: with unknown symbols, of 40 words, and text that sentencepiece normalizes."""
    sides = [(FIXTURES / name / f"test.{side}").read_text() for side in ("src", "trg")]
    return list(zip(*map(str.splitlines, sides), strict=True))


def translations(nmt, name: str) -> list[str]:
    words = ["a", "decode.max_extra_length=60", "device=cpu"]
    return nmt("translate", *words, f"input={FIXTURES / name / 'test.src'}").out.splitlines()


def has_letters(line: str) -> bool:
    """nmt translates only lines with letters, and copies others."""
    return any(map(str.isalpha, line))


@pytest.mark.parametrize("imported", NAMES, indirect=True)
def test_imported_model_scores_as_marian(imported):
    translator = load_translator(translator_options("a", device="cpu"), print)
    scores = score_pairs(translator, pairs_of(imported))
    lines = (FIXTURES / imported / "scores.txt").read_text().splitlines()
    for score, line in zip(scores, lines, strict=True):
        expected = [float(word) for word in line.split(" ||| WordScores= ")[1].split()]
        # Marian prints five decimals.
        assert score.token_log_probabilities == pytest.approx(expected, abs=2e-5)


# With pre-norm layers (tagged), Marian's search and its scores do not agree.
@pytest.mark.parametrize("imported", ["tied", "separate"], indirect=True)
def test_imported_model_translates_as_marian(nmt, imported):
    """All lines but the last, whose translation does not end."""
    expected = (FIXTURES / imported / "translations.txt").read_text().splitlines()
    sources = [source for source, _ in pairs_of(imported)]
    rows = list(zip(sources, translations(nmt, imported), expected, strict=True))
    for source, translation, line in rows[:-1]:
        assert translation == (" ".join(line.split()) if has_letters(source) else source)


@pytest.mark.slow
@pytest.mark.parametrize("imported", NAMES, indirect=True)
def test_imported_model_is_exported_to_ctranslate2(nmt, tmp_path, monkeypatch, imported):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pairs = pairs_of(imported)
    sample = FIXTURES / imported / "test.src"
    done = nmt("export", "a", "output=ct2", f"sample={sample}")
    assert done.code == 0, done.err
    assert float(done.out.split("within ")[1].split()[0]) < 1e-4
    # The README's code translates lines without a letter, which nmt copies.
    copied = [source for source, _ in pairs if not has_letters(source)]
    same = int(done.out.split("the same translation for ")[1].split()[0])
    assert len(pairs) - len(copied) <= same <= len(pairs) == 24
    if imported == "separate":
        code = (tmp_path / "ct2/README.md").read_text().split("```python")[1].split("```")[0]
        command = [sys.executable, "-c", code.replace("A line.", pairs[0][0])]
        alone = subprocess.run(command, capture_output=True, text=True, check=True, cwd="ct2")
        assert alone.stdout.strip() == translations(nmt, imported)[0]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory) -> Path:
    """source.spm, target.spm, and a vocab.json that lacks a piece which sentencepiece produces."""
    folder = tmp_path_factory.mktemp("pieces")
    for name in SPM:
        shutil.copy(FIXTURES / "tagged" / name, folder)
    table = read_table(FIXTURES / "tagged" / "vocab.yml")
    table.remove("\u2581tu")
    numbers = {piece: number for number, piece in enumerate([*table, "<s>", "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(numbers))
    return folder


def raw_lines() -> list[str]:
    """Random words, tags in several places, and unusual characters."""
    draw = random.Random(3)
    lines = []
    for _ in range(200):
        words = ["".join(draw.choices(SYLLABLES, k=2)) for _ in range(draw.randint(0, 9))]
        lines.append(" ".join(words))
    return [
        *lines,
        ">>fra<< kalo mi.",
        ">>deu<<kalo",
        ">>xyz<< kalo",
        "kalo >>fra<< mi",
        ">> kalo <<",
        "",
        "tu  \uff11 \uff21\ufb01\u2019 \u2603",
        "\u2581ka",
        "KALO \u200b lo",
        "\uff5e ka",
    ]


def test_token_ids_are_those_of_transformers(pieces, tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.MarianTokenizer(*(str(pieces / name) for name in (*SPM, "vocab.json")))
    table = json.loads((pieces / "vocab.json").read_text())
    tokenizer = tokenizer_of([pieces / name for name in SPM], [list(table)])
    tokenizer.save(tmp_path / "tokenizer.model")
    ours = load_tokenizer(tmp_path / "tokenizer.model")
    names = {number: piece for piece, number in table.items()}
    lines = raw_lines()
    assert len(set(ours.vocabulary())) == ours.vocabulary_size == len(table) + 1
    for side, key in ((SOURCE, "text"), (TARGET, "text_target")):
        rows = ours.encode([ours.clean(line) for line in lines], side)
        for line, ids in zip(lines, rows, strict=True):
            *expected, end = theirs(**{key: line})["input_ids"]
            assert end == 0
            symbols = ["<unk>" if id == UNK else ours.symbol(id, side) for id in ids]
            assert symbols == [names[number] for number in expected], line
    known = [line for line in lines if "\u2603" not in line]
    for ids in ours.encode(known, TARGET):
        numbers = [table[ours.symbol(id)] for id in ids if id != UNK]
        text = theirs.decode(numbers, use_source_tokenizer=False)
        assert ours.decode(ids).split() == text.split()


SHAPES = {
    "relu, untied": {
        "activation_function": "relu",
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
    },
    "source untied": {
        "activation_function": "gelu",
        "share_encoder_decoder_embeddings": False,
    },
    "uneven": {
        "encoder_layers": 3,
        "decoder_layers": 1,
        "d_model": 24,
    },
}


def marian_model(transformers, pieces: Path, folder: Path, trained_by: str, **settings):
    """Write a MarianMTModel with random weights as on the hub, and return it.

    Models that Marian trained have a row of zeros for <pad>.
    """
    size = len(json.loads((pieces / "vocab.json").read_text()))
    base = {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "activation_function": "swish",
        "pad_token_id": size - 1,
        "decoder_start_token_id": size - 1,
        "scale_embedding": True,
        "max_position_embeddings": 128,
        "vocab_size": size,
        "decoder_vocab_size": size,
        "num_beams": 4,
    }
    torch.manual_seed(4)
    model = transformers.MarianMTModel(transformers.MarianConfig(**{**base, **settings})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        model.final_logits_bias.normal_()
        if trained_by == "marian":
            model.model.encoder.embed_tokens.weight[-1] = 0
            model.model.decoder.embed_tokens.weight[-1] = 0
            model.lm_head.weight[-1] = 0
            model.final_logits_bias[0, -1] = 0
    model.save_pretrained(folder)
    for name in (*SPM, "vocab.json"):
        shutil.copy(pieces / name, folder)
    return model


def compute_as_marian(model) -> None:
    """Give a model of transformers Marian's sinusoids and its epsilon."""
    for stack in (model.model.encoder, model.model.decoder):
        length, width = stack.embed_positions.weight.shape
        rates = np.exp(-np.arange(width // 2) * np.log(10000) / (width / 2 - 1))
        angles = np.arange(length)[:, None] * rates
        table = np.concatenate((np.sin(angles), np.cos(angles)), axis=1)
        stack.embed_positions.weight.copy_(torch.tensor(table))
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6


@pytest.mark.parametrize("trained_by", ["marian", "transformers"])
@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_imported_hub_model_has_the_logits_of_transformers(pieces, tmp_path, shape, trained_by):
    transformers = pytest.importorskip("transformers")
    theirs = marian_model(transformers, pieces, tmp_path / "hub", trained_by, **SHAPES[shape])
    marian = read_hub(tmp_path / "hub")
    assert marian.trained_by == trained_by
    model = marian.model
    order = torch.tensor(rows_of(marian.tokenizer.tables[-1], has_padding=True))
    ids = torch.Generator().manual_seed(5)
    source, target = torch.randint(UNK + 1, model.vocabulary_size, (2, 1, 30), generator=ids)
    target = torch.cat((torch.tensor([[BOS]]), target), dim=1)
    first = UNK - 1 if trained_by == "marian" else BOS
    if trained_by == "marian":
        compute_as_marian(theirs)
    logits = theirs(input_ids=order[source], decoder_input_ids=order[target]).logits
    expected = logits[..., order[first:]]
    results = model(source, target)
    torch.testing.assert_close(results[..., first:], expected, atol=1e-5, rtol=1e-5)
    assert results[..., PAD:first].isneginf().all()


@pytest.mark.parametrize("trained_by", ["marian", "transformers"])
@pytest.mark.parametrize("shape", SHAPES)
def test_hub_model_is_the_same_after_import_and_export(pieces, nmt, tmp_path, shape, trained_by):
    transformers = pytest.importorskip("transformers")
    theirs = marian_model(transformers, pieces, tmp_path / "hub", trained_by, **SHAPES[shape])
    expected = theirs.state_dict()
    done = nmt("import", "hub", "output=opus", "source=en", "target=de")
    assert done.out == f"opus: hub, trained by {trained_by}\n"
    assert "from en to de" in (tmp_path / "opus" / "README.md").read_text()
    done = nmt("export", "opus", "format=huggingface", "output=back")
    assert done.out == "back: opus with format=huggingface precision=float32\n"
    back = transformers.MarianMTModel.from_pretrained(tmp_path / "back")
    assert expected.keys() == back.state_dict().keys()
    for name, tensor in back.state_dict().items():
        is_sinusoids = "embed_positions" in name  # whose number may differ
        assert is_sinusoids or torch.equal(tensor, expected[name]), name
    for name in SPM:
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "hub" / name).read_bytes()
    vocabulary = json.loads((tmp_path / "back" / "vocab.json").read_text())
    assert vocabulary == json.loads((pieces / "vocab.json").read_text())
    assert back.config.decoder_start_token_id == theirs.config.pad_token_id
    assert back.config.eos_token_id == 0


class Evil:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("pwned"),)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model in Marian's own files."""
    return Path(shutil.copytree(FIXTURES / "tied", tmp_path / "model"))


@pytest.fixture
def hub(word_model, tmp_path) -> Path:
    """The same model as a folder on the hub."""
    write(word_model, tmp_path / "hub")
    return tmp_path / "hub"


def refused(nmt, path: Path, *words: str) -> None:
    """Assert that an import fails with one line that contains `words`, and leaves no files."""
    nmt("import", str(path), "output=out").refused(*words)
    names = [path.name for path in Path().iterdir()]
    assert not any(name.startswith((".out", "out", "pwned")) for name in names)


def test_import_opens_only_the_files_that_it_needs(nmt, hub, folder):
    """Reading one of the pipes would never end."""
    for name in (
        "special_tokens_map.json",
        "added_tokens.json",
        "tokenizer.json",
        "pytorch_model.bin",
    ):
        os.mkfifo(hub / name)
    for path in (hub, folder, folder / "model.npz"):
        done = nmt("import", str(path), "output=out", "overwrite=true")
        assert done.code == 0, done.err
        assert "trained by marian" in done.out


def settings(name: str = "config.json", only: bool = False, **values):
    """Change values in a JSON file; with `only`, drop all other values."""

    def change(folder: Path) -> None:
        tree = {} if only else json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(tree | values))

    return change


def tensors(**changes):
    """Change tensors, in whose names __ stands for a period; None removes a tensor."""

    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        weights = load_file(path)
        for key, tensor in changes.items():
            name = key.replace("__", ".")
            weights.pop(name, None)
            if tensor is not None:
                weights[name] = tensor
        save_file(weights, path)

    return change


def link(folder: Path) -> None:
    (folder / "source.spm").rename(folder.parent / "secret")
    (folder / "source.spm").symlink_to(folder.parent / "secret")


def marian(**changes):
    """Change settings, which are strings, or arrays in Marian's .npz; - is written as _ in keys."""

    def change(folder: Path) -> None:
        with np.load(folder / "model.npz") as stored:
            content = {name: stored[name] for name in stored}
        lines = content["special:model.yml"].tobytes().rstrip(b"\0").decode().splitlines()
        for name, value in changes.items():
            if isinstance(value, str):
                key = name.replace("_", "-")
                lines = [line for line in lines if line.partition(":")[0] != key]
                lines.append(f"{key}: {value}")
            else:
                content[name] = value
        text = "\n".join([*lines, ""]).encode() + b"\0"
        content["special:model.yml"] = np.frombuffer(text, np.int8)
        np.savez(folder / "model.npz", **content)

    return change


def decoder(models: str, vocabularies: str):
    """Write a decoder.yml that names these files."""
    text = f"models: [{models}]\nvocabs: [{vocabularies}]\n"
    return lambda folder: (folder / "decoder.yml").write_text(text)


def nul_piece(folder):
    path = folder / "source.spm"
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    model.pieces[7].piece = "a\0"
    path.write_bytes(model.SerializeToString())


OF_THE_HUB = [
    (lambda folder: (folder / "config.json").unlink(), ("config.json", "decoder.yml")),
    (settings(d_model="24"), ("hub: d_model=24: must be a whole number",)),
    (settings(encoder_ffn_dim=8), ("config.json: decoder_ffn_dim=48 differs from the encoder's",)),
    (
        settings("generation_config.json", length_penalty=99.0),
        ("length_penalty=99.0", "between 0 and 10"),
    ),
    (
        tensors(model__encoder__layernorm_embedding__weight=torch.ones(24)),
        ("layernorm_embedding", "unexpected"),
    ),
    (tensors(model__shared__weight=None), ("no embeddings",)),
    (tensors(**{FC1: torch.full((48,), torch.nan)}), ("fc1.bias", "not finite")),
    (settings("vocab.json", only=True, **SYMBOLS, a=3), ("must be numbered",)),
    (settings("vocab.json", only=True, **{"a": 0, "<pad>": 1}), ("lacks </s> or <unk>",)),
    (
        lambda folder: (folder / "source.spm").write_bytes(b"\x80nonsense"),
        ("cannot make a tokenizer",),
    ),
    (nul_piece, ("source.spm: cannot make a tokenizer", "piece 7 contains a NUL character")),
    (link, ("source.spm", "a link, which is not followed")),
]
OF_MARIAN = [
    (
        marian(transformer_decoder_autoreg="rnn"),
        ("transformer-decoder-autoreg=rnn", "self-attention"),
    ),
    (marian(transformer_dim_ffn="64"), ("encoder_l1_ffn_W1", "[64, 24]")),
    (marian(dim_emb="&a 24\nx: *a"), ("special:model.yml", "alias")),
    (marian(Wemb=np.zeros((142, 24), np.int8)), ("Wemb has type int8", "8-bit")),
    (
        lambda folder: np.savez(folder / "model.npz", Wemb=np.zeros((142, 24))),
        ("no special:model.yml",),
    ),
    (decoder("model.npz", "vocab.yml"), ("has 1 vocabularies, not two",)),
    (decoder("a.npz, b.npz", "vocab.yml, vocab.yml"), ("pass the .npz of one",)),
    (
        decoder("model.npz", "/etc/passwd.yml, /etc/passwd.yml"),
        ("model/passwd.yml", "No such file"),
    ),
    (decoder("model.npz", '"v\\0.yml", "v\\0.yml"'), ("cannot be read",)),
    (
        lambda folder: (folder / "vocab.yml").write_text("- " * 100_000),
        ("vocab.yml", "nested too deeply"),
    ),
]


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        *(("hub", *row) for row in OF_THE_HUB),
        *(("folder", *row) for row in OF_MARIAN),
    ],
)
def test_import_reports_what_it_cannot_read(nmt, request, kind, change, words):
    folder = request.getfixturevalue(kind)
    change(folder)
    refused(nmt, folder, *words)


def test_npz_is_never_unpickled_and_never_larger_than_its_file(nmt, folder):
    header = io.BytesIO()
    huge = {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)}
    np.lib.format.write_array_header_1_0(header, huge)
    with zipfile.ZipFile(folder / "model.npz", "w") as archive:
        archive.writestr("Wemb.npy", header.getvalue())
    refused(nmt, folder, "model.npz", "not a readable .npz")
    np.savez(folder / "model.npz", Wemb=np.array([Evil()], dtype=object))
    refused(nmt, folder, "model.npz", "not a readable .npz")
    np.savez_compressed(folder / "model.npz", Wemb=np.zeros(2**20, np.float32))
    refused(nmt, folder, "model.npz", "compressed")
    (folder / "model.npz").write_bytes(struct.pack("<Q", 2**63) * 9)
    refused(nmt, folder, "model.npz", "not a readable .npz")


def test_import_replaces_no_folder_with_other_files(nmt):
    Path("mine").mkdir()
    Path("mine/letter").write_text("dear")
    nmt("import", str(FIXTURES / "tied"), "output=mine").refused("letter", "nmt did not write")
    assert Path("mine/letter").read_text() == "dear"
