"""What cannot be imported is one line that says why, and leaves nothing behind."""

import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

FIXTURES = Path(__file__).parents[2] / "fixtures" / "marian"
SHORT = "decode.max_extra_length=3"


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


def change(path: Path, **values) -> None:
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in {**tree, **values}.items() if value is not None}))


def refused(nmt, path: Path, *words: str, keys: tuple[str, ...] = ()) -> None:
    nmt("import", str(path), "output=out", *keys).refused(*words)
    assert not any(name.startswith((".out", "out", "pwned")) for name in map(str, Path().iterdir()))


def test_what_is_refused_below_can_be_imported(nmt, hub, folder):
    torch.save(load_file(hub / "model.safetensors"), hub / "pytorch_model.bin")
    (hub / "model.safetensors").unlink()
    for path in (hub, folder, folder / "model.npz"):
        done = nmt("import", str(path), "output=out", SHORT)
        assert done.code == 0, done.err
        assert "trained by marian" in done.out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("source.spm", ("source.spm", "No such file")),
        ("model.safetensors", ("pytorch_model.bin", "No such file")),
        ("config.json", ("neither config.json", "decoder.yml")),
    ],
)
def test_a_missing_file_is_named(nmt, hub, name, words):
    (hub / name).unlink()
    refused(nmt, hub, *words)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model_type": "m2m_100"}, ("model_type=m2m_100", "only marian")),
        ({"scale_embedding": "true"}, ("scale_embedding=true: only True",)),
        ({"d_model": 32}, ("self_attn.q_proj.weight", "[24, 24]", "[32, 32]")),
        ({"d_model": "24"}, ("config.json: d_model='24'", "of another type")),
        ({"encoder_layers": 2}, ("layers.1", "missing")),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_named(nmt, hub, values, words):
    change(hub / "config.json", **values)
    refused(nmt, hub, *words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.encoder.layernorm_embedding.weight": torch.ones(24)}, ("layernorm_embedding", "not known")),
        ({"final_logits_bias": torch.zeros(1, 7)}, ("final_logits_bias", "[1, 7]", "[1, 143]")),
        ({"model.shared.weight": None}, ("no embeddings",)),
        ({"model.encoder.layers.0.fc1.bias": torch.full((48,), torch.nan)}, ("fc1.bias", "no finite numbers")),
        ({"model.encoder.layers.0.fc1.bias": torch.zeros(48, dtype=torch.int8)}, ("numbers of type I8",)),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_weights_that_do_not_fit_are_named(nmt, hub, changes, words):
    weights = {**load_file(hub / "model.safetensors"), **changes}
    save_file({name: tensor for name, tensor in weights.items() if tensor is not None}, hub / "model.safetensors")
    refused(nmt, hub, *words)


def test_a_pickle_is_not_run(nmt, hub):
    (hub / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Evil()}, hub / "pytorch_model.bin")
    refused(nmt, hub, "pytorch_model.bin", "not loaded")
    (hub / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))
    refused(nmt, hub, "pytorch_model.bin", "bare pickle, which is not run")
    torch.save([1, 2], hub / "pytorch_model.bin")
    refused(nmt, hub, "pytorch_model.bin", "not a mapping of names to tensors")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"</s>": 0, "<unk>": 1, "a": 3}, ("numbers of its entries",)),
        ({"a": 0, "<pad>": 1}, ("no </s> and <unk>",)),
        ({"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3}, ("embed_tokens.weight is [143, 24]", "[4, 24]")),
    ],
    ids=str,
)
def test_a_vocabulary_that_does_not_fit_is_named(nmt, hub, table, words):
    (hub / "vocab.json").write_text(json.dumps(table))
    refused(nmt, hub, *words)


def test_what_is_no_sentencepiece_model_is_named(nmt, hub, tmp_path):
    for content in (b"", b"\x80nonsense"):
        (hub / "source.spm").write_bytes(content)
        refused(nmt, hub, "no tokenizer")
    (hub / "source.spm").rename(tmp_path / "secret")
    (hub / "source.spm").symlink_to(tmp_path / "secret")
    refused(nmt, hub, "source.spm", "a link, which is not followed")


# Marian's own files.


def rewrite(folder: Path, settings: dict[str, str] | None = None, **arrays) -> None:
    """Change lines of special:model.yml, and arrays; None removes one."""
    with np.load(folder / "model.npz") as stored:
        content = {name: stored[name] for name in stored}
    text = content["special:model.yml"].tobytes().rstrip(b"\0").decode()
    lines = [f"{key}: {value}" for key, value in (settings or {}).items()]
    kept = [line for line in text.splitlines() if line.partition(":")[0] not in (settings or {})]
    content["special:model.yml"] = np.frombuffer("\n".join([*kept, *lines, ""]).encode() + b"\0", np.int8)
    content |= arrays
    np.savez(folder / "model.npz", **{name: array for name, array in content.items() if array is not None})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"transformer-decoder-autoreg": "rnn"}, ("transformer-decoder-autoreg=rnn", "self-attention")),
        ({"transformer-postprocess": "dar"}, ("transformer-postprocess=dar", "only post-norm")),
        ({"enc-depth": "2"}, ("encoder_l2_self_Wq is missing",)),
        ({"transformer-dim-ffn": "64"}, ("encoder_l1_ffn_W1", "[64, 24]")),
        ({"dim-emb": "&a 24\nx: *a"}, ("special:model.yml", "alias")),
    ],
    ids=str,
)
def test_an_architecture_of_marian_that_we_lack_is_named(nmt, folder, settings, words):
    rewrite(folder, settings)
    refused(nmt, folder, *words)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"Wemb": np.zeros((142, 24), np.int8)}, ("Wemb holds int8", "8-bit")),
        ({"Wpos": np.zeros((64, 24), np.float32)}, ("Wpos", "not known")),
        ({"decoder_l1_self_Wq": None}, ("decoder_l1_self_Wq is missing",)),
        ({"special:model.yml": None}, ("no special:model.yml",)),
    ],
    ids=lambda value: str(list(value)) if isinstance(value, dict) else "",
)
def test_arrays_of_marian_that_do_not_fit_are_named(nmt, folder, arrays, words):
    rewrite(folder, **arrays)
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
    ("content", "words"),
    [
        ("models: [model.npz]\nvocabs: [vocab.yml]\n", ("does not name two vocabularies",)),
        ("models: [model.npz]\nvocabs: [vocab.yml, source.spm]\n", ("one of its vocabularies is a sentencepiece",)),
        ("models: [a.npz, b.npz]\nvocabs: [vocab.yml, vocab.yml]\n", ("name the .npz of one model",)),
        ("models: [model.npz]\nvocabs: [/etc/passwd.yml, /etc/passwd.yml]\n", ("model/passwd.yml", "No such file")),
        ('models: [model.npz]\nvocabs: ["v\\0.yml", "v\\0.yml"]\n', ("cannot be read",)),
    ],
    ids=str,
)
def test_a_decoder_yml_that_does_not_fit_is_named(nmt, folder, content, words):
    (folder / "decoder.yml").write_text(content)
    refused(nmt, folder, *words)


def test_what_is_no_model_is_named(nmt, tmp_path, folder):
    refused(nmt, tmp_path / "nothing", "no such folder")
    (tmp_path / "empty").mkdir()
    refused(nmt, tmp_path / "empty", "neither config.json of MarianMT")
    (folder / "decoder.yml").unlink()
    refused(nmt, folder / "model.npz", "no decoder.yml")


def test_keys_that_do_not_fit_together_are_named(nmt, folder):
    refused(nmt, folder, "trained_by=transformers", keys=("trained_by=transformers",))
    refused(nmt, folder, "pass sample=FILE", keys=("reference=x",))
    refused(nmt, folder, "pass reference=FILE", keys=("scores=x",))
    source = f"sample={folder / 'test.src'}"
    wrong = (source, f"reference={folder / 'test.trg'}", f"scores={folder / 'translations.txt'}")
    refused(nmt, folder, "not what `marian score --word-scores` prints", keys=wrong)


def test_only_a_model_directory_is_replaced(nmt, folder, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    nmt("import", str(folder), "output=mine").refused("letter", "not nmt's")
    assert (tmp_path / "mine" / "letter").read_text() == "dear"


def test_ctranslate2_and_transformers_open_nothing_but_what_was_read(nmt, hub, folder):
    """A pipe or an endless file that a library opens by itself would never end."""
    pytest.importorskip("ctranslate2")
    nmt("import", str(folder), "output=opus", SHORT)
    assert nmt("export", "opus", "output=ct2", SHORT).code == 0
    os.mkfifo("ct2/vmap.txt")
    assert nmt("translate", "text=ka", "ct2", "engine=ctranslate2", SHORT).code == 0
    Path("ct2/nmt.json").unlink()
    change(Path("ct2/config.json"), unknown_setting=True, alignment_heads=[[99, 99]])
    done = nmt("import", "ct2", "output=back", SHORT)
    assert (done.code, "is that of CTranslate2 within" in done.out) == (0, True), done.err
    pytest.importorskip("transformers")
    for name in ("special_tokens_map.json", "added_tokens.json", "tokenizer.json", "preprocessor_config.json"):
        os.mkfifo(hub / name)
    done = nmt("import", str(hub), "output=hubs", SHORT)
    assert (done.code, "is that of transformers, given those of Marian, within" in done.out) == (0, True), done.err
