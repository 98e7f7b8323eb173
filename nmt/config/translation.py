"""Search, where to compute, what a translator is made of, the options of jobs over many lines, and of scores."""

import re
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePath
from typing import Any

from nmt.config.corpus import TAG
from nmt.config.fields import build, choice, inline, number, plugin_options, require, running_text, undecided
from nmt.registry import Entry, entries_of

MAX_TOKENS = 1_000_000  # the limit for any key that counts tokens of a translation
BLEU_TOKENIZERS = ("13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "spBLEU-1K", "none")
"""sacreBLEU's names of them, without the one that it deprecates."""


def metric_names(fact: str = "") -> tuple[str, ...]:
    """The metrics, or those with a fact: "text" for metrics of text, "paired" for those with tests of significance."""
    return tuple(name for name, entry in entries_of("metric").items() if not fact or entry.facts.get(fact))


OTHER_DOCUMENTS = re.compile(r"\.(vtt|ass|sub|tmx|rtf|tex|rst|json|ya?ml|xml|properties|strings|resx|ts|ini|csv)")
"""Suffixes of files of text that nobody wants to have translated line by line."""


def documents() -> dict[str, Entry]:
    """The formats of files that are translated as a whole, not line by line."""
    return {name: entry for name, entry in entries_of("document").items() if not entry.facts.get("by_line")}


def document_format(name: str) -> str | None:
    """The format of a document by its name, which may end in that of a compression; None: lines of text."""
    suffix = PurePath(re.sub(r"\.(gz|bz2|xz|zst)$", "", name.lower())).suffix
    return next((name for name, entry in documents().items() if suffix in entry.facts["suffixes"]), None)


def precisions() -> dict[str, tuple[str, ...]]:
    return {engine: entry.facts["precisions"] for engine, entry in entries_of("engine").items()}


@dataclass
class DecodeConfig:
    """Beam search (section 6.1), or sampling."""

    beam_size: int = number(4, 1, 10_000)
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = number(0.6, 0.0, 10.0)
    """alpha in ((5 + |Y|) / 6)^alpha, which divides log probabilities; |Y| counts the end symbol."""
    length_penalty_kind: str | None = choice(None, "gnmt", "marian")
    """gnmt (that formula) or marian (|Y|^alpha); null: gnmt, but for an imported model its own kind and alpha."""
    max_extra_length: int = number(50, 0, MAX_TOKENS)
    """Most tokens that a translation may have beyond the length of its source."""
    min_length: int = number(0, 0, MAX_TOKENS)
    """Fewest tokens of a translation."""
    max_length: int | None = number(None, 1, MAX_TOKENS)
    """Most tokens of a translation; null: max_extra_length alone decides."""
    no_repeat_ngram_size: int = number(0, 0, MAX_TOKENS)
    """No n-gram of this many tokens occurs twice in a translation; 0: no restriction."""
    do_sample: bool = False
    """Sample n_best translations instead of searching for the best; beam_size is then ignored."""
    temperature: float = number(1.0, 1e-6, 1e6)
    """do_sample: divides the logits; below 1 likely tokens are sampled more often, above 1 less often."""
    top_k: int = number(0, 0, MAX_TOKENS)
    """do_sample: sample from this many of the likeliest tokens; 0: from all."""
    top_p: float = number(1.0, 1e-6, 1.0)
    """do_sample: sample from the likeliest tokens that together have this probability."""
    seed: int = number(1, 0, 2**63 - 1)
    """do_sample: the samples depend on this seed and the sentence itself."""
    n_best: int = number(1, 1, 10_000)
    """Translations of each line, best first."""
    batch_tokens: int = number(2000, 1, 10**9, decides="nothing")
    """Source tokens in a search batch, padding included."""

    def __post_init__(self) -> None:
        ordered = self.max_length is None or self.max_length >= self.min_length
        require(ordered, f"decode.max_length={self.max_length}: must be at least decode.min_length={self.min_length}")
        is_used = self.do_sample or (self.temperature, self.top_k, self.top_p) == (1, 0, 1)
        require(is_used, "decode.temperature, top_k and top_p are for sampling; pass decode.do_sample=true too")
        fits = self.do_sample or self.n_best <= self.beam_size
        require(fits, f"decode.n_best={self.n_best}: must be at most decode.beam_size={self.beam_size}")


@dataclass(frozen=True)
class Compute:
    """Where and how a model is computed. Options that need it hold it, and its keys stand beside theirs."""

    engine: str = choice("auto", "auto", names_of=lambda: entries_of("engine"))
    """torch (any device), ctranslate2 (fast on processors), or auto: ctranslate2 where it can, and no GPU is."""
    precision: str = choice("float32", names_of=lambda: dict.fromkeys(chain(*precisions().values())))
    """Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch, on devices with products of it)."""
    threads: int | None = number(None, 1, 4096, decides="nothing")
    """Processor cores to use; null: all."""
    devices: int = number(1, 1, 1024, decides="nothing")
    """torch: number of GPUs that share the lines, such as cuda:0 to cuda:3."""
    device: str = undecided("auto")
    """auto, cpu, cuda, cuda:1, mps."""

    def __post_init__(self) -> None:
        if self.engine != "auto":  # plugins are registered after this class is made
            able = [engine for engine, names in precisions().items() if self.precision in names]
            require(self.engine in able, f"precision={self.precision}: pass engine={able[0]}, which has it")
        fits = self.devices == 1 or self.engine in ("auto", "torch")
        require(fits, f"devices={self.devices} with engine={self.engine}: it uses all cores already; see threads")


@dataclass(frozen=True)
class TranslatorOptions:
    """What a translator is made of: models, search, and stages; a command offers some of these keys."""

    run: list[str] = field(default_factory=lambda: ["runs/latest"], metadata={"decides": "nothing"})
    """A run or a model directory; a list of them is an ensemble, whose probabilities are averaged."""
    compute: Compute = inline(Compute())
    target: str | None = running_text(None)
    """Target language of a model for several, such as fr for <2fr> or >>fra<<; a line may begin with its own tag."""
    source_prefix: str = running_text("")
    """Text put before every line, such as a tag for the target language."""
    target_prefix: str = running_text("")
    """Text that every translation begins with."""
    split: str = choice("auto", "auto", "never")
    """auto: translate each line sentence by sentence; never: as a whole."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    # text (the translations alone), scores, or tokens: with the scores and the alignment of each token.
    results: str = field(default="scores", metadata={"internal": True})
    has_tags: bool = field(default=False, metadata={"internal": True})  # lines may begin with tags of their own
    plugins: dict[str, Any] = plugin_options("translator")

    def __post_init__(self) -> None:
        require(bool(self.run), "run: name a run, a model directory, or several as [a,b]")


def with_plugin_defaults(options: TranslatorOptions) -> TranslatorOptions:
    """The options with those of plugins, at their defaults: what `nmt translate` does unless told otherwise."""
    return build(TranslatorOptions, {}, base=options)


@dataclass
class JobConfig:
    """The options of a job over many lines."""

    translator: TranslatorOptions = inline(TranslatorOptions())
    buffer: int = number(2000, 1, 10**9, decides="nothing")
    """Most lines held in memory, to be sorted by length and searched in batches."""
    text: str | None = running_text(None, decides="nothing")
    """A line of text, instead of an input; a word with blanks and without = is short for it."""
    input: str = undecided("-")
    """File to read, plain or compressed; -: standard input."""
    output: str = undecided("-")
    """File to write, which appears when it is complete; after a kill the same command goes on; -: standard output."""

    def __post_init__(self) -> None:
        require("\n" not in (self.text or ""), "text: one line, please; pass a file, or pipe lines in")
        require(self.text is None or self.input == "-", f"input={self.input}: leave it out with a text to translate")


@dataclass
class TranslateConfig(JobConfig):
    """The options of `nmt translate`."""

    format: str = choice("auto", "auto", "text", "tsv", "jsonl", names_of=documents)
    """Of lines: text, tsv (line number, score, translation) or jsonl; or that of a document; auto: by its suffix."""

    def __post_init__(self) -> None:
        super().__post_init__()
        document, n_best = document_format(self.input), self.translator.decode.n_best
        is_right = document is None or self.format not in ("tsv", "jsonl")
        require(is_right, f"format={self.format}: {self.input} is a document, translated as a whole; leave format out")
        suffix = PurePath(self.input).suffix.lower()
        is_right = document is not None or self.format != "auto" or not OTHER_DOCUMENTS.fullmatch(suffix)
        what = f"no {suffix}, but {', '.join(documents())} are translated as documents"
        require(is_right, f"input={self.input}: {what}; format=text takes its lines as text, whatever they are")
        self.format = (document or "text") if self.format == "auto" else self.format
        is_right = n_best == 1 or self.format in ("tsv", "jsonl")
        require(is_right, f"decode.n_best={n_best} with format={self.format}: several need format=tsv or jsonl")
        is_document = self.format in documents()
        is_right = not is_document or document_format(self.output) in (None, self.format)
        require(is_right, f"output={self.output}: the translation is {self.format}, as its source; name it so")
        has_tags = TAG.match((self.text or "").lstrip()) is not None
        results = "tokens" if is_document or self.format == "jsonl" else "text" if self.format == "text" else "scores"
        self.translator = replace(self.translator, results=results, has_tags=has_tags)
