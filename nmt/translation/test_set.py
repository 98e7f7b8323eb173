"""Test sets, and their translations: for compare, cite, verify and report."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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

BLOCK_LINES = 256
"""Lines that are searched together: what is beside a line may change the last digit of a sum."""
SPLITS = {"valid": "validation", "test": "test"}


@dataclass
class TestSet:
    """Lines to translate, and their references."""

    name: str
    sources: list[str] | None  # None where only the references are given
    references: list[str]
    corpus: "PreparedCorpus | None" = None  # that it is of
    language: str | None = None  # of the references, where it is known

    __test__ = False  # no test case of pytest


def corpus_of_model(model: str, prepared: str | None) -> "PreparedCorpus":
    """The corpus in the folder `prepared`, or the one that a run or model was trained on; NMTError without one."""
    from nmt.data import corpus_of  # imports torch

    folder = Path(model)
    if folder.is_dir():
        folder = find_model_directory(model)
    files = "source=FILE reference=FILE"
    require(bool(prepared) or folder.is_dir(), f"{model}: of no run, whose test set could be taken; pass {files}")
    try:
        return corpus_of(folder, read_description(folder).training if folder.is_dir() else {}, prepared)
    except NMTError as error:
        raise NMTError(f"{error}; pass prepared=FOLDER where it lies, or {files}") from error


def held_out_text(corpus: "PreparedCorpus", split: str) -> tuple[list[str], list[str]]:
    """The sources and references of a held-out set, "valid" or "test"; NMTError where the corpus has none."""
    other = "; pass split=valid" if split == "test" else ""
    is_there = bool(corpus.manifest.counts.get(split, {}).get("kept"))
    require(is_there, f"split={split}: {corpus.folder} holds no {SPLITS[split]} set{other}")
    return corpus.text(split)


def read_test_set(
    model: str, source: str | None, reference: str | None, prepared: str | None, split: str = "test"
) -> TestSet:
    """The test set in two files, or a held-out set of the corpus of a model; NMTError where there is none."""
    if reference is None and source is None:
        corpus = corpus_of_model(model, prepared)
        is_text = not corpus.manifest.is_treebank
        require(is_text, f"{corpus.folder}: a treebank, and no translations; pass source=FILE reference=FILE")
        name = f"{SPLITS[split]} set of {corpus.folder}"
        return TestSet(name, *held_out_text(corpus, split), corpus, corpus.target_language)
    if reference is None:
        raise NMTError(f"source={source}: give its reference translations too, as reference=FILE")
    references = list(read_texts(reference))
    sources = list(read_texts(source)) if source else None
    if sources is not None and len(sources) != len(references):
        raise not_parallel((str(source), reference), (len(sources), len(references)))
    require(bool(references), f"reference={reference}: is empty")
    with_corpus = corpus_of_model(model, prepared) if prepared else None
    return TestSet(reference, sources, references, with_corpus, language_of_file(reference))


def best_translations(translator: Translator, lines: list[str]) -> list[str]:
    return [best.text for best, *_ in translator.translate(lines)]


@dataclass(frozen=True)
class CorpusKind:
    """How lines of a kind of corpus are translated and scored; a plugin's entry of kind "corpus" may say it."""

    translate: Callable[[Translator, list[str]], list[str]] = best_translations
    metric: str = "bleu"
    column: str = "valid_bleu"  # in metrics.csv


def kind_of_corpus(corpus: "PreparedCorpus") -> CorpusKind:
    entry = entries_of("corpus").get(corpus.manifest.content["data"]["kind"])
    facts = entry.facts if entry else {}
    kind = CorpusKind(**{name: facts[name] for name in ("metric", "column") if name in facts})
    return replace(kind, translate=import_attribute(facts["translate"])) if "translate" in facts else kind


def translate_lines(
    translator: Translator,
    lines: list[str],
    console: Console,
    translate: Callable[[Translator, list[str]], list[str]] = best_translations,
    block: int = BLOCK_LINES,
) -> list[str]:
    """The best translation of each line, always in the same blocks of `block` lines, with a bar on a terminal."""

    def texts() -> Iterator[str]:
        for start in range(0, len(lines), block):
            try:
                yield from translate(translator, lines[start : start + block])
            except RefusedLine as error:
                raise RefusedLine(start + error.index, error.problem) from error

    return list(track(texts(), "translating", len(lines), console=console, disable=not console.is_terminal))
