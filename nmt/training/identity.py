"""The options and files that decide a run's weights and its delivered model. No torch import.

Every option decides, unless its field is declared with `decides=False`. A new option therefore
decides until somebody shows that it does not. Files are compared by content, not by name.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from nmt.config import ExperimentConfig, in_words, members_of
from nmt.files import remembered_sha256, within

if TYPE_CHECKING:
    from nmt.data import PreparedCorpus

TRAINED_ON = ("train", "valid")
"""The splits that decide: one decides the weights, the other which of them are delivered."""

SCORE_KEYS = ("validation.bleu_sentences", "validation.tokenize", "validation.precision", "decode")
"""The options that decide which checkpoint is the best if validation.best=bleu."""


def decisive_keys(cls: Any = ExperimentConfig, group: str = "") -> Iterator[str]:
    """The dotted keys of a record that may not change between a run and its resumption."""
    for member in members_of(cls):
        if not member.metadata.get("decides", True):
            continue
        # The options of an inline record have no additional prefix.
        if "inline" in member.metadata:
            yield from decisive_keys(member.type, group)
        elif is_dataclass(member.type):
            yield from decisive_keys(member.type, f"{group}{member.name}.")
        else:
            yield f"{group}{member.name}"


def decisive_settings(tree: dict[str, Any]) -> dict[str, Any]:
    """The options that determine the weights or which of them are the best, by key.

    `tree` is a complete configuration.
    """
    keys = [*decisive_keys()]
    if within(tree, "validation", "best") == "bleu":
        # Otherwise the score is only reported, and its options may change.
        keys += SCORE_KEYS
    settings = {}
    for key in keys:
        value = within(tree, *key.split("."))
        if key == "trainer.deterministic" and value is None:
            value = True  # what null means on a GPU; on a CPU, no value decides anything
        if isinstance(value, bool):
            value = in_words(value)  # as written in YAML and on the command line
        settings[key] = value
    return settings


def split_of(name: str) -> str:
    """The split that an entry of `corpus_hashes` belongs to."""
    _, _, path = name.rpartition(" in ")
    folder, _, _ = path.partition("/")
    split, _, _ = folder.partition(".")
    return split


def corpus_hashes(corpus: "PreparedCorpus", splits: Iterable[str] = TRAINED_ON) -> dict[str, str]:
    """Name -> SHA-256 of everything in a prepared corpus that decides, except its tokenizer.

    The entries are each split's pairs, the raw lines of the validation set, and the sizes of a
    mixture's sources. `split_of` parses the names.
    """
    hashes: dict[str, str] = {}
    for split in splits:
        hashes |= corpus.hashes(split)
        # Training reads ids only, but validation scores compare with these lines.
        if split != "train":
            for language in (corpus.source_language, corpus.target_language):
                name = f"{split}.{language}"
                path = corpus.folder / name
                if path.is_file():
                    hashes[name] = remembered_sha256(path)
        counts = corpus.manifest.counts.get(split, {})
        sources = counts.get("sources")
        if sources:
            # The numbers in order decide which rows belong to which source; names decide nothing.
            borders = json.dumps([*sources.values()]).encode()
            name = f"number of pairs of each source in {split}"
            hashes[name] = hashlib.sha256(borders).hexdigest()
    return hashes


def in_division_of(
    before: dict[str, str], files: dict[str, str], corpus: "PreparedCorpus"
) -> dict[str, str]:
    """`files`, with the Arrow files of `before` instead if they have the same pairs.

    Both are `corpus_hashes`. An older nmt wrote one file for pairs that are now divided among
    files, and the updates of a run do not depend on that.
    """
    # Late, because pyarrow takes long to import.
    from nmt.data import same_pairs

    result = dict(files)
    for split in TRAINED_ON:
        names = arrow_files(split, files)
        names_before = arrow_files(split, before)
        if not names or names == names_before:
            continue
        paths = [corpus.folder / name for name in names]
        if same_pairs(paths, [before[name] for name in names_before]):
            for name in names:
                del result[name]
            result |= {name: before[name] for name in names_before}
    return result


def arrow_files(split: str, names: Iterable[str]) -> list[str]:
    """The names of a split's Arrow files in the order of their rows."""
    files = [name for name in names if name.startswith(f"{split}/")]
    # A sixth digit makes a name longer.
    return sorted(files, key=lambda name: (len(name), name))
