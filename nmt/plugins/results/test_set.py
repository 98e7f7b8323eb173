"""Models and test sets, and a model's translations of a test set."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track

from nmt.config import DecodeConfig, NMTError, TranslatorOptions, require
from nmt.files import MODEL_FILES, find_model_directory, read_description, sha256
from nmt.text import language_of_file, not_parallel, read_texts
from nmt.translation import RefusedLine, Translator, best_translations, load_translator, warn

if TYPE_CHECKING:
    from nmt.data import PreparedCorpus

Text = str | Path | Iterable[str]  # a file, or its lines
Translate = Callable[[Translator, list[str]], list[str]]
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


def cited_model(run: str) -> Path:
    path = Path(run)
    if path.is_symlink():  # runs/latest may point to another run tomorrow
        path = path.parent / path.readlink()
    return find_model_directory(str(path))


def digests_of(folder: Path) -> dict[str, str]:
    return {name: sha256(folder / name) for name in MODEL_FILES}


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
    exists = bool(corpus.manifest.counts.get(split, {}).get("kept"))
    require(exists, f"split={split}: {corpus.folder} has no {SPLITS[split]} set")
    return corpus.text(split)


def named_lines(kind: str, text: Text) -> tuple[str, list[str]]:
    return (str(text), list(read_texts(str(text)))) if isinstance(text, str | Path) else (f"the {kind}", list(text))


def read_test_set(model: str, source: Text | None, reference: Text | None, prepared: str | None) -> TestSet:
    """The test set, from two texts (files or lists of lines) or from a model's corpus."""
    if reference is None:
        require(source is None, f"source={source}: pass its reference translations too, as reference=FILE")
        corpus = corpus_of_model(model, prepared)
        is_text = corpus.manifest.content["data"]["kind"] != "treebank"
        require(is_text, f"{corpus.folder}: a treebank has no translations; pass source=FILE reference=FILE")
        texts = held_out_text(corpus, "test")
        return TestSet(f"test set of {corpus.folder}", *texts, corpus, corpus.target_language)
    (of_sources, sources), (name, references) = named_lines("source", source or []), named_lines("reference", reference)
    if source and len(sources) != len(references):
        raise not_parallel((of_sources, name), (len(sources), len(references)))
    require(bool(references), f"reference={name}: is empty")
    with_corpus = corpus_of_model(model, prepared) if prepared else None
    return TestSet(name, sources if source else None, references, with_corpus, language_of_file(name))


def translate_lines(
    options: TranslatorOptions, lines: list[str], console: Console, task: str = "", how: Translate = best_translations
) -> list[str]:
    """Return the best translation of each line, searching blocks of a fixed size; show progress on a terminal."""
    translator = load_translator(options, warn)
    console.print(f"translating {task or f'{len(lines):,} lines'}")

    def texts() -> Iterator[str]:
        for start in range(0, len(lines), BLOCK_LINES):
            try:
                yield from how(translator, lines[start : start + BLOCK_LINES])
            except RefusedLine as error:
                raise RefusedLine(start + error.index, error.problem) from error

    return list(track(texts(), "translating", len(lines), console=console, disable=not console.is_terminal))


def search_keys(decode: DecodeConfig, *always: str) -> list[str]:
    """The search keys that differ from the defaults or are in `always`, as decode.KEY=VALUE."""
    items = asdict(decode).items()
    return [f"decode.{key}={x}".lower() for key, x in items if key in always or x != getattr(DecodeConfig, key)]
