"""How many tokens a batch may have: as the user says, else by device."""

from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.config import DecodeConfig
from nmt.files import parse_yaml
from nmt.search import TorchEngine, batch_tokens
from tests.core.test_search import tiny_model

SAMPLE = {"beam_size": 1, "do_sample": True}


@pytest.mark.parametrize(
    ("settings", "on_a_cpu", "on_a_gpu"),
    [
        ({}, 2000, 16_000),
        ({"beam_size": 21}, 2000, 16_000),
        ({"beam_size": 1}, 8000, 64_000),
        (SAMPLE, 2000, 16_000),
        ({"batch_tokens": 2000}, 2000, 2000),
        ({"beam_size": 1, "batch_tokens": 7}, 7, 7),
    ],
    ids=str,
)
def test_the_default_depends_on_the_device(settings, on_a_cpu, on_a_gpu):
    config = DecodeConfig(**settings)
    assert batch_tokens(config, "cpu") == on_a_cpu
    assert {batch_tokens(config, device) for device in ("cuda", "mps")} == {on_a_gpu}


def test_an_engine_asks_for_the_size_of_its_models_device():
    model, config = tiny_model(), DecodeConfig()
    assert TorchEngine([model], config).batch_tokens == 2000
    assert TorchEngine([model.to("meta")], config).batch_tokens == 16_000


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["decode=greedy"], None),
        (["decode=parse"], 1000),
        (["decode.batch_tokens=2000"], 2000),
        (["decode.batch_tokens=null"], None),
    ],
    ids=str,
)
def test_groups_and_keys_set_it(words, expected):
    pytest.importorskip("nmt.plugins.parse.command" if "decode=parse" in words else "nmt")
    assert compose("translate", words).translator.decode.batch_tokens == expected


def test_it_is_listed_and_printed(nmt):
    assert "batch_tokens=null" in nmt("translate", "--help", "decode").out
    printed = nmt("translate", "--cfg").out
    assert parse_yaml(printed)["decode"]["batch_tokens"] is None
    assert parse_yaml(nmt("translate", "--cfg", "decode.batch_tokens=9").out)["decode"] == {
        **parse_yaml(printed)["decode"],
        "batch_tokens": 9,
    }


@pytest.mark.slow
def test_a_run_that_was_begun_with_the_former_default_resumes(toy, nmt):
    options = (*toy, "run=run", "validation.bleu_sentences=0", "checkpoints.every_steps=3")
    assert nmt("train", *options, "decode.batch_tokens=2000", "trainer.max_steps=3").code == 0
    assert "batch_tokens: 2000" in Path("run/config.yaml").read_text()
    assert nmt("train", *options, "trainer.max_steps=4").code == 0
    assert "batch_tokens: null" in Path("run/config.yaml").read_text()
