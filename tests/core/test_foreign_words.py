"""Keys and options of other toolkits are answered by ours, with an example that works."""

import shlex

import pytest

from nmt.commands import COMMANDS, compose
from nmt.config import keys_of, our_words
from nmt.config.mistakes import TABLE, foreign_words
from nmt.errors import NMTError

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
        ("train", ["--model", "big"], "--model: write options as KEY=VALUE, such as model=VALUE"),
        ("train", ["--model.norm=pre"], "such as model.norm=pre"),
        ("train", ["tokenizer.size=3"], "choose from tokenizer.kind, "),
        ("train", ["max_stesp=3"], "did you mean trainer.max_steps?"),
        ("train", ["no_such_word=3"], "unknown key no_such_word; "),
        ("translate", ["x=y is an equation"], "write text='x=y is an equation'"),
        ("score", ["metrics=[bleu,", "chrf]"], "without spaces"),
        ("train", ["model.dropout", "=", "0.3"], "without spaces"),
    ],
)
def test_what_may_have_been_meant_is_said(command, words, said):
    with pytest.raises(NMTError) as error:
        compose(command, words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert our_words("train", "no_such_word") == ""
