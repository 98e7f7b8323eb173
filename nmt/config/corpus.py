"""Parallel corpora, mixtures of corpora, and their vocabulary."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nmt.config.building import build
from nmt.config.fields import MISSING, choice, number, plugin_options, running_text
from nmt.config.members import to_tree
from nmt.config.suggestions import nearest
from nmt.config.values import check_name
from nmt.errors import NMTError, SettingError, require
from nmt.registry import entries_of

PAD = 0
BOS = 1
EOS = 2
UNK = 3
"""Ids of the special symbols, the same in every vocabulary: padding, start, end, unknown."""
SOURCE_TAG = re.compile(r"<(?!(?:s|pad|unk|0x[0-9A-F]{2})>)[\w-]{1,30}>|>>[\w-]{1,30}<<")
"""A symbol before sources, such as <2de>, or >>deu<< in Marian's models."""
LANGUAGE = re.compile(r"\w[\w.-]{0,49}")
"""A language code, also used as a file name suffix."""
OF_SOURCE = ("name", "weight", "share")
"""Keys that only entries of `data.sources` have."""
OF_MIXTURE = ("sources", "temperature")
"""Keys that entries of `data.sources` do not have."""
IN_TRAINING = {"noise", "temperature", "weight", "share"}
"""Corpus and source keys that only training reads."""
LEAST_ENTRIES = 300
"""The smallest vocabulary that contains every byte."""
LEAST_WORDPIECES = 600
"""A wordpiece vocabulary contains every byte twice: for the start of a word and for the rest."""


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

    def __post_init__(self) -> None:
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
    kind: str = choice(MISSING, names_of=lambda: entries_of("corpus"))
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
    """Number of pairs drawn from train for validation if `valid` is empty."""
    test_size: int = number(1000, 0, 10**9)
    """Number of pairs drawn from train for testing if `test` is empty."""
    held_out_min_words: int = number(1, 0, 1_000_000)
    """Minimum number of source words in a pair drawn for validation or testing, counted as in
    filters.min_words."""
    errors: str = choice("strict", "strict", "skip")
    """How to treat malformed lines, such as invalid UTF-8: strict (stop and name the line) or skip
    (count them)."""
    columns: list[int] = field(default_factory=list)
    """Columns of source and target in .tsv and .csv files, counted from 1, such as [2,3]; if empty,
    nmt finds them."""
    path: str | None = None
    """For kinds other than files: the folder or file that contains the corpus, such as a local copy
    of a download."""
    tag: str | None = running_text(None)
    """Symbol to put before each source sentence, such as <2de> for a target language or <bt> for
    back-translations."""
    temperature: float = number(1.0, 0.01, 1000.0)
    """sources: temperature T; shares are proportional to (weight x pairs)^(1/T), so T > 1 favors
    small sources."""
    sources: Any = field(default_factory=list)
    """Corpora to train on together. Each entry maps the keys whose values differ from those of
    `data`, such as {train: corpus/a, tag: <bt>}, and may set name, weight or share; see
    docs/guides/adapt.md."""
    filters: FilterConfig = field(default_factory=FilterConfig)
    plugins: dict[str, Any] = plugin_options("data")

    def __post_init__(self) -> None:
        if self.tag is not None and not SOURCE_TAG.fullmatch(self.tag):
            raise SettingError(
                "must be a word in angle brackets, such as <2de>, but not <s> or <0x41>",
                key="data.tag",
                value=f"{self.tag!r:.60}",
            )
        if self.columns:
            self.check_columns()
        check_name("data.name", self.name)
        check_language("data.source", self.source)
        check_language("data.target", self.target)
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


@dataclass
class SourceConfig:
    """An entry of `data.sources`.

    It has these keys, and any keys of `data` whose values differ for this source.
    """

    data: DataConfig
    name: str = MISSING
    """Name in reports; default: the entry's target language or the name of its training file."""
    weight: float = number(1.0, 1e-9, 1e9)
    """Factor by which to multiply this source's number of pairs when the sources' shares are
    computed."""
    share: float | None = number(None, 1e-9, 1.0)
    """Fraction of training pairs to take from this source; replaces weight. Sources without a share
    split the rest."""

    def __post_init__(self) -> None:
        if self.share is not None and self.weight != 1:
            raise NMTError(f"share={self.share} and weight={self.weight}: give only one")


def facts_of_kind(kind: Any) -> Mapping[str, Any]:
    """The facts of a kind of corpus, such as `structured` if targets are not text.

    Empty for an unknown kind.
    """
    entry = entries_of("corpus").get(str(kind))
    return entry.facts if entry else {}


def sources_of(data: DataConfig) -> list[SourceConfig]:
    """The sources of a corpus; if `data.sources` is empty, only the corpus itself."""
    if not data.sources:
        return [SourceConfig(data, data.name)]
    if not isinstance(data.sources, list):
        raise NMTError("data.sources: must be a list, such as [{train: a}, {train: b}]")
    first, *later = data.sources
    without_held_out = without_shared_sets(data)
    sources = [source_of(data, first)]
    sources += [source_of(without_held_out, entry) for entry in later]
    check_names(sources)
    check_tags(sources)
    # Added one after another, 0.56, 0.34 and 0.1 exceed 1 before Python 3.12.
    shares = math.fsum(source.share or 0 for source in sources)
    require(shares <= 1, f"data.sources: the shares add up to {shares:g}, which is more than 1")
    return sources


def without_shared_sets(data: DataConfig) -> DataConfig:
    """The keys of all sources after the first one, which uses the held-out sets for all sources."""
    sizes: dict[str, Any] = {}
    if data.valid:
        sizes["valid_size"] = 0
    if data.test:
        sizes["test_size"] = 0
    return replace(data, valid=[], test=[], **sizes)


def check_names(sources: list[SourceConfig]) -> None:
    names = [source.name for source in sources]
    common = max(names, key=names.count)
    if names.count(common) > 1:
        raise NMTError(f"data.sources: two are named {common}; give each its own name")


def check_tags(sources: list[SourceConfig]) -> None:
    """Raise NMTError if nothing tells the model into which of several languages to translate."""
    targets = sorted({source.data.target for source in sources})
    untagged = [source.name for source in sources if not source.data.tag]
    if len(targets) > 1 and untagged:
        raise NMTError(
            f"data.sources: with target languages {', '.join(targets)}, each source needs a tag, "
            f"such as <2de>; missing for {', '.join(untagged[:5])}"
        )


def source_of(data: DataConfig, entry: Any) -> SourceConfig:
    """Build the source that an entry of `data.sources` describes."""
    if not isinstance(entry, dict):
        raise NMTError(f"data.sources: {entry!r:.60} is not a mapping, such as {{train: corpus/a}}")
    name = entry.get("name") or default_name(data, entry)
    where = f"data.sources, {name!s:.60}"
    tree = to_tree(data)
    keys = [key for key in tree if key not in ("name", *OF_MIXTURE)]
    tree |= {"sources": [], "temperature": 1.0}
    of_source: dict[str, Any] = {}
    for key, value in entry.items():
        if key in OF_SOURCE:
            of_source[key] = value
        elif key not in keys:
            near = nearest(str(key), [*OF_SOURCE, *keys])
            raise NMTError(f"data.sources: unknown key {key!s:.60}; {near}")
        elif isinstance(tree[key], dict) and isinstance(value, dict):
            tree[key] = {**tree[key], **value}
        else:
            tree[key] = value
    corpus = build(DataConfig, tree, where)
    source = build(SourceConfig, {**of_source, "data": corpus, "name": name}, where)
    if not LANGUAGE.fullmatch(source.name):
        raise NMTError(f"{where}: name: use only letters, digits, '-', '_' and '.'")
    return source


def default_name(data: DataConfig, entry: dict[str, Any]) -> Any:
    """The target language or the name of the first training file, without its suffixes."""
    if entry.get("target"):
        return entry["target"]
    train = entry.get("train") or ""
    first = train[0] if isinstance(train, list) else train
    file_name = Path(str(first)).name.partition(".")[0]
    return re.sub(r"[^\w-]", "_", file_name)[:50] or data.target


def held_out_name(data: DataConfig, number: int, source: SourceConfig, split: str) -> str:
    """The name of the held-out set that source `number` uses; "all" if all sources share the set.

    Only the first source holds the pairs of a shared set.
    """
    is_first_of_several = number == 0 and data.sources
    if is_first_of_several and split not in data.sources[0] and getattr(data, split):
        return "all"
    return source.name


def normalization_before(tokenizer: Mapping[str, Any]) -> str:
    """How text was normalized before `tokenizer.normalization` existed."""
    return "none" if tokenizer.get("kind") == "marian" else "nfkc"


@dataclass
class TokenizerConfig:
    """The joint subword vocabulary of both languages (section 5.1)."""

    kind: str = choice(MISSING, "bpe", "unigram", "wordpiece", "marian")
    """bpe or unigram (sentencepiece), wordpiece (tokenizers), or marian (from an imported model,
    with init=MODEL)."""
    vocabulary_size: int = number(MISSING, 5, 1_000_000)
    """Number of entries, including special symbols; reduced, with a notice, if the corpus is too
    small."""
    sample: int = number(1_000_000, 1, 10**9)
    """Maximum number of training pairs to learn from (a random sample); unigram needs 2 GB of RAM
    for 200,000 pairs."""
    normalization: str = choice(
        "canonical",
        "canonical",
        "nfkc",
        "none",
        before=normalization_before,
    )
    """How text is normalized: canonical (Unicode's NFC; in sources, ligatures and presentation
    forms are folded, too), nfkc (compatibility forms, which change signs such as \u00bd and
    \u00b2), or none."""

    def __post_init__(self) -> None:
        least = LEAST_WORDPIECES if self.kind == "wordpiece" else LEAST_ENTRIES
        if self.kind != "marian" and self.vocabulary_size < least:
            raise SettingError(
                f"must be at least {least} to contain every byte",
                key="tokenizer.vocabulary_size",
                value=str(self.vocabulary_size),
            )
