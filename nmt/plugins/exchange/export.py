"""`nmt export`: write a model for another program, and compare the translations of CTranslate2 with ours."""

import shutil
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
    from nmt.files import certified, expected_search, find_model_directory, read_description, write_file

    folder = find_model_directory(config.run)
    description, to_ctranslate2 = read_description(folder), config.format == "ctranslate2"
    output = Path(config.output or folder / (f"ctranslate2-{config.precision}" if to_ctranslate2 else "huggingface"))
    require(replaceable(output), f"output={output}: exists and is not an earlier export; name another folder")
    if not to_ctranslate2:
        from nmt.plugins.exchange import huggingface

        status("writing")
        huggingface.write(folder, output.resolve())
        yield f"{output}: {folder} with format=huggingface"
        return
    from nmt.plugins.exchange.ctranslate2_engine import converted, require_ctranslate2

    require_ctranslate2("format")
    lines, origin = sample_of(config, folder, description)
    decode = expected_search(replace(config.decode, n_best=1), description)
    status("writing")
    write_ctranslate2(folder, output.resolve(), converted(folder, config.precision, status), description)
    yield f"{output}: {folder} with format=ctranslate2 precision={config.precision}"
    if not lines:
        yield f"no sample was compared: {origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    certificate = list(compare(folder, config.precision, decode, lines, origin))
    yield from certificate
    card = output / "README.md"
    write_file(card, certified(card.read_text(encoding="utf-8"), certificate))


def replaceable(output: Path) -> bool:
    """True if there is nothing, an empty folder, or an earlier export."""
    from nmt.files import parse_json, read_mapping

    if not output.is_dir():
        return not output.exists()
    try:
        settings = output / "config.json"
        return not any(output.iterdir()) or read_mapping(settings, parse_json).get("exported_by") == "nmt"
    except (OSError, NMTError):
        return False


def write_ctranslate2(folder: Path, output: Path, conversion: Path, description: "ModelDescription") -> None:
    """Write a conversion with all that other programs need to use it: the vocabularies, and how in README.md."""
    from nmt.files import plain, whole_folder
    from nmt.text import MarianTokenizer, SentencePieceTokenizer, read_tokenizer

    tokenizer = read_tokenizer(folder)
    names, models = ("tokenizer.model",) * 2, [tokenizer.content] * 2
    if isinstance(tokenizer, MarianTokenizer):
        names, models = ("source.spm", "target.spm"), tokenizer.models
    source, target = plain(description.source), plain(description.target)
    text = f"# {source}-{target}\n\nA Transformer that translates {source} to {target}, exported by `nmt export`.\n"
    if isinstance(tokenizer, SentencePieceTokenizer | MarianTokenizer):
        text += USAGE.format(encoder=names[0], decoder=names[1])
    with whole_folder(output) as temporary:
        shutil.copytree(conversion, temporary, dirs_exist_ok=True)
        for name, model in zip(names, models, strict=True):
            (temporary / name).write_bytes(model)
        (temporary / "README.md").write_text(text, encoding="utf-8")


USAGE = """
Normalize the text to NFKC first, unless the vocabulary is Marian's. A tag of the target language is a piece.

```python
import ctranslate2
from sentencepiece import SentencePieceProcessor

pieces = SentencePieceProcessor(model_file="{encoder}").encode("A line.", out_type=str)
[result] = ctranslate2.Translator(".").translate_batch([pieces], beam_size=4)
print(SentencePieceProcessor(model_file="{decoder}").decode(result.hypotheses[0]))
```
"""


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


def compare(folder: Path, precision: str, decode: DecodeConfig, lines: list[str], origin: str) -> Iterator[str]:
    """Lines that say how far CTranslate2, with the export, agrees with the model: log P of tokens, and translations."""
    from nmt.text import SOURCE
    from nmt.translation import encode_pairs, load_translator, score_pairs

    ours, theirs = (
        load_translator(TranslatorOptions([str(folder)], compute, decode=decode), lambda words: None)
        for compute in (Compute("torch", device="cpu"), Compute("ctranslate2", precision=precision))
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
