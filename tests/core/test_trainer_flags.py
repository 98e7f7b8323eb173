"""Every flag of lightning.Trainer is offered or refused; those that are offered take what they are for."""

import inspect
from pathlib import Path

import pytest
import yaml
from lightning import Trainer

from nmt.commands import compose
from nmt.compose.plain import conf_folder
from nmt.config import check_precision
from nmt.config.trainer import OFFERED, REFUSED, checked_trainer
from nmt.errors import NMTError

DEVICES = [0, -2, 1.5, True, "2", "0,1", [], [0, 0], [-1], [True], 10**6]
TIMES = [900, "", "15", "m", "15min", "0m", "00:00:00:00", "1:2:3", "12h1d", "-1h", "9999999d", {"hours": 1}]
PARAMETERS = set(inspect.signature(Trainer.__init__).parameters) - {"self"}


def test_every_flag_is_a_decision():
    """A new one of Lightning's belongs in one of the lists, and one that is gone leaves them."""
    assert {*OFFERED, *REFUSED} == PARAMETERS
    assert not set(OFFERED) & REFUSED.keys()


def test_the_flags_that_are_offered_are_those_of_the_yaml_file():
    assert set(yaml.safe_load((conf_folder() / "trainer" / "paper.yaml").read_text())) == set(OFFERED)
    assert set(compose("train", []).trainer) == set(OFFERED)


@pytest.mark.parametrize("flag", sorted(REFUSED))
def test_a_flag_that_would_break_a_run_is_refused_with_the_reason(flag):
    for word in ["trainer.", "+trainer.", "++trainer."] if flag == "callbacks" else ["trainer."]:
        with pytest.raises(NMTError) as error:
            compose("train", [f"{word}{flag}=3"])
        assert str(error.value) == f"trainer.{flag} cannot be set: {REFUSED[flag]}"
    with pytest.raises(NMTError, match=f"trainer.{flag} cannot be set"):
        checked_trainer({"max_steps": 3, flag: {"any": "thing"}})


@pytest.mark.parametrize("text", ["limit_train_batches: 3", "limit_train_batches: {a: 3}"])
def test_so_is_one_in_a_file_of_ones_own(tmp_path: Path, text):
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "mine.yaml").write_text(f"max_steps: 3\n{text}\n")
    with pytest.raises(NMTError, match=r"^trainer\.limit_train_batches cannot be set: "):
        compose("train", ["trainer=mine"], tmp_path)


def test_a_file_of_ones_own_needs_no_more_than_the_number_of_updates(tmp_path: Path):
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "mine.yaml").write_text("max_steps: 3\nplugins: null\n")
    expected = {**compose("train", []).trainer, "max_steps": 3}
    assert compose("train", ["trainer=mine"], tmp_path).trainer == expected


@pytest.mark.parametrize(
    "word", ["+trainer.devcies=8", "trainer.devcies=8", "+trainer.max_step=8", "+trainer.devices.a=1"]
)
def test_a_flag_that_lightning_does_not_have_is_unknown(word):
    with pytest.raises(NMTError, match=r"^unknown key trainer\..*; did you mean trainer\."):
        compose("train", [word])
    with pytest.raises(NMTError, match=r"^trainer\.x: no such flag; there are max_steps, "):
        checked_trainer({"max_steps": 3, "x": 1})


@pytest.mark.parametrize(
    ("flag", "value", "wanted"),
    [
        *[("max_steps", value, "between 1 and 1,000,000,000") for value in (0, -1, 20.5, "ten", True, 10**12, [3])],
        ("max_steps", None, "a number of updates is needed"),
        ("log_every_n_steps", 0, "between 1 and"),
        ("gradient_clip_val", 0, "between 1e-06 and 1,000,000, or null"),
        ("gradient_clip_val", -1, "between"),
        ("gradient_clip_val", float("nan"), "between"),
        ("gradient_clip_algorithm", "l1", "one of norm, value, or null"),
        ("num_nodes", 0, "between 1 and"),
        *[("devices", value, "auto, how many") for value in DEVICES],
        ("strategy", "ddp_spawn", "one of auto, ddp, fsdp"),
        ("accelerator", "tpu", "one of auto, cpu, gpu, cuda, mps"),
        ("precision", "8", "one of 32-true, bf16-mixed"),
        ("deterministic", "yes", "one of true, false, warn"),
        ("benchmark", 1, "one of true, false"),
        ("detect_anomaly", "x", "one of true, false"),
        *[
            ("max_time", value, "15m, 2h, 1d12h")
            for value in TIMES
        ],
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_with_what_is_right(flag, value, wanted):
    with pytest.raises(NMTError) as error:
        checked_trainer({"max_steps": 3, flag: value})
    assert str(error.value).startswith(f"trainer.{flag}")
    assert wanted in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("flag", "value", "given"),
    [
        ("max_time", "15m", "00:00:15:00"),
        ("max_time", "2h", "00:02:00:00"),
        ("max_time", "1d12h", "01:12:00:00"),
        ("max_time", "90s", "00:00:01:30"),
        ("max_time", "100d", "100:00:00:00"),
        ("max_time", "00:26:00:00", "01:02:00:00"),
        ("devices", [2, 0], [2, 0]),
        ("devices", -1, -1),
        ("precision", 16, "16-mixed"),
        ("precision", "bf16", "bf16-mixed"),
        ("deterministic", "warn", "warn"),
        ("accelerator", None, "auto"),
        ("log_every_n_steps", None, 50),
        ("gradient_clip_val", 1, 1),
    ],
)
def test_a_right_value_is_given_to_lightning_in_its_words(flag, value, given):
    checked = checked_trainer({"max_steps": 3, flag: value})
    assert checked[flag] == given
    Trainer(**{k: v for k, v in checked.items() if v is not None and k == "max_time"}, logger=False)


def test_float16_on_a_processor_is_refused_where_lightning_would_take_another_precision():
    with pytest.raises(NMTError, match="needs a GPU"):
        checked_trainer({"max_steps": 3, "precision": "16-mixed", "accelerator": "cpu"})
    checked_trainer({"max_steps": 3, "precision": "16-mixed"})
    with pytest.raises(NMTError, match="needs a GPU"):
        check_precision("16-mixed", on_processor=True)
    check_precision("bf16-mixed", on_processor=True)
