"""Options of translators, and of jobs that translate many lines."""

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from nmt.config.compute import Compute
from nmt.config.corpus import SOURCE_TAG, without_compression
from nmt.config.decoding import DecodeConfig
from nmt.config.fields import choice, inline, number, plugin_options, running_text, setting
from nmt.config.folders import FolderOptions
from nmt.config.parts import Part, parse_part
from nmt.config.values import shown
from nmt.errors import NMTError, SettingError, require
from nmt.extensions import ClusterEntry, DocumentEntry
from nmt.registry import entries_of

BY_LINE = ("tsv", "jsonl")
"""Formats with a record for each line and each of its translations."""


def documents() -> dict[str, DocumentEntry]:
    """The formats of files that are translated as a whole, not line by line."""
    formats = entries_of(DocumentEntry)
    return {name: entry for name, entry in formats.items() if not entry.is_by_line}


def shared_suffixes() -> dict[str, list[str]]:
    """Suffix -> the document formats that share it with other kinds of files."""
    formats = dict[str, list[str]]()
    for name, entry in documents().items():
        for suffix in entry.shared_suffixes:
            formats.setdefault(suffix, []).append(name)
    return formats


def document_format(name: str) -> str | None:
    """The document format that a (plain or compressed) file's name indicates.

    None for lines of text, and for suffixes that formats share.
    """
    suffix = PurePath(without_compression(name.lower())).suffix
    for format, entry in documents().items():
        if suffix in entry.suffixes:
            return format
    return None


@dataclass(frozen=True)
class TranslatorOptions:
    """The models, search settings and stages of a translator.

    Each command offers some of these keys.
    """

    # A job that resumes compares the content of the model's files instead of their path.
    run: list[str] = setting(["runs/latest"], affects_output=False)
    """Run or model directory; a list is an ensemble, whose probabilities are averaged."""
    compute: Compute = inline(Compute())
    source: str | None = running_text(None)
    """Source language of a model with tags for both languages, such as en for NLLB; codes such as
    eng_Latn work, too."""
    target: str | None = running_text(None)
    """Target language of a multilingual model, such as fr for <2fr> or >>fra<<; a line may begin
    with its own tag, such as <2fr> or, with both languages, <en2fr>."""
    source_prefix: str = running_text("")
    """Text to put before every line."""
    target_prefix: str = running_text("")
    """Text with which every translation must begin."""
    split: str = choice("auto", "auto", "paragraph", "never")
    """How to split lines: auto (into sentences), paragraph or never; paragraph translates up to
    data.join sentences at a time, if the model was trained with data.join."""
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    results: str = setting("scores", internal=True)
    """What to return: text (only translations), scores (also their scores), or tokens (token
    scores and alignments, too)."""
    has_tags: bool = setting(False, internal=True)
    """Whether lines may begin with tags."""
    judged: bool = setting(False, internal=True)
    """Whether to return the probability that a translation is good, if the model has one."""
    plugins: dict[str, Any] = plugin_options("translator")

    def __post_init__(self) -> None:
        require(bool(self.run), "run: pass a run or model directory, or several as [a,b]")


PATTERN = frozenset("*?[")
"""Characters that make a name a pattern of several files."""


def clusters() -> dict[str, ClusterEntry]:
    return entries_of(ClusterEntry)


def check_is_local(name: str, key: str = "input") -> None:
    """Raise NMTError for an address or a pattern of files, which only a cluster's job reads."""
    kind = ""
    if "://" in name:
        kind = "an address"
    elif PATTERN.intersection(name) and not Path(name).exists():
        kind = "a pattern of files"
    if kind and clusters():
        with_cluster = " or ".join(f"cluster={cluster}" for cluster in clusters())
        problem = f"{kind} needs {with_cluster}; otherwise, name a file or folder here"
        raise SettingError(problem, key=key, value=shown(name))


@dataclass
class JobConfig:
    """Options of a job that processes many lines."""

    translator: TranslatorOptions = inline(TranslatorOptions())
    # No translation depends on its neighbors, so the number of lines at a time may change.
    buffer: int = number(2000, 1, 10**9, affects_output=False)
    """Number of lines to hold in memory, sort by length and search in batches."""
    # A job that resumes compares the content of its input, whether text or a file.
    text: str | None = running_text(None, affects_output=False)
    """Line of text to translate instead of an input file; may be given without text= if it has no =
    and has spaces, ends a sentence or is in a script without spaces."""
    input: str = setting("-", affects_output=False)
    """Input file, plain or compressed; -: standard input."""
    output: str = setting("-", affects_output=False)
    """Output file, created once it is complete; compressed if its name ends in .gz, .bz2, .xz or
    .zst; after a crash, the same command resumes; -: standard output."""
    overwrite: bool = setting(False, affects_output=False)
    """Replace the output file if it exists, and start again instead of resuming."""
    # The parts of an output are compared with each other, so they must have one identity.
    part: str | None = setting(None, affects_output=False)
    """Process only part I of N of the input file, as in 3/16; `nmt gather` joins the parts."""

    def __post_init__(self) -> None:
        if self.part is not None:
            parse_part(self.part)
        if self.text is not None:
            self.check_text(self.text)
        self.check_paths()

    @property
    def part_of_input(self) -> Part | None:
        """The part to process; None: the whole input."""
        return None if self.part is None else parse_part(self.part)

    def check_paths(self) -> None:
        """Raise NMTError unless input and output may be files."""
        for key, name in (("input", self.input), ("output", self.output)):
            require(not Path(name).is_dir(), f"{key}={name}: is a folder; name a file")

    def check_text(self, text: str) -> None:
        """Raise NMTError unless the text is the only input, and one line."""
        # Line N of the output belongs to line N of the input.
        if "\n" in text:
            raise NMTError("text: must be one line; for several, pass a file or standard input")
        if self.input != "-":
            raise SettingError(
                "omit it when you pass text to translate", key="input", value=self.input
            )


@dataclass
class DocumentOptions:
    """Options of document formats, which plugins add."""

    plugins: dict[str, Any] = plugin_options("document")


@dataclass
class ClusterOptions:
    """The program that translates on many machines, and its options, which plugins add."""

    # The output is the same on one machine and on many.
    cluster: str | None = choice(None, names_of=clusters, affects_output=False)
    """Program that divides the input among the machines of a cluster: {choices}; null: none."""
    plugins: dict[str, Any] = plugin_options("cluster")


@dataclass
class TranslateConfig(JobConfig):
    """Options of `nmt translate`."""

    cluster_options: ClusterOptions = inline(ClusterOptions())
    document: DocumentOptions = inline(DocumentOptions())
    folder: FolderOptions = field(default_factory=FolderOptions)

    format: str = choice("auto", "auto", "text", "tsv", "jsonl", names_of=documents)
    """Output format: text, tsv (line number, score, translation), jsonl or a document format; auto:
    by input suffix, and lines of text only if the suffix and the content agree."""

    dry_run: bool = setting(False, affects_output=False)
    """Only list the files to translate and the number of their words."""

    is_guess: bool = setting(False, internal=True)
    """Whether nmt, not the user, decided that the input is lines of text."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settle_format()
        self.check_part()
        self.check_format()
        # A line given on the command line may name its target language itself, as in '<2fr> Hello'.
        has_tags = SOURCE_TAG.match((self.text or "").lstrip()) is not None
        self.translator = replace(
            self.translator,
            results=self.needed_results(),
            has_tags=has_tags,
            judged=self.format == "jsonl",
        )

    @property
    def is_folder(self) -> bool:
        """Whether the input is a folder of files, which this process translates."""
        return not self.on_cluster and Path(self.input).is_dir()

    @property
    def on_cluster(self) -> bool:
        return self.cluster_options.cluster is not None

    def check_cluster(self) -> None:
        """Raise NMTError for what cannot be divided among machines."""
        problem = ""
        if self.text is not None or self.input == "-":
            problem = "translates files, folders and patterns; pass input=FILES"
        elif self.output == "-":
            problem = "needs a file or folder for the translations; pass output=NAME"
        elif self.format in BY_LINE:
            # The last digits of scores depend on the lines that are searched together.
            problem = f"writes translations only, without scores; omit format={self.format}"
        elif self.is_document:
            problem = f"{self.input} is a document, which is translated as a whole; omit cluster"
        elif self.dry_run:
            problem = "has no dry run; omit one of the two"
        elif self.part is not None:
            problem = "divides the input itself; omit part"
        if problem:
            raise SettingError(problem, key="cluster", value=self.cluster_options.cluster)

    def check_paths(self) -> None:
        if self.on_cluster:
            return  # the plugin knows which addresses and patterns it reads
        check_is_local(self.input)
        if not self.is_folder:
            super().check_paths()
            return
        if self.format in BY_LINE:
            problem = f"{self.input} is a folder, whose files keep their formats; omit format"
            raise SettingError(problem, key="format", value=self.format)
        if self.output == "-" and not self.dry_run:
            raise SettingError(
                f"a folder of files (not a model); name a folder for the translations, such as "
                f"output={self.input.rstrip('/')}-translated",
                key="input",
                value=self.input,
            )
        require(bool(self.output.strip()), "output: name a folder for the translations")
        output = Path(self.output)
        if output.exists() and not output.is_dir():
            raise SettingError(
                f"is a file, but {self.input} is a folder; name a folder",
                key="output",
                value=self.output,
            )

    def settle_format(self) -> None:
        """Replace format=auto by the format of the input."""
        if self.is_folder:
            return  # each file has a format
        document = document_format(self.input)
        if document and self.format in BY_LINE:
            raise SettingError(
                f"{self.input} is a document, which is translated as a whole; omit format",
                key="format",
                value=self.format,
            )
        if self.format == "auto":
            self.format = document or "text"
            # Only then may the content of the file contradict that it is lines of text.
            self.is_guess = document is None

    def check_part(self) -> None:
        """Raise NMTError for a part of an input that has no independent lines."""
        if self.part is None:
            return
        if self.is_folder:
            advice = f"divide the files of {self.input} into several folders instead"
            raise SettingError(
                "only a file of lines can be cut into parts",
                key="part",
                value=self.part,
                advice=advice,
            )
        if self.is_document:
            raise SettingError(
                f"{self.input} is a document, which is translated as a whole",
                key="part",
                value=self.part,
                advice="omit part",
            )

    def check_format(self) -> None:
        """Raise NMTError for what the format cannot hold."""
        if self.on_cluster:
            self.check_cluster()
        if self.is_folder:
            return
        # Text has one line per line of input, and a document has one place per sentence.
        n_best = self.translator.decode.n_best
        if n_best != 1 and self.format not in BY_LINE:
            raise SettingError(
                "requires format=tsv or jsonl", key="decode.n_best", value=str(n_best)
            )
        # Other programs recognize the format of a document by its suffix, unless it has none of its
        # own, as the dialects of JSON.
        of_output = document_format(self.output)
        has_suffix = self.is_document and bool(documents()[self.format].suffixes)
        if has_suffix and of_output not in (None, self.format):
            raise SettingError(
                f"must have a suffix of the input's format, {self.format}",
                key="output",
                value=self.output,
            )

    @property
    def is_document(self) -> bool:
        return self.format in documents()

    def needed_results(self) -> str:
        """The results that the output needs from the translator; see `TranslatorOptions`."""
        # Documents need alignments to place markup, and flags need scores of tokens.
        if self.is_document or self.is_folder or self.format == "jsonl":
            return "tokens"
        return "text" if self.format == "text" else "scores"
