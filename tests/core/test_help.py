"""Help fits a screen; groups and all keys are a word away."""

from dataclasses import replace

import pytest

from nmt.commands import COMMANDS
from nmt.config import OPTIONS, help_text, keys_of
from nmt.registry import entries_of


def page(command: str, *words: str) -> str:
    return help_text(COMMANDS[command], list(words), None)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_page_fits_a_screen_and_all_keys_are_on_that_of_all(command):
    about, first, text = COMMANDS[command], page(command), page(command, "all")
    lines = first.splitlines()
    assert len(lines) <= 48
    assert all(len(line) <= 100 for line in [*lines, *text.splitlines()])
    assert lines[0].startswith(f"Usage: nmt {command} ")
    assert lines[1:5] == ["", entries_of("command")[command].facts["summary"], "", "Examples"]
    assert all(line.startswith(f"  nmt {command}") for line in lines[5:7])
    titles = [line.split(";")[0] for line in lines[7:] if line and line[0] != " "]
    assert titles == [title for title in ("Keys", "Groups of keys", "Options") if title in titles]
    for option in (*OPTIONS, *about.options):
        assert any(line.startswith(f"  {option} ") for line in lines)
    for name, key in keys_of(about.config).items():
        is_hidden = any(f"{name}.".startswith(f"{hidden}.") for hidden in about.hides.split())
        is_read = not is_hidden and key.help.split(":")[0] not in {*COMMANDS} - {command}
        assert (f"\n  {name}=" in text) == is_read
        assert (f"\n  {name}=" in first) == (is_read and "." not in name)


def test_a_command_without_examples_has_no_heading_for_them():
    plain = replace(COMMANDS["translate"], examples=())
    assert "Examples" not in help_text(plain, [], None)


def test_options_of_a_group_are_named_and_those_of_a_folder_counted():
    assert "base, big, small, student, tiny" in page("train")
    assert "table3/... (" in page("train")
