"""Errors that users see: one line, whose parts other front ends can render."""

import pickle

import pytest

from nmt.config import TrainerConfig, build, parse_duration
from nmt.errors import NMTError, SettingError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (SettingError("unknown key hads", key="hads"), "unknown key hads"),
        (SettingError("must be even", key="model.heads", value="7"), "model.heads=7: must be even"),
        (
            SettingError("is odd", key="heads", value="7", where="run.yaml", advice="add one"),
            "run.yaml: heads=7: is odd; add one",
        ),
    ],
)
def test_an_error_in_a_key_is_one_line(error, line):
    assert str(error) == line


def test_a_front_end_can_write_the_key_in_another_way():
    error = SettingError("must be positive", key="decode.beam_size", value="0")
    assert error.line("beam_size") == "beam_size=0: must be positive"


def test_contexts_are_nested():
    error = SettingError("must be even", key="heads", value="7")
    outer = error.within("model.yaml").within("conf")
    assert str(outer) == "conf: model.yaml: heads=7: must be even"
    assert outer.key == "heads"
    assert str(NMTError("broken").within("conf")) == "conf: broken"


def test_an_error_of_a_worker_process_keeps_its_parts():
    error = SettingError("is odd", key="heads", value="7", where="run.yaml", advice="add one")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_refused_value_is_an_error_with_its_key():
    with pytest.raises(SettingError) as refused:
        build(TrainerConfig, {"max_steps": 0}, "trainer.yaml", "trainer.")
    assert refused.value.key == "trainer.max_steps"
    assert refused.value.value == "0"
    assert refused.value.where == "trainer.yaml"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900),
        ("2h", 7200),
        ("1d12h", 129_600),
        ("90s", 90),
        ("00:02:30:00", 9000),
    ],
)
def test_durations_are_seconds(text, seconds):
    assert parse_duration("trainer.max_time", text) == seconds


@pytest.mark.parametrize("text", ["", "0m", "15min", "1h2d", "02:30:00", "00:00:00:00", "-5m"])
def test_other_durations_are_refused(text):
    with pytest.raises(SettingError, match="must be a duration, such as 15m"):
        parse_duration("trainer.max_time", text)
