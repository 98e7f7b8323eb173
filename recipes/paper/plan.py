"""The reproduction's options and scales, and each table row as command lines."""

import csv
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from nmt.commands import compose
from nmt.config import require, set_text

HERE = Path(__file__).parent
TABLES = ("table1", "table2", "table3", "table4")
PROTOCOL = {"en-de": "split", "en-fr": "tokenized"}
"""Corpus -> the metric for the paper's BLEU: on Moses tokens; for German, with compounds split at hyphens."""
DEFAULTS = {
    **{"table": "", "scale": "paper", "rows": "", "output": "recipes", "work": "", "seed": "1"},
    **{"wmt14": "", "quickstart": "", "treebank": "", "devices": "auto", "precision": ""},
}
"""The options; reproduce.py explains them."""


def read_yaml(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def read_figures(table: str) -> list[dict[str, str]]:
    """The rows of one of the paper's tables (arXiv:1706.03762), with the figures as printed."""
    with (HERE / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SCALES = {
    name: SimpleNamespace(name=name, **values) for name, values in read_yaml("scales.yaml").items()
}


def read_options(words: list[str]) -> SimpleNamespace:
    """Parse KEY=VALUE words; a word without = is the table. NMTError for a mistake."""
    options = SimpleNamespace(**DEFAULTS)
    for word in words:
        key, _, value = (word if "=" in word else f"table={word}").partition("=")
        require(key in DEFAULTS, f"unknown key {key}; choose from {', '.join(DEFAULTS)}")
        setattr(options, key, value)
    for key, value, choices in (
        ("table", options.table, [*TABLES, "all"]),
        ("scale", options.scale, list(SCALES)),
    ):
        require(value in choices, f"{key}={value}: must be one of {', '.join(choices)}")
    options.scale = SCALES[options.scale]
    options.precision = options.precision or options.scale.precision
    options.rows = [name for name in re.split(r"[\[\], ]+", options.rows) if name]
    require(
        not options.rows or options.table != "all",
        "rows: pass the table that contains them instead of all",
    )
    require(options.seed.isdecimal(), f"seed={options.seed}: must be a whole number")
    options.seed = int(options.seed)
    options.work = Path(options.work or f"runs/reproduce/{options.scale.name}/seed-{options.seed}")
    return options


@dataclass(frozen=True)
class Row:
    """A table row that we measure."""

    name: str
    """The name of its result."""
    commands: list[list[str]]
    """Each begins with nmt, or with python and a script's name."""
    corpus: str = ""
    """en-de or en-fr, for translation."""
    folders: tuple[Path, ...] = ()
    """The prepared corpus and the run, for a row that trains a model."""
    held_out: dict[str, int] = field(default_factory=dict)
    """Split -> the number of lines that it must have."""

    @property
    def lines(self) -> list[str]:
        """The commands, quoted for a shell."""
        return [shlex.join(command) for command in self.commands]

    @property
    def training(self) -> list[str]:
        """The overrides of `nmt train`; empty for a row that trains nothing."""
        return [word for command in self.commands if command[1] == "train" for word in command[2:]]


def paths(**values: Path) -> list[str]:
    """KEY=PATH words, quoted as Hydra requires."""
    return [set_text(key, str(path)) for key, path in values.items()]


def translation_row(
    options: SimpleNamespace, name: str, corpus: str, model: list[str], training: str, split: str
) -> Row:
    """A row of table 2 (section 6.1) or 4: a model with these overrides, its updates in `training`, and its score."""
    scale = options.scale
    prepared, run = options.work / "data" / corpus, options.work / "runs" / name
    source, target = corpus.split("-")
    local = getattr(options, scale.local)
    path = [set_text("data.path", local)] if local else []
    data = [*scale.corpora[corpus], *path, *paths(prepared=prepared), f"seed={options.seed}"]
    model = [*model, *smaller_sizes(scale, model), *scale.words]
    reference, output = prepared / f"{split}.{target}", run / f"{split}.{target}"
    metrics = [f"metrics=[bleu,{PROTOCOL[corpus]}]", f"language={target}", "format=json"]
    commands = [
        ["nmt", "preprocess", *data],
        ["nmt", "train", *data, *model, *how_trained(options, training, run)],
        [
            "nmt",
            "translate",
            "protect=none",
            "overwrite=true",
            *paths(run=run, input=prepared / f"{split}.{source}", output=output),
        ],
        ["nmt", "score", *paths(hypothesis=output, reference=reference), *metrics],
    ]
    return Row(name, commands, corpus, (prepared, run), scale.held_out)


def smaller_sizes(scale: SimpleNamespace, words: list[str]) -> list[str]:
    """The overrides that scale down the model that `words` selects."""
    if scale.width == scale.depth == 1:
        return []
    model = compose("train", words).model
    divisors = {"encoder_layers": scale.depth, "decoder_layers": scale.depth}
    divisors |= dict.fromkeys(("d_model", "d_ff", "d_k", "d_v"), scale.width)
    sizes = {key: getattr(model, key) // divisor for key, divisor in divisors.items()}
    if model.attention_window is not None:  # sentences are shorter, too
        sizes["attention_window"] = round(model.attention_window / scale.width)
    return [f"model.{key}={value}" for key, value in sizes.items()]


def how_trained(options: SimpleNamespace, training: str, run: Path) -> list[str]:
    """The arguments of `nmt train` that all training runs share."""
    updates, every_steps = options.scale.trainings[training]
    return [
        f"trainer.max_steps={updates}",
        "checkpoints.every_minutes=null",
        "checkpoints.average=all",
        f"checkpoints.every_steps={every_steps}",
        "validation.bleu_sentences=0",
        f"trainer.devices={options.devices}",
        f"trainer.precision={options.precision}",
        *paths(run=run),
    ]
