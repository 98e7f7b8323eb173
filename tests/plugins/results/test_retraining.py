"""`nmt verify RUN` trains again between checkpoints and detects a single changed bit."""

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt.errors import NMTError
from nmt.plugins.results.bits import first_difference
from nmt.plugins.results.delivered import changed_configuration, check_model
from nmt.plugins.results.retraining import compared_segment, environment_of_run, segments
from nmt.training import environment_of

EMBEDDING = "model.source_embedding.weight"
LATER = "checkpoints/step=00000036.ckpt"
SAME = "same                 "
DIFFERS = "DIFFERS              "
UNCHECKED = "unchecked            "
"""The column of results is as wide as the longest one, "another environment"."""


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "mine"))


def change_description(run: Path, keys: list[str], value: Any) -> None:
    """Change an entry of the description of a run's model."""
    path = run / "model" / "config.json"
    tree = json.loads(path.read_text())
    entry = tree
    for key in keys[:-1]:
        entry = entry[key]
    entry[keys[-1]] = value
    path.write_text(json.dumps(tree))


def keep_checkpoints(run: Path, *updates: int) -> None:
    """Remove all checkpoints except those of these updates."""
    names = {f"step={update:08}.ckpt" for update in updates}
    for path in (run / "checkpoints").glob("*.ckpt"):
        if path.name not in names:
            path.unlink()


def contents(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_unchanged_run_has_equal_bits_and_stays_unchanged(nmt, run):
    before = contents(run)
    outcome = nmt("verify", "mine")
    assert outcome.code == 0, outcome.err
    rows = [line.split(": ")[0] for line in outcome.out.splitlines()]
    assert rows == [
        f"{SAME}update 12 to 24",
        f"{SAME}update 24 to 36",
        f"{SAME}update 36 to 48",
        f"{SAME}update 48 to 60",
        f"{SAME}model",
    ]
    assert nmt("verify", "mine", "step=0").out.startswith(f"{SAME}update 0 to 12: ")
    assert contents(run) == before


def flip_bit(tensor: torch.Tensor) -> None:
    tensor.view(torch.int32)[7, 7] ^= 1


@pytest.mark.slow
def test_changed_bit_is_reported_with_the_environment(nmt, run):
    path = run / LATER
    content = torch.load(path, weights_only=True)
    content["nmt"]["versions"]["torch"] = "1.0"
    moments = content["optimizer_states"][0]["state"][0]["exp_avg"]
    weights = content["state_dict"][EMBEDDING]
    tensors = {"optimizer.0.state.0.exp_avg": moments, f"weights.{EMBEDDING}": weights}
    change = f"torch: 1.0 -> {torch.__version__}"
    for name, tensor in tensors.items():
        flip_bit(tensor)
        torch.save(content, path)
        outcome = nmt("verify", "mine", "step=24")
        assert outcome.code == 3
        result = f"another environment  update 24 to 36: {name} differs by up to "
        assert outcome.out.startswith(result)
        assert f"another environment: {change}; the difference proves nothing" in outcome.out

    content["nmt"]["versions"]["torch"] = str(torch.__version__)
    torch.save(content, path)
    outcome = nmt("verify", "mine", "step=24")
    assert outcome.code == 1
    assert outcome.out.startswith(f"{DIFFERS}update 24 to 36: weights.")
    assert "; environment: equal" in outcome.out


def checkpoint_of(
    value: float, beta: float = 0.9, devices: str = "1 x cpu (1 threads)", **state: Any
) -> dict[str, Any]:
    config = {"batching": {"micro_batches": 6}, "trainer": {"reduction": "exact"}}
    return {
        "state_dict": {"a": torch.tensor(value)},
        "optimizer_states": [{"betas": beta}],
        "global_step": 9,
        "nmt": {"config": config, "devices": devices, "versions": {"torch": "1.0"}, **state},
    }


OTHER_PROCESSOR = {"capability": "AVX9000"}


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
        (checkpoint_of(2.0, environment=OTHER_PROCESSOR), "another environment"),
        (checkpoint_of(2.0, beta=0.8, environment=OTHER_PROCESSOR), "DIFFERS"),
    ],
)
def test_another_environment_excuses_bits_only(before, result):
    environment = environment_of(before["nmt"])
    check = compared_segment(5, 9, before, checkpoint_of(1.0), environment)
    assert check[0] == result


STEP = torch.tensor(3.0)
MOMENTS = torch.tensor([0.0, 1.0, torch.nan])
STATE = {"step": STEP, "exp_avg": MOMENTS}
OPTIONS = [{"betas": (0.9, 0.98)}]


def optimizer(state: dict[Any, Any], options: list[dict[str, Any]] = OPTIONS) -> dict[str, Any]:
    return {"state": state, "options": options}


def test_equal_trees_have_no_difference():
    assert not first_difference([optimizer({0: STATE})], [optimizer({0: STATE})])


@pytest.mark.parametrize(
    ("optimizers", "expected"),
    [
        (
            [],
            "0 is null but should be {'state': ",
        ),
        (
            [optimizer({})],
            "0.state.0 is null but should be {'step': ",
        ),
        (
            [optimizer({0: [1]})],
            "0.state.0 is [1] but should be {'step': ",
        ),
        (
            [optimizer({0: STATE, "0": {}})],
            "0.state.0 is {} but should be null",
        ),
        (
            [optimizer({0: {"step": STEP}})],
            "0.state.0.exp_avg is null but should be torch.float32",
        ),
        (
            [optimizer({0: STATE | {"step": STEP.double()}})],
            "0.state.0.step is torch.float64 []",
        ),
        (
            [optimizer({0: STATE | {"exp_avg": MOMENTS[1:]}})],
            "0.state.0.exp_avg is torch.float32 [2]",
        ),
        (
            [optimizer({0: STATE | {"exp_avg": -MOMENTS.abs()}})],
            "0.state.0.exp_avg differs",
        ),
        (
            [optimizer({0: STATE}, [{"betas": (0.9, 0.9)}])],
            "0.options.0.betas.1 is 0.9 but should be 0.98",
        ),
    ],
)
def test_first_difference_of_trees(optimizers, expected):
    difference = first_difference(optimizers, [optimizer({0: STATE})])
    assert difference.startswith(expected)


def test_model_needs_the_checkpoints_that_it_averages(nmt, run):
    keep_checkpoints(run, 48, 60)
    change_description(run, ["training", "averaged"], [36, 60])
    missing = f"{UNCHECKED}model: needs the checkpoints of updates [36,60]"
    assert nmt("verify", "mine").out.splitlines()[1:] == [missing]


def test_model_must_be_the_mean_of_its_checkpoints(nmt, run):
    from safetensors.torch import load_file, save_file

    keep_checkpoints(run, 48, 60)
    change_description(run, ["training", "averaged"], [60])
    path = run / "model" / "model.safetensors"
    weights = load_file(path)
    first = next(iter(weights.values()))
    first.view(-1).view(torch.int32)[7] ^= 1
    save_file(weights, path)
    outcome = nmt("verify", "mine")
    assert outcome.code == 1
    assert outcome.out.splitlines()[1].startswith(f"{DIFFERS}model: ")


@pytest.mark.slow
@pytest.mark.parametrize("averaged", [[], [60, 61], [0, 60], [60, 60]])
def test_impossible_averages_are_detected(nmt, run, averaged):
    change_description(run, ["training", "averaged"], averaged)
    keep_checkpoints(run, 48, 60)
    outcome = nmt("verify", "mine", "step=48")
    assert outcome.code == 1
    [line] = [line for line in outcome.out.splitlines() if "model: " in line]
    assert line.startswith(f"{DIFFERS}model: config.json: training.averaged is ")


def test_single_checkpoint_is_trained_again_from_the_beginning(nmt, run):
    keep_checkpoints(run, 12)
    assert segments([12], None) == [(0, 12)]
    assert segments([12, 24], None) == [(12, 24)]
    assert "update 0 to 12: all bits are equal" in nmt("verify", "mine").out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["mine", "step=13"], ["mine, step=13: no next checkpoint", "use 0, 12, 24, 36, 48"]),
        (["mine", "prepared=nowhere"], ["nowhere"]),
        (["run=mine/model"], ["no next checkpoint", "use a run that has checkpoints"]),
    ],
)
def test_missing_files_are_reported(nmt, run, words, problem):
    nmt("verify", *words).refused(*problem)


def test_changed_corpus_is_reported(nmt, run, toy):
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    [path] = prepared.glob("train/*.arrow")
    path.write_bytes(path.read_bytes() + b"\0")
    nmt("verify", "mine", "prepared=prepared").refused("trained with a different train/")


@pytest.mark.parametrize("threads", [0, 999, 10**6])
def test_number_of_threads_that_is_not_available_is_reported(nmt, run, threads):
    path = run / LATER
    content = torch.load(path, weights_only=True)
    content["nmt"]["devices"] = f"1 x cpu ({threads} threads)"
    torch.save(content, path)
    problem = f"{LATER} was trained with {threads} threads"
    nmt("verify", "mine", "step=24").refused(problem, "more cores")


def test_damaged_or_missing_configuration_is_reported(nmt, run):
    config = run / "config.yaml"
    config.write_text("1")
    nmt("verify", "mine", "step=24").refused("mine/config.yaml: ")
    config.unlink()
    nmt("verify", "mine", "step=24").refused("mine/config.yaml: ")


@pytest.mark.parametrize("content", ["{}", "{", None])
def test_processor_of_an_older_run_is_read_from_the_environment_file(run, content):
    checkpoint = torch.load(run / LATER, weights_only=True)
    processor = checkpoint["nmt"]["environment"].pop("processor")
    assert environment_of_run(run, checkpoint)["processor"] == processor
    path = run / "environment.json"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(NMTError, match=r"environment\.json: "):
        environment_of_run(run, checkpoint)


@pytest.mark.slow
def test_run_with_init_is_trained_again_from_the_initial_weights(nmt, toy, finished):
    parent = Path(shutil.copytree(finished, "parent"))
    adapted = [*toy, "trainer.max_steps=4", "checkpoints.every_steps=2"]
    assert nmt("train", *adapted, "init=parent", "run=mine").code == 0
    assert nmt("verify", "mine", "step=0").out.startswith(f"{SAME}update 0 to 2: ")
    assert nmt("verify", "mine", "step=2").out.startswith(f"{SAME}update 2 to 4: ")
    weights = parent / "model/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    nmt("verify", "mine", "step=0").refused("began with different weights than init=parent")
    shutil.rmtree(parent)
    nmt("verify", "mine", "step=0").refused("init=parent")


def result_of_model(run: Path) -> tuple[str, str]:
    """The result of the check of a run's model, and the detail."""
    result, _, detail = check_model(run, {60: run / "checkpoints" / "step=00000060.ckpt"})
    return result, detail


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("model.activation", "gelu"),
        ("model.norm_epsilon", 0.001),
        ("source", "fr"),
        ("training.tokens", 7),
        ("training.corpus", "0" * 64),
        ("training.config.seed", 7),
        ("training.lengths", {}),
    ],
)
def test_each_entry_of_the_description_is_compared(run, entry, value):
    keys = entry.split(".")
    change_description(run, keys, value)
    result, detail = result_of_model(run)
    assert result == "DIFFERS"
    assert keys[-1] in detail


def test_changed_vocabulary_is_detected(run):
    path = run / "model" / "tokenizer.model"
    path.write_bytes(path.read_bytes() + b"\0")
    result, _ = result_of_model(run)
    assert result == "DIFFERS"


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
def test_configuration_may_change_only_for_updates_after_the_last_checkpoint(
    run, update, is_change
):
    path = run / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["optim"].update(schedule="linear", decay_steps=100, decay_changes=[[30, 90]])
    newest = {"nmt": {"config": deepcopy(config)}, "global_step": 48}
    config["optim"]["decay_changes"].append([update, 80])
    path.write_text(yaml.safe_dump(config))
    assert bool(changed_configuration(run, newest)) == is_change
