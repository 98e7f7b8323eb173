"""Help fits a screen; groups and all keys are a word away."""

import pytest

from nmt.commands import COMMANDS
from nmt.config import compose_tree, help_text, keys_of
from nmt.config.help import OPTIONS
from nmt.errors import NMTError


def page(command: str, *words: str) -> str:
    return help_text(COMMANDS[command], list(words), None)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_page_fits_a_screen(command):
    lines = page(command).splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 100 for line in lines)
    assert lines[0].startswith(f"Usage: nmt {command} ")
    assert COMMANDS[command].summary in lines
    for option in (*OPTIONS, *COMMANDS[command].all_options):
        assert any(line.startswith(f"  {option} ") for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_keys_that_people_change_are_some_of_the_tree(command):
    about = COMMANDS[command]
    compose_tree(about, about.keys.split())
    for word in about.keys.split():
        assert f"  {word} " in page(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_key_is_on_the_page_of_all_unless_the_command_does_not_read_it(command):
    text, hidden = page(command, "all"), COMMANDS[command].hides.split()
    for key in keys_of(COMMANDS[command].config):
        shown = not any(f"{key}.".startswith(f"{name}.") for name in hidden)
        assert (f"\n  {key}=" in text) == shown
    assert all(len(line) <= 100 for line in text.splitlines())


def test_a_group_has_a_page_with_its_keys_alone():
    text = page("train", "optim")
    assert "optim.factor=1.0" in text
    assert "model." not in text
    assert "trainer.max_steps=100000" in page("train", "trainer")
    assert "data.filters.max_words" in page("preprocess", "data")
    assert "decode.beam_size=21" in page("parse", "decode")
    with pytest.raises(NMTError, match="--help optm: no such group; did you mean optim"):
        page("train", "optm")


@pytest.mark.parametrize("command", ["translate", "serve"])
def test_the_first_page_has_every_arithmetic(command):
    assert "Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch" in page(command)


def test_a_command_hides_what_it_does_not_read():
    assert "data." not in page("train")
    assert "optim" not in page("preprocess")
    assert set(COMMANDS["preprocess"].hides.split()) & set(COMMANDS["train"].hides.split()) == set()


def test_the_options_of_a_group_are_named_and_those_of_a_folder_counted():
    assert "base, big, small, student, tiny" in page("train")
    assert "table3/... (" in page("train")
