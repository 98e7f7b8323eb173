"""`nmt export`: write a model for another program, and compare the translations of both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.commands.console import one_run, talker
from nmt.config import MISSING, Command, Compute, DecodeConfig, TranslatorOptions, choice, require
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.files import ModelDescription
    from nmt.plugins.exchange.foreign import Program, Sample

SAMPLE_LINES = 200
"""Lines of the validation set to compare."""


@dataclass
class ExportConfig:
    """The tree of `nmt export`."""

    run: str = "runs/latest"
    """A run, or a model directory; a word without = is short for it."""
    format: str = choice("ctranslate2", "ctranslate2", "huggingface")
    """ctranslate2 (pip install '.[ctranslate2]') or huggingface (pip install '.[huggingface]')."""
    precision: str = choice("float32", "float32", "int8")
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """The folder to write; null: ctranslate2-PRECISION or huggingface in the model directory."""
    sample: str | None = None
    """File of lines to translate by both and compare; null: 200 lines of the validation set."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
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
    from nmt.plugins.exchange.foreign import agreement
    from nmt.translation import load_translator

    folder = find_model_directory(config.run)
    require(not is_exported(folder), f"run={config.run}: exported already; pass the run or model directory")
    description = read_description(folder)
    sample = sample_of(config, folder, description)
    decode = expected_search(replace(config.decode, n_best=1), description)
    name, precision = config.format, ""
    if config.format == "ctranslate2":
        name, precision = f"ctranslate2-{config.precision}", f" precision={config.precision}"
    output = Path(config.output or folder / name)
    status("writing")
    program = write(config, folder, output, decode)
    yield f"{output}: {folder} with format={config.format}{precision}"
    if not sample.lines:
        yield f"no sample was compared: {sample.origin}; pass sample=FILE"
        return
    status(f"translating {len(sample.lines):,} lines twice")
    settings = TranslatorOptions([str(folder)], Compute("torch", device="cpu"), decode=decode)
    lines = list(agreement(load_translator(settings, lambda words: None), program, sample))
    yield from lines
    card = output / "README.md"
    write_file(card, certified(card.read_text(encoding="utf-8"), lines))


def write(config: ExportConfig, folder: Path, output: Path, decode: DecodeConfig) -> "Program":
    """Write the model, and load it in the program that it is for."""
    if config.format == "huggingface":
        from nmt.plugins.exchange import huggingface, transformers_program

        huggingface.write(folder, output)
        return transformers_program.exported(folder, output, decode)
    from nmt.plugins.exchange.ctranslate2_load import require_ctranslate2

    require_ctranslate2("format")
    from nmt.plugins.exchange import ctranslate2
    from nmt.translation import load_translator

    ctranslate2.write(folder, output, config.precision)
    settings = TranslatorOptions([str(output)], Compute("ctranslate2"), decode=decode)
    return ctranslate2.CTranslate2Program(load_translator(settings, lambda words: None))


def sample_of(config: ExportConfig, folder: Path, description: "ModelDescription") -> "Sample":
    """The lines to compare and where they come from, or no lines and the reason."""
    from nmt.data import corpus_of
    from nmt.plugins.exchange.foreign import Sample
    from nmt.text import read_texts

    if config.sample is not None:
        lines = list(read_texts(config.sample))
        return Sample(lines, config.sample if lines else f"{config.sample} is empty")
    try:
        corpus = corpus_of(folder, description.training)
        lines = corpus.text("valid")[0][:SAMPLE_LINES]
    except NMTError as error:
        return Sample([], str(error))
    return Sample(lines, f"the first lines of {corpus.folder / f'valid.{description.source}'}")


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
    groups={"decode": "paper"},
)
