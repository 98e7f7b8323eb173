"""Parallel corpora, mixtures of corpora, and their vocabulary."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nmt.config import check_name
from nmt.config.fields import (
    MISSING,
    build,
    choice,
    nearest,
    number,
    plugin_options,
    require,
    running_text,
    to_tree,
)
from nmt.registry import entries_of

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""Ids of the special symbols, the same in every vocabulary: padding, start, end, unknown."""
SOURCE_TAG = re.compile(r"<(?!(?:s|pad|unk|0x[0-9A-F]{2})>)[\w-]{1,30}>|>>[\w-]{1,30}<<")
LANGUAGE = re.compile(r"\w[\w.-]{0,49}")  # a language code, also used as a file name suffix
OF_SOURCE = ("name", "weight", "share")
IN_TRAINING = {"noise", "temperature", *OF_SOURCE[1:]}
"""Corpus and source keys that only training reads."""


def without_compression(name: str) -> str:
    """Strip the compression suffix from a file name, if nmt supports that format."""
    return re.sub(r"\.(gz|bz2|xz|zst)$", "", name)


@dataclass
class FilterConfig:
    """Filters for training pairs; validation and test sets are never filtered."""

    min_words: int = number(1, 0, 1_000_000)
    """Minimum words per side; 2 Han, 4 kana, or 5 Thai, Lao, Khmer or Burmese characters count as one word."""
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
        is_ordered = self.max_words is None or self.min_words <= self.max_words
        require(
            is_ordered,
            f"data.filters.min_words={self.min_words}: must be at most max_words={self.max_words}",
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
    """Training text, one entry or a list: a prefix (for PREFIX.en and PREFIX.de), either of those files,
    SOURCE:TARGET, or a file of pairs in a format that `nmt plugins` lists, plain or compressed (.gz, .bz2, .xz or
    .zst), or a pattern."""
    valid: list[str] = field(default_factory=list)
    """Validation set, in the same form as train; if empty, valid_size pairs are drawn from train."""
    test: list[str] = field(default_factory=list)
    """Test set, in the same form as train; if empty, test_size pairs are drawn from train."""
    valid_size: int = number(1000, 0, 10**9)
    """Number of pairs drawn from train for validation if `valid` is empty."""
    test_size: int = number(1000, 0, 10**9)
    """Number of pairs drawn from train for testing if `test` is empty."""
    held_out_min_words: int = number(1, 0, 1_000_000)
    """Minimum number of source words in a pair drawn for validation or testing, counted as in filters.min_words."""
    errors: str = choice("strict", "strict", "skip")
    """How to treat malformed lines, such as invalid UTF-8: strict (stop and name the line) or skip (count them)."""
    columns: list[int] = field(default_factory=list)
    """Columns of source and target in .tsv and .csv files, counted from 1, such as [2,3]; if empty, nmt finds them."""
    path: str | None = None
    """For kinds other than files: the folder or file that contains the corpus, such as a local copy of a download."""
    tag: str | None = running_text(None)
    """Symbol to put before each source sentence, such as <2de> for a target language or <bt> for back-translations."""
    temperature: float = number(1.0, 0.01, 1000.0)
    """sources: temperature T; shares are proportional to (weight x pairs)^(1/T), so T > 1 favors small sources."""
    sources: Any = field(default_factory=list)
    """Corpora to train on together. Each entry maps the keys whose values differ from those of `data`, such as
    {train: corpus/a, tag: <bt>}, and may set name, weight or share; see docs/guides/adapt.md."""
    filters: FilterConfig = field(default_factory=FilterConfig)
    plugins: dict[str, Any] = plugin_options("data")

    def __post_init__(self) -> None:
        is_tag = self.tag is None or SOURCE_TAG.fullmatch(self.tag) is not None
        require(
            is_tag,
            f"data.tag={self.tag!r:.60}: must be a word in angle brackets, such as <2de>, but not <s> or <0x41>",
        )
        are_columns = len(set(self.columns)) == 2 and min(self.columns) > 0
        require(
            not self.columns or (are_columns and len(self.columns) == 2),
            f"data.columns={self.columns}: must be two different numbers from 1, such as [2,3]",
        )
        check_name("data.name", self.name)
        for key, code in (("source", self.source), ("target", self.target)):
            is_code = LANGUAGE.fullmatch(code) is not None
            require(
                is_code,
                f"data.{key}={code[:60]!r}: must be a language code of letters, digits, '-', '_' and '.'",
            )
        require(
            self.source != self.target,
            f"data.source and data.target are both {self.source}, but must differ",
        )


@dataclass
class SourceConfig:
    """An entry of `data.sources`: these keys, and any keys of `data` whose values differ for this source."""

    data: DataConfig
    name: str = MISSING
    """Name in reports; default: the entry's target language or the name of its training file."""
    weight: float = number(1.0, 1e-9, 1e9)
    """Factor by which to multiply this source's number of pairs when the sources' shares are computed."""
    share: float | None = number(None, 1e-9, 1.0)
    """Fraction of training pairs to take from this source; replaces weight. Sources without a share split the rest."""

    def __post_init__(self) -> None:
        both = self.share is not None and self.weight != 1
        require(not both, f"share={self.share} and weight={self.weight}: give only one")


def facts_of_kind(kind: Any) -> Mapping[str, Any]:
    """The facts of a kind of corpus, such as `structured` if targets are not text; empty for an unknown kind."""
    entry = entries_of("corpus").get(str(kind))
    return entry.facts if entry else {}


def sources_of(data: DataConfig) -> list[SourceConfig]:
    """The sources of a corpus; if `data.sources` is empty, only the corpus itself."""
    if not data.sources:
        return [SourceConfig(data, data.name)]
    require(
        isinstance(data.sources, list),
        "data.sources: must be a list, such as [{train: a}, {train: b}]",
    )
    # The first source also uses the validation and test sets that `data` gives for all sources.
    sizes: Any = {f"{split}_size": 0 for split in ("valid", "test") if getattr(data, split)}
    later = replace(data, valid=[], test=[], **sizes)
    sources = [
        source_of(later if index else data, entry) for index, entry in enumerate(data.sources)
    ]
    names, targets = (
        [source.name for source in sources],
        sorted({source.data.target for source in sources}),
    )
    common = max(names, key=names.count)
    require(
        names.count(common) == 1, f"data.sources: two are named {common}; give each its own name"
    )
    untagged = [source.name for source in sources if not source.data.tag]
    problem = f"with target languages {', '.join(targets)}, each source needs a tag, such as <2de>"
    require(
        len(targets) == 1 or not untagged,
        f"data.sources: {problem}; missing for {', '.join(untagged[:5])}",
    )
    # Added one after another, 0.56, 0.34 and 0.1 exceed 1 before Python 3.12.
    shares = math.fsum(source.share or 0 for source in sources)
    require(shares <= 1, f"data.sources: the shares add up to {shares:g}, which is more than 1")
    return sources


def source_of(data: DataConfig, entry: Any) -> SourceConfig:
    """Build the source that an entry of `data.sources` describes."""
    require(
        isinstance(entry, dict),
        f"data.sources: {entry!r:.60} is not a mapping, such as {{train: corpus/a}}",
    )
    train = entry.get("train") or ""
    file_name = Path(str(train[0] if isinstance(train, list) else train)).name.partition(".")[0]
    name = (
        entry.get("name")
        or entry.get("target")
        or re.sub(r"[^\w-]", "_", file_name)[:50]
        or data.target
    )
    where = f"data.sources, {name!s:.60}"
    tree = to_tree(data) | {"sources": [], "temperature": 1.0}
    keys = [key for key in tree if key not in ("name", "sources", "temperature")]
    for key in entry.keys() - OF_SOURCE:
        require(
            key in keys,
            f"data.sources: unknown key {key!s:.60}; {nearest(str(key), [*OF_SOURCE, *keys])}",
        )
        is_group = isinstance(tree.get(key), dict) and isinstance(entry[key], dict)
        tree[key] = tree[key] | entry[key] if is_group else entry[key]
    values = {key: value for key, value in entry.items() if key in OF_SOURCE}
    source = build(
        SourceConfig, {**values, "data": build(DataConfig, tree, where), "name": name}, where
    )
    require(
        bool(LANGUAGE.fullmatch(source.name)),
        f"{where}: name: use only letters, digits, '-', '_' and '.'",
    )
    return source


def held_out_name(data: DataConfig, number: int, source: SourceConfig, split: str) -> str:
    """The name of the held-out set that source `number` uses; "all" if all sources share the set."""
    of_all = number == 0 and data.sources and split not in data.sources[0] and getattr(data, split)
    return "all" if of_all else source.name


@dataclass
class TokenizerConfig:
    """The joint subword vocabulary of both languages (section 5.1)."""

    kind: str = choice(MISSING, "bpe", "unigram", "wordpiece", "marian")
    """bpe or unigram (sentencepiece), wordpiece (tokenizers), or marian (from an imported model, with init=MODEL)."""
    vocabulary_size: int = number(MISSING, 5, 1_000_000)
    """Number of entries, including special symbols; reduced, with a notice, if the corpus is too small."""
    sample: int = number(1_000_000, 1, 10**9)
    """Maximum number of training pairs to learn from (a random sample); unigram needs 2 GB of RAM for 200,000 pairs."""
    normalization: str = choice(
        *("canonical", "canonical", "nfkc", "none"),
        before=lambda stored: "none" if stored.get("kind") == "marian" else "nfkc",
    )
    """How text is normalized: canonical (Unicode's NFC; in sources, ligatures and presentation forms are
    folded, too), nfkc (compatibility forms, which change signs such as \u00bd and \u00b2), or none."""

    def __post_init__(self) -> None:
        # A wordpiece vocabulary contains every byte twice: for the start of a word and for the rest.
        size, least = self.vocabulary_size, {"marian": 0, "wordpiece": 600}.get(self.kind, 300)
        require(
            size >= least,
            f"tokenizer.vocabulary_size={size}: must be at least {least} to contain every byte",
        )
