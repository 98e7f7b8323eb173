"""What cannot be imported ends in one line with the reason, and leaves nothing behind."""

import io
import json
import os
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

FIXTURES = Path(__file__).parents[2] / "fixtures" / "marian"


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("pwned"),)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model of Marian itself."""
    return Path(shutil.copytree(FIXTURES / "tied", tmp_path / "model"))


@pytest.fixture
def hub(word_model, tmp_path) -> Path:
    """The same model as a folder on the hub."""
    from nmt.plugins.exchange.huggingface import write

    write(word_model, tmp_path / "hub")
    return tmp_path / "hub"


def refused(nmt, path: Path, *words: str) -> None:
    nmt("import", str(path), "output=out").refused(*words)
    assert not any(name.startswith((".out", "out", "pwned")) for name in map(str, Path().iterdir()))


def test_what_is_refused_below_can_be_imported_and_nothing_else_is_opened(nmt, hub, folder):
    """A pipe or an endless file that a library opens by itself would never end."""
    for name in ("special_tokens_map.json", "added_tokens.json", "tokenizer.json", "pytorch_model.bin"):
        os.mkfifo(hub / name)
    for path in (hub, folder, folder / "model.npz"):
        done = nmt("import", str(path), "output=out")
        assert done.code == 0, done.err
        assert "trained by marian" in done.out


# A folder as on the hub.


def without(name: str):
    return lambda folder: (folder / name).unlink()


def settings(name: str = "config.json", only: bool = False, **values):
    """Change a JSON file; it gets these values only, if `only`."""

    def change(folder: Path) -> None:
        tree = {} if only else json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(tree | values))

    return change


def tensors(**changes):
    def change(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors") | {k.replace("__", "."): v for k, v in changes.items()}
        save_file({k: tensor for k, tensor in weights.items() if tensor is not None}, folder / "model.safetensors")

    return change


def link(folder: Path) -> None:
    (folder / "source.spm").rename(folder.parent / "secret")
    (folder / "source.spm").symlink_to(folder.parent / "secret")


FC1 = "model__encoder__layers__0__fc1__bias"
SYMBOLS = {"</s>": 0, "<unk>": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("source.spm"), ("source.spm", "No such file")),
        (without("model.safetensors"), ("model.safetensors", "from pytorch_model.bin", "save_pretrained(FOLDER)")),
        (without("config.json"), ("neither config.json", "decoder.yml")),
        (settings(model_type="m2m_100"), ("model_type=m2m_100", "only marian")),
        (settings(scale_embedding="true"), ("scale_embedding=true: only True",)),
        (settings(d_model=32), ("self_attn.q_proj.weight", "[24, 24]", "[32, 32]")),
        (settings(d_model="24"), ("config.json: d_model='24'", "of another type")),
        (settings(encoder_layers=2), ("layers.1", "missing")),
        (settings(encoder_ffn_dim=8), ("encoder_ffn_dim and decoder_ffn_dim differ",)),
        (settings("generation_config.json", length_penalty=99.0), ("length_penalty=99.0", "between 0 and 10")),
        (tensors(model__encoder__layernorm_embedding__weight=torch.ones(24)), ("layernorm_embedding", "not known")),
        (tensors(final_logits_bias=torch.zeros(1, 7)), ("final_logits_bias", "[1, 7]", "[1, 143]")),
        (tensors(model__shared__weight=None), ("no embeddings",)),
        (tensors(**{FC1: torch.full((48,), torch.nan)}), ("fc1.bias", "no finite numbers")),
        (tensors(**{FC1: torch.zeros(48, dtype=torch.int8)}), ("numbers of type I8",)),
        (settings("vocab.json", only=True, **SYMBOLS, a=3), ("numbers of its entries",)),
        (settings("vocab.json", only=True, **{"a": 0, "<pad>": 1}), ("no </s> and <unk>",)),
        (settings("vocab.json", only=True, **SYMBOLS), ("no <pad>",)),
        (settings("vocab.json", only=True, **SYMBOLS, **{"<pad>": 2}), ("embed_tokens.weight is [143, 24]", "[3, 24]")),
        (lambda folder: (folder / "source.spm").write_bytes(b"\x80nonsense"), ("no tokenizer",)),
        (link, ("source.spm", "a link, which is not followed")),
    ],
)
def test_a_folder_of_the_hub_that_does_not_fit_is_named(nmt, hub, change, words):
    change(hub)
    refused(nmt, hub, *words)


# Marian's own files.


@pytest.mark.parametrize(
    ("settings", "arrays", "words"),
    [
        ({"transformer-decoder-autoreg": "rnn"}, {}, ("transformer-decoder-autoreg=rnn", "self-attention")),
        ({"transformer-postprocess": "dar"}, {}, ("transformer-postprocess=dar", "only post-norm")),
        ({"enc-depth": "2"}, {}, ("encoder_l2_self_Wq is missing",)),
        ({"transformer-dim-ffn": "64"}, {}, ("encoder_l1_ffn_W1", "[64, 24]")),
        ({"dim-emb": "&a 24\nx: *a"}, {}, ("special:model.yml", "alias")),
        ({}, {"Wemb": np.zeros((142, 24), np.int8)}, ("Wemb has type int8", "8-bit")),
        ({}, {"Wpos": np.zeros((64, 24), np.float32)}, ("Wpos", "not known")),
        ({}, {"special:model.yml": None}, ("no special:model.yml",)),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_an_architecture_or_arrays_of_marian_that_do_not_fit_are_named(nmt, folder, settings, arrays, words):
    with np.load(folder / "model.npz") as stored:
        content = {name: stored[name] for name in stored}
    text = content["special:model.yml"].tobytes().rstrip(b"\0").decode()
    lines = [line for line in text.splitlines() if line.partition(":")[0] not in settings]
    lines += [f"{key}: {value}" for key, value in settings.items()]
    content["special:model.yml"] = np.frombuffer("\n".join([*lines, ""]).encode() + b"\0", np.int8)
    content |= arrays
    np.savez(folder / "model.npz", **{name: array for name, array in content.items() if array is not None})
    refused(nmt, folder, *words)


def test_an_npz_is_never_unpickled_or_larger_than_its_file(nmt, folder):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)})
    with zipfile.ZipFile(folder / "model.npz", "w") as archive:
        archive.writestr("Wemb.npy", header.getvalue())
    refused(nmt, folder, "model.npz", "not an .npz")
    np.savez(folder / "model.npz", Wemb=np.array([Evil()], dtype=object))
    refused(nmt, folder, "model.npz", "not an .npz")
    np.savez_compressed(folder / "model.npz", Wemb=np.zeros(2**20, np.float32))
    refused(nmt, folder, "model.npz", "compressed")
    (folder / "model.npz").write_bytes(struct.pack("<Q", 2**63) * 9)
    refused(nmt, folder, "model.npz", "not an .npz")


@pytest.mark.parametrize(
    ("models", "vocabularies", "words"),
    [
        ("model.npz", "vocab.yml", ("has 1 vocabularies, not two",)),
        ("model.npz", "vocab.yml, source.spm", ("one of its vocabularies is a sentencepiece",)),
        ("a.npz, b.npz", "vocab.yml, vocab.yml", ("pass the .npz of one",)),
        ("model.npz", "/etc/passwd.yml, /etc/passwd.yml", ("model/passwd.yml", "No such file")),
        ("model.npz", '"v\\0.yml", "v\\0.yml"', ("cannot be read",)),
    ],
)
def test_a_decoder_yml_that_does_not_fit_is_named(nmt, folder, models, vocabularies, words):
    (folder / "decoder.yml").write_text(f"models: [{models}]\nvocabs: [{vocabularies}]\n")
    refused(nmt, folder, *words)


def test_what_is_no_model_is_named_and_no_other_folder_is_replaced(nmt, tmp_path, folder):
    refused(nmt, tmp_path / "nothing", "no such folder")
    (folder / "decoder.yml").unlink()
    refused(nmt, folder / "model.npz", "no decoder.yml")
    Path("mine").mkdir()
    Path("mine/letter").write_text("dear")
    nmt("import", str(FIXTURES / "tied"), "output=mine").refused("letter", "not a file of nmt")
    assert Path("mine/letter").read_text() == "dear"
