"""The page for users of other toolkits: nmt answers each of its foreign words, and has each of its keys."""

import re
from pathlib import Path

import pytest

from nmt.commands import COMMANDS
from nmt.config import groups, keys_of
from nmt.plugins.answers.foreign_words import answer

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "coming-from.md"
TOOLKITS = ("fairseq", "OpenNMT-py", "Marian", "transformers", "JoeyNMT or Sockeye")
CODE = re.compile(r"`([^`]+)`")
KEY = re.compile(r"[a-z_]+(\.[a-z_0-9]+)*(?==|$)")


def rows():
    """The cells of all rows of the tables whose first column is a toolkit."""
    is_toolkit = False
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            is_toolkit = False
        elif cells[1] == "nmt" and cells[0] in TOOLKITS:
            is_toolkit = True
        elif is_toolkit and not line.startswith("|---"):
            yield cells


ROWS = list(rows())
FOREIGN_WORDS = [word for foreign, _ in ROWS for word in CODE.findall(foreign)]


def test_every_table_is_read():
    assert len(ROWS) > 80
    assert len(FOREIGN_WORDS) == len(CODE.findall("".join(foreign for foreign, _ in ROWS))) > 100


@pytest.mark.parametrize("word", sorted({*FOREIGN_WORDS}))
def test_nmt_answers_each_foreign_word(word):
    """As an option with dashes, a key of a YAML file, or a command."""
    is_key = not word.startswith("-")
    answers = [answer(name, [f"{word}=1" if is_key else word]) for name in COMMANDS]
    if is_key:
        answers.append(answer("nmt", [word]))
    assert any(answers)


def test_nmt_has_each_key_and_command():
    keys = {key for command in COMMANDS.values() for key in keys_of(command.config)}
    keys |= {group for command in COMMANDS.values() for group in groups(command)}
    for _, ours in ROWS:
        for code in CODE.findall(ours):
            if code.startswith("nmt "):
                assert code.split()[1] in COMMANDS, code
            elif code not in ("wu", "avg", "en", "eng_Latn"):
                assert KEY.match(code)[0] in keys, code
