"""Help fits a screen; groups and all keys are a word away."""

from dataclasses import replace
from functools import cache

import pytest

from nmt.commands import COMMANDS
from nmt.config import OPTIONS, help_text, keys_of
from nmt.extensions import CommandEntry
from nmt.registry import entries_of


@cache
def page(command: str, *words: str) -> str:
    return help_text(COMMANDS[command], list(words), None)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_page_fits_a_screen(command):
    lines = page(command).splitlines()
    assert len(lines) <= 54
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_of_all_keys_fits_the_width_of_a_screen(command):
    assert all(len(line) <= 100 for line in page(command, "all").splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_page_begins_with_usage_and_examples(command):
    usage, *lines = page(command).splitlines()
    assert usage.startswith(f"Usage: nmt {command} ")
    assert lines[:4] == ["", entries_of(CommandEntry)[command].summary, "", "Examples"]
    assert all(line.startswith(f"  nmt {command}") for line in lines[4:6])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_sections_of_the_first_page_have_one_order(command):
    lines = page(command).splitlines()[7:]
    titles = [line.split(";")[0] for line in lines if line and line[0] != " "]
    sections = ("Keys", "Groups of keys", "Options")
    assert titles == [title for title in sections if title in titles]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_page_lists_all_options(command):
    lines = page(command).splitlines()
    for option in (*OPTIONS, *COMMANDS[command].options):
        assert any(line.startswith(f"  {option} ") for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_keys_that_a_command_reads_are_listed(command):
    first = page(command)
    all_keys = page(command, "all")
    hidden = COMMANDS[command].hides.split()
    for name, key in keys_of(COMMANDS[command].config).items():
        is_hidden = any(f"{name}.".startswith(f"{group}.") for group in hidden)
        is_for_others = bool(key.only_for) and command not in key.only_for
        is_read = not is_hidden and not is_for_others
        assert (f"\n  {name}=" in all_keys) == is_read
        assert (f"\n  {name}=" in first) == (is_read and "." not in name)


def test_the_help_of_a_shared_key_names_the_command_that_reads_it():
    workers = keys_of(COMMANDS["train"].config)["workers"]
    assert workers.only_for == ("preprocess",)
    assert workers.help == "preprocess: number of processes."
    assert "Number of processes" in page("preprocess")
    assert "\n  workers=" not in page("train", "all")


def test_a_command_without_examples_has_no_heading_for_them():
    plain = replace(COMMANDS["translate"], examples=())
    assert "Examples" not in help_text(plain, [], None)


def test_options_of_a_group_are_named_and_those_of_a_folder_counted():
    assert "base, big, small, student, tiny" in page("train")
    assert "table3/... (" in page("train")
