"""Training in mixed and in low precision, on a CPU."""

import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
import yaml
from lightning import Trainer
from lightning.pytorch.plugins import MixedPrecision

from nmt.commands import compose
from nmt.config import NMTError
from nmt.training import check_configuration, list_checkpoints, load_checkpoint, settle_trainer

SHORT = ("trainer.max_steps=30", "validation.every_steps=15", "validation.bleu_sentences=0")


def losses(rows: list[dict[str, str]], column: str = "loss") -> list[float]:
    return [float(row[column]) for row in rows if row[column]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "weights"), [("bf16-mixed", torch.float32), ("bf16-true", torch.bfloat16)]
)
def test_every_precision_learns_like_float32(toy, nmt, finished, metrics, precision, weights):
    assert nmt("train", *toy, *SHORT, f"trainer.precision={precision}", "run=run").code == 0
    rows = metrics(Path("run"))
    exact = metrics(finished)
    assert losses(rows)[0] == pytest.approx(losses(exact)[0], rel=0.02)
    assert losses(rows)[-1] < 0.8 * losses(rows)[0]
    assert losses(rows, "valid_loss")[-1] == pytest.approx(losses(exact, "valid_loss")[-1], rel=0.2)
    state = load_checkpoint(list_checkpoints(Path("run"))[-1])["state_dict"]
    assert {tensor.dtype for tensor in state.values()} == {weights}


@pytest.mark.parametrize("fast", [True, False])
def test_auto_selects_the_precision_that_suits_the_device(monkeypatch, fast):
    monkeypatch.setattr(
        "nmt.compat.has_fast_bfloat16", lambda device: fast and device.type == "cpu"
    )
    config = compose("train", ["trainer.precision=auto", "trainer.accelerator=cpu"])
    assert settle_trainer(config).trainer.precision == ("bf16-mixed" if fast else "32-true")
    named = compose("train", ["trainer.precision=32-true", "trainer.accelerator=cpu"])
    assert settle_trainer(named).trainer.precision == "32-true"


def test_a_run_that_has_begun_keeps_its_precision_on_any_device(toy, finished, monkeypatch, here):
    """Runs of older versions, whose configuration lacks trainer.compile, resume too."""
    run = Path(shutil.copytree(finished, "run"))
    tree = yaml.safe_load((run / "config.yaml").read_text())
    del tree["trainer"]["compile"], tree["trainer"]["reduction"]
    (run / "config.yaml").write_text(yaml.safe_dump(tree))
    monkeypatch.setattr("nmt.compat.has_fast_bfloat16", lambda device: True)
    changes = ["trainer.precision=auto", "trainer.max_steps=72", "checkpoints.every_steps=12"]
    options = [*toy, *changes, "run=run"]
    settled = settle_trainer(compose("train", options))
    assert (settled.trainer.precision, settled.trainer.compile) == ("32-true", False)
    check_configuration(run, settled)
    slower = settle_trainer(compose("train", [*options, "trainer.reduction=fast"]))
    with pytest.raises(NMTError, match=r"trainer\.reduction: exact -> fast"):
        check_configuration(run, slower)


def half_precision(made: list[MixedPrecision], **flags) -> Trainer:
    """A trainer with 16-mixed on a CPU; Lightning allows it only on GPUs."""
    made.append(MixedPrecision("16-mixed", "cpu"))
    return Trainer(**{**flags, "precision": None, "plugins": [*flags["plugins"], made[-1]]})


@pytest.mark.slow
def test_float16_is_scaled_and_clipped_and_resumes_exactly(
    toy, nmt, monkeypatch, training_state, metrics
):
    plugins: list[MixedPrecision] = []
    monkeypatch.setattr("nmt.training.trainer.Trainer", partial(half_precision, plugins))
    for run, steps in (("stopped", 13), ("stopped", 30), ("whole", 30)):
        options = (
            *SHORT,
            "trainer.gradient_clip_val=0.5",
            f"trainer.max_steps={steps}",
            f"run={run}",
        )
        assert nmt("train", *toy, *options).code == 0
    state = training_state(Path("stopped"))
    torch.testing.assert_close(state, training_state(Path("whole")), rtol=0, atol=0)
    first, *_, last = losses(metrics(Path("whole")))
    assert last < 0.9 * first
    assert plugins[-1].scaler.get_scale() > 1
