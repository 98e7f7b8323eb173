"""Options of the model and its training: optimizer, batches, checkpoints, validation, Lightning, a whole experiment."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import cos, pi, sqrt
from typing import Any

from nmt.config.corpus import DataConfig, TokenizerConfig, sources_of
from nmt.config.fields import (
    MISSING,
    check_name,
    choice,
    in_words,
    number,
    plugin_options,
    require,
    setting,
    shown,
)
from nmt.config.translation import BLEU_TOKENIZERS, DecodeConfig
from nmt.registry import entries_of


@dataclass
class ModelConfig:
    """The Transformer (section 3), including what Table 3 varies in it (section 6.2)."""

    name: str = MISSING
    """Second part of the run's name, after the corpus name."""
    encoder_layers: int = number(6, 1, 1000)
    """Number of encoder layers (N)."""
    decoder_layers: int = number(6, 1, 1000)
    """Number of decoder layers (N)."""
    d_model: int = number(512, 1, 65_536)
    """Width of embeddings and sub-layer outputs."""
    d_ff: int = number(2048, 1, 1_000_000)
    """Inner width of the feed-forward sub-layers."""
    heads: int = number(8, 1, 4096)
    """Number of attention heads (h)."""
    d_k: int | None = number(None, 1, 65_536)
    """Width of a head's queries and keys; null: d_model / heads."""
    d_v: int | None = number(None, 1, 65_536)
    """Width of a head's values; null: d_model / heads."""
    attention: str = choice("scaled_dot_product", "scaled_dot_product", "dot_product", "additive")
    """Attention score: scaled_dot_product (equation 1), dot_product or additive (section 3.2.1; uses more memory)."""
    attention_window: int | None = number(None, 1, 1_000_000)
    """Limit self-attention to the r nearest positions or, in the decoder, the last r (section 4); null: no limit."""
    decoder: str = choice("attention", "attention", "ssru")
    """How the decoder reads earlier positions: attention (the paper) or ssru (recurrent, as in Firefox's models)."""
    dropout: float = number(0.1, 0.0, 0.99)
    """Dropout rate (P_drop, section 5.4) for sub-layer outputs and for the sums of embeddings and positions."""
    attention_bias: bool = False
    """Add biases to the projections of attention: queries, keys, values and output."""
    activation: str = choice("relu", "relu", "swish", "gelu", "quick_gelu")
    """Activation of feed-forward sub-layers: relu (equation 2), swish, gelu or quick_gelu (x sigmoid(1.702 x))."""
    tied_embeddings: bool = True
    """Share one matrix among the source embedding, target embedding and pre-softmax projection (section 3.4)."""
    source_vocabulary_size: int | None = number(None, 5, 2**20)
    """Size of a separate source vocabulary, whose embedding is not tied; null: one vocabulary for both languages."""
    source_end: bool = True
    """Attend to the source's end symbol; OpenNMT-py models were trained without that symbol."""
    zero_start: bool = False
    """Start decoding from a zero vector instead of an embedding; padding and the start symbol get no probability."""
    padding_probability: bool = True
    """Include padding in the softmax; the model learns to give it no probability."""
    output_bias: bool = False
    """Add a bias to the logits."""
    positions: str = choice("sinusoidal", "sinusoidal", "learned", "tensor2tensor")
    """sinusoidal (section 3.5), learned (Table 3, row E) or tensor2tensor (sinusoids as in that library and Marian)."""
    max_positions: int = number(1024, 1, 1_000_000)
    """Maximum sequence length in tokens with learned positions; sinusoids have no limit."""
    norm: str = choice("post", "post", "pre")
    """post (the paper: LayerNorm(x + Sublayer(x))) or pre (x + Sublayer(LayerNorm(x)))."""
    norm_epsilon: float = number(1e-5, 1e-12, 1.0)
    """Constant added to the variance in LayerNorm."""

    def __post_init__(self) -> None:
        width, is_tensor2tensor = f"model.d_model={self.d_model}", self.positions == "tensor2tensor"
        require(
            self.positions == "learned" or self.d_model % 2 == 0,
            f"{width}: sinusoids need an even width",
        )
        require(
            not is_tensor2tensor or self.d_model >= 4,
            f"{width}: must be at least 4 with tensor2tensor positions",
        )
        has_widths = self.d_k is not None and self.d_v is not None
        message = f"model.heads={self.heads}: must divide {width}, or set model.d_k and model.d_v"
        require(has_widths or self.d_model % self.heads == 0, message)
        self.d_k = self.d_k or self.d_model // self.heads
        self.d_v = self.d_v or self.d_model // self.heads

    @property
    def unpredicted(self) -> int:
        """The number of leading vocabulary entries that get no probability."""
        return 2 if self.zero_start else 0 if self.padding_probability else 1


SETTLED = (
    "model",
    "optim",
    "batching",
    "checkpoints",
    "validation",
)  # the groups that minutes= can set
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")
SHORT_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}
ENDLESS: dict[str, Callable[[float], float]] = {"noam": sqrt, "constant": lambda ratio: 1.0}
"""Schedule -> the learning rate after warm-up as a fraction of its maximum, from the ratio optim.warmup / step."""
ENDING: dict[str, Callable[[float], float]] = {
    "linear": lambda progress: 1 - progress,
    "cosine": lambda progress: (1 + cos(pi * progress)) / 2,
}
"""The same for schedules that end, from the progress between optim.warmup (0) and optim.decay_steps (almost 1)."""


@dataclass
class ConsistencyConfig:
    """Consistency training (SimCut, Gao et al. 2022): predict the same from a pair as from its noisy copy."""

    weight: float = number(0.0, 0.0, 1e3)
    """Weight of the divergence KL(pair || copy); 0: no copy; SimCut uses 3. An update then costs twice the time."""
    cut: float = number(0.05, 0.0, 0.99)
    """Probability of hiding a token of the copy, on both sides; 0: only dropout differs, as in R-Drop."""


@dataclass
class OptimConfig:
    """Optimizer, learning rate (section 5.3) and label smoothing (section 5.4)."""

    optimizer: str = choice("adam", names_of=lambda: entries_of("optimizer"))
    """adam (as in the paper) or an optimizer added by a plugin."""
    schedule: str = choice("noam", *ENDLESS, *ENDING)
    """Learning rate schedule after warm-up: {choices}. noam is step^-0.5 (equation 3); noam and constant never end."""
    learning_rate: float | None = number(None, 1e-12, 1e3)
    """Maximum learning rate, reached at the end of warm-up; null: (d_model x warmup)^-0.5, as in equation 3."""
    factor: float = number(1.0, 1e-12, 1e6)
    """Factor by which to multiply the learning rate."""
    warmup: int = number(4000, 1, 10**9)
    """Number of linear warm-up updates."""
    decay_steps: int | None = number(None, 2, 10**9)
    """Update at which the learning rate reaches 0 if the schedule ends; null: trainer.max_steps."""
    decay_changes: list[list[int]] | None = None
    """Changes of decay_steps during the run, as [update, decay_steps from there on]; minutes= records them here."""
    beta1: float = number(0.9, 0.0, 0.999999)
    """Adam's decay rate for the running mean of the gradient."""
    beta2: float = number(0.98, 0.0, 0.999999)
    """Adam's decay rate for the running mean of the squared gradient."""
    epsilon: float = number(1e-9, 0.0, 1.0)
    """Adam's epsilon, added to the square root of the mean squared gradient."""
    weight_decay: float = number(0.0, 0.0, 1e3)
    """Decoupled weight decay: each update multiplies weights by 1 - learning rate x weight_decay (paper: 0)."""
    label_smoothing: float = number(0.1, 0.0, 0.99)
    """Probability mass to spread evenly over the vocabulary."""
    not_finite: str = choice("stop", "stop", "skip")
    """What to do about a non-finite gradient: stop the run or skip the update."""
    consistency: ConsistencyConfig = field(default_factory=ConsistencyConfig)
    plugins: dict[str, Any] = plugin_options("optim")

    def __post_init__(self) -> None:
        decays, end = self.schedule in ENDING, self.decay_steps
        require(
            decays or end is None,
            f"optim.decay_steps={end}: optim.schedule={self.schedule} never reaches 0",
        )
        if end is not None:
            rate = (
                ""
                if self.learning_rate
                else " with optim.learning_rate=0.0007 (its default would be higher)"
            )
            limit = f"must be less than optim.decay_steps or trainer.max_steps ({end})"
            require(
                self.warmup < end,
                f"optim.warmup={self.warmup}: {limit}; pass optim.warmup={-(-end // 10)}{rate}",
            )
        self.check_changes()

    def check_changes(self) -> None:
        """Raise NMTError unless `decay_changes` are in order, and each of them moves the end into the future."""
        before = 0
        for change in self.decay_changes or []:
            is_next = len(change) == 2 and before < change[0] < change[1]
            require(
                is_next and self.decay_steps is not None,
                f"optim.decay_changes: {shown(in_words(change))} must be [update, decay_steps], the update after those "
                "of the changes before it, for a schedule that ends",
            )
            before = change[0]

    @property
    def end(self) -> int | None:
        """The update at which the learning rate reaches 0, after all changes; None if the schedule never ends."""
        if self.decay_changes:
            return self.decay_changes[-1][1]
        return self.decay_steps


@dataclass
class BatchingConfig:
    """Size of an update and its micro-batches (section 5.1)."""

    tokens_per_update: int = number(25_000, 1, 10**9)
    """Maximum tokens per update on each side, including padding."""
    micro_batches: int = number(8, 1, 65_536)
    """Micro-batches per update, each with sentences of similar length; must be a multiple of the device count."""

    def __post_init__(self) -> None:
        tokens, least = self.tokens_per_update, f"batching.micro_batches={self.micro_batches}"
        require(
            tokens >= self.micro_batches,
            f"batching.tokens_per_update={tokens}: must be at least {least}",
        )


@dataclass
class CheckpointConfig:
    """Checkpoints and their final average (section 6.1)."""

    every_steps: int = number(1400, 1, 10**9)
    """Updates between permanent checkpoints; the paper's ten minutes are about 1,400 updates (base) or 600 (big)."""
    keep: int = number(5, 1, 10_000, decides=False)
    """Number of checkpoints to keep, including the one after the last update."""
    average: str = choice("best", "best", "all", decides=False)
    """Final model: all (the mean of the last `keep` checkpoints, as in the paper) or best (whichever of best.ckpt and
    the means of the last 1, 2, ..., `keep` checkpoints has the lowest validation loss)."""
    every_minutes: float | None = number(10.0, 0.0001, 1e6, decides=False)
    """Minutes between temporary checkpoints, each replaced by the next checkpoint; null: no temporary checkpoints."""


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
        has_bleu = self.best != "bleu" or self.bleu_sentences != 0
        require(has_bleu, "validation.best=bleu: requires validation.bleu_sentences greater than 0")


@dataclass
class TrainerConfig:
    """Flags for lightning.Trainer: updates, devices, precision."""

    max_steps: int = number(100_000, 1, 10**9, decides=False)
    """Total number of updates; a higher number extends a finished run; minutes= chooses it for you."""
    max_time: str | None = setting(None, decides=False)
    """Time limit, such as 15m, 2h or 1d12h, after which training saves and stops; the same command resumes it.
    With a schedule that ends and without `max_steps`, this limit also sets `max_steps`."""
    accelerator: str = choice("auto", "auto", "cpu", "gpu", "cuda", "mps", decides=False)
    """auto (a GPU if there is one), cpu, gpu, cuda or mps."""
    devices: int | list[int] | str = number("auto", -1, 1024, "auto", decides=False)
    """Number of GPUs or CPU processes, or a list of GPUs; their number must divide batching.micro_batches; -1: all."""
    num_nodes: int = number(1, 1, 10_000, decides=False)
    """Number of machines, each with `devices` devices."""
    precision: str = choice("auto", "auto", *PRECISIONS, *SHORT_PRECISIONS, before="32-true")
    """32-true, bf16-mixed (faster on recent GPUs and CPUs, less memory), 16-mixed (older GPUs), bf16-true, 16-true or
    64-true; auto: bf16-mixed if the device has instructions for bfloat16, otherwise 32-true."""
    compile: bool | str = choice("auto", "auto", before=False)
    """true: compile the layers and the loss, which takes about a minute and speeds up updates; auto: only on GPUs."""
    reduction: str = choice("exact", "exact", "fast")
    """Order in which to add gradients: exact (fixed: the same bits on any number of devices) or fast (PyTorch's)."""
    log_every_n_steps: int = number(50, 1, 10**9, decides=False)
    """Updates between log entries; each entry is a row in metrics.csv."""
    deterministic: bool | str | None = choice(None, "warn")
    """true: use only operations that give the same bits each time; warn: allow others, but warn about them; null: true
    on GPUs (operations on CPUs are deterministic)."""
    gradient_clip_val: float | None = number(None, 1e-6, 1e6)
    """Clip gradients to this norm; null: no clipping, as in the paper."""

    def __post_init__(self) -> None:
        listed = self.devices if isinstance(self.devices, list) else [0]
        are_devices = self.devices != 0 and len(set(listed)) == len(listed) > 0 and min(listed) >= 0
        message = "must be a number, -1 for all devices, or a list such as [0,1]"
        require(are_devices, f"trainer.devices={in_words(self.devices)}: {message}")
        self.precision = SHORT_PRECISIONS.get(self.precision, self.precision)
        self.max_time = (
            None if self.max_time is None else parse_duration("trainer.max_time", self.max_time)
        )


def parse_duration(key: str, value: str) -> str:
    """Convert a duration, such as 15m, 2h, 1d12h or DD:HH:MM:SS, to DD:HH:MM:SS."""
    forms = ("(?:([0-9]{1,6})%s)?" * 4 % (*"dhms",), ":".join(["([0-9]{1,6})"] * 4))
    match = re.fullmatch(forms[":" in value], value)
    days, hours, minutes, seconds = (
        (int(part or 0) for part in match.groups()) if match else (0, 0, 0, 0)
    )
    minutes, seconds = divmod(((days * 24 + hours) * 60 + minutes) * 60 + seconds, 60)
    message = "must be a duration, such as 15m, 2h, 1d12h, or '00:02:30:00' for 2.5 hours"
    require(minutes + seconds > 0, f"{key}={shown(value)}: {message}")
    return f"{minutes // 1440:02}:{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}"


@dataclass
class ExperimentConfig:
    """Options of `nmt preprocess` and `nmt train`: one experiment, from text to an averaged model."""

    name: str = setting("${data.name}-${model.name}", decides=False)
    """Name of the run, which is written to runs/NAME."""
    prepared: str = setting("data/${data.name}", decides=False)
    """Folder that contains the prepared corpus."""
    run: str = setting("runs/${name}", decides=False)
    """Run folder, for checkpoints, logs and the model."""
    # The model may move: a run compares its weights.
    init: str | None = setting(None, decides=False)
    """Run or model directory to start from: preprocess uses its vocabulary, train uses its weights."""
    seed: int = number(1, 0, 2**63 - 1)
    """Random seed for splits, samples, initial weights, data order and dropout."""
    workers: int = number(2, 1, 1000, decides=False)
    """preprocess: number of processes."""
    # The options that these two settle are compared.
    minutes: float | None = number(None, 0.01, 1e6, decides=False)
    """train: training time in minutes; sets trainer.max_steps and the groups in minutes_settles; null: sets neither."""
    minutes_settles: list[str] = choice([*SETTLED], *SETTLED, decides=False)
    """train: groups that minutes= also sets, except groups that the command line chooses by name."""
    minutes_keeps: list[str] = field(default_factory=list, metadata={"decides": False})
    """train: keys of these groups that minutes= leaves as they are, because the command line sets them."""
    logger: list[str] = choice(["tensorboard"], "csv", "tensorboard", "wandb", decides=False)
    """Loggers in addition to metrics.csv: csv (adds none), tensorboard, wandb, or a list."""
    overwrite: bool = setting(False, decides=False)
    """preprocess: replace a corpus that was prepared with different options."""
    num_workers: int | None = number(None, 0, 1024, decides=False)
    """train: number of batch-loading processes per device; null: 2 with an accelerator, 0 on a CPU."""
    float32_matmul_precision: str = choice("highest", "highest", "high", "medium")
    """train: precision of float32 matrix products: highest, high (TF32 on a GPU) or medium (bfloat16)."""
    data: DataConfig = MISSING
    tokenizer: TokenizerConfig = MISSING
    model: ModelConfig = MISSING
    optim: OptimConfig = MISSING
    batching: BatchingConfig = MISSING
    checkpoints: CheckpointConfig = MISSING
    validation: ValidationConfig = MISSING
    decode: DecodeConfig = field(default=MISSING, metadata={"decides": False})
    trainer: TrainerConfig = MISSING
    plugins: dict[str, Any] = plugin_options("train")

    def __post_init__(self) -> None:
        sources_of(self.data)
        check_name("name", self.name)
        for key, folder in (("prepared", self.prepared), ("run", self.run)):
            require(bool(folder.strip()), f"{key}: must name a folder")
        ends = self.optim != MISSING and self.optim.schedule in ENDING
        if self.trainer != MISSING and ends and self.optim.decay_steps is None:
            self.optim = replace(self.optim, decay_steps=self.trainer.max_steps)
