"""`nmt export`: write a model for another program, and compare the translations of both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.commands.console import talker
from nmt.commands.words import one_run
from nmt.config import MISSING, Command, Compute, DecodeConfig, TranslatorOptions, require, require_choice
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.files import ModelDescription
    from nmt.plugins.exchange.agreement import Program, Sample

SAMPLE_LINES = 200
"""Lines of the validation set to compare."""


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
    from nmt.files import certified, expected_search, find_model_directory, is_exported, read_description, write_file
    from nmt.plugins.exchange.agreement import agreement
    from nmt.translation import load_translator

    folder = find_model_directory(config.run)
    if is_exported(folder):
        raise NMTError(f"run={config.run}: exported already; pass the run or model directory")
    description = read_description(folder)
    sample = sample_of(config, description)
    decode = expected_search(replace(config.decode, n_best=1), description)
    status("writing")
    ctranslate2 = config.format == "ctranslate2"
    output = Path(config.output or folder / (f"ctranslate2-{config.precision}" if ctranslate2 else "huggingface"))
    program = (
        write_ctranslate2(folder, output, config.precision, decode)
        if ctranslate2
        else write_huggingface(folder, output, decode)
    )
    yield f"{output}: {folder} with format={config.format}" + (f" precision={config.precision}" if ctranslate2 else "")
    if not sample.lines:
        yield f"no sample was compared: {sample.origin}; pass sample=FILE"
        return
    status(f"translating {len(sample.lines):,} lines twice")
    settings = TranslatorOptions([str(folder)], Compute("torch", device="cpu"), decode=decode)
    lines = list(agreement(load_translator(settings, lambda words: None), program, sample))
    yield from lines
    card = output / "README.md"
    write_file(card, certified(card.read_text(encoding="utf-8"), lines))


def write_huggingface(folder: Path, output: Path, decode: DecodeConfig) -> "Program":
    from nmt.plugins.exchange.huggingface import write
    from nmt.plugins.exchange.transformers_program import exported

    write(folder, output)
    return exported(folder, output, decode)


def write_ctranslate2(folder: Path, output: Path, precision: str, decode: DecodeConfig) -> "Program":
    from nmt.plugins.exchange.ctranslate2_load import require_ctranslate2
    from nmt.translation import load_translator

    require_ctranslate2("format")
    from nmt.plugins.exchange.ctranslate2 import CTranslate2Program, write

    write(folder, output, precision)
    settings = TranslatorOptions([str(output)], Compute("ctranslate2"), decode=decode)
    return CTranslate2Program(load_translator(settings, lambda words: None))


def sample_of(config: ExportConfig, description: "ModelDescription") -> "Sample":
    """The lines to compare and where they come from, or no lines and the reason."""
    from nmt.files import within
    from nmt.plugins.exchange.agreement import Sample

    path, count = Path(config.sample or ""), None
    if config.sample is None:
        prepared = within(description.training, "config", "prepared")
        if not isinstance(prepared, str):
            return Sample([], "the model does not say what it was trained on")
        path, count = Path(prepared) / f"valid.{description.source}", SAMPLE_LINES
        if not path.is_file():
            return Sample([], f"{path} is not there")
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            lines = [line.rstrip("\r\n") for line in islice(file, count)]
    except OSError as error:
        raise NMTError(f"sample={path}: {error.strerror}") from error
    origin = f"the first lines of {path}" if count else str(path)
    return Sample(lines, origin if lines else f"{path} is empty")


def run(config: ExportConfig) -> None:
    """Export, and print how many translations are the same."""
    with talker().status("loading") as status:
        for line in export(config, status.update):
            print(line)


COMMAND = Command(
    "export",
    ExportConfig,
    run,
    one_run,
    usage="[RUN]",
    example="runs/mine precision=int8",
    texts=("run",),
    groups={"decode": "paper"},
)
