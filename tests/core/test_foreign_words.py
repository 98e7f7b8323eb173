"""Keys and options of other toolkits are answered by ours, with an example that works."""

import shlex

import pytest

from nmt.commands import COMMANDS, compose
from nmt.config import compose_tree, keys_of, our_words
from nmt.config.composition import command_groups
from nmt.config.mistakes import TABLE, explain_option, foreign_words as table
from nmt.errors import NMTError

ROWS = sorted({(command, example) for (command, _), (_, example) in table().items()})


def test_there_is_a_table_of_them():
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) > 90
    assert len(table()) > 500
    assert sum(len(line.split("\t")[1].split()) * len(line.split("\t")[0].split(",")) for line in lines) == len(table())
    assert all(answer and answer[-1] not in ".;" and word == word.lower() for (_, word), (answer, _) in table().items())


def batches(examples: list[str]) -> list[list[str]]:
    """The words of examples, several together where they share no key, since composing takes a while."""
    found: list[dict[str, str]] = []
    for words in map(shlex.split, examples):
        keys = {word.split("=")[0]: word for word in words}
        for batch in found:
            if not keys.keys() & batch.keys():
                batch |= keys
                break
        else:
            found.append(keys)
    return [list(batch.values()) for batch in found]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_composes(command):
    needed = {"attention": ["sentence=x"], "reproduce": ["table=table1"]}.get(command, [])
    examples = [example for name, example in ROWS if name == command]
    slow = command in ("train", "preprocess")
    for words in batches(examples) if slow else map(shlex.split, examples):
        compose(command, [*needed, *words])


@pytest.mark.parametrize("example", [example for command, example in ROWS if command == "nmt"])
def test_an_example_of_a_command_names_one(example):
    for part in example.split(" && "):
        program, command, *_ = part.split()
        assert program == "nmt"
        assert command in COMMANDS


def test_no_word_of_ours_is_in_it():
    """Such a row would never be read, as a key, or would answer a command that is there."""
    for command, word in table():
        if command == "nmt":
            assert word not in COMMANDS
        else:
            keys = {*keys_of(COMMANDS[command].config), *command_groups(COMMANDS[command])}
            assert word not in keys, f"{command} {word}"


@pytest.mark.parametrize(
    ("command", "word", "key"),
    [
        ("train", "lr=0.1", "optim.learning_rate=3e-4"),
        ("train", "optim.lr_scheduler=cosine", "optim.schedule=linear"),
        ("translate", "decode.num_beams=5", "decode.beam_size=8"),
        ("train", "epochs=3", "trainer.max_steps=20000"),
        ("train", "trainer.gpus=2", "trainer.devices=2"),
        ("train", "dropout=0.3", "model.dropout=0.3"),
        ("train", "gradient_accumulation_steps=2", "batching.micro_batches=16"),
        ("preprocess", "src=en", "data.source=cs"),
        ("translate", "beam=5", "decode.beam_size=8"),
        ("translate", "num_beams=5", "decode.beam_size=8"),
        ("translate", "checkpoint=runs/x", "run=runs/mine"),
        ("score", "model=runs/x", "run=runs/mine"),
    ],
)
def test_a_key_of_others_is_answered_in_one_line(command, word, key):
    with pytest.raises(NMTError) as error:
        compose(command, [word])
    assert str(error.value).startswith(f"{word.split('=')[0]}: ")
    assert f", as {key}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("train", ["--max-tokens", "4096"], "as batching.max_tokens=auto"),
        ("train", ["--update-freq=4"], "as batching.micro_batches=16"),
        ("train", ["-train_steps", "9"], "as trainer.max_steps=20000"),
        ("train", ["--LR", "9"], "--LR: the highest learning rate is optim.learning_rate"),
        ("train", ["--model", "big"], "--model: options are written KEY=VALUE, as model=VALUE"),
        ("train", ["--model.norm=pre"], "as model.norm=pre"),
        ("translate", ["--beam-size", "5"], "as decode.beam_size=8"),
        ("translate", ["--vocabs", "x"], "--vocabs: no such option or key; there are run, "),
        ("train", ["--finetune-from-model", "x.pt"], "init=RUN starts from a trained model"),
        ("translate", ["-n_best", "5"], "as decode.n_best=4"),
    ],
)
def test_so_is_an_option_with_dashes(command, words, said):
    assert said in explain_option(
        command, words[0], [*keys_of(COMMANDS[command].config), *command_groups(COMMANDS[command])]
    )


def test_a_key_that_nobody_knows_is_none_of_others():
    assert our_words("train", "no_such_word") == ""
    with pytest.raises(NMTError, match="unknown key"):
        compose_tree(COMMANDS["train"], ["no_such_word=3"])


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("train", ["tokenizer.size=3"], "there are tokenizer.kind, "),
        ("train", ["modle.dropout=0.3"], "did you mean model.dropout?"),
        ("train", ["max_stesp=3"], "did you mean trainer.max_steps?"),
        ("translate", ["x=y is an equation", "runs/mine"], "for a text, write text='x=y is an equation'"),
        ("translate", ["source_prefx=a b", "runs/mine"], "did you mean source_prefix?"),
        ("translate", ["a=b.en"], "to name the file, write ./a=b.en"),
        ("translate", [""], "'': no such file or folder"),
        ("score", ["metrics=[bleu,", "chrf]"], "without blanks"),
        ("train", ["model.dropout", "=", "0.3"], "without blanks"),
    ],
)
def test_what_may_have_been_meant_is_said(command, words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.en").touch()
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    with pytest.raises(NMTError) as error:
        compose(command, words)
    assert said in str(error.value)


def test_a_file_that_begins_with_a_dash_is_named_by_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-text.en").touch()
    assert explain_option("translate", "-text.en", []) == "-text.en: to name this file, write ./-text.en"
