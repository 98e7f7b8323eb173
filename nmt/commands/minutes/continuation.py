"""Runs that `minutes=` began: their settings, and how a longer run continues them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import training
from nmt.commands.minutes.settings import with_groups
from nmt.config import ENDING, SETS, ExperimentConfig, NMTError, OptimConfig, build
from nmt.data import PreparedCorpus
from nmt.training import time_limit

NEW_RUN = "pass name=OTHER for a new run"


def continued(
    config: ExperimentConfig, corpus: PreparedCorpus, runs: dict[float, Path], console: Console
) -> ExperimentConfig:
    """The configuration that continues the longest of these runs in a new folder next to it.

    Raises NMTError if the time is not longer, or if that run is not finished.
    """
    minutes = config.minutes
    assert minutes is not None
    spent = max(runs)
    before = runs[spent]
    # The previous run provides the initial model, so `init` cannot name another model.
    if minutes <= spent or config.init is not None:
        raise NMTError(
            f"{before} was started with minutes={spent:g}: "
            f"pass more to continue it (without init=), or {NEW_RUN}"
        )
    config = as_begun(config, before)
    # The user's own keys must match the previous run, because its model is trained further.
    training.check_configuration(before, config)
    # 0, because a run has a model only once it has ended, after any number of updates.
    if not training.is_finished(before, 0, corpus.manifest.fingerprint):
        raise NMTError(
            f"{before} is not finished, or its corpus has changed: "
            f"pass minutes={spent:g} to finish it, or {NEW_RUN}"
        )
    run = Path(config.run)
    folder = run.with_name(f"{time_limit.base_name(run)}-{minutes:g}min")
    console.print(
        f"continuing the model of {before} from its update {config.trainer.max_steps:,} "
        f"for {minutes - spent:g} minutes in {folder}; {NEW_RUN}"
    )
    return replace(config, run=str(folder), init=str(before))


def as_begun(config: ExperimentConfig, run: Path) -> ExperimentConfig:
    """The configuration with the settings of a run that minutes= began."""
    saved = training.read_config(run)
    where = f"{run}/config.yaml"
    optim = config.optim
    # A schedule of the user that ends with the run ends where the saved one does.
    if optim.schedule in ENDING and optim.end == config.trainer.max_steps:
        begun_optim = build(OptimConfig, saved["optim"], where, "optim.")
        optim = replace(
            optim, decay_steps=begun_optim.decay_steps, decay_changes=begun_optim.decay_changes
        )
    trainer = replace(config.trainer, max_steps=saved["trainer"].get("max_steps"))
    config = replace(config, optim=optim, trainer=trainer)
    groups: dict[str, Any] = {}
    for name in config.minutes_settles:
        current: Any = getattr(config, name)
        group: Any = build(type(current), saved.get(name, {}), where, f"{name}.")
        # Of these groups, minutes= sets only some keys; the others stay as the user gives them now.
        if name in SETS:
            settled = {key: getattr(group, key) for key in SETS[name]}
            group = replace(current, **settled)
        groups[name] = group
    config = with_groups(config, **groups)
    return replace(config, run=str(run), init=config.init or saved.get("init"))
