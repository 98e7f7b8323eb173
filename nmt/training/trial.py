"""Short trials for `minutes=`: the speed of a model."""

import time
from itertools import count
from statistics import median
from typing import NamedTuple

from lightning import Trainer
from lightning.fabric.utilities import move_data_to_device

from nmt.config import ExperimentConfig
from nmt.data import PreparedCorpus, UpdateDataModule
from nmt.training.loss import training_losses
from nmt.training.memory import make_resident
from nmt.training.module import TranslationModule
from nmt.training.peak import synchronize
from nmt.training.trainer import make_trainer

TIMED_SECONDS = 4.0
"""Maximum seconds of timed training in a trial."""

WARM_UP = 2
"""Untimed updates before that, which build kernels and allocate memory."""


class Pace(NamedTuple):
    """The speed of training."""

    seconds: float
    """Seconds per update."""
    tokens: float
    """Target tokens per update, without padding."""


def measured_pace(config: ExperimentConfig, corpus: PreparedCorpus, seconds: float) -> Pace:
    """The speed of training, measured by training for some seconds.

    The first updates do not count. The trial does not compile the model, which would take longer
    than the trial; Replan corrects the number of updates.
    """
    trainer = make_trainer(config)
    data = UpdateDataModule(corpus, config)
    strategy = trainer.strategy
    device = strategy.root_device
    module = module_on_device(config, corpus, trainer)
    optimizer = module.configure_optimizers()
    # As before a real first update, so that the first timed ones do not allocate.
    make_resident(module, optimizer)
    tokens = []
    times: list[float] = []
    for number in count():
        begin = time.monotonic()
        planned = data.planner.update(number)
        for micro_batch in planned:
            batch = move_data_to_device(data.batches.batch(micro_batch), device)
            loss = strategy.training_step(batch, 0)
            strategy.backward(loss, None)  # type: ignore[arg-type]
            # The loss would keep the memory of this pass alive during the next pass.
            del loss
        optimizer.step()
        optimizer.zero_grad()
        # Otherwise the time would be that of starting the kernels.
        synchronize(device)
        tokens.append(planned[0].size.target_tokens)
        times.append(time.monotonic() - begin)
        # The untimed updates alone may take too long; then there is no timed one.
        is_measured = sum(times[WARM_UP:]) > min(seconds, TIMED_SECONDS)
        if is_measured or sum(times) > 3 * seconds:
            break
    # The median, because the first updates after a pause can take ten times as long while memory is
    # mapped.
    per_update = median(times[WARM_UP:] or times)
    # In the trial, one process did the work of all processes. On a CPU, dividing the work saves no
    # time, because the processes share the cores.
    if device.type != "cpu":
        per_update /= trainer.world_size
    return Pace(per_update, sum(tokens) / len(tokens))


def module_on_device(
    config: ExperimentConfig, corpus: PreparedCorpus, trainer: Trainer
) -> TranslationModule:
    """The model as it is when `trainer.fit` begins, without its hooks for data and callbacks."""
    module = TranslationModule(
        config.model,
        config.optim,
        corpus.manifest.vocabulary_size,
        config.seed,
        training_losses(config),
    )
    # What trainer.fit does before the first batch (Lightning 2.6).
    module.trainer = trainer
    trainer.strategy.connect(module)
    trainer.precision_plugin.convert_module(module)
    module.to(trainer.strategy.root_device)
    module.on_fit_start()
    return module
