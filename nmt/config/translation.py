"""Options of `nmt translate`, and those that it shares with `nmt parse`."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import PurePath
from typing import Any

from nmt.config.decoding import DecodeConfig
from nmt.config.fields import MISSING, Extensible, as_list, number, plugin_options, require, require_choice, shown
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


def check_engine(engine: str, precision: str) -> None:
    """NMTError for an unknown engine, or an arithmetic that it does not have."""
    precisions = {name: entry.facts["precisions"] for name, entry in entries_of("engine").items()}
    require_choice("engine", engine, ("auto", *precisions))
    require_choice("precision", precision, tuple(dict.fromkeys(chain(*precisions.values()))))
    able = [name for name in precisions if precision in precisions[name]]
    require(engine in ("auto", *able), f"precision={precision}: pass engine={able[0]}, which has it")


def check_hard_terms(glossary: str, engine: str, samples: bool) -> None:
    """NMTError where no search is for given words."""
    how = "engine=ctranslate2" if engine == "ctranslate2" else "decode.do_sample=true" if samples else ""
    instead = "engine=torch" if engine == "ctranslate2" else "a beam search"
    require(not how, f"glossary={glossary} with {how}: no search for given words; use {instead}, or terms=soft")


@dataclass
class SearchConfig:
    """Options that translating and parsing share."""

    run: Any = "runs/latest"
    """A run or a model directory; a list of them is an ensemble, whose probabilities are averaged."""
    engine: str = "auto"
    """torch (any device), ctranslate2 (fast on processors), or auto: ctranslate2 where it is installed, can do what is
    asked, and there is no GPU; else torch."""
    precision: str = "float32"
    """Arithmetic: float32, int8 (ctranslate2) or bfloat16 (torch, on devices with products of it)."""
    threads: int | None = number(None, 1, 4096)
    """Processor cores to use; null: all."""
    devices: int = number(1, 1, 1024)
    """torch: number of GPUs that share the lines, such as cuda:0 to cuda:3."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    buffer: int = number(2000, 1, 10**9)
    """Most lines held in memory, to be sorted by length and searched in batches."""
    text: str | None = None
    """A line of text, instead of an input; a word with blanks and without = is short for it."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        self.run = as_list(self.run)
        require(bool(self.run), "run: name a run, a model directory, or several as [a,b]")
        check_engine(self.engine, self.precision)
        require(self.text is None or "\n" not in self.text, "text: one line, please; pass a file, or pipe lines in")
        if self.devices != 1 and self.engine not in ("auto", "torch"):
            raise NMTError(f"devices={self.devices} with engine={self.engine}: it uses all cores already; see threads")


MEANT = ["usual", "none", "true", "yes", "null"]
"""Words that are probably no regular expressions, nor those that look like them."""


def protected_kinds(value: Any) -> list[str]:
    """usual and regular expressions, as `protect` has them; NMTError where one is none. Nothing for none."""
    kinds = [] if value in ("none", False) else as_list(value)
    require("none" not in kinds, "protect: none stands alone, not in a list")
    for kind in kinds:
        if kind == "usual":
            continue
        if get_close_matches(str(kind).lower(), MEANT, cutoff=0.8):  # else a misspelt word would turn all others off
            raise NMTError(
                f"protect={kind}: usual, none, or regular expressions; [{str(kind)[:1]}]{str(kind)[1:]} is one"
            )
        import regex  # takes time to load, and few need it

        try:
            empty = regex.compile(kind).match("")
        except (regex.error, RecursionError) as error:
            raise NMTError(
                f"protect={kind}: no regular expression ({error}); pass usual or none, or mend it"
            ) from error
        require(not empty, f"protect={kind}: it also matches no text at all; let it match one character or more")
    return kinds


@dataclass
class TranslateConfig(SearchConfig, Extensible):
    """The tree of `nmt translate`."""

    target: str | None = None
    """Target language of a model for several, whose sources begin with a tag for it, such as <2fr> or >>fra<<; a line
    may begin with a tag of its own."""
    source_prefix: str = ""
    """Text put before every line, such as a tag for the target language."""
    target_prefix: str = ""
    """Text that every translation begins with."""
    glossary: Any = None
    """File of terms: a term, a tab and its translation, the same again to keep it; docs/terms.md."""
    terms: str = "hard"
    """How translations get the glossary's terms: hard (the search allows no others) or soft (hints in the source, for
    models trained with data.noise.terms)."""
    split: Any = "auto"
    """auto: translate each line sentence by sentence; never: as a whole."""
    protect: Any = "usual"
    """What arrives as it is: usual (placeholders, addresses, file names, code, numbers with units), none, or a list of
    regular expressions and usual, such as [usual,'ACME-[0-9]+']."""
    input: str = "-"
    """File to translate, plain or compressed; -: standard input."""
    input_format: str = "text"
    """text; tsv (target language, tab, text) or jsonl ("source" and "target"), for lines into different languages."""
    output: str = "-"
    """File to write, which appears when it is complete; after a kill the same command goes on; -: standard output."""
    format: str = "auto"
    """Of lines: text (a translation for each), tsv (line number, score, translation) or jsonl. Of a document: html,
    markdown, po, srt, xliff, tmx or docx; auto: by the suffix of the input's name, else text."""
    plugins: dict[str, Any] = plugin_options("translate")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("format", self.format, ("auto", "text", "tsv", "jsonl", *documents()))
        document = document_format(self.input)
        if self.format == "auto":
            suffix = PurePath(self.input).suffix.lower()
            require(
                not OTHER_DOCUMENTS.fullmatch(suffix) or self.ray.enabled or self.input_format != "text",
                f"input={self.input}: no {suffix}, but {', '.join(documents())} are translated as documents; "
                "format=text takes its lines as text, whatever they are",
            )
            self.format = document or "text"
        elif document and self.format in ("tsv", "jsonl"):
            raise NMTError(f"format={self.format}: {self.input} is a document, translated as a whole; leave format out")
        named = document_format(self.output)
        require(
            self.format not in documents() or named in (None, self.format),
            f"output={self.output}: the translation is {self.format}, as its source; give it a name of that kind",
        )
        require_choice("input_format", self.input_format, ("text", "tsv", "jsonl"))
        self.protect = protected_kinds(self.protect)
        if isinstance(self.split, bool):
            self.split = "auto" if self.split else "never"
        require_choice("split", self.split, ("auto", "never"))
        require(self.text is None or self.input == "-", f"input={self.input}: leave it out with a text to translate")
        require(
            self.format in ("tsv", "jsonl") or self.decode.n_best == 1,
            f"decode.n_best={self.decode.n_best} with format={self.format}: several need format=tsv or jsonl",
        )
        require(
            self.format not in documents() or self.input_format == "text",
            f"input_format={self.input_format} with format={self.format}: a document has no columns; leave it out",
        )
        require_choice("terms", self.terms, ("hard", "soft"))
        require(self.terms == "hard" or self.glossary is not None, "terms=soft: name its file with glossary=FILE")
        one = isinstance(self.glossary, str | None)
        require(one, f"glossary={shown(self.glossary)}: nmt translate takes one file; put all terms into it")
        if self.glossary and self.terms == "hard":
            check_hard_terms(self.glossary, self.engine, self.decode.do_sample)
