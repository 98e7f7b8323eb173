"""`nmt train`: train a model on a prepared corpus."""

import gc
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import data, files, training
from nmt.commands import talker
from nmt.commands.preprocess import GROUPS, initial_groups
from nmt.config import Command, ExperimentConfig, NMTError, answer

if TYPE_CHECKING:
    from rich.console import Console

WARMUP_PART = 10
"""The warm-up of a run that is too short for its own takes 1 / WARMUP_PART of its updates."""


def run(config: ExperimentConfig) -> int | None:
    """Train; the exit code after a signal is 128 plus its number."""
    begin = time.monotonic()
    training.follow_first_process()  # before the libraries load, which takes seconds
    console = talker()
    check_before_loading(config)
    with console.status("loading"):
        gc.disable()  # garbage collection during Lightning's imports takes a second
        # Late, because this loads torch and Lightning.
        from nmt.training import settle_trainer, train

        gc.enable()
        if config.epochs is not None:
            config = with_updates_of_epochs(config, console)
        # Before the trials of minutes=, which need its choice; `train` finds nothing left to
        # settle.
        config = settle_trainer(config, lambda text: console.print(f"notice: {text}"))
    if config.minutes is not None:
        from nmt.commands.minutes import settle

        config = settle(config, console, begin)
    signal = train(config, console)
    if not signal:
        return signal
    console.print(f"stopped and saved in {config.run}; the same command resumes it")
    # The convention of shells; docs/guides/clusters.md requeues a job by it.
    return 128 + signal


def with_updates_of_epochs(config: ExperimentConfig, console: "Console") -> ExperimentConfig:
    """Set the number of updates to that of `epochs=`, and print it."""
    corpus = data.open_corpus(Path(config.prepared))
    # Before its pairs are counted: other options would count them differently.
    training.check_corpus(corpus.manifest, config)
    assert config.epochs is not None
    planner = data.UpdateDataModule(corpus, config).planner
    updates = planner.updates_of(config.epochs)
    console.print(
        f"epochs={config.epochs:g} is {updates:,} updates (trainer.max_steps={updates}); "
        f"an epoch has {planner.pairs_per_pass:,} pairs"
    )
    # Without epochs: the run is the same as one with this trainer.max_steps. A schedule that ends
    # refuses a longer warm-up.
    trainer = replace(config.trainer, max_steps=updates)
    optim = config.optim
    # The user cannot know the number of updates before.
    if optim.warmup >= updates:
        warmup = max(1, updates // WARMUP_PART)
        console.print(
            f"notice: optim.warmup={optim.warmup} would not end within these updates, "
            f"so it is optim.warmup={warmup}"
        )
        optim = replace(optim, warmup=warmup)
    return replace(config, epochs=None, trainer=trainer, optim=optim)


def check_before_loading(config: ExperimentConfig) -> None:
    """Raise NMTError for what can be checked before libraries load, which takes seconds.

    Training checks it again.
    """
    prepared = Path(config.prepared)
    manifest = data.read_manifest(prepared)
    if config.init is not None:
        training.initial_directory(config.init, prepared, manifest)
    run = Path(config.run)
    # The other processes would find the lock of the first one.
    if training.is_first_process():
        # Taken and released, only to report another process at once; training takes it again.
        with files.locked_file(run / files.LOCK, True, files.in_use(run, "run")):
            pass


def prepared_corpus(words: list[str]) -> dict[str, Any]:
    """Return the folder of a prepared corpus, and `data` and `tokenizer` from its manifest."""
    usage = "`nmt train CORPUS KEY=VALUE...` takes a folder that `nmt preprocess` wrote, not text"
    for word in words:
        if Path(word).is_file():
            problem = "a file, not a prepared corpus"
            raise NMTError(f"{word}: {problem}; `nmt preprocess --help` shows how to prepare one")
        if not Path(word).is_dir():
            unknown = f"{word}: no such folder; {usage}"
            # The word may be an option of another toolkit, for which a plugin has an answer.
            raise NMTError(answer("train", [f"{word}="]) or unknown)
    if len(words) != 1:
        raise NMTError(f"{words[-1]}: give one corpus; {usage}")
    corpus = Path(words[0])
    # The options that the corpus was prepared with must be the same in training, so they come from
    # the corpus instead of the command line.
    content = data.read_manifest(corpus).content
    return {
        "prepared": str(corpus),
        "data": content["data"],
        "tokenizer": content["tokenizer"],
    }


COMMAND = Command(
    name="train",
    config=ExperimentConfig,
    run=run,
    words=prepared_corpus,
    initial=initial_groups,
    usage="[CORPUS]",
    examples=(
        "data/corpus minutes=30",
        "data/corpus experiment=laptop model.dropout=0.3 name=dropout",
    ),
    hides="data tokenizer",
    # The name of Lightning, and that of most other toolkits.
    aliases={"trainer.max_epochs": "epochs", "max_epochs": "epochs"},
    memory="close other programs; the same command resumes from the last checkpoint",
    groups=GROUPS,
)
