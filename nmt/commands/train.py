"""`nmt train`: train a model on a prepared corpus."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.commands.console import talker
from nmt.commands.preprocess import GROUPS
from nmt.config import EOS, PAD, Command, ExperimentConfig, Option, compose
from nmt.errors import NMTError

if TYPE_CHECKING:
    from omegaconf import DictConfig
    from rich.console import Console

SIZES = ("tiny", "small", "base", "big")
"""The models that minutes= chooses from."""


@contextmanager
def without_collecting() -> Iterator[None]:
    """Let Python look for no garbage among what the block imports: with Lightning, this takes a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run(config: ExperimentConfig) -> int | None:
    """Start or continue the run of a configuration."""
    from nmt.data import read_manifest

    console = talker()
    read_manifest(Path(config.prepared))  # before the seconds that Lightning takes to load
    with console.status("loading"), without_collecting():
        from nmt.training import train

    if config.minutes is not None or config.trainer.max_steps is None:
        config = settled_by_clock(config, console)
    number = train(config, console)
    if number is None:
        return None
    console.print(f"stopped and saved in {config.run}; the same command goes on from there")
    return 128 + number


def settled_by_clock(config: ExperimentConfig, console: "Console") -> ExperimentConfig:
    """The configuration with what suits the time that was given, as minutes= or as trainer.max_time."""
    from nmt.data import open_corpus
    from nmt.training import settle_max_steps, settle_minutes, settle_precision

    if config.trainer.precision == "auto":  # the models are tried in it
        config = settle_precision(config, Path(config.run), console)
    if config.minutes is None:
        with console.status("timing"):
            return settle_max_steps(config, Path(config.run), open_corpus(Path(config.prepared)))
    sizes = [replace(compose(COMMAND, [f"model={name}"]).model, norm="pre") for name in SIZES]
    if not (Path(config.run) / "config.yaml").exists():
        console.print(f"minutes={config.minutes:g}: choosing a model and its batches by short trainings")
    with console.status("choosing"):
        settled = settle_minutes(config, Path(config.run), open_corpus(Path(config.prepared)), sizes)
    if (Path(config.run) / "config.yaml").exists():
        return settled
    model = settled.model
    console.print(
        f"minutes={config.minutes:g}: model={model.name} (d_model {model.d_model}, {model.encoder_layers} + "
        f"{model.decoder_layers} layers, dropout {model.dropout}), {settled.trainer.max_steps:,} updates of "
        f"{settled.batching.tokens_per_update:,} tokens; {config.run}/config.yaml has them"
    )
    return settled


def leave_to_the_clock(tree: "DictConfig", keys: list[str]) -> None:
    """Leave to minutes= or max_time what no key says; a model that training starts from has its size."""
    if tree.minutes is None:
        ends = tree.optim.schedule in ("linear", "cosine") and tree.optim.decay_steps is None
        if ends and "trainer.max_time" in keys and "trainer.max_steps" not in keys:
            tree.trainer.max_steps = None
        return
    if "trainer.max_steps" in keys:
        raise NMTError("minutes= settles trainer.max_steps: leave one of them out")
    given = {key.split(".")[0] for key in keys} | ({"model", "optim"} if tree.init else set())
    if "name" not in keys:
        tree.name = f"{tree.data.name}-{tree.minutes:g}min"
    tree.minutes_settles = [group for group in tree.minutes_settles if group not in given]


def sweep(overrides: list[str], config_dir: Path | None, options: set[str]) -> int | None:
    """Train with each of several values; with --dry-run only print the commands."""
    if "--sweep" not in options:
        raise NMTError("--dry-run prints the commands of a --sweep; --cfg prints the configuration of one training")
    console = talker()
    with console.status("composing"):
        from nmt.commands.sweep import command_lines, plan, train_points

        points = plan(COMMAND, overrides, config_dir)
    if any(point.config.minutes is not None or point.config.trainer.max_steps is None for point in points):
        raise NMTError("time gives each training another number of updates: sweep with trainer.max_steps=")
    if "--dry-run" not in options:
        return train_points(points, console)
    sys.stdout.write(command_lines(points))
    return None


def show(overrides: list[str], config_dir: Path | None, options: set[str]) -> None:
    """Print the pairs of the first update as the model gets them, in subwords, with tags and noise."""
    from nmt.data import UpdateDataModule, batch_of, open_corpus
    from nmt.text import load_tokenizer

    config = compose(COMMAND, overrides, config_dir)
    corpus = open_corpus(Path(config.prepared))
    updates, tokenizer = UpdateDataModule(corpus, config), load_tokenizer(corpus.tokenizer_file)
    for planned in updates.planner.update(0):
        batch = batch_of(updates.batches, planned)
        for pair in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True):
            sides = ([id for id in ids if id not in (PAD, EOS)] for ids in pair)
            print(*(" ".join(tokenizer.subwords(ids, side)) for side, ids in enumerate(sides)), sep="\t")


def prepared_corpus(words: list[str]) -> dict[str, Any]:
    """The folder of a prepared corpus, with data and tokenizer from its manifest."""
    from nmt.data import read_manifest

    folder = Path(words[0])
    if len(words) > 1 or not folder.is_dir():
        reason = f"{words[1]}: one corpus, please" if len(words) > 1 else f"{folder}: no such folder"
        raise NMTError(f"{reason}; `nmt train CORPUS KEY=VALUE...` takes a folder that `nmt preprocess` wrote")
    content = read_manifest(folder).content
    return {"prepared": str(folder), "data": content["data"], "tokenizer": content["tokenizer"]}


def initial_model(init: str) -> dict[str, dict[str, Any]]:
    """The configuration of the model that training starts from, and of its vocabulary."""
    from nmt.files import find_model_directory, read_description, tokenizer_settings

    description = read_description(find_model_directory(init, "init"))
    return {"model": description.model, "tokenizer": tokenizer_settings(description)}


COMMAND = Command(
    "train",
    ExperimentConfig,
    run,
    prepared_corpus,
    initial_model,
    leave_to_the_clock,
    usage="[CORPUS]",
    example="data/mine experiment=laptop",
    keys=(
        "experiment=laptop model=small name=mine trainer.max_steps=20000 trainer.max_time=2h "
        "trainer.devices=2 trainer.precision=bf16-mixed optim.factor=2 batching.tokens_per_update=8000 "
        "model.dropout=0.3 seed=2"
    ),
    hides="data tokenizer workers overwrite",
    options={
        "--sweep": Option("Train with each of several values, KEY=A,B or KEY=range(1,4).", run=sweep),
        "--show": Option("Print the pairs of the first update as the model gets them, with noise.", run=show),
        "--dry-run": Option("With --sweep: print the command of each training, and start none.", run=sweep),
    },
    texts=("data.tag",),
    memory="other programs may have taken it since training began; the same command goes on from the last checkpoint",
    groups=GROUPS,
)
