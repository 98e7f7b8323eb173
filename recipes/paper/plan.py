"""Options and scales of the reproduction, and the rows of its tables: command lines."""

import csv
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from nmt.commands import compose
from nmt.compose import set_text
from nmt.config.rules import require, require_choice

HERE = Path(__file__).parent
TABLES = ("table1", "table2", "table3", "table4")
DEFAULTS = {
    **{"table": "", "scale": "paper", "rows": "", "output": "recipes", "work": "", "seed": "1"},
    **{"wmt14": "", "quickstart": "", "treebank": "", "devices": "auto", "precision": "32-true"},
}
"""Of the options; reproduce.py says what they mean."""


def read_yaml(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def read_figures(table: str) -> list[dict[str, str]]:
    """The paper's rows of a table (arXiv:1706.03762), with every figure as it is printed there."""
    with (HERE / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SCALES = {name: SimpleNamespace(name=name, **values) for name, values in read_yaml("scales.yaml").items()}


def read_options(words: list[str]) -> SimpleNamespace:
    """KEY=VALUE words, of which one without = names the table; NMTError for a mistake."""
    options = SimpleNamespace(**DEFAULTS)
    for word in words:
        key, _, value = (word if "=" in word else f"table={word}").partition("=")
        require(key in DEFAULTS, f"unknown key {key}; there are {', '.join(DEFAULTS)}")
        setattr(options, key, value)
    require_choice("table", options.table, (*TABLES, "all"))
    require_choice("scale", options.scale, tuple(SCALES))
    options.scale = SCALES[options.scale]
    options.rows = [name for name in re.split(r"[\[\], ]+", options.rows) if name]
    require(not options.rows or options.table != "all", "rows: name their table instead of all")
    require(options.seed.isdecimal(), f"seed={options.seed}: must be a whole number")
    options.seed = int(options.seed)
    options.work = Path(options.work or f"runs/reproduce/{options.scale.name}/seed-{options.seed}")
    return options


@dataclass(frozen=True)
class Row:
    """A row of a table that is measured here."""

    name: str
    """Of its result."""
    commands: list[list[str]]
    """Each begins with nmt, or with python and a script."""
    corpus: str = ""
    """en-de or en-fr, where it is translation."""
    folders: tuple[Path, ...] = ()
    """The prepared corpus and the run, where something is trained."""
    held_out: dict[str, int] = field(default_factory=dict)
    """Lines that its validation and test sets must have."""

    @property
    def lines(self) -> list[str]:
        """The commands as a shell can run them."""
        return [shlex.join(command) for command in self.commands]

    @property
    def training(self) -> list[str]:
        """The overrides of `nmt train`; none where nothing is trained."""
        return [word for command in self.commands if command[1] == "train" for word in command[2:]]


def paths(**values: Path) -> list[str]:
    """KEY=PATH words, quoted where Hydra needs that."""
    return [set_text(key, str(path)) for key, path in values.items()]


@dataclass(frozen=True)
class Experiment:
    """A translation model that is trained on a corpus, en-de or en-fr, and scored on a split, test or valid."""

    name: str
    corpus: str
    model: list[str]
    """Overrides."""
    training: str
    """One of the scale's."""
    split: str
    metrics: str


def translation_row(options: SimpleNamespace, experiment: Experiment) -> Row:
    """From text to scores."""
    scale, corpus, split = options.scale, experiment.corpus, experiment.split
    prepared, run = options.work / "data" / corpus, options.work / "runs" / experiment.name
    source, target = corpus.split("-")
    local = getattr(options, scale.local)
    path = [set_text("data.path", local)] if local else []
    data = [*scale.corpora[corpus], *path, *paths(prepared=prepared), f"seed={options.seed}"]
    model = [*experiment.model, *smaller_sizes(scale, experiment.model), *scale.words]
    reference, output = prepared / f"{split}.{target}", run / f"{split}.{target}"
    metrics = [f"metrics=[{experiment.metrics}]", f"language={target}", "format=json"]
    commands = [
        ["nmt", "preprocess", *data],
        ["nmt", "train", *data, *model, *how_trained(options, experiment.training, run)],
        ["nmt", "translate", *paths(run=run, input=prepared / f"{split}.{source}", output=output)],
        ["nmt", "score", *paths(hypothesis=output, reference=reference), *metrics],
    ]
    return Row(experiment.name, commands, corpus, (prepared, run), scale.held_out)


def smaller_sizes(scale: SimpleNamespace, words: list[str]) -> list[str]:
    """The overrides that shrink the model that `nmt train` would make of `words`."""
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
    """The words behind `nmt train` that are alike for whatever is trained."""
    updates, every_steps = options.scale.trainings[training]
    return [
        f"trainer.max_steps={updates}",
        "checkpoints.every_minutes=null",
        f"checkpoints.every_steps={every_steps}",
        "validation.bleu_sentences=0",
        f"trainer.devices={options.devices}",
        f"trainer.precision={options.precision}",
        *paths(run=run),
    ]
