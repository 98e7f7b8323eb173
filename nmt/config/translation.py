"""Where to compute, what a translator is made of, and the options of jobs over many lines."""

import re
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePath
from typing import Any

from nmt.config.corpus import TAG
from nmt.config.decoding import DecodeConfig
from nmt.config.fields import build, choice, inline, number, plugin_options, require
from nmt.errors import NMTError
from nmt.registry import Entry, entries_of

OTHER_DOCUMENTS = re.compile(r"\.(vtt|ass|sub|rtf|tex|rst|json|ya?ml|xml|properties|strings|resx|ts|ini|csv)")
"""Suffixes of files of text that nobody wants to have translated line by line."""


def documents() -> dict[str, Entry]:
    """The formats of files that are translated as a whole, not line by line."""
    return {name: entry for name, entry in entries_of("document").items() if not entry.facts.get("by_line")}


def document_format(name: str) -> str | None:
    """The format of a document by its name, which may end in that of a compression; None: lines of text."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes[-2:]]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz", ".zst"):
        suffixes.pop()
    formats = (format for format, entry in documents().items() if suffixes and suffixes[-1] in entry.facts["suffixes"])
    return next(formats, None)


def precisions() -> tuple[str, ...]:
    """The precisions of all engines."""
    return tuple(dict.fromkeys(chain(*(entry.facts["precisions"] for entry in entries_of("engine").values()))))


@dataclass(frozen=True)
class Compute:
    """Where and how a model is computed. Options that need it hold it, and its keys stand beside theirs."""

    engine: str = choice("auto", "auto", names_of=lambda: entries_of("engine"))
    """torch (any device), ctranslate2 (fast on processors), or auto: ctranslate2 where it is installed, can do what is
    asked, and there is no GPU; else torch."""
    precision: str = choice("float32", names_of=precisions)
    """Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch, on devices with products of it)."""
    threads: int | None = number(None, 1, 4096)
    """Processor cores to use; null: all."""
    devices: int = number(1, 1, 1024)
    """torch: number of GPUs that share the lines, such as cuda:0 to cuda:3."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""

    def __post_init__(self) -> None:
        if self.engine != "auto":
            able = [name for name, entry in entries_of("engine").items() if self.precision in entry.facts["precisions"]]
            require(self.engine in able, f"precision={self.precision}: pass engine={able[0]}, which has it")
        require(
            self.devices == 1 or self.engine in ("auto", "torch"),
            f"devices={self.devices} with engine={self.engine}: it uses all cores already; see threads",
        )


@dataclass(frozen=True)
class TranslatorOptions:
    """What a translator is made of: models, search, and the stages around it, which plugins add options to.

    A command holds these options, and offers some of their keys.
    """

    run: list[str] = field(default_factory=lambda: ["runs/latest"])
    """A run or a model directory; a list of them is an ensemble, whose probabilities are averaged."""
    compute: Compute = inline(Compute())
    target: str | None = None
    """Target language of a model for several, whose sources begin with a tag for it, such as <2fr> or >>fra<<; a line
    may begin with a tag of its own."""
    source_prefix: str = ""
    """Text put before every line, such as a tag for the target language."""
    target_prefix: str = ""
    """Text that every translation begins with."""
    split: str = choice("auto", "auto", "never")
    """auto: translate each line sentence by sentence; never: as a whole."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    results: str = field(default="scores", metadata={"internal": True})
    """text (the translations alone), scores, or tokens: with the scores and the alignment of each token."""
    has_tags: bool = field(default=False, metadata={"internal": True})
    """The lines may begin with tags of their own."""
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
    buffer: int = number(2000, 1, 10**9)
    """Most lines held in memory, to be sorted by length and searched in batches."""
    text: str | None = None
    """A line of text, instead of an input; a word with blanks and without = is short for it."""
    input: str = "-"
    """File to read, plain or compressed; -: standard input."""
    output: str = "-"
    """File to write, which appears when it is complete; after a kill the same command goes on; -: standard output."""

    def __post_init__(self) -> None:
        require(self.text is None or "\n" not in self.text, "text: one line, please; pass a file, or pipe lines in")
        require(self.text is None or self.input == "-", f"input={self.input}: leave it out with a text to translate")


def formats() -> tuple[str, ...]:
    """The formats of lines and of documents."""
    return ("auto", "text", "tsv", "jsonl", *documents())


@dataclass
class TranslateConfig(JobConfig):
    """The options of `nmt translate`."""

    input_format: str = choice("text", "text", "tsv", "jsonl")
    """text; tsv (target language, tab, text) or jsonl ("source" and "target"), for lines into different languages."""
    format: str = choice("auto", names_of=formats)
    """Of lines: text (a translation for each), tsv (line number, score, translation) or jsonl. Of a document: html,
    markdown, po, srt, xliff, tmx or docx; auto: by the suffix of the input's name, else text."""
    plugins: dict[str, Any] = plugin_options("translate")

    def __post_init__(self) -> None:
        super().__post_init__()
        document = document_format(self.input)
        if self.format == "auto":
            suffix = PurePath(self.input).suffix.lower()
            others = any(getattr(options, "enabled", False) for options in self.plugins.values())
            require(
                bool(document) or not OTHER_DOCUMENTS.fullmatch(suffix) or others or self.input_format != "text",
                f"input={self.input}: no {suffix}, but {', '.join(documents())} are translated as documents; "
                "format=text takes its lines as text, whatever they are",
            )
            self.format = document or "text"
        elif document and self.format in ("tsv", "jsonl"):
            raise NMTError(f"format={self.format}: {self.input} is a document, translated as a whole; leave format out")
        is_document, n_best = self.format in documents(), self.translator.decode.n_best
        require(
            not is_document or document_format(self.output) in (None, self.format),
            f"output={self.output}: the translation is {self.format}, as its source; give it a name of that kind",
        )
        require(
            self.format in ("tsv", "jsonl") or n_best == 1,
            f"decode.n_best={n_best} with format={self.format}: several need format=tsv or jsonl",
        )
        require(
            not is_document or self.input_format == "text",
            f"input_format={self.input_format} with format={self.format}: a document has no columns; leave it out",
        )
        has_tags = self.input_format != "text" or TAG.match((self.text or "").lstrip()) is not None
        results = "tokens" if is_document or self.format == "jsonl" else "text" if self.format == "text" else "scores"
        self.translator = replace(self.translator, results=results, has_tags=has_tags)
