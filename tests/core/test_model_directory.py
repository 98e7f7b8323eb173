"""What a model directory contains, and errors about damaged ones."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt.config import NMTError, TokenizerConfig
from nmt.files import find_model_directory, read_description
from nmt.model import Transformer, load_model, write_model_directory
from nmt.text import train_tokenizer
from nmt.translation import load_translator
from tests.conftest import LINES, write_random_model
from tests.helpers.options import translator_options


@pytest.fixture
def folder(checkpoint, tmp_path) -> Path:
    """A model directory that the test may damage."""
    return shutil.copytree(checkpoint, tmp_path / "model")


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    tree = json.loads(path.read_text())
    for key, value in changes.items():
        if isinstance(value, dict):
            tree[key] = tree[key] | value
        else:
            tree[key] = value
    path.write_text(json.dumps(tree))


def assert_refused(folder: Path, file: str, words: str = "") -> None:
    """Assert that loading fails with one line that names the folder and the file."""
    with pytest.raises(NMTError) as refusal:
        load_translator(translator_options(run=str(folder), device="cpu"), print)
    message = str(refusal.value)
    assert "\n" not in message
    for part in (str(folder), file, words):
        assert part in message


def assert_same_weights(loaded: Transformer, model: Transformer) -> None:
    weights = model.state_dict()
    loaded_weights = loaded.state_dict()
    assert loaded_weights.keys() == weights.keys()
    for name, tensor in weights.items():
        assert torch.equal(loaded_weights[name], tensor), name


LEARNED = {"positions": "learned", "max_positions": 20}
UNTIED = {"tied_embeddings": False}


@pytest.mark.parametrize("settings", [{}, UNTIED, LEARNED, {"d_k": 3, "d_v": 5}], ids=str)
def test_a_loaded_model_equals_the_written_one(tmp_path, settings):
    model = write_random_model(tmp_path / "model", **settings)
    loaded = load_model(tmp_path / "model")
    assert not loaded.training
    assert loaded.config == model.config
    assert_same_weights(loaded, model)
    source, target = torch.randint(4, model.vocabulary_size, (2, 3, 6))
    assert torch.equal(loaded(source, target), model(source, target))


@pytest.mark.parametrize(
    ("settings", "count"), [({}, 1), (UNTIED, 3), (LEARNED, 1), ({"d_k": 3, "d_v": 5}, 1)], ids=str
)
def test_a_loaded_model_shares_tied_embeddings(tmp_path, settings, count):
    write_random_model(tmp_path / "model", **settings)
    loaded = load_model(tmp_path / "model")
    matrices = [loaded.output, loaded.source_embedding, loaded.target_embedding]
    assert len({id(matrix.weight) for matrix in matrices}) == count


@pytest.mark.parametrize("settings", [{}, UNTIED, LEARNED, {"d_k": 3, "d_v": 5}], ids=str)
def test_a_model_directory_stores_each_parameter_once(tmp_path, settings):
    model = write_random_model(tmp_path / "model", **settings)
    stored = load_file(tmp_path / "model" / "model.safetensors").values()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert sum(tensor.numel() for tensor in stored) == parameters


@pytest.mark.parametrize("tied_embeddings", [True, False])
def test_a_separate_source_embedding_is_stored(tmp_path, tied_embeddings):
    entries = train_tokenizer(LINES, TokenizerConfig("bpe", 300)).vocabulary_size
    settings = {"source_vocabulary_size": entries, "tied_embeddings": tied_embeddings}
    model = write_random_model(tmp_path / "model", **settings)
    loaded = load_model(tmp_path / "model")
    assert not torch.equal(loaded.source_embedding.weight, loaded.target_embedding.weight)
    assert (loaded.output.weight is loaded.target_embedding.weight) == tied_embeddings
    assert_same_weights(loaded, model)
    change_config(tmp_path / "model", model={"source_vocabulary_size": entries + 1})
    assert_refused(tmp_path / "model", "tokenizer.model", "not the tokenizer")


def test_a_failed_write_keeps_the_old_directory(checkpoint, folder, tmp_path):
    model = load_model(folder)
    description = read_description(folder)
    with pytest.raises(NMTError, match=f"^cannot write {folder}"):
        write_model_directory(folder, model, tmp_path / "missing", description, "# Another\n")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    for path in Path(checkpoint).iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.model"])
@pytest.mark.parametrize("keep", [None, 0.98])
def test_a_missing_or_truncated_file_is_named(folder, file, keep):
    content = (folder / file).read_bytes()
    (folder / file).unlink()
    if keep is not None:
        (folder / file).write_bytes(content[: int(keep * len(content))])
    assert_refused(folder, file)


def test_another_tokenizer_of_the_same_size_is_refused(folder):
    other_lines = [line.swapcase() for line in LINES]
    tokenizer = train_tokenizer(other_lines, TokenizerConfig("bpe", 300))
    tokenizer.save(folder / "tokenizer.model")
    assert_refused(folder, "tokenizer.model", "not the tokenizer")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format_version": None}, "not an nmt model"),
        ({"format_version": 2}, "format version 2, but this nmt reads version 1"),
        ({"vocabulary_size": 301}, "model.safetensors: not the weights"),
        ({"vocabulary_size": 2**62}, "vocabulary_size=4611686018427387904"),
        ({"source": "../../etc"}, "its languages cannot be used"),
        ({"training": {"updates": "many"}}, "updates has the wrong type"),
        (
            {"model": {"encoder_layers": 10**9}},
            "model.encoder_layers=1000000000: must be a whole number between",
        ),
        ({"model": {"encoder_layers": 40}}, "'encoder_layers.1.self_attention.input' is absent"),
        ({"model": {"attention": "additive"}}, "self_attention.v' is absent"),
    ],
    ids=str,
)
def test_shapes_are_checked_before_memory_is_allocated(folder, changes, words):
    change_config(folder, **changes)
    with pytest.raises(NMTError, match=re.escape(words)) as raised:
        load_model(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_link_in_a_model_directory_is_not_followed(folder, tmp_path, name):
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(NMTError, match="a link, which is not followed"):
        load_model(folder)


def test_a_model_directory_that_is_a_link_is_not_followed(folder, tmp_path):
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "model").symlink_to("elsewhere")
    with pytest.raises(NMTError, match="is a link; pass its target"):
        find_model_directory(str(tmp_path))


def test_a_run_and_a_model_directory_lead_to_the_model(folder, tmp_path):
    for path in (tmp_path, folder, f"{folder}/"):
        assert find_model_directory(str(path)) == folder


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run", r"^run=.*not averaged yet.*nmt average run="),
        ("nowhere", r"^run=.*/nowhere: no such folder$"),
        ("run/checkpoints", "neither a run nor a model directory"),
    ],
)
def test_the_error_about_a_path_without_a_model_says_what_is_missing(tmp_path, name, words):
    checkpoints = tmp_path / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "step=00000010.ckpt").touch()
    with pytest.raises(NMTError, match=words):
        find_model_directory(str(tmp_path / name))
