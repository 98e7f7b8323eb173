"""Checkpoints: reading them, choosing among them, and averaging the last ones (section 6.1)."""

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


def types_in(value) -> set[type]:
    """The types of all values in nested containers, and of the keys of mappings."""
    if isinstance(value, dict):
        return types_in([*value.keys(), *value.values()])
    if isinstance(value, list | tuple):
        return set().union(*map(types_in, value))
    return {type(value)}


def test_a_checkpoint_contains_only_tensors_numbers_and_strings(finished):
    path = training.list_checkpoints(finished)[-1]
    content = torch.load(path, weights_only=True)
    assert types_in(content) <= {torch.Tensor, int, float, str, bool, type(None)}
    assert content["global_step"] == training.checkpoint_step(path) == 60


def cut(share):
    def change(path):
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    return change


def flip(path):
    """Flip a bit in the largest tensor."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        tensor = max(archive.infolist(), key=lambda member: member.file_size)
    # Between two members of the archive is padding that nobody reads.
    name, extra = struct.unpack_from("<HH", content, tensor.header_offset + 26)
    begin = tensor.header_offset + 30 + name + extra
    content[begin + tensor.file_size // 2] ^= 4
    path.write_bytes(content)


def edited(edit):
    def change(path):
        content = torch.load(path, weights_only=True)
        edit(content)
        torch.save(content, path)

    return change


def replaced(content):
    return lambda path: torch.save(content, path)


def with_norm(weight):
    name = "model.encoder_layers.0.residual_1.norm.weight"
    return edited(lambda content: content["state_dict"].update({name: weight}))


def with_state(**values):
    return edited(lambda content: content["nmt"].update(values))


def with_config(**values):
    return edited(lambda content: content["nmt"]["config"].update(values))


DAMAGES = [
    (cut(0), "truncated"),
    (cut(0.5), "truncated"),
    (cut(0.999), "truncated"),
    (flip, "damaged"),
    (replaced({"nmt": 1}), "'nmt'"),
    (replaced({"nmt": {}}), "'nmt'"),
    (replaced([1, 2]), "'nmt'"),
    (with_norm(torch.ones(3)), "is [3] but should be [16]"),
    (with_norm(torch.ones(1).expand(2**40)), "larger than its"),
    (with_state(vocabulary_size=10**7), "should be [10000000, 16]"),
    (with_config(model=[]), "its model"),
    (with_config(seed=torch.ones(1)), "not JSON"),
    (edited(lambda content: content.pop("callbacks")), "'callbacks' is missing"),
    (edited(lambda content: content.update(epoch="a")), "'epoch' is missing or has the wrong type"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_a_damaged_checkpoint_is_rejected_by_name(checkpoint, damage, words):
    damage(checkpoint)
    with pytest.raises(NMTError) as raised:
        training.load_checkpoint(checkpoint)
    message = str(raised.value)
    assert message.startswith(f"{checkpoint}: not a readable checkpoint")
    assert words in message
    assert "\n" not in message


def save_as_pickle(content, path):
    path.write_bytes(pickle.dumps(content))


class Payload:
    """Unpickling this would touch a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("save", [torch.save, save_as_pickle])
def test_loading_a_checkpoint_runs_no_code(tmp_path, save):
    save({"nmt": Payload(tmp_path / "touched")}, tmp_path / "step=1.ckpt")
    with pytest.raises(NMTError, match=r"step=1\.ckpt") as raised:
        training.load_checkpoint(tmp_path / "step=1.ckpt")
    assert "weights_only" not in str(raised.value)
    assert not (tmp_path / "touched").exists()


def test_a_checkpoint_of_another_format_names_both_versions(checkpoint):
    with_state(format_version=99)(checkpoint)
    with pytest.raises(NMTError, match=r"format version 99, but this nmt reads "):
        training.load_checkpoint(checkpoint)


@pytest.mark.parametrize("states", [[], [{"state": {}, "param_groups": []}]])
def test_a_run_does_not_resume_without_optimizer_state(toy, nmt, run, checkpoint, states):
    shutil.rmtree(run / "model")
    edited(lambda content: content.update(global_step=48, optimizer_states=states))(checkpoint)
    problem = "step=00000060.ckpt has no optimizer state"
    nmt("train", *toy, *AGAIN).refused(problem, "init=FOLDER name=OTHER")


@pytest.mark.slow
def test_a_run_resumes_after_damaged_checkpoints_are_removed(toy, nmt, run, finished, checkpoint):
    shutil.rmtree(run / "model")
    states = [{"state": {0: {}}}]
    edited(lambda content: content.update(global_step=54, optimizer_states=states))(checkpoint)
    checkpoint = checkpoint.rename(checkpoint.with_name("step=00000054.ckpt"))
    nmt("train", *toy, *AGAIN).failed("step=00000054.ckpt", "cannot resume from it")
    flip(checkpoint)
    nmt("train", *toy, *AGAIN).refused("step=00000054.ckpt", "restore or remove this file")
    checkpoint.unlink()
    assert nmt("train", *toy, *AGAIN).code == 0
    weights = Path("model", "model.safetensors")
    assert (run / weights).read_bytes() == (finished / weights).read_bytes()


def test_the_model_is_the_correctly_rounded_mean_of_the_last_checkpoints(finished):
    states = []
    for path in training.list_checkpoints(finished):
        states.append(torch.load(path, weights_only=True)["state_dict"])
    weights = load_file(finished / "model" / "model.safetensors")
    assert weights
    for name, tensor in weights.items():
        tensors = [state[f"model.{name}"].numpy().astype(np.float64) for state in states]
        expected = np.mean(tensors, axis=0).astype(np.float32)
        np.testing.assert_array_equal(tensor, expected, err_msg=name)
    config = json.loads((finished / "model" / "config.json").read_text())
    assert config["training"]["averaged"] == [12, 24, 36, 48, 60]


def loss_by_sentence(model, split) -> float:
    """The validation loss without batches and padding."""
    total = 0.0
    tokens = 0
    for row in range(len(split)):
        batch = split.batch(np.array([row]))
        logits = model(batch.source, batch.target_in)[0]
        targets = batch.target_out[0]
        loss = cross_entropy(logits, targets, reduction="sum", label_smoothing=0.1)
        total += loss.item()
        tokens += len(logits)
    return total / tokens


@pytest.mark.slow
def test_the_delivered_model_has_the_lowest_validation_loss_of_all_candidates(run, toy):
    paths = training.list_checkpoints(run)
    best = run / "checkpoints" / "best.ckpt"
    shutil.copy(paths[1], best)  # as if validation had found update 24 to be the best
    split = open_corpus(Path(toy[-1].removeprefix("prepared="))).split("valid")
    rule = CheckpointConfig(every_steps=12, keep=5)
    delivered = training.delivered_model(run, rule, split, torch.device("cpu"))

    candidates = [[best]]
    for count in range(1, 6):
        candidates.append(paths[-count:])
    expected = {}
    for candidate in candidates:
        average = training.Average(*candidate)
        name = ", ".join(map(str, average.updates))
        expected[name] = loss_by_sentence(average.make_model(), split)
    assert delivered.losses == pytest.approx(expected, abs=1e-5)
    assert ", ".join(map(str, delivered.updates)) == min(expected, key=expected.__getitem__)
    assert delivered.made == 60


def test_checkpoints_of_different_models_are_not_averaged(run, checkpoint):
    edited(lambda content: content["nmt"]["config"]["model"].update(activation="gelu"))(checkpoint)
    with pytest.raises(
        NMTError,
        match=r"step=00000060\.ckpt belongs to a different model.*activation: relu -> gelu",
    ):
        training.Average(*training.list_checkpoints(run))


@pytest.mark.parametrize(
    "content",
    [
        "[1]",
        "trainer: 3",
        "model: [a]",
        "",
        "a: &a []\nb: *a",
        "data: " + "{a: " * 3000,
        "name: x",
    ],
)
def test_a_malformed_configuration_is_rejected_in_one_line(tmp_path, content):
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(NMTError) as raised:
        training.check_configuration(tmp_path, compose("train", []))
    assert "config.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_changed_end_of_a_schedule_is_named_by_the_key_that_the_user_passed(tmp_path):
    (tmp_path / "model").mkdir()
    words = ["optim.schedule=linear", "optim.warmup=10"]
    before = compose("train", [*words, "trainer.max_steps=100"])
    after = compose("train", [*words, "trainer.max_steps=200"])
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(to_tree(before)))
    problem = r"\(trainer\.max_steps, where optim\.schedule ends: 100 -> 200\)"
    with pytest.raises(NMTError, match=problem):
        training.check_configuration(tmp_path, after)


@pytest.mark.parametrize(
    ("updates", "every", "keep", "expected"),
    [
        (["5", "10", "13"], 5, 5, [5, 10, 13]),
        (["5", "10", "13", "15"], 5, 5, [5, 10, 15]),
        # Whatever zeros their names begin with.
        (["5", "0010", "00000012", "15"], 5, 3, [5, 10, 15]),
        (["5", "10", "13", "15", "20"], 5, 3, [10, 15, 20]),
        (["72", "81"], 1400, 5, [81]),
        ([], 5, 3, []),
    ],
)
def test_updates_decide_which_checkpoints_are_averaged(tmp_path, updates, every, keep, expected):
    (tmp_path / "checkpoints").mkdir()
    for update in updates:
        (tmp_path / "checkpoints" / f"step={update}.ckpt").touch()
    kept = kept_checkpoints(tmp_path, every, keep)
    assert [training.checkpoint_step(path) for path in kept] == expected
