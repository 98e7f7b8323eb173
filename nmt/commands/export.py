"""`nmt export`: write a model for another program, and compare the translations of both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import MISSING

from nmt.commands.console import talker
from nmt.commands.words import one_run
from nmt.compose import Command
from nmt.config import DecodeConfig, TranslateConfig
from nmt.config.rules import require, require_choice
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.model_directory.description import ModelDescription

SAMPLE_LINES = 200
"""Lines of the validation set to compare."""
SHOWN_LINES = 2
"""Lines with different translations to show."""

Translate = Callable[[list[str]], list[str]]


@dataclass
class ExportConfig:
    """The tree of `nmt export`."""

    run: str = "runs/latest"
    """A run, or a model directory; a word without = is short for it."""
    format: str = "ctranslate2"
    """ctranslate2 (pip install '.[ctranslate2]') or huggingface (pip install '.[huggingface]')."""
    precision: str = "float32"
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """The folder to write; null: ctranslate2-PRECISION or huggingface in the model directory."""
    sample: str | None = None
    """File of lines to translate by both and compare; null: 200 lines of the validation set."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require_choice("format", self.format, ("ctranslate2", "huggingface"))
        require_choice("precision", self.precision, ("float32", "int8"))
        require(
            self.precision == "float32" or self.format == "ctranslate2",
            f"precision={self.precision} with format={self.format}: only format=ctranslate2 has it",
        )
        require(not self.decode.do_sample, "decode.do_sample=true: translations by chance cannot be compared")


def export(config: ExportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Write the model and compare it with the original; yields lines to print.

    `status` is called with the current step. Raises NMTError if the model cannot be written in that format.
    """
    from nmt.model_directory.description import find_model_directory, is_exported, read_description

    folder = find_model_directory(config.run)
    if is_exported(folder):
        raise NMTError(f"run={config.run}: exported already; pass the run or model directory")
    description = read_description(folder)
    lines, origin = sample_lines(config, description)
    status("writing")
    decode = replace(config.decode, n_best=1)
    output, translate = write(config, folder, description, decode)
    precision = f" precision={config.precision}" if config.format == "ctranslate2" else ""
    yield f"{output}: {folder} with format={config.format}{precision}"
    if not lines:
        yield f"no sample was compared: {origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    by_torch = best_translations(lines, TranslateConfig(str(folder), device="cpu", decode=decode))
    yield from compare(lines, by_torch, translate(lines), origin)


def write(
    config: ExportConfig, folder: Path, description: "ModelDescription", decode: DecodeConfig
) -> tuple[Path, Translate]:
    """Write the model; returns its folder, and a function that translates with it."""
    if config.format == "huggingface":
        from nmt.interchange import huggingface

        output = Path(config.output or folder / "huggingface")
        huggingface.check(description)
        huggingface.write(folder, output)
        return output, lambda lines: huggingface.translate(output, lines, decode)
    from nmt.translation.load import require_ctranslate2

    require_ctranslate2("format")
    from nmt.interchange import ctranslate2

    output = Path(config.output or folder / f"ctranslate2-{config.precision}")
    ctranslate2.check(description)
    ctranslate2.write(folder, output, config.precision)
    exported = TranslateConfig(str(output), engine="ctranslate2", decode=decode)
    return output, lambda lines: best_translations(lines, exported)


def best_translations(lines: list[str], config: TranslateConfig) -> list[str]:
    """The best translation of each line."""
    from nmt.translation.load import load_translator

    translator = load_translator(config, lambda words: None)
    return [translations[0].text for translations in translator.translate(lines)]


def sample_lines(config: ExportConfig, description: "ModelDescription") -> tuple[list[str], str]:
    """The lines to compare and where they come from, or no lines and the reason."""
    from nmt.model_directory.description import within

    path, first = Path(config.sample or ""), None
    if config.sample is None:
        prepared = within(description.training, "config", "prepared")
        if not isinstance(prepared, str):
            return [], "the model does not say what it was trained on"
        path, first = Path(prepared) / f"valid.{description.source}", SAMPLE_LINES
        if not path.is_file():
            return [], f"{path} is not there"
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            lines = [line.rstrip("\r\n") for line in islice(file, first)]
    except OSError as error:
        raise NMTError(f"sample={path}: {error.strerror}") from error
    origin = f"the first lines of {path}" if first else str(path)
    return lines, origin if lines else f"{path} is empty"


def compare(lines: list[str], expected: list[str], found: list[str], origin: str) -> Iterator[str]:
    """The share of lines with the same translation, and some lines with different ones."""
    different = [index for index, (one, other) in enumerate(zip(expected, found, strict=True)) if one != other]
    same = len(lines) - len(different)
    yield f"{same:,} of {len(lines):,} lines ({same / len(lines):.1%}) are translated as by torch: {origin}"
    for index in different[:SHOWN_LINES]:
        yield f"line {index + 1}: {lines[index]}"
        yield f"  torch:    {expected[index]}"
        yield f"  exported: {found[index]}"


def run(config: ExportConfig) -> None:
    """Export, and print how many translations are the same."""
    with talker().status("loading") as status:
        for line in export(config, status.update):
            print(line)


COMMAND = Command(
    "export",
    "Write a model for another program, and compare their translations.",
    ExportConfig,
    run,
    one_run,
    usage="[RUN]",
    example="runs/mine precision=int8",
    texts=("run",),
)
