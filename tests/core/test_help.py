"""Help fits a screen; groups and all keys are a word away."""

import pytest

from nmt.commands import COMMANDS
from nmt.config import compose_tree, help_text, keys_of
from nmt.config.help import OPTIONS
from nmt.errors import NMTError
from nmt.registry import entries_of


def page(command: str, *words: str) -> str:
    return help_text(COMMANDS[command], list(words), None)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_page_fits_a_screen_and_all_keys_are_on_that_of_all(command):
    about, lines, text = COMMANDS[command], page(command).splitlines(), page(command, "all")
    assert len(lines) <= 40
    assert all(len(line) <= 100 for line in [*lines, *text.splitlines()])
    assert lines[0].startswith(f"Usage: nmt {command} ")
    assert entries_of("command")[command].facts["summary"] in lines
    for option in (*OPTIONS, *about.all_options):
        assert any(line.startswith(f"  {option} ") for line in lines)
    keys = keys_of(about.config)
    for key in keys:
        is_hidden = any(f"{key}.".startswith(f"{name}.") for name in about.hides.split())
        is_read = not is_hidden and keys[key].help.split(":")[0] not in {*COMMANDS} - {command}
        assert (f"\n  {key}=" in text) == is_read
    examples = [word for word in about.keys.split() if word.split("=")[0] in {*keys, *about.groups}]
    compose_tree(about, examples)
    assert all(any(line.startswith(f"  {word} ") for line in lines) for word in examples)


def test_a_group_has_a_page_with_its_keys_alone():
    text = page("train", "optim")
    assert "optim.factor=1.0" in text
    assert "model." not in text
    assert "data.filters.max_words" in page("preprocess", "data")
    with pytest.raises(NMTError, match="--help optm: no such group; did you mean optim"):
        page("train", "optm")


def test_options_of_a_group_are_named_and_those_of_a_folder_counted():
    assert "base, big, small, student, tiny" in page("train")
    assert "table3/... (" in page("train")
    assert "Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch" in page("translate")
