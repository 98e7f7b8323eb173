"""Keys and options of other toolkits are answered by ours, with an example that works."""

import shlex
from inspect import signature

import pytest
from lightning import Trainer

from nmt.commands import COMMANDS, compose
from nmt.config import NMTError, TrainerConfig, keys_of
from nmt.plugins.answers.foreign_words import TABLE, answer, foreign_words

WORDS = {(name, word): row for (name, word), row in foreign_words().items() if name in ("nmt", *COMMANDS)}


def test_each_row_is_read_and_names_no_word_of_ours():
    """A row of a key or a command of ours would never be read."""
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    words = sum(len(line.split("\t")[1].split()) * len(line.split("\t")[0].split(",")) for line in lines)
    assert words == len(foreign_words()) > 500
    for (command, word), (example, note) in WORDS.items():
        ours = COMMANDS if command == "nmt" else {*keys_of(COMMANDS[command].config), *COMMANDS[command].groups}
        assert word not in ours, f"{command} {word}"
        assert example or note
        assert word == word.lower()


def batches(examples: set[str]) -> list[list[str]]:
    """The words of examples, several together where they share no key, since composing takes a while."""
    together: list[dict[str, str]] = []
    for words in map(shlex.split, sorted(examples)):
        keys = {word.split("=")[0]: word for word in words}
        free = next((batch for batch in together if not keys.keys() & batch.keys()), None)
        if free is None:
            together.append(free := {})
        free |= keys
    return [list(batch.values()) for batch in together]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_composes(command):
    for plugin in {"translate": ["exchange", "protection"], "score": ["judge"], "parse": ["exchange"]}.get(command, []):
        pytest.importorskip(f"nmt.plugins.{plugin}")
    needed = {"attention": ["sentence=x"]}.get(command, [])
    examples = {example for (name, _), (example, _) in WORDS.items() if name == command}
    for words in batches(examples) if command in ("train", "preprocess") else map(shlex.split, examples):
        compose(command, [*needed, *words])


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("train", ["optim.lr_scheduler=cosine"], "optim.lr_scheduler: use optim.schedule=linear; schedules are"),
        ("translate", ["decode.num_beams=5"], "use decode.beam_size=8"),
        ("train", ["--max-tokens", "4096"], "use batching.max_tokens=auto"),
        ("train", ["-train_steps", "9"], "use trainer.max_steps=20000"),
        ("train", ["--LR", "9"], "use optim.learning_rate=3e-4"),
    ],
)
def test_what_may_have_been_meant_is_said(command, words, said):
    with pytest.raises(NMTError) as error:
        compose(command, words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert answer("train", "no_such_word") == ""


def test_every_flag_of_lightnings_trainer_is_a_key_or_refused_with_a_reason(nmt):
    flags, offered = set(signature(Trainer.__init__).parameters) - {"self"}, set(keys_of(TrainerConfig))
    assert offered - {"max_time"} < flags
    for flag in flags - offered:
        assert answer("train", f"trainer.{flag}").startswith(f"trainer.{flag}: cannot be set: ")
    nmt("train", "+trainer.callbacks=3").refused("trainer.callbacks: cannot be set: ")


def test_a_command_of_another_toolkit_is_answered(nmt):
    nmt("help", "train").refused("use nmt train --help all")
