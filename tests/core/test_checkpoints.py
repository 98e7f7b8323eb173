"""Checkpoints: reading them, choosing among them, and averaging the last k into a model directory (section 6.1)."""

import json
import pickle
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load_file
from torch.nn.functional import cross_entropy

from nmt import training
from nmt.commands import compose
from nmt.config import CheckpointConfig, NMTError, to_tree
from nmt.data import open_corpus
from nmt.training.run_folder import kept_checkpoints

AGAIN = ("run=run", "checkpoints.every_steps=12")


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A run of this test alone, with checkpoints at updates 12, 24, 36, 48 and 60."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def checkpoint(run: Path) -> Path:
    return training.list_checkpoints(run)[-1]


def leaves(value):
    if isinstance(value, dict):
        return {leaf for pair in value.items() for item in pair for leaf in leaves(item)}
    return (
        {leaf for item in value for leaf in leaves(item)}
        if isinstance(value, (list, tuple))
        else {type(value)}
    )


def test_a_checkpoint_holds_only_tensors_numbers_and_strings(finished):
    path = training.list_checkpoints(finished)[-1]
    content = torch.load(path, weights_only=True)
    assert leaves(content) <= {torch.Tensor, int, float, str, bool, type(None)}
    assert content["global_step"] == training.checkpoint_step(path) == 60


def cut(share):
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def flip(path):
    """Flip a bit in the largest tensor."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        tensor = max(archive.infolist(), key=lambda member: member.file_size)
    name, extra = struct.unpack_from("<HH", content, tensor.header_offset + 26)
    begin = (
        tensor.header_offset + 30 + name + extra
    )  # between two members is padding that nobody reads
    content[begin + tensor.file_size // 2] ^= 4
    path.write_bytes(content)


def edited(edit):
    def change(path):
        content = torch.load(path, weights_only=True)
        edit(content)
        torch.save(content, path)

    return change


NORM = "model.encoder_layers.0.residual_1.norm.weight"
DAMAGES = [
    (cut(0), "truncated"),
    (cut(0.5), "truncated"),
    (cut(0.999), "truncated"),
    (flip, "damaged"),
    (lambda path: torch.save({"nmt": 1}, path), "'nmt'"),
    (lambda path: torch.save({"nmt": {}}, path), "'nmt'"),
    (lambda path: torch.save([1, 2], path), "'nmt'"),
    (
        edited(lambda content: content["state_dict"].update({NORM: torch.ones(3)})),
        "is [3] but should be [16]",
    ),
    (
        edited(lambda content: content["state_dict"].update({NORM: torch.ones(1).expand(2**40)})),
        "larger than its",
    ),
    (
        edited(lambda content: content["nmt"].update(vocabulary_size=10**7)),
        "should be [10000000, 16]",
    ),
    (edited(lambda content: content["nmt"]["config"].update(model=[])), "its model"),
    (edited(lambda content: content.pop("callbacks")), "'callbacks' is missing"),
    (edited(lambda content: content["nmt"]["config"].update(seed=torch.ones(1))), "not JSON"),
    (edited(lambda content: content.update(epoch="a")), "'epoch' is missing or has the wrong type"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_a_checkpoint_that_training_cannot_have_written_is_named(checkpoint, damage, words):
    damage(checkpoint)
    with pytest.raises(NMTError) as raised:
        training.load_checkpoint(checkpoint)
    message = str(raised.value)
    assert message.startswith(f"{checkpoint}: not a readable checkpoint")
    assert words in message
    assert "\n" not in message


class Payload:
    """Unpickling this would touch a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    "save", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))]
)
def test_a_checkpoint_runs_nothing(tmp_path, save):
    save({"nmt": Payload(tmp_path / "touched")}, tmp_path / "step=1.ckpt")
    with pytest.raises(NMTError, match=r"step=1\.ckpt") as raised:
        training.load_checkpoint(tmp_path / "step=1.ckpt")
    assert "weights_only" not in str(raised.value)
    assert not (tmp_path / "touched").exists()


def test_a_checkpoint_of_another_format_names_both_versions(checkpoint):
    edited(lambda content: content["nmt"].update(format_version=99))(checkpoint)
    with pytest.raises(NMTError, match=r"format version 99, but this nmt reads "):
        training.load_checkpoint(checkpoint)


def test_a_run_resumes_only_from_a_checkpoint_that_is_whole(toy, nmt, run, finished, checkpoint):
    shutil.rmtree(run / "model")
    for states in [], [{"state": {}, "param_groups": []}]:
        edited(
            lambda content, states=states: content.update(global_step=48, optimizer_states=states)
        )(checkpoint)
        nmt("train", *toy, *AGAIN).refused(
            "step=00000060.ckpt has no optimizer state", "init=FOLDER name=OTHER"
        )
    edited(lambda content: content.update(global_step=54, optimizer_states=[{"state": {0: {}}}]))(
        checkpoint
    )
    checkpoint = checkpoint.rename(checkpoint.with_name("step=00000054.ckpt"))
    nmt("train", *toy, *AGAIN).failed("step=00000054.ckpt", "cannot resume from it")
    flip(checkpoint)
    nmt("train", *toy, *AGAIN).refused("step=00000054.ckpt", "restore or remove this file")
    checkpoint.unlink()
    assert nmt("train", *toy, *AGAIN).code == 0
    paths = [folder / "model" / "model.safetensors" for folder in (run, finished)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_weights_are_the_correctly_rounded_mean_of_the_last_checkpoints(finished):
    states = [
        torch.load(path, weights_only=True)["state_dict"]
        for path in training.list_checkpoints(finished)
    ]
    weights = load_file(finished / "model" / "model.safetensors")
    assert weights
    for name, tensor in weights.items():
        expected = np.mean(
            [state[f"model.{name}"].numpy().astype(np.float64) for state in states], axis=0
        )
        np.testing.assert_array_equal(tensor, expected.astype(np.float32), err_msg=name)
    config = json.loads((finished / "model" / "config.json").read_text())
    assert config["training"]["averaged"] == [12, 24, 36, 48, 60]


def test_the_delivered_model_has_the_lowest_validation_loss_of_all_means_and_the_best(run, toy):
    paths, best = training.list_checkpoints(run), run / "checkpoints" / "best.ckpt"
    split = open_corpus(Path(toy[-1].removeprefix("prepared="))).split("valid")
    shutil.copy(paths[1], best)  # as if validation had found update 24 to be the best
    delivered = training.delivered_model(
        run, CheckpointConfig(every_steps=12, keep=5), split, torch.device("cpu")
    )
    expected = {}
    for sources in ([best], *(paths[-count:] for count in range(1, 6))):
        average = training.Average(*sources)
        model = average.make_model()
        total = tokens = 0.0
        for row in range(len(split)):
            batch = split.batch(np.array([row]))
            logits = model(batch.source, batch.target_in)[0]
            total += cross_entropy(
                logits, batch.target_out[0], reduction="sum", label_smoothing=0.1
            ).item()
            tokens += len(logits)
        expected[", ".join(map(str, average.updates))] = total / tokens
    assert delivered.losses == pytest.approx(expected, abs=1e-5)
    assert ", ".join(map(str, delivered.updates)) == min(expected, key=expected.__getitem__)
    assert delivered.made == 60


def test_different_models_are_refused_with_the_first_difference(run, checkpoint):
    edited(lambda content: content["nmt"]["config"]["model"].update(activation="gelu"))(checkpoint)
    with pytest.raises(
        NMTError,
        match=r"step=00000060\.ckpt belongs to a different model.*activation: relu -> gelu",
    ):
        training.Average(*training.list_checkpoints(run))


@pytest.mark.parametrize(
    "content",
    ["[1]", "trainer: 3", "model: [a]", "", "a: &a []\nb: *a", "data: " + "{a: " * 3000, "name: x"],
)
def test_a_run_whose_configuration_is_none_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(NMTError) as raised:
        training.check_configuration(tmp_path, compose("train", []))
    assert "config.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_schedule_that_ends_elsewhere_is_called_by_the_key_that_was_passed(tmp_path):
    (tmp_path / "model").mkdir()
    words = "optim.schedule=linear", "optim.warmup=10"
    before, after = (
        compose("train", [*words, f"trainer.max_steps={steps}"]) for steps in (100, 200)
    )
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(to_tree(before)))
    with pytest.raises(
        NMTError, match=r"\(trainer\.max_steps, where optim\.schedule ends: 100 -> 200\)"
    ):
        training.check_configuration(tmp_path, after)


@pytest.mark.parametrize(
    ("updates", "every", "keep", "expected"),
    [
        (["5", "10", "13"], 5, 5, [5, 10, 13]),
        (["5", "10", "13", "15"], 5, 5, [5, 10, 15]),
        (
            ["5", "0010", "00000012", "15"],
            5,
            3,
            [5, 10, 15],
        ),  # whatever zeros their names begin with
        (["5", "10", "13", "15", "20"], 5, 3, [10, 15, 20]),
        (["72", "81"], 1400, 5, [81]),
        ([], 5, 3, []),
    ],
)
def test_updates_decide_which_checkpoints_are_averaged(tmp_path, updates, every, keep, expected):
    (tmp_path / "checkpoints").mkdir()
    for update in updates:
        (tmp_path / "checkpoints" / f"step={update}.ckpt").touch()
    assert [
        training.checkpoint_step(path) for path in kept_checkpoints(tmp_path, every, keep)
    ] == expected
