"""`nmt export`: write a model for another program, and compare the translations of both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.commands.console import talker
from nmt.commands.words import one_run
from nmt.config import MISSING, Command, DecodeConfig, TranslateConfig, number, require, require_choice
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.files import ModelDescription
    from nmt.plugins.exchange.certificate import Scores
    from nmt.search import Pair
    from nmt.translation import Translator

DIFFERENT = 0.01
"""vmap=true: the share of lines that may be translated otherwise."""
SAMPLE_LINES = 200
"""Lines of the validation set to compare."""
CHARACTERS_PER_TOKEN, USUAL_TOKENS = 4, 128
"""format=argos: a package splits lines longer than the usual training line, which has this many tokens if unknown."""


@dataclass
class ExportConfig:
    """The tree of `nmt export`."""

    run: str = "runs/latest"
    """A run, or a model directory; a word without = is short for it."""
    format: str = "ctranslate2"
    """ctranslate2 or argos, for Argos Translate and LibreTranslate, or huggingface (pip
    install '.[huggingface]')."""
    precision: str = "float32"
    """ctranslate2, argos: float32 or int8."""
    vmap: float | bool | None = number(None, 0.0, 1.0)
    """ctranslate2: write a vocabulary map (a shortlist), for a smaller softmax, that changes this share of the
    validation set's lines at most; true: 0.01."""
    output: str | None = None
    """The folder to write, of argos the file; null: ctranslate2-PRECISION, translate-SOURCE_TARGET-1_0.argosmodel or
    huggingface in the model directory."""
    target: str | None = None
    """argos: the target language of the package, for a model that has a tag for each of several."""
    sample: str | None = None
    """File of lines to translate by both and compare; null: 200 lines of the validation set."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require_choice("format", self.format, ("ctranslate2", "argos", "huggingface"))
        require_choice("precision", self.precision, ("float32", "int8"))
        require(
            self.precision == "float32" or self.format != "huggingface",
            f"precision={self.precision} with format={self.format}: only format=ctranslate2 and format=argos have it",
        )
        require(
            self.target is None or self.format == "argos",
            f"target={self.target} with format={self.format}: only format=argos takes one of a model's languages",
        )
        if isinstance(self.vmap, bool):
            self.vmap = DIFFERENT if self.vmap else None
        if self.vmap is not None:
            require(
                self.format == "ctranslate2", f"vmap={self.vmap} with format={self.format}: CTranslate2 alone has it"
            )
        own = replace(self.decode, batch_tokens=DecodeConfig.batch_tokens) == DecodeConfig()
        require(own or self.format != "argos", "format=argos: Argos Translate has its own search; leave decode out")
        require(not self.decode.do_sample, "decode.do_sample=true: translations by chance cannot be compared")


TRAINED_BY_MARIAN = "as transformers has other sinusoids, another epsilon and another start than this model"


@dataclass
class Exported:
    """A model that was written for another program, and what that program makes of it."""

    path: Path
    """The folder, or the file."""
    translate: Callable[[list[str]], list[str]]
    scores: "Callable[[list[Pair]], Scores]"
    search: DecodeConfig
    """How that program searches, or is made to."""
    note: str = ""
    """Why both differ, if it is known."""
    remark: Callable[[list[str], list[str]], Iterator[str]] = lambda lines, translations: iter(())
    """What else there is to say, given lines and the original's translations."""

    def certify(self, told: list[str]) -> None:
        """Add to its card what was found when it was compared."""
        from nmt.files import certified, write_file
        from nmt.plugins.exchange import to_argos

        if self.path.is_dir():
            card = self.path / "README.md"
            write_file(card, certified(card.read_text(encoding="utf-8"), told))
        else:
            to_argos.certify(self.path, told)


def export(config: ExportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Write the model and compare it with the original; yields lines to print.

    `status` is called with the current step. Raises NMTError if the model cannot be written in that format.
    """
    from nmt.files import expected_search, find_model_directory, is_exported, read_description
    from nmt.translation import load_translator

    folder = find_model_directory(config.run)
    if is_exported(folder):
        raise NMTError(f"run={config.run}: exported already; pass the run or model directory")
    description = read_description(folder)
    lines, origin = sample_lines(config, description)
    if config.vmap is not None:
        from nmt.plugins.exchange.vocabulary_map import corpus_of, write_map

        corpus = corpus_of(folder)  # refused before anything is written
    status("writing")
    if config.format == "argos":
        exported = write_argos(config, folder, description)
    else:
        decode = expected_search(replace(config.decode, n_best=1), description)
        exported = write(config, folder, description, decode)
    precision = f" precision={config.precision}" if config.format != "huggingface" else ""
    yield f"{exported.path}: {folder} with format={config.format}{precision}"
    if config.vmap is not None:
        status("learning which tokens translate which")
        yield write_map(folder, exported.path, corpus, config.vmap, exported.search)
    if not lines:
        yield f"no sample was compared: {origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    settings = TranslateConfig(
        str(folder), engine="torch", device="cpu", target=config.target, decode=exported.search, protect="none"
    )
    translator = load_translator(settings, lambda words: None)
    told = list(compare(translator, exported, lines, origin))
    yield from told
    exported.certify(told)


def compare(translator: "Translator", exported: Exported, lines: list[str], origin: str) -> Iterator[str]:
    """What the exported model makes of lines, beside the original."""
    from nmt.plugins.exchange.certificate import certificate, same_translations
    from nmt.translation import encode_pairs, score_pairs

    by_torch = [translations[0].text for translations in translator.translate(lines)]
    yield from same_translations(lines, {"torch": by_torch, "exported": exported.translate(lines)}, origin)
    pairs = list(zip(lines, by_torch, strict=True))
    ours = [score.token_log_probabilities for score in score_pairs(translator, pairs)]
    yield str(certificate("torch", exported.scores(encode_pairs(translator.tokenizer, pairs)), ours, exported.note))
    yield from exported.remark(lines, by_torch)


def write(config: ExportConfig, folder: Path, description: "ModelDescription", decode: DecodeConfig) -> Exported:
    """Write the model."""
    if config.format == "huggingface":
        from nmt.files import read_tokenizer
        from nmt.plugins.exchange import huggingface

        output = Path(config.output or folder / "huggingface")
        huggingface.check(description)
        huggingface.write(folder, output)
        return Exported(
            output,
            lambda lines: huggingface.translate(*huggingface.load(output), lines, decode),
            lambda pairs: huggingface.scores(huggingface.load(output)[0], read_tokenizer(folder), pairs),
            decode,
            TRAINED_BY_MARIAN if description.model.get("positions") == "tensor2tensor" else "",
        )
    from nmt.plugins.exchange.ctranslate2_load import require_ctranslate2
    from nmt.translation import load_translator

    require_ctranslate2("format")
    from nmt.plugins.exchange import ctranslate2
    from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine

    output = Path(config.output or folder / f"ctranslate2-{config.precision}")
    ctranslate2.check(description)
    ctranslate2.write(folder, output, config.precision)
    settings = TranslateConfig(str(output), engine="ctranslate2", decode=decode, protect="none")

    def translate(lines: list[str]) -> list[str]:
        return [found[0].text for found in load_translator(settings, lambda words: None).translate(lines)]

    return Exported(output, translate, lambda pairs: CTranslate2Engine(output, decode).forced_decoding(pairs), decode)


def write_argos(config: ExportConfig, folder: Path, description: "ModelDescription") -> Exported:
    """Write the model as a package of Argos Translate."""
    from nmt.files import read_tokenizer
    from nmt.plugins.exchange.ctranslate2_load import require_ctranslate2
    from nmt.translation import language_of, language_tag, numbers

    require_ctranslate2("format", config.format)
    from nmt.plugins.exchange import ctranslate2, to_argos

    ctranslate2.check(description)
    tokenizer = read_tokenizer(folder)
    one_of = ", ".join(map(language_of, tokenizer.tags))
    require(
        bool(config.target or not one_of), f"format=argos: a package has one target language; pass target=, of {one_of}"
    )
    tag = language_tag(config.target, tokenizer).strip()
    description = replace(description, target=language_of(tag) if tag else description.target)
    output = Path(config.output or folder / f"{to_argos.name_of(description)}{to_argos.SUFFIX}")
    whole = CHARACTERS_PER_TOKEN * max(numbers([description], "lengths", "source", "p99"), default=USUAL_TOKENS)
    package = to_argos.ArgosPackage(output, whole)
    to_argos.write(package, folder, description, tag, config.precision)
    return Exported(
        output,
        package.translate,
        lambda pairs: package.scores(tokenizer, pairs),
        replace(to_argos.SEARCH, batch_tokens=config.decode.batch_tokens),
        remark=lambda lines, translations: package.by_itself(lines, translations),
    )


def sample_lines(config: ExportConfig, description: "ModelDescription") -> tuple[list[str], str]:
    """The lines to compare and where they come from, or no lines and the reason."""
    from nmt.files import within

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
