"""`nmt import`: make a model of another program one of ours, and compare both."""

import importlib.util
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt.commands.console import talker
from nmt.config import MISSING, Command, DecodeConfig, require, require_choice
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.plugins.exchange.foreign_ctranslate2 import ForeignCTranslate2
    from nmt.plugins.exchange.foreign_model import Foreign
    from nmt.text import Tokenizer
    from nmt.translation import Translator

SAMPLE_LINES, SAMPLE_TOKENS = 50, (3, 15)
"""The lines of a sample that is drawn, and the fewest and most entries of the vocabulary in one."""


@dataclass
class ImportConfig:
    """The tree of `nmt import`."""

    path: str = MISSING
    """A MarianMT folder as on the Hugging Face hub, an .npz of Marian, or a folder with one and its decoder.yml; a
    folder of CTranslate2; an .argosmodel of Argos Translate, packed or unpacked."""
    output: str = MISSING
    """The model directory to write."""
    trained_by: str | None = None
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
        if self.trained_by is not None:
            require_choice("trained_by", self.trained_by, ("marian", "transformers"))
        require(not self.decode.do_sample, "decode.do_sample=true: translations by chance cannot be compared")
        for key, needed in (("reference", "sample"), ("scores", "reference")):
            given = getattr(self, key) is None or getattr(self, needed) is not None
            require(given, f"{key}={getattr(self, key)}: it is for the lines of a file; pass {needed}=FILE, too")


def import_model(config: ImportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Write the model directory; yields lines to print. `status` is called with the current step."""
    from nmt.files import check_ours
    from nmt.search import TorchEngine
    from nmt.translation import Translator

    output = Path(config.output)
    check_ours(output)
    status("reading")
    with opened(config) as found:
        alpha, kind = found.length_penalty, found.length_penalty_kind
        decode = replace(config.decode, n_best=1, length_penalty=alpha, length_penalty_kind=kind)
        translator = Translator(TorchEngine([found.model()], decode), found.tokenizer)
        status("comparing")
        told = list(compare(config, found, translator))
        write(config, found, translator, told)
    yield f"{output}: {config.path}, {found.origin}"
    yield from told


@contextmanager
def opened(config: ImportConfig) -> "Iterator[Foreign | ForeignCTranslate2]":
    """The model to import; NMTError for keys that are for others."""
    from nmt.plugins.exchange.foreign_ctranslate2 import is_ctranslate2, open_ctranslate2
    from nmt.plugins.exchange.marian import read

    path, by_ctranslate2 = Path(config.path), is_ctranslate2(Path(config.path))
    for key in ("trained_by", "scores") if by_ctranslate2 else ("sentencepiece",):
        value = getattr(config, key)
        require(value is None, f"{key}={value}: not for {path}; leave it out")
    if by_ctranslate2:
        with open_ctranslate2(path, config.sentencepiece) as found:
            yield found
    else:
        yield read(path, config.trained_by)


def compare(config: ImportConfig, found: "Foreign | ForeignCTranslate2", translator: "Translator") -> Iterator[str]:
    """What the original program makes of a sample, beside what the imported model does."""
    from nmt.files import read_text
    from nmt.plugins.exchange.certificate import certificate, word_scores
    from nmt.plugins.exchange.foreign_model import Foreign

    sample = sample_of(config, translator)
    if not isinstance(found, Foreign):
        yield from beside_ctranslate2(found, sample, translator.engine.config)
    elif config.scores:
        theirs = word_scores(read_text(Path(config.scores)), config.scores)
        yield f"{certificate('Marian', sample.scores, theirs)}: {sample.origin}"
    elif found.arrays is None:
        yield from beside_transformers(found, sample, translator.engine.config)
    else:
        yield from beside_marian(found, sample, translator)


@dataclass
class Sample:
    """Clean lines, and what our program makes of them."""

    lines: list[str]
    origin: str
    translations: list[str]
    pairs: list[tuple[str, str]]
    """The lines and their references, or their translations."""
    scores: list[list[float]]
    """Log probabilities of the tokens of these."""


def sample_of(config: ImportConfig, translator: "Translator") -> Sample:
    """The sample to compare on; NMTError where its files cannot be read, or are not parallel."""
    from nmt.translation import score_pairs

    clean = translator.tokenizer.clean
    lines, origin = sample_lines(config, translator.tokenizer)
    translations = [row[0].text for row in translator.translate(lines)]
    texts = read_lines("reference", config.reference) if config.reference else translations
    require(len(texts) == len(lines), f"reference={config.reference}: {len(texts)} lines, but sample has {len(lines)}")
    pairs = [(clean(line), clean(text)) for line, text in zip(lines, texts, strict=True)]
    scores = [each.token_log_probabilities for each in score_pairs(translator, pairs)]
    return Sample([line for line, _ in pairs], origin, translations, pairs, scores)


def sample_lines(config: ImportConfig, tokenizer: "Tokenizer") -> tuple[list[str], str]:
    """The lines to compare on, and where they come from."""
    if config.sample is not None:
        return read_lines("sample", config.sample), config.sample
    draw, ids = random.Random(1), range(4, tokenizer.source_vocabulary_size or tokenizer.vocabulary_size)
    drawn = [draw.choices(ids, k=draw.randint(*SAMPLE_TOKENS)) for _ in range(SAMPLE_LINES)]
    lines = (tokenizer.clean(tokenizer.decode(row, side=0)) for row in drawn)
    return [line for line in lines if line], f"{SAMPLE_LINES} lines of random words of its vocabulary"


def read_lines(key: str, name: str) -> list[str]:
    """The lines of a file of the user's; NMTError where there are none."""
    from nmt.text import read_texts

    lines = list(read_texts(name))
    require(bool(lines), f"{key}={name}: empty")
    return lines


def beside_transformers(found: "Foreign", sample: Sample, decode: DecodeConfig) -> Iterator[str]:
    """The certificate for a MarianMT folder."""
    if importlib.util.find_spec("transformers") is None or not found.has_padding:
        yield "not compared with transformers, which is not installed, or lacks a <pad> to start from"
        return
    from nmt.plugins.exchange import huggingface
    from nmt.plugins.exchange.certificate import certificate, same_translations
    from nmt.translation import encode_pairs

    model, tokenizer = huggingface.original(found)
    by_marian = found.trained_by == "marian"
    note = "as its sinusoids, its epsilon and its <pad> are not those of the training" if by_marian else ""
    pairs = encode_pairs(found.tokenizer, sample.pairs)
    theirs = huggingface.scores(model, found.tokenizer, pairs)
    yield str(certificate("transformers", sample.scores, theirs, note))
    translations = huggingface.translate(model, tokenizer, sample.lines, decode)
    if by_marian:
        exact = huggingface.scores(huggingface.computing_as_marian(model), found.tokenizer, pairs)
        yield str(certificate("transformers, given those of Marian,", sample.scores, exact))
    both = {"transformers": translations, "nmt": sample.translations}
    yield from same_translations(sample.lines, both, sample.origin)


def beside_marian(found: "Foreign", sample: Sample, translator: "Translator") -> Iterator[str]:
    """The certificate for Marian's own files."""
    if importlib.util.find_spec("_pymarian") is None:
        yield "not compared with Marian: pymarian is not installed; scores=FILE takes what it printed elsewhere"
        return
    from nmt.plugins.exchange.certificate import certificate, same_translations
    from nmt.plugins.exchange.marian_program import Marian, judge
    from nmt.translation import encode_pairs

    with TemporaryDirectory() as folder:
        marian, pairs = Marian(found, Path(folder)), encode_pairs(found.tokenizer, sample.pairs)
        yield str(certificate("Marian", sample.scores, marian.scores(pairs)))
        sentences = [source for source, _ in pairs]
        best = marian.search(sentences, translator.engine.config)
        texts = [" ".join(found.tokenizer.decode(each.tokens).split()) for each in best]
        ended = [index for index, each in enumerate(best) if not each.cut]
        lines, theirs, ours = ([rows[at] for at in ended] for rows in (sample.lines, texts, sample.translations))
        cut = len(best) - len(ended)
        rest = f", without {cut:,} that Marian does not end within the limit of length" if cut else ""
        yield from same_translations(lines, {"Marian": theirs, "nmt": ours}, sample.origin + rest)
        same = {at for at, one, other in zip(ended, theirs, ours, strict=True) if one == other}
        yield from judge(marian, translator.engine, sentences, best, same)


def beside_ctranslate2(found: "ForeignCTranslate2", sample: Sample, decode: DecodeConfig) -> Iterator[str]:
    """The certificate for a model of CTranslate2."""
    if importlib.util.find_spec("ctranslate2") is None:
        yield "not compared with CTranslate2, which is not installed"
        return
    from nmt.plugins.exchange.certificate import certificate, same_translations
    from nmt.translation import encode_pairs

    pairs = encode_pairs(found.tokenizer, sample.pairs)
    # CTranslate2 scores nothing without a source.
    scored = [index for index, (source, _) in enumerate(pairs) if source]
    theirs = found.scores([pairs[index] for index in scored])
    yield str(certificate("CTranslate2", [sample.scores[index] for index in scored], theirs))
    if decode.length_penalty_kind == "marian":  # CTranslate2 has no other
        both = {"CTranslate2": found.translations(sample.lines, decode), "nmt": sample.translations}
        yield from same_translations(sample.lines, both, sample.origin)


def write(
    config: ImportConfig, found: "Foreign | ForeignCTranslate2", translator: "Translator", told: list[str]
) -> None:
    """Write the model directory."""
    from nmt.files import ModelDescription, certified, imported_card, sha256, write_model_directory
    from nmt.search import TorchEngine

    assert isinstance(translator.engine, TorchEngine)
    [model] = translator.engine.models
    source, target = config.source or found.languages[0], config.target or found.languages[1]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tokenizer.model"
        found.tokenizer.save(file)
        size = found.tokenizer.vocabulary_size
        description = ModelDescription(asdict(model.config), size, source, target, sha256(file), found.training)
        card = imported_card(description, sum(parameter.numel() for parameter in model.parameters()))
        write_model_directory(Path(config.output), model, file, description, certified(card, told))


def run(config: ImportConfig) -> None:
    """Import, and print how far both programs agree."""
    with talker().status("loading") as status:
        for line in import_model(config, status.update):
            print(line)


def one_path(words: list[str]) -> dict[str, Any]:
    """The model to import; NMTError for more than one word."""
    if len(words) > 1:
        raise NMTError(f"{words[-1]}: this command takes one folder or file; {words[0]} is given too")
    return {"path": words[0]}


COMMAND = Command(
    "import",
    ImportConfig,
    run,
    one_path,
    usage="PATH",
    example="opus-mt-en-de output=runs/opus",
    texts=("path", "output"),
    groups={"decode": "paper"},
)
