"""Options of training: optimizer, batches, checkpoints, validation, Lightning, an experiment."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from nmt.config.corpus import DataConfig
from nmt.config.decoding import DecodeConfig
from nmt.config.durations import lightning_duration, parse_duration
from nmt.config.fields import MISSING, choice, number, plugin_options, setting
from nmt.config.metrics import BLEU_TOKENIZERS
from nmt.config.model import ModelConfig
from nmt.config.sources import check_targets_are_tagged, sources_of
from nmt.config.tokenizer import TokenizerConfig
from nmt.config.values import check_name, in_words, shown
from nmt.errors import NMTError, SettingError, require
from nmt.extensions import OptimizerEntry
from nmt.registry import entries_of

SETTLED = ("model", "optim", "batching", "checkpoints", "validation")
"""The groups that minutes= can set."""
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")
SHORT_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}


def inverse_square_root(ratio: float) -> float:
    """The decay of equation 3, from the ratio optim.warmup / step."""
    # step^-0.5, scaled to be 1 at the end of warm-up, where the linear rise of equation 3 meets it.
    return math.sqrt(ratio)


def constant(ratio: float) -> float:
    return 1.0


def linear(progress: float) -> float:
    return 1 - progress


def cosine(progress: float) -> float:
    return (1 + math.cos(math.pi * progress)) / 2


ENDLESS: dict[str, Callable[[float], float]] = {
    "noam": inverse_square_root,
    "constant": constant,
}
"""Schedule -> the learning rate after warm-up as a fraction of its maximum.

Its argument is the ratio optim.warmup / step.
"""
ENDING: dict[str, Callable[[float], float]] = {"linear": linear, "cosine": cosine}
"""The same for schedules that end.

Their argument is the progress between optim.warmup (0) and optim.decay_steps (almost 1).
"""


@dataclass
class ConsistencyConfig:
    """Consistency training (SimCut, Gao et al. 2022): predict the same from a pair as from its
    noisy copy."""

    weight: float = number(0.0, 0.0, 1e3)
    """Weight of the divergence KL(pair || copy); 0: no copy; SimCut uses 3. An update then costs
    twice the time."""
    cut: float = number(0.05, 0.0, 0.99)
    """Probability of hiding a token of the copy, on both sides; 0: only dropout differs, as in
    R-Drop."""


@dataclass
class OptimConfig:
    """Optimizer, learning rate (section 5.3) and label smoothing (section 5.4)."""

    optimizer: str = choice("adam", names_of=lambda: entries_of(OptimizerEntry))
    """adam (as in the paper), muon (learns from fewer tokens), adafactor (almost no memory), or an
    optimizer added by a plugin."""
    frozen: list[str] = setting([])
    """Parameters not to train: embeddings (with the pre-softmax projection), encoder, decoder,
    layers such as encoder.0-5 (counted from 0), or patterns of names such as *.cross_attention."""
    schedule: str = choice("noam", *ENDLESS, *ENDING)
    """Learning rate schedule after warm-up: {choices}. noam is step^-0.5 (equation 3); noam and
    constant never end."""
    learning_rate: float | None = number(None, 1e-12, 1e3)
    """Maximum learning rate, reached at the end of warm-up; null: (d_model x warmup)^-0.5, as in
    equation 3."""
    factor: float = number(1.0, 1e-12, 1e6)
    """Factor by which to multiply the learning rate."""
    warmup: int = number(4000, 1, 10**9)
    """Number of linear warm-up updates."""
    decay_steps: int | None = number(None, 2, 10**9)
    """Update at which the learning rate reaches 0 if the schedule ends; null: trainer.max_steps."""
    decay_changes: list[list[int]] | None = None
    """Changes of decay_steps during the run, as [update, decay_steps from there on]; minutes=
    records them here."""
    # Adam as in section 5.3. PyTorch's own defaults are 0.999 and 1e-8.
    beta1: float = number(0.9, 0.0, 0.999999)
    """Adam's decay rate for the running mean of the gradient."""
    beta2: float = number(0.98, 0.0, 0.999999)
    """Adam's decay rate for the running mean of the squared gradient."""
    epsilon: float = number(1e-9, 0.0, 1.0)
    """Adam's epsilon, added to the square root of the mean squared gradient."""
    weight_decay: float = number(0.0, 0.0, 1e3)
    """Decoupled weight decay: each update multiplies weights by 1 - learning rate x weight_decay
    (paper: 0)."""
    label_smoothing: float = number(0.1, 0.0, 0.99)
    """Probability mass to spread evenly over the vocabulary."""
    not_finite: str = choice("stop", "stop", "skip")
    """What to do about a non-finite gradient: stop the run or skip the update."""
    consistency: ConsistencyConfig = field(default_factory=ConsistencyConfig)
    plugins: dict[str, Any] = plugin_options("optim")

    def __post_init__(self) -> None:
        end = self.decay_steps
        # The key would have no effect.
        if end is not None and self.schedule not in ENDING:
            raise SettingError(
                f"optim.schedule={self.schedule} never reaches 0",
                key="optim.decay_steps",
                value=str(end),
            )
        # The rate would have to fall before it has reached its maximum.
        if end is not None and self.warmup >= end:
            self.refuse_warmup(end)
        self.check_changes()

    def refuse_warmup(self, end: int) -> None:
        """Raise NMTError for a warm-up that is longer than the training."""
        advice = f"pass optim.warmup={math.ceil(end / 10)}"
        if not self.learning_rate:
            # The default is the higher, the shorter the warm-up.
            advice += " with optim.learning_rate=0.0007 (its default would be higher)"
        raise SettingError(
            f"must be less than optim.decay_steps or trainer.max_steps ({end})",
            key="optim.warmup",
            value=str(self.warmup),
            advice=advice,
        )

    def check_changes(self) -> None:
        """Raise NMTError unless `decay_changes` are in order, and each moves the end."""
        # minutes= writes the changes to the run's config.yaml, and a resumed run reads them there.
        latest = 0
        for change in self.decay_changes or []:
            is_next = len(change) == 2 and latest < change[0] < change[1]
            if not is_next or self.decay_steps is None:
                raise NMTError(
                    f"optim.decay_changes: {shown(in_words(change))} must be [update, "
                    "decay_steps], the update after those of the changes before it, for a "
                    "schedule that ends"
                )
            latest = change[0]

    @property
    def end(self) -> int | None:
        """The update at which the learning rate reaches 0, after all changes.

        None if the schedule never ends.
        """
        if self.decay_changes:
            return self.decay_changes[-1][1]
        return self.decay_steps


@dataclass
class BatchingConfig:
    """Size of an update and its micro-batches (section 5.1)."""

    tokens_per_update: int = number(25_000, 1, 10**9)
    """Maximum tokens per update on each side, including padding."""
    micro_batches: int = number(8, 1, 65_536)
    """Micro-batches per update, each with sentences of similar length; must be a multiple of the
    device count."""

    def __post_init__(self) -> None:
        # Each micro-batch must have room for at least one token.
        if self.tokens_per_update < self.micro_batches:
            raise SettingError(
                f"must be at least batching.micro_batches={self.micro_batches}",
                key="batching.tokens_per_update",
                value=str(self.tokens_per_update),
            )


@dataclass
class CheckpointConfig:
    """Checkpoints and their final average (section 6.1)."""

    every_steps: int = number(1400, 1, 10**9)
    """Updates between permanent checkpoints; the paper's ten minutes are about 1,400 updates (base)
    or 600 (big)."""
    keep: int = number(5, 1, 10_000, decides=False)
    """Number of checkpoints to keep, including the one after the last update."""
    average: str = choice("best", "best", "all", decides=False)
    """Final model: all (the mean of the last `keep` checkpoints, as in the paper) or best
    (whichever of best.ckpt and the means of the last 1, 2, ..., `keep` checkpoints has the lowest
    validation loss)."""
    every_minutes: float | None = number(10.0, 0.0001, 1e6, decides=False)
    """Minutes between temporary checkpoints, each replaced by the next checkpoint; null: no
    temporary checkpoints."""


@dataclass
class ValidationConfig:
    """Validation during training."""

    every_steps: int = number(1000, 1, 10**9, decides=False)
    """Updates between validations."""
    bleu_sentences: int | None = number(200, 0, 10**9, decides=False)
    """Number of validation sentences to translate for BLEU, or to parse for F1; null: all."""
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS, decides=False)
    """BLEU tokenizer, as in `nmt score`; null: the one recommended for the target language."""
    precision: str = choice("float32", "float32", "bfloat16", decides=False)
    """Arithmetic of validation translations: float32 or bfloat16 (faster on recent GPUs)."""
    best: str = choice("perplexity", "perplexity", "bleu")
    """Criterion for checkpoints/best.ckpt: perplexity or bleu (for a parser, F1)."""
    patience: int | None = number(None, 1, 10**9, decides=False)
    """Stop after this many consecutive validations without improvement; null: never."""

    def __post_init__(self) -> None:
        if self.best == "bleu" and self.bleu_sentences == 0:
            raise NMTError(
                "validation.best=bleu: requires validation.bleu_sentences greater than 0"
            )


@dataclass
class TrainerConfig:
    """Flags for lightning.Trainer: updates, devices, precision."""

    max_steps: int = number(100_000, 1, 10**9, decides=False)
    """Total number of updates; a higher number extends a finished run; minutes= chooses it for
    you."""
    max_time: str | None = setting(None, decides=False)
    """Time limit, such as 15m, 2h or 1d12h, after which training saves and stops; the same command
    resumes it. With a schedule that ends and without `max_steps`, this limit also sets
    `max_steps`."""
    accelerator: str = choice("auto", "auto", "cpu", "gpu", "cuda", "mps", decides=False)
    """auto (a GPU if there is one), cpu, gpu, cuda or mps."""
    devices: int | list[int] | str = number("auto", -1, 1024, "auto", decides=False)
    """Number of GPUs or CPU processes, or a list of GPUs; their number must divide
    batching.micro_batches; -1: all."""
    num_nodes: int = number(1, 1, 10_000, decides=False)
    """Number of machines, each with `devices` devices."""
    # Older runs, which lack this key, trained in 32 bits.
    precision: str = choice("auto", "auto", *PRECISIONS, *SHORT_PRECISIONS, before="32-true")
    """32-true, bf16-mixed (faster on recent GPUs and CPUs, less memory), 16-mixed (older GPUs),
    bf16-true, 16-true or 64-true; auto: bf16-mixed if the device has instructions for bfloat16,
    otherwise 32-true."""
    # Older runs did not compile.
    compile: bool | str = choice("auto", "auto", before=False)
    """true: compile the layers and the loss, which takes about a minute and speeds up updates;
    auto: only on GPUs."""
    reduction: str = choice("exact", "exact", "fast")
    """Order in which to add gradients: exact (fixed: the same bits on any number of devices) or
    fast (PyTorch's)."""
    log_every_n_steps: int = number(50, 1, 10**9, decides=False)
    """Updates between log entries; each entry is a row in metrics.csv."""
    deterministic: bool | str | None = choice(None, "warn")
    """true: use only operations that give the same bits each time; warn: allow others, but warn
    about them; null: true on GPUs (operations on CPUs are deterministic)."""
    gradient_clip_val: float | None = number(None, 1e-6, 1e6)
    """Clip gradients to this norm; null: no clipping, as in the paper."""

    def __post_init__(self) -> None:
        is_wrong_list = isinstance(self.devices, list) and not are_distinct(self.devices)
        if self.devices == 0 or is_wrong_list:
            raise SettingError(
                "must be a number, -1 for all devices, or a list such as [0,1]",
                key="trainer.devices",
                value=in_words(self.devices),
            )
        # One name per precision, so that runs with precision=32 and 32-true count as the same.
        self.precision = SHORT_PRECISIONS.get(self.precision, self.precision)
        if self.max_time is not None:
            seconds = parse_duration("trainer.max_time", self.max_time)
            # One form per duration: the form that Lightning reads.
            self.max_time = lightning_duration(seconds)


def are_distinct(devices: list[int]) -> bool:
    """Whether a list names devices, each of them once."""
    return len(devices) > 0 and len(set(devices)) == len(devices) and min(devices) >= 0


@dataclass
class ExperimentConfig:
    """Options of `nmt preprocess` and `nmt train`: an experiment, from text to a model."""

    name: str = setting("${data.name}-${model.name}", decides=False)
    """Name of the run, which is written to runs/NAME."""
    prepared: str = setting("data/${data.name}", decides=False)
    """Folder that contains the prepared corpus."""
    run: str = setting("runs/${name}", decides=False)
    """Run folder, for checkpoints, logs and the model."""
    # The model may move: a run compares its weights.
    init: str | None = setting(None, decides=False)
    """Run or model directory to start from: preprocess uses its vocabulary, train uses its
    weights."""
    seed: int = number(1, 0, 2**63 - 1)
    """Random seed for splits, samples, initial weights, data order and dropout."""
    workers: int = number(2, 1, 1000, decides=False, only_for=("preprocess",))
    """Number of processes."""
    epochs: float | None = number(None, 0.001, 1e6, decides=False, only_for=("train",))
    """Number of passes over the corpus; sets trainer.max_steps, which the run records instead."""
    # The options that these settle are compared.
    minutes: float | None = number(None, 0.01, 1e6, decides=False, only_for=("train",))
    """Training time in minutes; sets trainer.max_steps and the groups in minutes_settles;
    null: sets neither."""
    minutes_settles: list[str] = choice([*SETTLED], *SETTLED, decides=False, only_for=("train",))
    """Groups that minutes= also sets, except groups that the command line chooses by
    name."""
    minutes_keeps: list[str] = setting([], decides=False, only_for=("train",))
    """Keys of these groups that minutes= leaves as they are, because the command line sets
    them."""
    logger: list[str] = choice(["tensorboard"], "csv", "tensorboard", "wandb", decides=False)
    """Loggers in addition to metrics.csv: csv (adds none), tensorboard, wandb, or a list."""
    overwrite: bool = setting(False, decides=False, only_for=("preprocess",))
    """Replace a corpus that was prepared with different options."""
    num_workers: int | None = number(None, 0, 1024, decides=False, only_for=("train",))
    """Number of batch-loading processes per device; null: 2 with an accelerator, 0 on a
    CPU."""
    float32_matmul_precision: str = choice(
        "highest", "highest", "high", "medium", only_for=("train",)
    )
    """Precision of float32 matrix products: highest, high (TF32 on a GPU) or medium
    (bfloat16)."""
    # MISSING, not a default: Hydra's groups fill these, and a command without a group lacks it.
    data: DataConfig = MISSING
    tokenizer: TokenizerConfig = MISSING
    model: ModelConfig = MISSING
    optim: OptimConfig = MISSING
    batching: BatchingConfig = MISSING
    checkpoints: CheckpointConfig = MISSING
    validation: ValidationConfig = MISSING
    decode: DecodeConfig = setting(MISSING, decides=False)
    trainer: TrainerConfig = MISSING
    plugins: dict[str, Any] = plugin_options("train")

    def __post_init__(self) -> None:
        sources_of(self.data)  # raises NMTError for mistakes in an entry
        # With `init`, the vocabulary may have tags for languages, which nmt adds itself.
        if self.init is None:
            check_targets_are_tagged(self.data)
        check_name("name", self.name)
        # An empty path would be the working directory.
        require(bool(self.prepared.strip()), "prepared: must name a folder")
        require(bool(self.run.strip()), "run: must name a folder")
        # `nmt preprocess` may lack these groups.
        if self.trainer == MISSING or self.optim == MISSING:
            return
        # The number of updates is not known yet.
        if self.epochs is not None:
            return
        if self.optim.schedule in ENDING and self.optim.decay_steps is None:
            # The run records this value, and nmt refuses to resume the run with another end.
            self.optim = replace(self.optim, decay_steps=self.trainer.max_steps)
