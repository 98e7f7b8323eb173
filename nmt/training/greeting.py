"""The lines that `nmt train` prints about a run before its first update."""

from nmt.config import ExperimentConfig
from nmt.data import UpdateDataModule
from nmt.training.frozen import trained_parameters
from nmt.training.module import TranslationModule


def opening_line(
    config: ExperimentConfig,
    module: TranslationModule,
    updates: UpdateDataModule,
    devices: str,
    update: int,
) -> str:
    """A description of the run, which starts after `update`; `devices` is their number and kind."""
    settings = f"trainer.precision={config.trainer.precision}"
    if config.trainer.compile:
        settings += " trainer.compile=true"
    parameters = f"{sum(parameter.numel() for parameter in module.parameters()):,}"
    if module.optim.frozen:
        trained = sum(parameter.numel() for parameter in trained_parameters(module))
        parameters = f"{trained:,} of {parameters}"
    begin = f" from update {update:,}" if update else ""
    planner = updates.planner
    per_pass = planner.micro_batches_per_pass / planner.micro_batches
    # With a small corpus, a tenth of an update per pass matters.
    decimals = 0 if per_pass >= 10 else 1
    warmup = module.optim.warmup
    line = (
        f"training {parameters} parameters on {devices} ({settings}) "
        f"with {len(updates.split):,} pairs{begin} to update {config.trainer.max_steps:,}; "
        f"a pass over the corpus takes {per_pass:,.{decimals}f} updates, and the learning rate "
        f"rises to {module.learning_rate(warmup):.2g} at update {warmup:,}"
    )
    shares = [f"{name} {share:.1%}" for name, share in updates.shares().items()]
    if shares:
        line += f"; shares of sentences: {', '.join(shares)}"
    return line
