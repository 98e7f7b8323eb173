"""The test set that is cited, and its translations by a model."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from nmt.config import TranslateConfig
from nmt.data.manifest import read_manifest
from nmt.data.prepared import PreparedCorpus
from nmt.errors import NMTError
from nmt.model_directory.description import ModelDescription, within
from nmt.report.run import find_corpus
from nmt.text.files import not_parallel, read_texts
from nmt.translation.job import warn
from nmt.translation.load import load_translator
from nmt.translation.translator import Translator

BLOCK_LINES = 256
"""Lines that are searched together, always the same ones: what is beside a line may change the last digit of a sum."""


@dataclass
class HeldOut:
    """Lines that the model was not trained on, and their reference translations."""

    name: str
    sources: list[str]
    references: list[str]


def read_files(source: str, reference: str) -> HeldOut:
    """The test set in two files; NMTError where they are not parallel."""
    sources, references = list(read_texts(source)), list(read_texts(reference))
    if len(sources) != len(references):
        raise not_parallel((source, reference), (len(sources), len(references)))
    return HeldOut(Path(source).name, sources, references)


def read_prepared(model: Path, description: ModelDescription, prepared: str | None) -> HeldOut:
    """The test set of the corpus that a model was trained on; NMTError where there is none, or it is another corpus."""
    files = "source=FILE reference=FILE"
    named = prepared or within(description.training, "config", "prepared")
    if not isinstance(named, str):
        raise NMTError(f"{model} does not say what it was trained on: pass {files}")
    folder = Path(prepared) if prepared else find_corpus(model, named)
    try:
        manifest = read_manifest(folder)
    except NMTError as error:
        raise NMTError(f"{error}; or pass prepared=FOLDER where the corpus of {model} lies, or {files}") from error
    if manifest.fingerprint != description.training.get("corpus"):
        raise NMTError(f"{folder} is not the corpus that {model} was trained on: pass prepared=FOLDER, or {files}")
    if not manifest.counts.get("test", {}).get("kept"):
        raise NMTError(f"{folder} holds no test set: pass {files}")
    return HeldOut("test", *PreparedCorpus(folder, manifest).text("test"))


def translations(translator: Translator, lines: list[str]) -> Iterator[str]:
    """The best translation of each line."""
    for start in range(0, len(lines), BLOCK_LINES):
        for found in translator.translate(lines[start : start + BLOCK_LINES]):
            yield found[0].text


def translate_lines(config: TranslateConfig, lines: list[str], console: Console) -> list[str]:
    """The best translation of each line by the model that `config` names, with a bar on a terminal."""
    found = translations(load_translator(config, warn), lines)
    console.print(f"translating {len(lines):,} lines")
    return list(track(found, "translating", len(lines), console=console, disable=not console.is_terminal))
