"""What a model directory holds, and what is said of one that is broken."""

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from options import translator_options
from safetensors.torch import load_file

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig
from nmt.errors import NMTError
from nmt.files import ModelDescription, find_model_directory, read_description, sha256
from nmt.model import Transformer, load_model, write_model_directory
from nmt.search import TorchEngine
from nmt.text import load_tokenizer, train_tokenizer
from nmt.translation import Translator, load_translator

LINES = [f"ka {a} lo {b} mi {a}{b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va", "we")]
DECODE = DecodeConfig(beam_size=2, n_best=2, max_extra_length=3)


def write(folder: Path, kind: str = "bpe", **settings) -> Transformer:
    """A model directory with a random model, which is returned; its tokenizer lies beside it."""
    tokenizer = train_tokenizer(LINES, TokenizerConfig(kind=kind, vocabulary_size=600))
    tokenizer_file = folder.parent / f"tokenizer-{folder.name}"
    tokenizer.save(tokenizer_file)
    torch.manual_seed(1)
    base = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 16, "d_ff": 16, "heads": 2}
    config = ModelConfig(name="tiny", **{**base, **settings})
    model = Transformer(config, tokenizer.vocabulary_size).eval()
    description = ModelDescription(
        asdict(config), tokenizer.vocabulary_size, "en", "de", sha256(tokenizer_file), {"updates": 7}
    )
    write_model_directory(folder, model, tokenizer_file, description, "# A card\n")
    return model


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "model"
    write(folder)
    return folder


@pytest.fixture
def folder(written, tmp_path) -> Path:
    """A model directory of the test's own, to be broken."""
    return shutil.copytree(written, tmp_path / "model")


def load(folder: Path) -> Translator:
    return load_translator(translator_options(run=str(folder), device="cpu", decode=DECODE), print)


def change_config(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def assert_refused(folder: Path, file: str, *words: str) -> None:
    with pytest.raises(NMTError) as refusal:
        load(folder)
    message = str(refusal.value)
    assert "\n" not in message
    assert str(folder) in message
    assert file in message
    for word in words:
        assert word in message


def test_a_loaded_model_translates_as_the_written_one(tmp_path):
    model = write(tmp_path / "model", "unigram")
    tokenizer = load_tokenizer(tmp_path / "tokenizer-model")
    expected = Translator(TorchEngine([model], DECODE), tokenizer).translate(LINES)
    assert load(tmp_path / "model").translate(LINES) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tied_embeddings": False},
        {"positions": "learned", "max_positions": 20},
        {"d_k": 3, "d_v": 5},
    ],
    ids=str,
)
def test_a_loaded_model_has_the_written_weights_and_outputs(tmp_path, settings):
    model = write(tmp_path / "model", **settings)
    loaded = load_model(tmp_path / "model")
    assert not loaded.training
    assert loaded.config == model.config
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in loaded.state_dict().items())
    source, target = torch.randint(4, model.vocabulary_size, (2, 3, 6))
    assert torch.equal(loaded(source, target), model(source, target))


def test_tied_matrices_are_stored_once_and_stay_tied(tmp_path):
    write(tmp_path / "tied")
    write(tmp_path / "untied", tied_embeddings=False)
    tied, untied = load_model(tmp_path / "tied"), load_model(tmp_path / "untied")
    assert tied.output.weight is tied.source_embedding.weight is tied.target_embedding.weight
    assert untied.output.weight is not untied.source_embedding.weight
    stored = [
        sum(tensor.numel() for tensor in load_file(tmp_path / name / "model.safetensors").values())
        for name in ("tied", "untied")
    ]
    assert stored == [sum(p.numel() for p in model.parameters()) for model in (tied, untied)]


def test_a_write_that_fails_leaves_the_old_directory_whole_and_nothing_else(written, folder, tmp_path):
    model, description = load_model(folder), read_description(folder)
    with pytest.raises(NMTError, match=f"^cannot write {folder}"):
        write_model_directory(folder, model, tmp_path / "missing", description, "# Another card\n")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    for path in written.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()


def test_another_format_version_is_refused_with_both_versions(folder):
    change_config(folder, format_version=2)
    assert_refused(folder, "config.json", "format version 2", "reads 1")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.model"])
@pytest.mark.parametrize("keep", [None, 0.0, 0.98])
def test_a_missing_or_truncated_file_is_named(folder, file, keep):
    content = (folder / file).read_bytes()
    (folder / file).unlink()
    if keep is not None:
        (folder / file).write_bytes(content[: int(keep * len(content))])
    assert_refused(folder, file)


def test_another_tokenizer_is_refused_even_where_its_size_is_the_same(folder, tmp_path):
    lines = [line.translate(str.maketrans("aeiou", "uoiea")) for line in LINES]
    train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=600)).save(folder / "tokenizer.model")
    assert_refused(folder, "tokenizer.model", "not the tokenizer")


@pytest.mark.parametrize(("key", "value"), [("d_ff", 8), ("decoder_layers", 3)])
def test_weights_of_another_size_are_refused(folder, tmp_path, key, value):
    write(tmp_path / "other", **{key: value})
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    assert_refused(folder, "model.safetensors", "not the weights")


def test_a_vocabulary_of_another_size_is_refused(folder):
    change_config(folder, vocabulary_size=301)
    assert_refused(folder, "tokenizer.model", "301")
    with pytest.raises(NMTError, match=r"model\.safetensors: not the weights.*301"):
        load_model(folder)


@pytest.mark.parametrize("tied_embeddings", [True, False])
def test_a_source_matrix_of_its_own_is_stored_beside_the_tied_ones(tmp_path, tied_embeddings):
    entries = train_tokenizer(LINES, TokenizerConfig(kind="bpe", vocabulary_size=600)).vocabulary_size
    model = write(tmp_path / "model", source_vocabulary_size=entries, tied_embeddings=tied_embeddings)
    loaded = load_model(tmp_path / "model")
    assert not torch.equal(loaded.source_embedding.weight, loaded.target_embedding.weight)
    assert (loaded.output.weight is loaded.target_embedding.weight) == tied_embeddings
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config["model"]["source_vocabulary_size"] = entries + 1
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    assert_refused(tmp_path / "model", "tokenizer.model", f"{entries + 1}")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"encoder_layers": 10**9}, "model.encoder_layers=1000000000: must be a whole number between"),
        ({"encoder_layers": 1000}, "'encoder_layers.1.self_attention.input' is nothing"),
        ({"attention": "additive"}, "self_attention.v' is nothing"),
    ],
    ids=str,
)
def test_a_described_model_takes_no_memory_before_its_file_agrees(folder, changes, words):
    config = json.loads((folder / "config.json").read_text())["model"]
    change_config(folder, model={**config, **changes})
    with pytest.raises(NMTError, match=re.escape(words)) as raised:
        load_model(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"training": {"updates": "many"}}, "updates is of another type"),
        ({"vocabulary_size": 2**62}, "vocabulary_size=4611686018427387904"),
        ({"source": "../../etc"}, "its languages are not names"),
    ],
    ids=str,
)
def test_a_description_of_other_types_is_one_line(folder, changes, words):
    change_config(folder, **changes)
    with pytest.raises(NMTError, match=re.escape(words)):
        load_model(folder)


def test_a_link_in_a_model_directory_is_not_followed(folder, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
        with pytest.raises(NMTError, match="a link, which is not followed"):
            load_model(folder)
        (tmp_path / name).replace(folder / name)
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "model").symlink_to("elsewhere")
    with pytest.raises(NMTError, match="a link, which is not followed"):
        find_model_directory(str(tmp_path))


def test_a_run_or_a_model_directory_leads_to_the_model_and_any_other_says_what_is_missing(folder, tmp_path):
    for path in (tmp_path, folder, f"{folder}/"):
        assert find_model_directory(str(path)) == folder
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "step=00000010.ckpt").touch()
    (tmp_path / "notes").mkdir()
    for path, words in (
        (tmp_path / "run", r"^run=.*not averaged yet.*nmt average run="),
        (tmp_path / "nowhere", r"^run=.*/nowhere: no such folder$"),
        (tmp_path / "notes", "neither a run nor a model directory"),
    ):
        with pytest.raises(NMTError, match=words):
            find_model_directory(str(path))
