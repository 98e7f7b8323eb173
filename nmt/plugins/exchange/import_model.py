"""`nmt import`: make a model of another program one of ours, and compare both."""

import importlib.util
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt.commands.console import talker
from nmt.config import MISSING, Command, DecodeConfig, choice, require

if TYPE_CHECKING:
    from nmt.model import Transformer
    from nmt.plugins.exchange.foreign import Foreign, Sample
    from nmt.text import Tokenizer

SAMPLE_LINES, SAMPLE_TOKENS = 50, (3, 15)
"""The lines of a sample that is drawn, and the fewest and most entries of the vocabulary in one."""


@dataclass
class ImportConfig:
    """The tree of `nmt import`."""

    path: str = MISSING
    """A MarianMT folder as on the Hugging Face hub, an .npz of Marian, or a folder with one and its decoder.yml, or a
    folder of CTranslate2."""
    output: str = MISSING
    """The model directory to write."""
    trained_by: str | None = choice(None, "marian", "transformers")
    """marian or transformers, whose sinusoids, epsilon and start differ; null: by the row of <pad>, which is zero if
    Marian trained the model."""
    sentencepiece: str | None = None
    """The sentencepiece model for a folder of CTranslate2; null: sentencepiece.model there, or source.spm and
    target.spm."""
    source: str | None = None
    """The source language, such as en; null: as the folder has it."""
    target: str | None = None
    """The target language."""
    sample: str | None = None
    """File of source lines to compare both programs on; null: lines of random words."""
    reference: str | None = None
    """File of the translations to score; null: the imported model's own."""
    scores: str | None = None
    """What `marian score --word-scores` printed for sample and reference, to compare with in place of the program."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require(not self.decode.do_sample, "decode.do_sample=true: translations by chance cannot be compared")
        for key, needed in (("reference", "sample"), ("scores", "reference")):
            given = getattr(self, key) is None or getattr(self, needed) is not None
            require(given, f"{key}={getattr(self, key)}: it is for the lines of a file; pass {needed}=FILE, too")


def import_model(config: ImportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Write the model directory; yields lines to print. `status` is called with the current step."""
    from nmt.files import ModelDescription, certified, imported_card, sha256
    from nmt.model import check_ours, write_model_directory

    output = Path(config.output)
    check_ours(output)
    status("reading")
    foreign = read(config)
    status("comparing")
    model, tokenizer, kind = foreign.model(), foreign.tokenizer, foreign.length_penalty_kind
    penalty: dict[str, Any] = {"length_penalty": foreign.length_penalty, "length_penalty_kind": kind}
    lines = list(compare(config, foreign, model, replace(config.decode, n_best=1, **penalty)))
    languages = config.source or foreign.languages[0], config.target or foreign.languages[1]
    training = {**foreign.training, "imported": foreign.origin, **penalty}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer.model"
        tokenizer.save(file)
        size = tokenizer.vocabulary_size
        description = ModelDescription(asdict(model.config), size, *languages, sha256(file), training)
        card = imported_card(description, sum(parameter.numel() for parameter in model.parameters()))
        write_model_directory(output, model, file, description, certified(card, lines))
    yield f"{output}: {config.path}, {foreign.origin}"
    yield from lines


def read(config: ImportConfig) -> "Foreign":
    """The model to import; NMTError for keys of another kind of model."""
    path = Path(config.path)
    by_ctranslate2 = (path / "model.bin").is_file()
    for key in ("trained_by", "scores") if by_ctranslate2 else ("sentencepiece",):
        value = getattr(config, key)
        require(value is None, f"{key}={value}: not for {path}; leave it out")
    if by_ctranslate2:
        from nmt.plugins.exchange.from_ctranslate2 import read_ctranslate2

        return read_ctranslate2(path, config.sentencepiece)
    from nmt.plugins.exchange.marian import read_hub, read_marian

    if path.suffix == ".npz" or any(path.glob("*decoder.yml")):
        require(config.trained_by != "transformers", f"trained_by=transformers: {path} is a model of Marian itself")
        return read_marian(path)
    require(path.is_dir(), f"{path}: no such folder, and no .npz of Marian")
    names = "neither config.json of MarianMT there, nor decoder.yml of Marian, nor model.bin of CTranslate2"
    require((path / "config.json").is_file(), f"{path}: {names}")
    return read_hub(path, config.trained_by)


def compare(config: ImportConfig, foreign: "Foreign", model: "Transformer", decode: DecodeConfig) -> Iterator[str]:
    """What the original program makes of a sample, beside what the imported model does."""
    from nmt.plugins.exchange.foreign import PrintedScores, Program, agreement
    from nmt.search import TorchEngine
    from nmt.translation import Translator

    if config.scores:
        program: Program = PrintedScores(config.scores)
    elif foreign.program is None:
        yield "not compared with Marian: scores=FILE takes what its scorer printed"
        return
    elif importlib.util.find_spec(foreign.package or "") is None:
        yield f"not compared: {foreign.package} is not installed"
        return
    else:
        program = foreign.program(decode)
    translator = Translator(TorchEngine([model], decode), foreign.tokenizer)
    yield from agreement(translator, program, sample_of(config, foreign.tokenizer))


def sample_of(config: ImportConfig, tokenizer: "Tokenizer") -> "Sample":
    """The clean lines to compare on; NMTError where their files cannot be read, or are not parallel."""
    from nmt.plugins.exchange.foreign import Sample
    from nmt.text import read_texts

    if config.sample is None:
        draw, ids = random.Random(1), range(4, tokenizer.source_vocabulary_size or tokenizer.vocabulary_size)
        drawn = [draw.choices(ids, k=draw.randint(*SAMPLE_TOKENS)) for _ in range(SAMPLE_LINES)]
        texts = (tokenizer.clean(tokenizer.decode(row, side=0)) for row in drawn)
        return Sample([text for text in texts if text], f"{SAMPLE_LINES} lines of random words of its vocabulary")
    files = [config.sample, *([config.reference] if config.reference is not None else [])]
    lines, *references = ([tokenizer.clean(line) for line in read_texts(name)] for name in files)
    require(bool(lines), f"sample={config.sample}: empty")
    same = all(len(side) == len(lines) for side in references)
    require(same, f"reference={config.reference}: not as many lines as in sample, {len(lines):,}")
    return Sample(lines, config.sample, *references)


def run(config: ImportConfig) -> None:
    """Import, and print how far both programs agree."""
    with talker().status("loading") as status:
        for line in import_model(config, status.update):
            print(line)


def one_path(words: list[str]) -> dict[str, Any]:
    """The model to import; NMTError for more than one word."""
    require(len(words) == 1, f"{words[-1]}: this command takes one folder or file; {words[0]} is given too")
    return {"path": words[0]}


COMMAND = Command(
    "import",
    ImportConfig,
    run,
    one_path,
    usage="PATH",
    example="opus-mt-en-de output=runs/opus",
    groups={"decode": "paper"},
)
