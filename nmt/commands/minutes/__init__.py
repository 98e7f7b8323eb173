"""`nmt train minutes=30`: choose a run's settings for a corpus, a machine and a time limit.

When a run begins, short trials measure speed and memory; nmt discards their models. config.yaml
records the settings, so the run is then as reproducible as any other. While the run trains, the
number of updates follows the speed of the machine (`Replan`).
"""

import gc
import time
from collections.abc import Iterable
from math import ceil
from pathlib import Path

from rich.console import Console

from nmt import training
from nmt.commands.minutes.choosing import choose, sizes
from nmt.commands.minutes.continuation import as_begun, continued
from nmt.commands.minutes.settings import with_gentle_rate
from nmt.config import ExperimentConfig, ModelConfig, NMTError
from nmt.data import open_corpus
from nmt.training import time_limit


def settle(
    config: ExperimentConfig, console: Console, begin: float | None = None
) -> ExperimentConfig:
    """Start a run, resume the run that has these minutes, or continue the longest run.

    A run is continued in a new folder next to it. `begin` is when the command began, on the clock
    of time.monotonic(); None: now.
    """
    assert config.minutes is not None
    # Reading the corpus counts, too.
    start_clock(config, begin)
    corpus = open_corpus(Path(config.prepared))
    runs = time_limit.begun(Path(config.run))
    # No trials, which would choose differently on a busier machine: the run must stay the same.
    if config.minutes in runs:
        run = runs[config.minutes]
        console.print(f"{run} was started with {time_limit.setting(config)} and keeps its settings")
        return as_begun(config, run)
    models: Iterable[ModelConfig] = [config.model]
    if "model" in config.minutes_settles:
        models = sizes(config)
    check_time(config)
    updates_before = None
    if runs:
        config = continued(config, corpus, runs, console)
        updates_before = training.read_config(Path(config.init or ""))["trainer"]["max_steps"]
        # A continued model cannot change its size.
        models = [config.model]
    with console.status("trying models and batches for a few seconds"):
        config = choose(config, corpus, models, time_limit.seconds_of(config))
    if config.init is not None:
        # After the number of updates is known, from which a continued run's rate follows.
        config = with_gentle_rate(config, updates_before)
    # A trial's model and trainer refer to each other and would otherwise occupy device memory.
    gc.collect()
    console.print(chosen_settings(config))
    return config


def start_clock(config: ExperimentConfig, begin: float | None) -> None:
    """Start to measure the time of the run when the command began.

    trainer.max_time limits the training alone, so then the time starts now.
    """
    is_max_time = config.trainer.max_time is not None and not config.minutes_settles
    if begin is None or is_max_time:
        begin = time.monotonic()
    time_limit.command_clock.start(begin)


def check_time(config: ExperimentConfig) -> None:
    """Raise NMTError, before the trials, if the time is too short even for validation."""
    limit = time_limit.seconds_of(config)
    beside = time_limit.seconds_beside(limit)
    if beside >= limit:
        # Twice the fixed time, so that updates get as much.
        enough = ceil(2 * beside / 60)
        raise NMTError(
            f"{time_limit.setting(config)}: starting, validation and the final score take "
            f"{beside:.0f} seconds; allow {enough} minutes"
        )


def chosen_settings(config: ExperimentConfig) -> str:
    """The line about its settings that a run prints when it begins."""
    model = config.model
    line = (
        f"{time_limit.setting(config)}: model={model.name} (d_model {model.d_model}, "
        f"{model.encoder_layers} + {model.decoder_layers} layers, dropout {model.dropout}), "
        f"updates of {config.batching.tokens_per_update:,} tokens, "
        "whose number follows the speed of this machine; "
        f"saved in {config.run}/config.yaml"
    )
    if config.minutes_keeps:
        line += f"; it keeps {' '.join(config.minutes_keeps)} as you set them"
    return line
