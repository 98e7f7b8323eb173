"""Options of a parallel corpus and its filters."""

import re
from dataclasses import dataclass, field
from typing import Any

from nmt.config.fields import MISSING, choice, number, plugin_options, running_text
from nmt.config.values import check_name
from nmt.errors import NMTError, SettingError
from nmt.extensions import CorpusEntry, StructuredTargets
from nmt.registry import entries_of

SOURCE_TAG = re.compile(r"<(?!(?:s|pad|unk|0x[0-9A-F]{2})>)[\w-]{1,30}>|>>[\w-]{1,30}<<")
"""A symbol before sources, such as <2de>, or >>deu<< in Marian's models."""
CODE = r"[A-Za-z][\w-]{0,29}"
DIRECTION = re.compile(rf"<(?P<source>{CODE}?)2(?P<target>{CODE})>")
"""The tag of a line for a model in which tags name both languages: <eng_Latn2deu_Latn>."""
MULTIPLE = "mul"
"""The source or target language of a model with several, which each line names (ISO 639-2)."""
LANGUAGE = re.compile(r"\w[\w.-]{0,49}")
"""A language code, also used as a file name suffix."""
IN_TRAINING = {"noise", "join", "join_probability", "temperature", "weight", "share"}
"""Corpus and source keys that only training reads."""


def without_compression(name: str) -> str:
    """Strip the compression suffix from a file name, if nmt supports that format."""
    return re.sub(r"\.(gz|bz2|xz|zst)$", "", name)


@dataclass
class FilterConfig:
    """Filters for training pairs; validation and test sets are never filtered."""

    min_words: int = number(1, 0, 1_000_000)
    """Minimum words per side; 2 Han, 4 kana, or 5 Thai, Lao, Khmer or Burmese characters count as
    one word."""
    max_words: int | None = number(250, 1, 1_000_000)
    """Maximum words per side; null: no limit."""
    max_tokens: int = number(256, 1, 1_000_000)
    """Maximum subword tokens per side, excluding the end symbol."""
    max_ratio: float | None = number(None, 1.0, 1e6)
    """Maximum ratio between the two sides' word counts; null: no limit."""
    drop_identical: bool = False
    """Drop pairs with identical sides."""
    deduplicate: bool = False
    """Drop repeated pairs."""
    languages: bool = False
    """Drop pairs in which a side, or half of the target, clearly is in a wrong language."""
    similarity: float | None = number(None, -1.0, 1.0)
    """Minimum similarity in meaning of the two sides, such as 0.35, by a sentence encoder, which is
    an optional package; null: not compared."""

    def __post_init__(self) -> None:
        # All pairs would be dropped.
        if self.max_words is not None and self.min_words > self.max_words:
            raise SettingError(
                f"must be at most max_words={self.max_words}",
                key="data.filters.min_words",
                value=str(self.min_words),
            )


@dataclass
class DataConfig:
    """A parallel corpus: its sources, splits and filters."""

    name: str = MISSING
    """Name of the prepared corpus, which is written to data/NAME."""
    kind: str = choice(MISSING, names_of=lambda: entries_of(CorpusEntry))
    """Kind of source: {choices}."""
    source: str = "en"
    """Source language code, which is also the suffix of source files."""
    target: str = "de"
    """Target language code, which is also the suffix of target files."""
    train: list[str] = field(default_factory=list)
    """Training text, one entry or a list: a prefix (for PREFIX.en and PREFIX.de), either of those
    files, SOURCE:TARGET, or a file of pairs in a format that `nmt plugins` lists, plain or
    compressed (.gz, .bz2, .xz or .zst), or a pattern."""
    valid: list[str] = field(default_factory=list)
    """Validation set, in the same form as train; if empty, valid_size pairs are drawn from
    train."""
    test: list[str] = field(default_factory=list)
    """Test set, in the same form as train; if empty, test_size pairs are drawn from train."""
    valid_size: int = number(1000, 0, 10**9)
    """Number of pairs drawn from train for validation if `valid` is empty; with sources, from each
    of them."""
    test_size: int = number(1000, 0, 10**9)
    """Number of pairs drawn from train for testing if `test` is empty; with sources, from each of
    them."""
    held_out_min_words: int = number(1, 0, 1_000_000)
    """Minimum number of source words in a pair drawn for validation or testing, counted as in
    filters.min_words."""
    errors: str = choice("strict", "strict", "skip")
    """How to treat malformed lines, such as invalid UTF-8: strict (stop and name the line) or skip
    (count them)."""
    columns: list[int] = field(default_factory=list)
    """Columns of source and target in .tsv, .csv and .parquet files, counted from 1, such as [2,3];
    if empty, nmt finds them."""
    path: str | None = None
    """For kinds other than files: the folder or file that contains the corpus, such as a local copy
    of a download."""
    tag: str | None = running_text(None)
    """Symbol to put before each source sentence, such as <2de> for a target language or <bt> for
    back-translations."""
    join: int = number(1, 1, 100)
    """Maximum number of consecutive pairs to join into one training pair, so that the model learns
    to translate paragraphs; 1: none. An empty line on both sides separates documents."""
    join_probability: float = number(0.5, 0.0, 1.0)
    """With data.join, the probability that a training pair is joined with the pairs after it."""
    temperature: float = number(1.0, 0.01, 1000.0)
    """sources: temperature T; shares are proportional to (weight x pairs)^(1/T), so T > 1 favors
    small sources."""
    # Any, because each entry is completed with the keys of `data` before it is checked.
    sources: Any = field(default_factory=list)
    """Corpora to train on together. Each entry maps the keys whose values differ from those of
    `data`, such as {train: corpus/a, tag: <bt>}, and may set name, weight or share; see
    docs/guides/adapt.md."""
    filters: FilterConfig = field(default_factory=FilterConfig)
    plugins: dict[str, Any] = plugin_options("data")

    def __post_init__(self) -> None:
        # A tag with the name of a special symbol or of a byte would share its entry in the
        # vocabulary.
        if self.tag is not None and not SOURCE_TAG.fullmatch(self.tag):
            raise SettingError(
                "must be a word in angle brackets, such as <2de>, but not <s> or <0x41>",
                key="data.tag",
                value=f"{self.tag!r:.60}",
            )
        if self.columns:
            self.check_columns()
        # Names of a folder and suffixes of files: checked here, before anything is written.
        check_name("data.name", self.name)
        check_language("data.source", self.source)
        check_language("data.target", self.target)
        # With a prefix, both sides would be the same file.
        if self.source == self.target:
            raise NMTError(f"data.source and data.target are both {self.source}, but must differ")

    def check_columns(self) -> None:
        is_pair = len(self.columns) == 2 and len(set(self.columns)) == 2
        if not is_pair or min(self.columns) < 1:
            raise SettingError(
                "must be two different numbers from 1, such as [2,3]",
                key="data.columns",
                value=str(self.columns),
            )


def check_language(key: str, code: str) -> None:
    """Raise NMTError unless a language code can be the suffix of a file."""
    if not LANGUAGE.fullmatch(code):
        raise SettingError(
            "must be a language code of letters, digits, '-', '_' and '.'",
            key=key,
            value=repr(code[:60]),
        )


def structured_targets(kind: Any) -> StructuredTargets | None:
    """The StructuredTargets of a kind of corpus; None for a kind whose targets are text."""
    # An unknown kind has none: a model may be used without the plugin that read its corpus.
    entry = entries_of(CorpusEntry).get(str(kind))
    return entry.structured if entry else None
