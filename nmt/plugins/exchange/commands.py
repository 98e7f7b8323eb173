"""`nmt export` and `nmt import`: models for and from other programs."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt.commands import one_run, talker
from nmt.config import MISSING, Command, Compute, DecodeConfig, TranslatorOptions, choice, require
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.files import ModelDescription

SAMPLE_LINES = 200
"""Lines of the validation set to compare."""
SHOWN_LINES = 2
"""Lines with different translations to print."""


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
    from nmt.files import block, expected_search, find_model_directory, read_description, write_file

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
    text = f"{card.read_text(encoding='utf-8')}\nCompared with the original:\n\n{block(chr(10).join(certificate))}\n"
    write_file(card, text)


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
    from nmt.plugins.exchange.marian_tokenizer import MarianTokenizer
    from nmt.text import SentencePieceTokenizer, read_tokenizer

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
    """Lines that compare CTranslate2 with torch, by log P of tokens and by translations."""
    import numpy as np

    from nmt.text import SOURCE
    from nmt.translation import encode_pairs, load_translator, score_pairs

    ours, theirs = (
        load_translator(TranslatorOptions([str(folder)], compute, decode=decode), lambda words: None)
        for compute in (Compute("torch", device="cpu"), Compute("ctranslate2", precision=precision))
    )
    texts, others = ([row[0].text for row in program.translate(lines)] for program in (ours, theirs))
    pairs = list(zip(lines, texts, strict=True))
    encoded = zip(encode_pairs(theirs.tokenizer, pairs), score_pairs(ours, pairs), strict=True)
    scored = [(pair, score) for pair, score in encoded if pair[SOURCE]]  # CTranslate2 cannot score an empty source
    engine: Any = theirs.engine
    rows = zip(scored, engine.forced_decoding([pair for pair, _ in scored]), strict=True)
    differences = [abs(np.subtract(score.token_log_probabilities, other)) for (_, score), other in rows]
    tokens, largest = sum(map(len, differences)), max((row.max() for row in differences), default=0.0)
    yield f"log P of {tokens:,} tokens equals that of CTranslate2 within {largest:.1e} per token"
    different = [row for row in enumerate(zip(lines, others, texts, strict=True), 1) if row[1][1] != row[1][2]]
    same, count = len(lines) - len(different), len(lines)
    yield f"CTranslate2 translates {same:,} of {count:,} lines ({same / count:.1%}) alike: {origin}"
    for number, (line, their, our) in different[:SHOWN_LINES]:
        yield from (f"line {number}: {line}", f"  CTranslate2: {their}", f"  nmt:         {our}")


def run_export(config: ExportConfig) -> None:
    with talker().status("loading") as status:
        for line in export(config, status.update):
            print(line)


EXPORT = Command(
    "export",
    ExportConfig,
    run_export,
    one_run,
    usage="[RUN]",
    example="runs/mine precision=int8",
    groups={"decode": "paper"},
)


@dataclass
class ImportConfig:
    """The tree of `nmt import`."""

    path: str = MISSING
    """A MarianMT folder as on the Hugging Face hub, an .npz of Marian, or a folder with one and its decoder.yml."""
    output: str = MISSING
    """The model directory to write."""
    source: str | None = None
    """The source language, such as en; null: as the folder has it."""
    target: str | None = None
    """The target language."""


def run_import(config: ImportConfig) -> None:
    from nmt.files import ModelDescription, model_card, sha256
    from nmt.model import check_ours, write_model_directory
    from nmt.plugins.exchange.marian import read_model

    output = Path(config.output)
    check_ours(output)
    with talker().status("reading"), TemporaryDirectory() as folder:
        model, tokenizer, trained_by, alpha, (source, target) = read_model(Path(config.path))
        file, origin = Path(folder) / "tokenizer.model", f"trained by {trained_by}"
        tokenizer.save(file)
        training = {"imported": origin, "length_penalty": alpha, "length_penalty_kind": "marian"}
        languages, size = (config.source or source, config.target or target), tokenizer.vocabulary_size
        description = ModelDescription(asdict(model.config), size, *languages, sha256(file), training)
        card = model_card(description, sum(parameter.numel() for parameter in model.parameters()))
        write_model_directory(output, model, file, description, card)
    print(f"{output}: {config.path}, {origin}")


def one_path(words: list[str]) -> dict[str, Any]:
    require(len(words) == 1, f"{words[-1]}: this command takes one folder or file; {words[0]} is given too")
    return {"path": words[0]}


IMPORT = Command("import", ImportConfig, run_import, one_path, usage="PATH", example="opus-mt-en-de output=runs/opus")
