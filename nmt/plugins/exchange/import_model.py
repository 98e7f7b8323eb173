"""`nmt import`: make a model of Marian one of ours, and compare log P of its tokens with what Marian printed."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt.commands.console import talker
from nmt.config import MISSING, Command, DecodeConfig, require
from nmt.errors import NMTError, one_line

if TYPE_CHECKING:
    from nmt.model import Transformer
    from nmt.text import Tokenizer


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
    sample: str | None = None
    """File of source lines to compare both programs on."""
    reference: str | None = None
    """File of their translations."""
    scores: str | None = None
    """What `marian score --word-scores` printed for sample and reference, to compare with."""

    def __post_init__(self) -> None:
        files = self.sample, self.reference, self.scores
        require(files.count(None) in (0, 3), "sample=FILE, reference=FILE and scores=FILE go together: pass all three")


def import_model(config: ImportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Write the model directory; yields lines to print. `status` is called with the current step."""
    from nmt.files import ModelDescription, certified, model_card, sha256
    from nmt.model import check_ours, write_model_directory
    from nmt.plugins.exchange.marian import read_model

    output = Path(config.output)
    check_ours(output)
    status("reading")
    model, tokenizer, trained_by, alpha, languages = read_model(Path(config.path))
    status("comparing")
    origin = f"trained by {trained_by}"
    line = compare(config, model, tokenizer)
    languages = config.source or languages[0], config.target or languages[1]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer.model"
        tokenizer.save(file)
        training = {"imported": origin, "length_penalty": alpha, "length_penalty_kind": "marian"}
        size, fingerprint = tokenizer.vocabulary_size, sha256(file)
        description = ModelDescription(asdict(model.config), size, *languages, fingerprint, training)
        card = model_card(description, sum(parameter.numel() for parameter in model.parameters()))
        write_model_directory(output, model, file, description, certified(card, [line]))
    yield f"{output}: {config.path}, {origin}"
    yield line


def compare(config: ImportConfig, model: "Transformer", tokenizer: "Tokenizer") -> str:
    """How far log P of the reference's tokens is what Marian printed; NMTError where the files are not parallel."""
    from nmt.files import read_text
    from nmt.plugins.exchange.export import certificate
    from nmt.search import TorchEngine
    from nmt.text import read_texts
    from nmt.translation import Translator, score_pairs

    if config.sample is None or config.reference is None or config.scores is None:
        return "not compared with Marian: scores=FILE takes what its scorer printed"
    files = config.sample, config.reference
    lines, references = ([tokenizer.clean(line) for line in read_texts(name)] for name in files)
    require(bool(lines), f"sample={config.sample}: empty")
    problem = f"reference={config.reference}: not as many lines as in sample, {len(lines):,}"
    require(len(references) == len(lines), problem)
    translator = Translator(TorchEngine([model], DecodeConfig()), tokenizer)
    scores = score_pairs(translator, list(zip(lines, references, strict=True)))
    theirs = word_scores(read_text(Path(config.scores)), config.scores)
    return certificate([score.token_log_probabilities for score in scores], theirs, "Marian")


def word_scores(text: str, where: str) -> list[list[float]]:
    try:
        return [[float(word) for word in line.split(" ||| WordScores= ")[1].split()] for line in text.splitlines()]
    except (IndexError, ValueError) as error:
        raise NMTError(f"{where}: not what `marian score --word-scores` prints ({one_line(error)})") from error


def run(config: ImportConfig) -> None:
    with talker().status("loading") as status:
        for line in import_model(config, status.update):
            print(line)


def one_path(words: list[str]) -> dict[str, Any]:
    require(len(words) == 1, f"{words[-1]}: this command takes one folder or file; {words[0]} is given too")
    return {"path": words[0]}


COMMAND = Command("import", ImportConfig, run, one_path, usage="PATH", example="opus-mt-en-de output=runs/opus")
