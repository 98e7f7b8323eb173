"""Options for search, computation, translators, and jobs that process many lines."""

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from nmt.config.corpus import SOURCE_TAG, without_compression
from nmt.config.fields import choice, inline, number, plugin_options, running_text, setting
from nmt.errors import NMTError, SettingError, require
from nmt.registry import Entry, entries_of

MAX_TOKENS = 1_000_000
"""The upper limit for every key that counts a translation's tokens."""
BLEU_TOKENIZERS = (
    "13a",
    "intl",
    "zh",
    "ja-mecab",
    "ko-mecab",
    "char",
    "flores101",
    "flores200",
    "spBLEU-1K",
    "none",
)
"""sacreBLEU's tokenizer names, without the deprecated one."""
BY_LINE = ("tsv", "jsonl")
"""Formats with a record for each line and each of its translations."""


def metric_names(fact: str = "") -> tuple[str, ...]:
    """All metrics, or only those with a fact.

    Metrics that score text have the fact "text", those with significance tests "paired".
    """
    metrics = entries_of("metric")
    return tuple(name for name, entry in metrics.items() if not fact or entry.facts.get(fact))


def documents() -> dict[str, Entry]:
    """The formats of files that are translated as a whole, not line by line."""
    formats = entries_of("document")
    return {name: entry for name, entry in formats.items() if not entry.facts.get("by_line")}


def document_format(name: str) -> str | None:
    """The document format that a (plain or compressed) file's name indicates.

    None for lines of text.
    """
    suffix = PurePath(without_compression(name.lower())).suffix
    for format, entry in documents().items():
        if suffix in entry.facts["suffixes"]:
            return format
    return None


def precisions_of_engines() -> dict[str, tuple[str, ...]]:
    return {engine: entry.facts["precisions"] for engine, entry in entries_of("engine").items()}


def all_precisions() -> list[str]:
    """The precisions that at least one engine supports, each of them once."""
    names: dict[str, None] = {}
    for precisions in precisions_of_engines().values():
        names |= dict.fromkeys(precisions)
    return list(names)


@dataclass
class DecodeConfig:
    """Beam search (section 6.1), or sampling."""

    beam_size: int = number(4, 1, 10_000)
    """Number of hypotheses per sentence; 1: greedy search."""
    length_penalty: float = number(0.6, 0.0, 10.0)
    """alpha in ((5 + |Y|) / 6)^alpha, the divisor of log probabilities; |Y| includes the end
    symbol."""
    length_penalty_kind: str | None = choice(None, "gnmt", "marian")
    """gnmt (the formula of length_penalty) or marian (|Y|^alpha); null: gnmt, or an imported
    model's own setting."""
    max_extra_length: int = number(50, 0, MAX_TOKENS)
    """Maximum number of tokens by which a translation may be longer than its source."""
    min_length: int = number(0, 0, MAX_TOKENS)
    """Minimum number of tokens in a translation."""
    max_length: int | None = number(None, 1, MAX_TOKENS)
    """Maximum number of tokens in a translation; null: only max_extra_length applies."""
    no_repeat_ngram_size: int = number(0, 0, MAX_TOKENS)
    """Length of token n-grams that may not repeat within a translation; 0: no restriction."""
    do_sample: bool = False
    """Sample n_best translations instead of using beam search."""
    temperature: float = number(1.0, 1e-6, 1e6)
    """do_sample: divisor of the logits; below 1, likely tokens become more likely."""
    top_k: int = number(0, 0, MAX_TOKENS)
    """do_sample: number of most likely tokens to sample from; 0: all."""
    top_p: float = number(1.0, 1e-6, 1.0)
    """do_sample: sample from the smallest set of likeliest tokens with a total probability of at
    least this value."""
    seed: int = number(1, 0, 2**63 - 1)
    """do_sample: random seed; samples also depend on the sentence."""
    n_best: int = number(1, 1, 10_000)
    """Number of translations per line, best first."""
    batch_tokens: int | None = number(None, 1, 10**9, affects_output=False)
    """Maximum source tokens per search batch, including padding; null: 2,000 on a CPU, 16,000 on
    a GPU, and four times as many for greedy search."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < self.min_length:
            raise SettingError(
                f"must be at least decode.min_length={self.min_length}",
                key="decode.max_length",
                value=str(self.max_length),
            )
        is_sampling = (self.temperature, self.top_k, self.top_p) != (1, 0, 1)
        if is_sampling and not self.do_sample:
            raise NMTError(
                "decode.temperature, top_k and top_p are for sampling; pass decode.do_sample=true"
            )
        if not self.do_sample and self.n_best > self.beam_size:
            raise SettingError(
                f"must be at most decode.beam_size={self.beam_size}",
                key="decode.n_best",
                value=str(self.n_best),
            )


@dataclass(frozen=True)
class Compute:
    """The engine, device and precision to run a model with."""

    engine: str = choice("auto", "auto", names_of=lambda: entries_of("engine"))
    """torch (any device), ctranslate2 (fast on CPUs), or auto (ctranslate2 on a CPU if possible,
    otherwise torch)."""
    precision: str = choice("float32", names_of=all_precisions)
    """Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch, on devices that support it)."""
    threads: int | None = number(None, 1, 4096, affects_output=False)
    """Number of CPU cores to use; null: all."""
    devices: int = number(1, 1, 1024, affects_output=False)
    """torch: number of GPUs to divide the lines among."""
    device: str = setting("auto", affects_output=False)
    """auto, cpu, cuda, cuda:1 or mps."""

    def __post_init__(self) -> None:
        if self.engine != "auto":  # plugins are registered after this class is created
            self.check_precision()
        if self.devices != 1 and self.engine not in ("auto", "torch"):
            raise SettingError(
                "only engine=torch uses several GPUs; for CPU cores, set threads",
                key="devices",
                value=str(self.devices),
            )

    def check_precision(self) -> None:
        """Raise NMTError unless the engine supports the precision."""
        engines = [
            engine for engine, names in precisions_of_engines().items() if self.precision in names
        ]
        if self.engine not in engines:
            raise SettingError(
                f"pass engine={engines[0]}, which supports it",
                key="precision",
                value=self.precision,
            )


@dataclass(frozen=True)
class TranslatorOptions:
    """The models, search settings and stages of a translator.

    Each command offers some of these keys.
    """

    run: list[str] = setting(["runs/latest"], affects_output=False)
    """Run or model directory; a list is an ensemble, whose probabilities are averaged."""
    compute: Compute = inline(Compute())
    target: str | None = running_text(None)
    """Target language of a multilingual model, such as fr for <2fr> or >>fra<<; a line may begin
    with its own tag."""
    source_prefix: str = running_text("")
    """Text to put before every line."""
    target_prefix: str = running_text("")
    """Text with which every translation must begin."""
    split: str = choice("auto", "auto", "never")
    """Whether to translate lines sentence by sentence (auto) or as a whole (never)."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    results: str = setting("scores", internal=True)
    """What to return: text (only translations), scores (also their scores), or tokens (token
    scores and alignments, too)."""
    has_tags: bool = setting(False, internal=True)
    """Whether lines may begin with tags."""
    plugins: dict[str, Any] = plugin_options("translator")

    def __post_init__(self) -> None:
        require(bool(self.run), "run: pass a run or model directory, or several as [a,b]")


@dataclass
class JobConfig:
    """Options of a job that processes many lines."""

    translator: TranslatorOptions = inline(TranslatorOptions())
    buffer: int = number(2000, 1, 10**9, affects_output=False)
    """Maximum number of lines to hold in memory, sort by length and search in batches."""
    text: str | None = running_text(None, affects_output=False)
    """Line of text to translate instead of an input file; may be given without text= if it has no =
    and has spaces, ends a sentence or is in a script without spaces."""
    input: str = setting("-", affects_output=False)
    """Input file, plain or compressed; -: standard input."""
    output: str = setting("-", affects_output=False)
    """Output file, created once it is complete and compressed if its name ends in .gz, .bz2, .xz or
    .zst; after a crash, the same command resumes; -: standard output."""
    overwrite: bool = setting(False, affects_output=False)
    """Replace the output file if it exists."""

    def __post_init__(self) -> None:
        if self.text is not None:
            self.check_text(self.text)
        for key, name in (("input", self.input), ("output", self.output)):
            require(not Path(name).is_dir(), f"{key}={name}: is a folder; name a file")

    def check_text(self, text: str) -> None:
        """Raise NMTError unless the text is the only input, and one line."""
        if "\n" in text:
            raise NMTError("text: must be one line; for several, pass a file or standard input")
        if self.input != "-":
            raise SettingError(
                "omit it when you pass text to translate", key="input", value=self.input
            )


@dataclass
class TranslateConfig(JobConfig):
    """Options of `nmt translate`."""

    format: str = choice("auto", "auto", "text", "tsv", "jsonl", names_of=documents)
    """Output format: text, tsv (line number, score, translation), jsonl or a document format; auto:
    by input suffix, and lines of text only if the suffix and the content agree."""

    is_guess: bool = setting(False, internal=True)
    """Whether nmt, not the user, decided that the input is lines of text."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settle_format()
        self.check_format()
        has_tags = SOURCE_TAG.match((self.text or "").lstrip()) is not None
        self.translator = replace(self.translator, results=self.needed_results(), has_tags=has_tags)

    def settle_format(self) -> None:
        """Replace format=auto by the format of the input."""
        document = document_format(self.input)
        if document and self.format in BY_LINE:
            raise SettingError(
                f"{self.input} is a document, which is translated as a whole; omit format",
                key="format",
                value=self.format,
            )
        if self.format == "auto":
            self.format = document or "text"
            self.is_guess = document is None

    def check_format(self) -> None:
        """Raise NMTError for what the format cannot hold."""
        n_best = self.translator.decode.n_best
        if n_best != 1 and self.format not in BY_LINE:
            raise SettingError(
                "requires format=tsv or jsonl", key="decode.n_best", value=str(n_best)
            )
        of_output = document_format(self.output)
        if self.is_document and of_output not in (None, self.format):
            raise SettingError(
                f"must have a suffix of the input's format, {self.format}",
                key="output",
                value=self.output,
            )

    @property
    def is_document(self) -> bool:
        return self.format in documents()

    def needed_results(self) -> str:
        """What the output needs of the translator: see `TranslatorOptions.results`."""
        if self.is_document or self.format == "jsonl":
            return "tokens"
        return "text" if self.format == "text" else "scores"
