"""The last k checkpoints become a model directory (section 6.1)."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.nn.functional import cross_entropy

from nmt.commands.average import AverageConfig, choose_checkpoints, run as average
from nmt.config import CheckpointConfig
from nmt.data import open_corpus
from nmt.errors import NMTError
from nmt.training import averaged_model, delivered_model, list_checkpoints


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A run of its own, with checkpoints at updates 12, 24, 36, 48 and 60."""
    return Path(shutil.copytree(finished, tmp_path / "runs" / "own"))


def numpy_mean(paths: list[Path]) -> dict[str, np.ndarray]:
    states = [torch.load(path, weights_only=True)["state_dict"] for path in paths]
    return {
        name.removeprefix("model."): np.mean([state[name].numpy().astype(np.float64) for state in states], axis=0)
        for name in states[0]
    }


def assert_averaged(model_directory: Path, paths: list[Path], updates: list[int]) -> None:
    """The weights are the mean of those checkpoints, correctly rounded, and its description says of which updates."""
    expected = numpy_mean(paths)
    weights = load_file(model_directory / "model.safetensors")
    assert weights
    for name, tensor in weights.items():
        assert tensor.dtype == np.float32
        np.testing.assert_array_equal(tensor, expected[name].astype(np.float32), err_msg=name)
    assert json.loads((model_directory / "config.json").read_text())["training"]["averaged"] == updates


def test_training_ends_in_the_mean_of_its_last_checkpoints(finished):
    assert_averaged(finished / "model", list_checkpoints(finished), [12, 24, 36, 48, 60])


def test_the_model_with_the_lowest_validation_loss_is_delivered(run, toy):
    """The losses are those of torch, line by line."""
    split = open_corpus(Path(toy[-1].removeprefix("prepared="))).split("valid")
    paths = list_checkpoints(run)
    best = run / "checkpoints" / "best.ckpt"
    shutil.copy(paths[1], best)  # as if validation had found update 24 to be the best
    delivered = delivered_model(run, CheckpointConfig(every_steps=12, keep=5), split, torch.device("cpu"))
    expected = {}
    for sources in ([best], *(paths[-count:] for count in range(1, 6))):
        average = averaged_model(sources)
        total = tokens = 0.0
        for row in range(len(split)):
            batch = split.batch(np.array([row]))
            logits = average.model(batch.source, batch.target_in)[0]
            total += cross_entropy(logits, batch.target_out[0], reduction="sum", label_smoothing=0.1).item()
            tokens += len(logits)
        expected[", ".join(map(str, average.updates))] = total / tokens
    assert delivered.losses == pytest.approx(expected, abs=1e-5)
    assert ", ".join(map(str, delivered.updates)) == min(expected, key=expected.__getitem__)
    assert delivered.made == 60


def test_every_weight_is_in_the_average(run):
    paths = list_checkpoints(run)
    assert averaged_model(paths).model.state_dict().keys() == numpy_mean(paths).keys()


def test_the_average_of_copies_is_the_copy(run):
    original = list_checkpoints(run)[-1]
    weights = averaged_model([Path(shutil.copy(original, run / f"{n}.ckpt")) for n in range(7)]).model.state_dict()
    state = torch.load(original, weights_only=True)["state_dict"]
    torch.testing.assert_close({f"model.{k}": v for k, v in weights.items()}, state, rtol=0, atol=0)


def test_the_last_are_the_last_by_update_not_by_date(run, nmt):
    paths = list_checkpoints(run)
    for age, path in enumerate(paths):
        os.utime(path, (1e9 - age, 1e9 - age))
    outcome = nmt("average", f"run={run}", "last=2")
    assert outcome.code == 0
    assert "updates 48, 60" in outcome.out
    assert_averaged(run / "model", paths[-2:], [48, 60])


def test_the_last_are_the_last_by_number_whatever_their_names_order(run, nmt):
    """In a listing of names, update 100,000,000 comes before 99,999,999."""
    paths = list_checkpoints(run)
    last = [
        path.rename(path.with_name(f"step={number}.ckpt"))
        for path, number in zip(paths[-2:], (99_999_999, 100_000_000), strict=True)
    ]
    assert sorted(last) != last
    assert choose_checkpoints(AverageConfig(run=str(run), last=1)) == last[1:]
    assert choose_checkpoints(AverageConfig(run=str(run), last=3)) == [paths[2], *last]


def test_more_than_there_are_is_refused(run, nmt):
    nmt("average", f"run={run}", "last=6").refused("last=6", "5 checkpoints")


def test_files_can_be_named(run):
    paths = [list_checkpoints(run)[n] for n in (3, 0)]
    average(AverageConfig(checkpoints=[str(path) for path in paths], output=str(run / "other")))
    assert_averaged(run / "other", paths, [48, 12])


def test_files_can_be_named_on_the_command_line(run, nmt):
    files = ",".join(f"'{path}'" for path in list_checkpoints(run)[:2])
    assert nmt("average", f"checkpoints=[{files}]").code == 0
    assert_averaged(run / "model", list_checkpoints(run)[:2], [12, 24])


def test_a_named_file_can_have_any_name(run):
    best = list_checkpoints(run)[1].rename(run / "checkpoints" / "best.ckpt")
    average(AverageConfig(checkpoints=[str(best)]))
    assert_averaged(run / "model", [best], [24])


def test_a_file_can_be_named_from_the_folder_it_lies_in(run, monkeypatch):
    monkeypatch.chdir(run / "checkpoints")
    average(AverageConfig(checkpoints=["step=00000024.ckpt"]))
    assert_averaged(run / "model", [list_checkpoints(run)[1]], [24])


def test_a_named_file_that_is_missing_is_refused(run):
    with pytest.raises(NMTError, match=str(run / "no.ckpt")):
        average(AverageConfig(checkpoints=[str(run / "no.ckpt")]))


def test_a_missing_run_is_refused(nmt):
    nmt("average", "run=runs/nowhere").refused("run=runs/nowhere", "no checkpoints")


def test_different_models_are_refused_with_the_first_difference(run, toy, nmt):
    other = run.with_name("wider")
    options = ("model.d_model=32", "trainer.max_steps=1", "validation.bleu_sentences=0", f"run={other}")
    assert nmt("train", *toy, *options).code == 0
    paths = [str(list_checkpoints(folder)[-1]) for folder in (run, other)]
    with pytest.raises(NMTError, match=r"step=00000001\.ckpt is of another model.*model\.d_model: 16 -> 32"):
        average(AverageConfig(checkpoints=paths, output=str(run / "mixed")))
    assert not (run / "mixed").exists()


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    content = torch.load(path, weights_only=True)
    edit(content)
    torch.save(content, path)


def test_models_of_different_vocabularies_are_refused(run, nmt):
    first, other = list_checkpoints(run)[:2]
    change(other, lambda content: content["nmt"].update(tokenizer="another"))
    nmt("average", f"checkpoints=['{first}','{other}']").refused(
        "step=00000024.ckpt is of another model", "tokenizer: ", "-> another"
    )


NORM = "model.encoder_layers.0.residual_1.norm.weight"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda content: content["state_dict"][NORM].fill_(float("nan")), f"{NORM} holds numbers that are not finite"),
        (lambda content: content["state_dict"].pop(NORM), "residual_1.norm.weight' is nothing"),
        (lambda content: content["state_dict"].update({NORM: torch.ones(3)}), "is [3], where there should be [16]"),
        (lambda content: content["state_dict"].update({NORM: torch.ones(1).expand(2**40)}), "larger than its bytes"),
        (lambda content: content["optimizer_states"][0]["state"][0]["exp_avg"].fill_(float("inf")), "exp_avg holds"),
        (lambda content: content["nmt"].update(vocabulary_size=10**12), "where there should be [1000000000000, 16]"),
        (lambda content: content["nmt"]["config"]["model"].update(encoder_layers=10**9), "1000000000"),
        (lambda content: content["nmt"]["config"]["model"].update(max_positions=10**12), "max_positions"),
        (lambda content: content["nmt"]["config"].update(model=[]), "its model"),
        (lambda content: content.pop("callbacks"), "'callbacks' is missing"),
        (lambda content: content["nmt"]["config"].update(seed=torch.ones(1)), "not JSON"),
        (lambda content: content["nmt"]["config"].update(seed=float("nan")), "not a finite number"),
        (lambda content: content.update(epoch="a"), "'epoch' is missing or of another type"),
        (lambda content: content["loops"]["fit_loop"].update(x=["a"]), "its loops hold more than counts"),
    ],
)
def test_a_checkpoint_that_training_cannot_have_written_is_named(run, nmt, toy, edit, words):
    last = list_checkpoints(run)[-1]
    change(last, edit)
    nmt("average", f"run={run}").refused(last.name, "no readable checkpoint", words)


def test_a_tokenizer_of_another_run_is_refused(run, nmt):
    (run / "tokenizer.model").write_bytes(b"another")
    nmt("average", f"run={run}").refused("tokenizer.model", "not the tokenizer", "step=00000060.ckpt")


def test_what_is_not_ours_is_not_replaced(run, nmt, tmp_path):
    before = (run / "model" / "model.safetensors").read_bytes()
    (run / "model" / "notes.txt").touch()
    nmt("average", f"run={run}", "last=1").refused("notes.txt", "not nmt's")
    assert (run / "model" / "model.safetensors").read_bytes() == before
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "config.json").write_text("{}")
    nmt("average", f"run={run}", "last=1", "output=site").refused("config.json")
    (tmp_path / "link").symlink_to(run / "model")
    nmt("average", f"run={run}", "last=1", "output=link").refused("is a link")


def test_a_model_directory_is_replaced_as_a_whole(run, nmt):
    (run / "model" / "ctranslate2-int8").mkdir()
    assert nmt("average", f"run={run}", "last=1").code == 0
    assert {path.name for path in (run / "model").iterdir()} == {
        "model.safetensors",
        "config.json",
        "tokenizer.model",
        "README.md",
    }


def test_a_failed_write_leaves_the_old_model_directory_and_nothing_else(run, nmt, monkeypatch):
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmt.files.weights.save_weights", fail)
    nmt("average", f"run={run}", "last=1").refused(str(run / "model"), "No space left")
    assert {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before
    assert not list(run.glob(".model*"))


def test_it_tells_which_model_it_replaces(run, nmt):
    (run / "model").rename(run / "aside")
    assert "replaced" not in nmt("average", str(run), "last=1").err
    told = nmt("average", str(run), "last=2").err
    assert f"{run}/model was the average of updates 60, and is replaced; output=FOLDER writes another one" in told
    assert "not measured" in (run / "model" / "README.md").read_text()
