"""Keys and options of other toolkits are answered by ours, with an example that works."""

import re
import shlex
from inspect import signature

import pytest
from lightning import Trainer

from nmt.commands import COMMANDS, compose
from nmt.config import TrainerConfig, keys_of
from nmt.plugins.answers.foreign_words import TABLE, answer, foreign_words

NEEDED = {
    "attention": ["sentence=x"],
    "import": ["path=x", "output=y"],
    "synthesize": ["input=x", "output=y"],
    "push": ["repository=a/b"],
}
WORDS = {
    (name, word): row for (name, word), row in foreign_words().items() if name in ("nmt", *COMMANDS)
}


def test_table_is_read_completely_without_our_own_keys():
    """nmt itself handles its commands, and its keys that are no groups."""
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    words = sum(
        len(line.split("\t")[1].split()) * len(line.split("\t")[0].split(",")) for line in lines
    )
    assert words == len(foreign_words()) > 500
    for (command, word), (example, note) in WORDS.items():
        ours = COMMANDS if command == "nmt" else keys_of(COMMANDS[command].config)
        assert word not in ours, f"{command} {word}"
        assert example or note
        assert word == word.lower()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_examples_compose(command):
    """Examples of different keys are composed together, which is quicker; of keys without a group, one at a time."""
    for plugin in ("exchange", "protection", "judge"):
        pytest.importorskip(f"nmt.plugins.{plugin}")
    batches = list[dict[str, list[str]]]()
    for example in sorted(
        {example for (name, _), (example, _) in WORDS.items() if name == command}
    ):
        words = shlex.split(re.sub(r"<(\S+?)>", r"\1", example))
        keys = {word.split("=")[0] if "." in word.split("=")[0] else "" for word in words}
        if "epochs=3" in words:
            keys.add("trainer.max_steps")  # the two exclude each other
        batch = next((batch for batch in batches if not keys & batch.keys()), None)
        if batch is None:
            batches.append(batch := {})
        batch |= dict.fromkeys(keys, words)
    for batch in batches:
        words = [*dict.fromkeys(word for words in batch.values() for word in words)]
        needed = [
            word
            for word in NEEDED.get(command, [])
            if not any(given[:5] == word[:5] for given in words)
        ]
        compose(command, [*needed, *words])


@pytest.mark.parametrize(
    ("line", "answered"),
    [
        ("translate --beam 4", "--beam 4: use decode.beam_size=4"),
        (
            "translate --beam=4 --text 'A b'",
            "--beam=4: use decode.beam_size=4; --text A b: use text='A b'",
        ),
        (
            "translate -src a -model b -output c",
            "-src a: use input=a; -model b: use run=b; -output c: use output=c",
        ),
        ("translate -src corpus/x.en", "-src corpus/x.en: use input=corpus/x.en; a file of lines"),
        ("translate -src en", "-src: use input=input.en; a file of lines"),
        (
            "fine-tune runs/fr",
            "fine-tune runs/fr: use nmt train data/corpus init=runs/fr minutes=30; prepare",
        ),
        ("finetune --lr 1", "finetune: use nmt train data/corpus init=runs/base minutes=30"),
        (
            "translate --no_such 3 --length-penalty -1",
            "--length-penalty -1: use decode.length_penalty=-1",
        ),
        ("translate --gpu runs/mine", "--gpu: use device=cuda; the default is"),
        (
            "train optim.lr_scheduler=cosine",
            "optim.lr_scheduler=cosine: use optim.schedule=cosine; `nmt train",
        ),
        (
            "train lr=5e-4 --epochs 3",
            "lr=5e-4: use optim.learning_rate=5e-4; --epochs 3: use epochs=3",
        ),
        ("train num_epochs 3", "num_epochs: use epochs=3; passes over the corpus"),
        ("train num_train_epochs=5", "num_train_epochs=5: use epochs=5; passes over"),
        (
            "train --max-epochs 4 --trainer.max_epochs=4",
            "--max-epochs 4, --trainer.max_epochs=4: use epochs=4",
        ),
        ("train --LR many", "--LR: use optim.learning_rate=3e-4; by default"),
        (
            "train --arch transformer --fp16",
            "--arch: use model=big; --fp16: use trainer.precision=bf16-mixed",
        ),
        (
            "train --src en --tgt de",
            "--src, --tgt: use nmt preprocess corpus/train.en corpus/train.de, then",
        ),
        ("train --model big --seed 3", "--model big: use model=big; --seed 3: use seed=3"),
        (
            "preprocess --bpe x --train_src a",
            "--bpe: use tokenizer=bpe8k; --train_src a: use data=files data.train=a:",
        ),
        ("preprocess --source-lang a.en", "--source-lang: use data.source=en"),
        (
            "train --multirun lr=1,2",
            "--multirun: use a shell loop; lr: use optim.learning_rate=3e-4",
        ),
        ("train -m", "-m: use a shell loop; docs/guides/tune.md shows one"),
        ("delete runs/old", "delete: use nmt runs delete runs/mine"),
        ("runs list", "list: use nmt runs, or"),
        ("runs rm old", "rm: use nmt runs delete"),
        ("serve -p 8080", "-p 8080: use port=8080"),
        ("score --lowercase out.de", "--lowercase: use lowercase=true"),
        ("export --format onnx", "--format onnx: use format=onnx"),
        ("help train", "help train: use nmt train --help"),
        ("help", "help: use nmt train --help"),
        ("ls", "ls: use nmt runs; nmt --help"),
        ("-V", "-V: use nmt --version"),
        ("fairseq-train data-bin --arch x", "fairseq-train: use nmt train data/corpus minutes=30"),
    ],
)
def test_answers_with_the_values_of_the_user(nmt, line, answered):
    nmt(*shlex.split(line)).refused(f"nmt: {answered}")


def test_each_flag_of_lightnings_trainer_is_a_key_or_has_an_answer(nmt):
    flags, offered = (
        set(signature(Trainer.__init__).parameters) - {"self"},
        set(keys_of(TrainerConfig)),
    )
    assert offered - {"max_time", "compile", "reduction"} < flags
    aliases = {name.removeprefix("trainer.") for name in COMMANDS["train"].aliases}
    for flag in flags - offered - aliases:
        assert answer("train", [f"trainer.{flag}=1"]).startswith(f"trainer.{flag}: cannot be set: ")
    nmt("train", "+trainer.callbacks=3").refused("trainer.callbacks: cannot be set: ")
