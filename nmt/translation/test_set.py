"""Test sets and their translations, for compare, cite, verify and report."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track

from nmt.config import require
from nmt.errors import NMTError
from nmt.files import find_model_directory, read_description
from nmt.registry import entries_of, import_attribute
from nmt.text import language_of_file, not_parallel, read_texts
from nmt.translation.translator import RefusedLine, Translator

if TYPE_CHECKING:
    from nmt.data import PreparedCorpus

BLOCK_LINES = 256  # translated at a time; fixed, because a line's neighbors may change the last digit of a sum
SPLITS = {"valid": "validation", "test": "test"}


@dataclass
class TestSet:
    """Lines to translate, and their references."""

    name: str
    sources: list[str] | None  # None if only the references are given
    references: list[str]
    corpus: "PreparedCorpus | None" = None
    language: str | None = None  # of the references, if known

    __test__ = False  # keeps pytest from collecting this class


def corpus_of_model(model: str, prepared: str | None) -> "PreparedCorpus":
    """The prepared corpus in the folder `prepared` or, if that is None, the corpus that a model was trained on."""
    from nmt.data import corpus_of  # imports torch

    folder, files = Path(model), "source=FILE reference=FILE"
    if folder.is_dir():
        folder = find_model_directory(model)
    require(bool(prepared) or folder.is_dir(), f"{model}: not a run folder, so it has no test set; pass {files}")
    try:
        return corpus_of(folder, read_description(folder).training if folder.is_dir() else {}, prepared)
    except NMTError as error:
        raise NMTError(f"{error}; pass prepared=FOLDER, or {files}") from error


def held_out_text(corpus: "PreparedCorpus", split: str) -> tuple[list[str], list[str]]:
    """The sources and references of a held-out set, "valid" or "test"."""
    other = "; pass split=valid" if split == "test" else ""
    exists = bool(corpus.manifest.counts.get(split, {}).get("kept"))
    require(exists, f"split={split}: {corpus.folder} has no {SPLITS[split]} set{other}")
    return corpus.text(split)


def read_test_set(model: str, source: str | None, reference: str | None, prepared: str | None) -> TestSet:
    """The test set, from two files or from a model's corpus."""
    if reference is None:
        require(source is None, f"source={source}: pass its reference translations too, as reference=FILE")
        corpus = corpus_of_model(model, prepared)
        is_text = corpus.manifest.content["data"]["kind"] != "treebank"
        require(is_text, f"{corpus.folder}: a treebank has no translations; pass source=FILE reference=FILE")
        texts = held_out_text(corpus, "test")
        return TestSet(f"test set of {corpus.folder}", *texts, corpus, corpus.target_language)
    references, sources = list(read_texts(reference)), list(read_texts(source)) if source else None
    if sources is not None and len(sources) != len(references):
        raise not_parallel((str(source), reference), (len(sources), len(references)))
    require(bool(references), f"reference={reference}: is empty")
    with_corpus = corpus_of_model(model, prepared) if prepared else None
    return TestSet(reference, sources, references, with_corpus, language_of_file(reference))


def best_translations(translator: Translator, lines: list[str]) -> list[str]:
    return [best.text for best, *_ in translator.translate(lines)]


@dataclass(frozen=True)
class CorpusKind:
    """How to translate and score a kind of corpus; taken from the facts of a plugin's "corpus" entry."""

    translate: Callable[[Translator, list[str]], list[str]] = best_translations
    metric: str = "bleu"
    column: str = "valid_bleu"  # in metrics.csv


def kind_of_corpus(corpus: "PreparedCorpus") -> CorpusKind:
    entry = entries_of("corpus").get(corpus.manifest.content["data"]["kind"])
    if entry is None or "translate" not in entry.facts:
        return CorpusKind()
    return CorpusKind(import_attribute(entry.facts["translate"]), entry.facts["metric"], entry.facts["column"])


def translate_lines(
    translator: Translator,
    lines: list[str],
    console: Console,
    translate: Callable[[Translator, list[str]], list[str]] = best_translations,
) -> list[str]:
    """Return the best translation of each line, searching blocks of a fixed size; show progress on a terminal."""

    def texts() -> Iterator[str]:
        for start in range(0, len(lines), BLOCK_LINES):
            try:
                yield from translate(translator, lines[start : start + BLOCK_LINES])
            except RefusedLine as error:
                raise RefusedLine(start + error.index, error.problem) from error

    return list(track(texts(), "translating", len(lines), console=console, disable=not console.is_terminal))
