"""What a GPU would be asked for, as far as that can be told without one."""

import pytest
import torch

from nmt.commands import compose
from nmt.training.trainer import make_trainer


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["trainer.devices=[1]"], (1, "cuda:1")),
        (["trainer.devices=[2,0]"], (2, "cuda:2")),
        (["trainer.devices=3", "trainer.strategy=ddp"], (3, "cuda:0")),
        (["trainer.accelerator=cpu", "trainer.devices=2"], (2, "cpu")),
    ],
)
def test_trials_and_the_final_score_are_on_the_device_that_the_trainer_trains_on(toy, monkeypatch, flags, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    config = compose("train", [*toy, "trainer.accelerator=gpu", *flags])
    trainer = make_trainer(config)
    assert (trainer.world_size, trainer.strategy.root_device) == (expected[0], torch.device(expected[1]))


def test_how_exactly_float32_is_multiplied_is_asked_for_and_belongs_to_a_run(toy, nmt):
    options = (*toy, "trainer.max_steps=1", "validation.bleu_sentences=0", "run=run")
    assert nmt("train", *options).code == 0
    assert torch.get_float32_matmul_precision() == "highest"
    nmt("train", *options, "float32_matmul_precision=high").refused("float32_matmul_precision: highest -> high")
    assert nmt("train", *options, "float32_matmul_precision=high", "name=other", "run=other").code == 0
    assert torch.get_float32_matmul_precision() == "high"
    assert nmt("train", *options, "run=third").code == 0
    assert torch.get_float32_matmul_precision() == "highest"
    nmt("train", *toy, "float32_matmul_precision=tf32").refused(
        "float32_matmul_precision=tf32", "highest, high, medium"
    )
    nmt("train", *toy, "num_workers=-1").refused("num_workers=-1", "must be a whole number between")
