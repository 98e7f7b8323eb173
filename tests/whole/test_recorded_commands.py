"""The commands that scripts run, with their variables expanded, and those of stored results."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.config import is_bare
from nmt.errors import NMTError
from tests.whole.test_documentation import ROOT, write_what_words_name

SCRIPTS = sorted([*ROOT.glob("recipes/*/*.sh"), *ROOT.glob("benchmarks/*.sh")])
RESULTS = sorted(ROOT.glob("recipes/table*/results/*/*.json"))
GROUPS = ("experiment=", "data=", "model=", "optim=", "tokenizer=", "decode=")
ARGUMENTS = {
    "recipes/backtranslation/run.sh": ["multi30k", "F/train", "F/val", "F/test", "4000"],
    "recipes/quickstart/run.sh": [],
    "recipes/treebank/split.sh": None,  # runs no nmt
}
# Each program that a script may call does nothing, except that nmt prints its arguments.
PROGRAMS = {
    "nmt": 'printf \'%s\\0\' "$@" end-of-command >> "$RECORD"',
    "wc": "echo 4",
    "tee": "cat > /dev/null",
    **dict.fromkeys(("python", "awk", "head", "tail", "cmp", "cp", "find", "sha256sum"), "exit 0"),
}


def expanded_commands(script: Path, arguments: list[str], folder: Path) -> list[list[str]]:
    """Run a script without any of its programs; return the arguments of each `nmt`."""
    programs = folder / "programs"
    programs.mkdir()
    for name, body in PROGRAMS.items():
        program = programs / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    record = folder / "record"
    record.touch()
    work = folder / "work"
    work.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RECORD": str(record),
        "BASH_FUNC_cd%%": "() { :; }",  # the folder that a script enters does not exist
    }
    shell = ["bash", "-c", without_redirections(script.read_text()), str(script), *arguments]
    subprocess.run(shell, cwd=work, env=environment, check=True)
    words = record.read_text().split("\0")[:-1]
    commands = [[]]
    for word in words:
        if word == "end-of-command":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands[:-1]


def without_redirections(text: str) -> str:
    """A script that reads and writes no file."""
    return re.sub(r"(?<=[ )}])>{1,2} ?\"?[\w$./{}-]+\"?|(?<= )< ?\"?[\w$./{}-]+\"?", "", text)


def write_inputs(command: str, words: list[str]) -> None:
    """What a command must find, besides what its words without = name."""
    for word in words:
        key, _, value = word.partition("=")
        if key in ("input", "hypothesis") and not is_bare(word):
            write_what_words_name(command, [value])
    write_what_words_name(command, words)


def unlike(commands: list[list[str]]) -> list[list[str]]:
    """One of the commands that differ only in numbers, names or paths."""
    chosen = {}
    for words in commands:
        keys = [word if word.startswith(GROUPS) else word.partition("=")[0] for word in words]
        keys = [re.sub(r"\d+", "", key) for key in keys]
        chosen[tuple(keys)] = words
    return list(chosen.values())


def problems_of(commands: list[list[str]]) -> list[str]:
    problems = []
    for command, *words in unlike(commands):
        folder = None
        if "--config-dir" in words:
            at = words.index("--config-dir")
            folder = Path(words[at + 1])
            words = words[:at] + words[at + 2 :]
        words = [word for word in words if word != "--json"]
        write_inputs(command, words)
        try:
            compose(command, words, folder)
        except NMTError as error:
            problems.append(f"nmt {shlex.join([command, *words])}: {error}")
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.relative_to(ROOT)))
def test_the_commands_of_scripts_compose_with_their_variables(script, here):
    arguments = ARGUMENTS.get(str(script.relative_to(ROOT)), ["FOLDER", "CORPUS"])
    if arguments is None:
        assert "nmt" not in script.read_text()
        return
    commands = expanded_commands(script, arguments, here)
    assert commands
    assert problems_of(commands) == []


@pytest.mark.slow
def test_the_recorded_commands_of_results_compose(here):
    lines = [line for path in RESULTS for line in json.loads(path.read_text())["commands"]]
    commands = [re.split(r" > ", line)[0] for line in lines]
    commands = [shlex.split(line) for line in commands]
    assert {program for program, *_ in commands} == {"nmt", "python"}
    for program, script, *_ in commands:
        assert program == "nmt" or (ROOT / script).is_file()
    assert problems_of([words[1:] for words in commands if words[0] == "nmt"]) == []
