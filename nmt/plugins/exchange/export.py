"""`nmt export`: write a model for another program, and compare the translations of CTranslate2 with ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.commands.console import one_run, talker
from nmt.config import MISSING, Command, Compute, DecodeConfig, TranslatorOptions, choice, require
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.files import ModelDescription

SAMPLE_LINES = 200
"""Lines of the validation set to compare."""
SHOWN_LINES = 2
"""Lines with different translations to print."""
Scores = Sequence[Sequence[float]]
"""For each pair the log probabilities of the target's tokens and of the end symbol; none for a pair without a score."""


@dataclass
class ExportConfig:
    """The tree of `nmt export`."""

    run: str = "runs/latest"
    """A run, or a model directory; a word without = is short for it."""
    format: str = choice("ctranslate2", "ctranslate2", "huggingface")
    """ctranslate2, or huggingface for the library transformers."""
    precision: str = choice("float32", "float32", "int8")
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """The folder to write; null: ctranslate2-PRECISION or huggingface in the model directory."""
    sample: str | None = None
    """ctranslate2: file of lines to translate by both and compare; null: 200 lines of the validation set."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        fits = self.format == "ctranslate2" or (self.precision == "float32" and self.sample is None)
        require(fits, f"format={self.format}: precision and sample are for format=ctranslate2; leave them out")
        require(not self.decode.do_sample, "decode.do_sample=true: translations by chance cannot be compared")


def export(config: ExportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Write the model and compare it with the original; yields lines to print. `status` is called with each step."""
    from nmt.files import certified, expected_search, find_model_directory, is_exported, read_description, write_file

    folder = find_model_directory(config.run)
    require(not is_exported(folder), f"run={config.run}: exported already; pass the run or model directory")
    if config.format == "huggingface":
        from nmt.plugins.exchange import huggingface

        status("writing")
        output = Path(config.output or folder / "huggingface")
        huggingface.write(folder, output)
        yield f"{output}: {folder} with format=huggingface"
        return
    from nmt.plugins.exchange.ctranslate2_load import require_ctranslate2

    require_ctranslate2("format")
    from nmt.plugins.exchange import ctranslate2

    description = read_description(folder)
    lines, origin = sample_of(config, folder, description)
    decode = expected_search(replace(config.decode, n_best=1), description)
    status("writing")
    output = Path(config.output or folder / f"ctranslate2-{config.precision}")
    ctranslate2.write(folder, output, config.precision)
    yield f"{output}: {folder} with format=ctranslate2 precision={config.precision}"
    if not lines:
        yield f"no sample was compared: {origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    certificate = list(compare(folder, output, decode, lines, origin))
    yield from certificate
    card = output / "README.md"
    write_file(card, certified(card.read_text(encoding="utf-8"), certificate))


def sample_of(config: ExportConfig, folder: Path, description: "ModelDescription") -> tuple[list[str], str]:
    """The lines to compare and where they come from, or no lines and the reason."""
    from nmt.data import corpus_of
    from nmt.text import read_texts

    if config.sample is not None:
        lines = list(read_texts(config.sample))
        return lines, config.sample if lines else f"{config.sample} is empty"
    try:
        corpus = corpus_of(folder, description.training)
        name = corpus.folder / f"valid.{description.source}"
        return corpus.text("valid")[0][:SAMPLE_LINES], f"the first lines of {name}"
    except NMTError as error:
        return [], str(error)


def compare(folder: Path, output: Path, decode: DecodeConfig, lines: list[str], origin: str) -> Iterator[str]:
    """Lines that say how far CTranslate2, with the export, agrees with the model: log P of tokens, and translations."""
    from nmt.text import SOURCE
    from nmt.translation import encode_pairs, load_translator, score_pairs

    computed = {str(folder): Compute("torch", device="cpu"), str(output): Compute("ctranslate2")}
    ours, theirs = (
        load_translator(TranslatorOptions([path], compute, decode=decode), lambda words: None)
        for path, compute in computed.items()
    )
    texts, others = ([row[0].text for row in program.translate(lines)] for program in (ours, theirs))
    pairs = list(zip(lines, texts, strict=True))
    encoded = encode_pairs(theirs.tokenizer, pairs)
    engine: Any = theirs.engine  # which has no score for a pair without a source
    scored = iter(engine.forced_decoding([pair for pair in encoded if pair[SOURCE]]))
    scores = [next(scored) if source else [] for source, _ in encoded]
    yield certificate([score.token_log_probabilities for score in score_pairs(ours, pairs)], scores, "CTranslate2")
    different = [row for row in enumerate(zip(lines, others, texts, strict=True), 1) if row[1][1] != row[1][2]]
    same, count = len(lines) - len(different), len(lines)
    yield f"{same:,} of {count:,} lines ({same / count:.1%}) are translated as by CTranslate2: {origin}"
    for number, (line, their, our) in different[:SHOWN_LINES]:
        yield from (f"line {number}: {line}", f"  CTranslate2: {their}", f"  nmt:         {our}")


def certificate(ours: Scores, theirs: Scores, program: str) -> str:
    """The number of scored tokens, and the largest |difference of log P| of one."""
    import numpy as np

    rows = [(a, b) for a, b in zip(ours, theirs, strict=False) if len(b)]
    same_tokens = len(ours) == len(theirs) and all(len(a) == len(b) for a, b in rows)
    require(same_tokens, f"the scores are of other lines or tokens: {len(theirs)} of {len(ours)} lines")
    tokens, largest = sum(len(a) for a, _ in rows), max((np.abs(np.subtract(a, b)).max() for a, b in rows), default=0.0)
    return f"log P of {tokens:,} tokens is that of {program} within {largest:.1e} a token"


def run(config: ExportConfig) -> None:
    with talker().status("loading") as status:
        for line in export(config, status.update):
            print(line)


COMMAND = Command(
    "export", ExportConfig, run, one_run, usage="[RUN]", example="runs/mine precision=int8", groups={"decode": "paper"}
)
