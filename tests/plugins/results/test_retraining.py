"""`nmt verify RUN` trains again between checkpoints and detects a single changed bit."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from nmt.errors import NMTError
from nmt.plugins.results.bits import first_difference
from nmt.plugins.results.delivered import changed_configuration, check_model
from nmt.plugins.results.retraining import compared_segment, environment_of_run, segments
from nmt.training import environment_of

EMBEDDING, LATER = "model.source_embedding.weight", "checkpoints/step=00000036.ckpt"
SAME = "same                 "
DIFFERS = "DIFFERS              "
UNCHECKED = "unchecked            "
"""The column of results is as wide as the longest one, "another environment"."""


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "mine"))


def test_honest_run_has_equal_bits_and_stays_unchanged(nmt, run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    outcome = nmt("verify", "mine")
    assert outcome.code == 0, outcome.err
    rows = [line.split(": ")[0] for line in outcome.out.splitlines()]
    updates = [f"{SAME}update {start} to {start + 12}" for start in (12, 24, 36, 48)]
    assert rows == [*updates, f"{SAME}model"]
    assert nmt("verify", "mine", "step=0").out.startswith(f"{SAME}update 0 to 12: ")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_changed_bit_is_reported_with_the_environment(nmt, run):
    path = run / LATER
    content = torch.load(path, weights_only=True)
    content["nmt"]["versions"]["torch"] = "1.0"
    tensors, weights = content["optimizer_states"][0]["state"][0], content["state_dict"]
    for tensor, name in (
        (tensors["exp_avg"], "optimizer.0.state.0.exp_avg"),
        (weights[EMBEDDING], f"weights.{EMBEDDING}"),
    ):
        tensor.view(torch.int32)[7, 7] ^= 1
        torch.save(content, path)
        outcome = nmt("verify", "mine", "step=24")
        assert outcome.code == 3
        assert outcome.out.startswith(
            f"another environment  update 24 to 36: {name} differs by up to "
        )
        assert (
            f"another environment: torch: 1.0 -> {torch.__version__}; the difference proves nothing"
            in outcome.out
        )
    content["nmt"]["versions"]["torch"] = str(torch.__version__)
    torch.save(content, path)
    outcome = nmt("verify", "mine", "step=24")
    assert outcome.code == 1
    assert outcome.out.startswith(f"{DIFFERS}update 24 to 36: weights.")
    assert "; environment: equal" in outcome.out


def checkpoint_of(
    value: float, beta: float = 0.9, devices: str = "1 x cpu (1 threads)", **state
) -> dict:
    config = {"batching": {"micro_batches": 6}, "trainer": {"reduction": "exact"}}
    return {
        "state_dict": {"a": torch.tensor(value)},
        "optimizer_states": [{"betas": beta}],
        "global_step": 9,
        "nmt": {"config": config, "devices": devices, "versions": {"torch": "1.0"}, **state},
    }


@pytest.mark.parametrize(
    ("before", "result"),
    [
        (checkpoint_of(1.0), "same"),
        (checkpoint_of(2.0), "DIFFERS"),
        (checkpoint_of(1.0, moved=[7]), "same"),
        (checkpoint_of(2.0, moved=[7]), "another environment"),
        (checkpoint_of(2.0, moved=[5, 9]), "DIFFERS"),
        (checkpoint_of(2.0, beta=0.8, moved=[7]), "DIFFERS"),
        (checkpoint_of(2.0, devices="3 x cpu (1 threads)"), "another environment"),
        (checkpoint_of(2.0, devices="2 x cpu (1 threads)"), "another environment"),
        (checkpoint_of(2.0, environment={"capability": "AVX9000"}), "another environment"),
        (checkpoint_of(2.0, beta=0.8, environment={"capability": "AVX9000"}), "DIFFERS"),
    ],
)
def test_another_environment_excuses_bits_only(before, result):
    check = compared_segment(5, 9, before, checkpoint_of(1.0), environment_of(before["nmt"]))
    assert check[0] == result


STEP, MOMENTS = torch.tensor(3.0), torch.tensor([0.0, 1.0, torch.nan])
STATE, OPTIONS = {"step": STEP, "exp_avg": MOMENTS}, [{"betas": (0.9, 0.98)}]


def test_equal_trees_have_no_difference():
    assert not first_difference(*([{"state": {0: STATE}, "options": OPTIONS}] for _ in range(2)))


@pytest.mark.parametrize(
    ("optimizers", "expected"),
    [
        ([], "0 is null but should be {'state': "),
        ([{"state": {}, "options": OPTIONS}], "0.state.0 is null but should be {'step': "),
        ([{"state": {0: [1]}, "options": OPTIONS}], "0.state.0 is [1] but should be {'step': "),
        (
            [{"state": {0: STATE, "0": {}}, "options": OPTIONS}],
            "0.state.0 is {} but should be null",
        ),
        (
            [{"state": {0: {"step": STEP}}, "options": OPTIONS}],
            "0.state.0.exp_avg is null but should be torch.float32",
        ),
        (
            [{"state": {0: STATE | {"step": STEP.double()}}, "options": OPTIONS}],
            "0.state.0.step is torch.float64 []",
        ),
        (
            [{"state": {0: STATE | {"exp_avg": MOMENTS[1:]}}, "options": OPTIONS}],
            "0.state.0.exp_avg is torch.float32 [2]",
        ),
        (
            [{"state": {0: STATE | {"exp_avg": -MOMENTS.abs()}}, "options": OPTIONS}],
            "0.state.0.exp_avg differs",
        ),
        (
            [{"state": {0: STATE}, "options": [{"betas": (0.9, 0.9)}]}],
            "0.options.0.betas.1 is 0.9 but should be 0.98",
        ),
    ],
)
def test_first_difference_of_trees(optimizers, expected):
    assert first_difference(optimizers, [{"state": {0: STATE}, "options": OPTIONS}]).startswith(
        expected
    )


def test_model_must_be_the_mean_of_its_checkpoints(nmt, run):
    from safetensors.torch import load_file, save_file

    for path in (run / "checkpoints").glob("*.ckpt"):
        if path.name not in ("step=00000048.ckpt", "step=00000060.ckpt"):
            path.unlink()
    path, description = run / "model" / "model.safetensors", run / "model" / "config.json"
    tree = json.loads(description.read_text())
    tree["training"]["averaged"] = [36, 60]
    description.write_text(json.dumps(tree))
    missing = f"{UNCHECKED}model: needs the checkpoints of updates [36,60]"
    assert nmt("verify", "mine").out.splitlines()[1:] == [missing]
    weights = load_file(path)
    next(iter(weights.values())).view(-1).view(torch.int32)[7] ^= 1
    save_file(weights, path)
    tree["training"]["averaged"] = [60]
    description.write_text(json.dumps(tree))
    outcome = nmt("verify", "mine")
    assert outcome.code == 1
    assert outcome.out.splitlines()[1].startswith(f"{DIFFERS}model: ")


@pytest.mark.parametrize("averaged", [[], [60, 61], [0, 60], [60, 60]])
def test_impossible_averages_differ(nmt, run, averaged):
    path = run / "model" / "config.json"
    tree = json.loads(path.read_text())
    tree["training"]["averaged"] = averaged
    path.write_text(json.dumps(tree))
    for checkpoint in (run / "checkpoints").glob("*.ckpt"):
        if checkpoint.name not in ("step=00000048.ckpt", "step=00000060.ckpt"):
            checkpoint.unlink()
    outcome = nmt("verify", "mine", "step=48")
    assert outcome.code == 1
    [line] = [line for line in outcome.out.splitlines() if "model: " in line]
    assert line.startswith(f"{DIFFERS}model: config.json: training.averaged is ")


def test_single_checkpoint_is_trained_again_from_the_beginning(nmt, run):
    for checkpoint in (run / "checkpoints").glob("*.ckpt"):
        if checkpoint.name != "step=00000012.ckpt":
            checkpoint.unlink()
    assert segments([12], None) == [(0, 12)]
    assert segments([12, 24], None) == [(12, 24)]
    assert "update 0 to 12: all bits are equal" in nmt("verify", "mine").out


def test_missing_or_changed_files_are_reported(nmt, run, toy, finished):
    nmt("verify", "mine", "step=13").refused(
        "mine, step=13: no next checkpoint", "use 0, 12, 24, 36, 48"
    )
    nmt("verify", "mine", "prepared=nowhere").refused("nowhere")
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    [path] = prepared.glob("train/*.arrow")
    path.write_bytes(path.read_bytes() + b"\0")
    nmt("verify", "mine", "prepared=prepared").refused("trained with a different train/")
    nmt("verify", "run=mine/model").refused("no next checkpoint", "use a run that has checkpoints")
    config, checkpoint = run / "config.yaml", run / LATER
    original = torch.load(checkpoint, weights_only=True)
    for threads in (0, 999, 10**6):
        torch.save(
            {**original, "nmt": {**original["nmt"], "devices": f"1 x cpu ({threads} threads)"}},
            checkpoint,
        )
        nmt("verify", "mine", "step=24").refused(
            f"{LATER} was trained with {threads} threads", "more cores"
        )
    config.write_text("1")
    nmt("verify", "mine", "step=24").refused("mine/config.yaml: ")
    config.unlink()
    nmt("verify", "mine", "step=24").refused("mine/config.yaml: ")


@pytest.mark.parametrize("content", ["{}", "{", None])
def test_processor_of_older_run_is_read_from_environment_file(run, content):
    checkpoint = torch.load(run / LATER, weights_only=True)
    processor = checkpoint["nmt"]["environment"].pop("processor")
    assert environment_of_run(run, checkpoint)["processor"] == processor
    path = run / "environment.json"
    path.write_text(content) if content else path.unlink()
    with pytest.raises(NMTError, match=r"environment\.json: "):
        environment_of_run(run, checkpoint)


def test_run_with_init_is_trained_again_from_the_initial_weights(nmt, toy, finished):
    adapted, parent = (
        [*toy, "trainer.max_steps=4", "checkpoints.every_steps=2"],
        Path(shutil.copytree(finished, "parent")),
    )
    assert nmt("train", *adapted, "init=parent", "run=mine").code == 0
    for step, end in (0, 2), (2, 4):
        assert nmt("verify", "mine", f"step={step}").out.startswith(
            f"{SAME}update {step} to {end}: "
        )
    weights = parent / "model/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    nmt("verify", "mine", "step=0").refused("began with different weights than init=parent")
    shutil.rmtree(parent)
    nmt("verify", "mine", "step=0").refused("init=parent")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["model", "activation"], "gelu"),
        (["model", "norm_epsilon"], 0.001),
        (["source"], "fr"),
        (["training", "tokens"], 7),
        (["training", "corpus"], "0" * 64),
        (["training", "config", "seed"], 7),
        (["training", "lengths"], {}),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_each_entry_of_the_description_is_compared(run, keys, value):
    path = run / "model" / "config.json"
    tree = json.loads(path.read_text())
    entry = tree
    for key in keys[:-1]:
        entry = entry[key]
    entry[keys[-1]] = value
    path.write_text(json.dumps(tree))
    result, _, detail = check_model(run, {60: run / "checkpoints" / "step=00000060.ckpt"})
    assert result == "DIFFERS"
    assert keys[-1] in detail


def test_changed_vocabulary_is_detected(run):
    path = run / "model" / "tokenizer.model"
    path.write_bytes(path.read_bytes() + b"\0")
    assert check_model(run, {60: run / "checkpoints" / "step=00000060.ckpt"})[0] == "DIFFERS"


def test_changed_environment_is_reported(nmt, run, monkeypatch):
    path = run / LATER
    content = torch.load(path, weights_only=True)
    content["nmt"]["environment"]["capability"] = "AVX9000"
    content["nmt"]["environment"]["switches"] = {"ONEDNN_MAX_CPU_ISA": "SSE41"}
    torch.save(content, path)
    out = nmt("verify", "mine", "step=24").out
    assert "another environment: capability: AVX9000 -> " in out
    assert "switches.ONEDNN_MAX_CPU_ISA: SSE41 -> None" in out


@pytest.mark.parametrize(("update", "is_change"), [(49, False), (48, True)])
def test_configuration_may_only_extend_training(run, update, is_change):
    path = run / "config.yaml"
    saved = yaml.safe_load(path.read_text())
    saved["optim"] |= {"schedule": "linear", "decay_steps": 100, "decay_changes": [[30, 90]]}
    newest = {"nmt": {"config": json.loads(json.dumps(saved))}, "global_step": 48}
    saved["optim"]["decay_changes"].append([update, 80])
    path.write_text(yaml.safe_dump(saved))
    assert bool(changed_configuration(run, newest)) == is_change
