"""`nmt extend`: add languages and subwords to the vocabulary of a trained model."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nmt import commands, files
from nmt.config import MISSING, Command, ModelConfig, NMTError, choice, number, require

if TYPE_CHECKING:
    from nmt.plugins.extend.vocabulary import Extension
    from nmt.text import Tokenizer


NEW_CODE = re.compile(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*")
"""A language code: letters, then perhaps parts after hyphens or underscores."""
CODE_WITH_SCRIPT = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
"""A code as in NLLB, such as tyv_Cyrl."""
LETTERS_OF_ISO = 3
"""The letters of the codes of ISO 639-3."""


@dataclass
class ExtendConfig:
    """Options of `nmt extend`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    output: str = MISSING
    """Model directory to write."""
    languages: list[str] = choice([])
    """Codes of the languages to add, such as tyv_Cyrl, or [tyv_Cyrl,dag_Latn]."""
    like: list[str] = choice([])
    """For each new language, a language of the model whose tag the new one starts from."""
    text: list[str] = choice([])
    """Text in the new languages, from which to learn subwords; if empty, none are added."""
    subwords: int = number(1000, 0, 100_000)
    """Maximum number of subwords to add, besides characters that the vocabulary lacks."""
    min_count: int = number(10, 1, 10**9)
    """Number of times that an added character or subword must occur in the text."""
    overwrite: bool = False
    """Replace a model directory in `output`."""

    def __post_init__(self) -> None:
        require(bool(self.languages), "languages: name the languages to add, such as [tyv_Cyrl]")
        for code in self.languages:
            if not NEW_CODE.fullmatch(code):
                raise NMTError(f"languages={code:.40}: must be a language code, such as tyv_Cyrl")
            if self.languages.count(code) > 1:
                raise NMTError(f"languages: {code} is given twice; omit one")
        if len(self.like) != len(self.languages):
            raise NMTError(
                f"like: name one language of the model for each of the {len(self.languages)} new "
                f"ones, not {len(self.like)}"
            )


def run_extend(config: ExtendConfig) -> None:
    from nmt.model import check_new, load_model, write_model_directory
    from nmt.plugins.extend.rows import with_rows
    from nmt.plugins.extend.vocabulary import extend
    from nmt.text import read_texts, read_tokenizer

    output = Path(config.output)
    check_new(output, config.overwrite)
    folder = files.find_model_directory(config.run)
    description = files.read_description(folder)
    if ModelConfig(**description.model).source_vocabulary_size is not None:
        raise NMTError(f"{folder}: has a vocabulary for each language, which cannot be extended")
    tokenizer = read_tokenizer(folder)
    for code in config.languages:
        check_code(code, tokenizer)
    like = [language_id(code, tokenizer) for code in config.like]
    texts = list[str]()
    for name in config.text:
        texts += read_texts(name)
    with commands.talker().status("learning subwords"), TemporaryDirectory() as temporary:
        extension = extend(tokenizer, config.languages, texts, config.subwords, config.min_count)
        model = with_rows(load_model(folder), sources_of(extension, tokenizer, like))
        vocabulary = Path(temporary) / "tokenizer.model"
        extension.tokenizer.save(vocabulary)
        extended = replace(
            description,
            model=asdict(model.config),
            vocabulary_size=model.vocabulary_size,
            tokenizer=files.sha256(vocabulary),
            training=training_record(description, config),
        )
        parameters = sum(parameter.numel() for parameter in model.parameters())
        card = files.model_card(extended, parameters)
        write_model_directory(output, model, vocabulary, extended, card)
    for line in report(extension, tokenizer, texts, config.languages):
        print(line)
    added = len(extension.tags) + len(extension.pieces)
    print(f"{output}: {folder} with {added:,} more entries")
    print(f"next, train it: nmt preprocess init={output} ..., then nmt train ... init={output}")


def check_code(code: str, tokenizer: "Tokenizer") -> None:
    """Raise NMTError unless a code names a new language in the form of the model's codes."""
    from nmt.text import match_language, subtags

    codes = [*tokenizer.languages]
    parts = subtags(code)
    known = match_language(code, codes)
    # A model may have a language once more for another region.
    if known is not None and parts.region == subtags(known).region:
        raise NMTError(f"languages={code}: is in the vocabulary already, as {known}")
    have_scripts = all(CODE_WITH_SCRIPT.fullmatch(other) for other in codes)
    if not codes or not have_scripts or CODE_WITH_SCRIPT.fullmatch(code):
        return
    example = "tyv_Cyrl"
    if len(parts.language) == LETTERS_OF_ISO and parts.script:
        example = f"{parts.language}_{parts.script}"
    raise NMTError(
        f"languages={code}: the model's codes are three letters and a script; pass {example}"
    )


def language_id(code: str, tokenizer: "Tokenizer") -> int:
    """The id of a language's tag; NMTError if the model has none."""
    from nmt.translation import language_tag, supported_code

    if tokenizer.has_target_tags:
        return tokenizer.languages[supported_code("like", code, tokenizer)]
    if not tokenizer.tags:
        raise NMTError(f"like={code}: the model has no tags for languages, so none can be added")
    return tokenizer.tag_id(language_tag(code, tokenizer).strip())


def sources_of(extension: "Extension", tokenizer: "Tokenizer", like: list[int]) -> list[list[int]]:
    """For each new entry, the old entries that it starts from."""
    from nmt.plugins.extend.rows import sources_of_pieces

    ids = {entry: id for id, entry in enumerate(tokenizer.vocabulary())}
    return [[id] for id in like] + sources_of_pieces(extension.pieces, ids)


def training_record(description: files.ModelDescription, config: ExtendConfig) -> dict[str, Any]:
    """The training record of the extended model."""
    record = dict(description.training)
    settings = files.within(record, "config", "tokenizer")
    if isinstance(settings, dict):
        tokenizer = {**settings, "kind": "extended"}
        record["config"] = {**record["config"], "tokenizer": tokenizer}
    else:
        record["vocabulary"] = "extended"
    record["extended"] = ", ".join(config.languages)
    return record


def report(
    extension: "Extension", tokenizer: "Tokenizer", texts: list[str], languages: list[str]
) -> Iterator[str]:
    """The lines that compare the vocabulary before and after."""
    characters = [piece.text for piece in extension.pieces if not piece.parts]
    subwords = len(extension.pieces) - len(characters)
    yield f"{len(extension.tags)} tags ({', '.join(extension.tags)}), {len(characters)} characters"
    if characters:
        yield f"characters: {' '.join(characters)}"
    yield f"{subwords:,} subwords"
    if not texts:
        return
    words = sum(len(text.split()) for text in texts)
    before = counted(tokenizer, texts, "")
    after = counted(extension.tokenizer, texts, tag_for_targets(extension.tokenizer, languages[0]))
    yield f"subwords per word: {before / max(words, 1):.2f} before, {after / max(words, 1):.2f} now"


def tag_for_targets(tokenizer: "Tokenizer", language: str) -> str:
    """The tag of a line that is translated into a language."""
    from nmt.text import direction_tag

    if tokenizer.has_target_tags:
        return direction_tag(next(iter(tokenizer.languages)), language)
    return f"<2{language}>"


def counted(tokenizer: "Tokenizer", texts: list[str], tag: str) -> int:
    """The number of subwords of texts as targets of lines with a tag."""
    from nmt.text import TARGET

    cleaned = [tokenizer.clean(text, TARGET) for text in texts]
    return sum(map(len, tokenizer.encode(cleaned, TARGET, tag)))


COMMAND = Command(
    "extend",
    ExtendConfig,
    run_extend,
    commands.one_run,
    usage="[RUN]",
    examples=(
        "runs/nllb output=runs/nllb-tyv languages=[tyv_Cyrl] like=[kaz_Cyrl] text=[corpus.tyv]",
        "runs/many-tiny output=runs/more languages=[it] like=[fr] text=[corpus.it] subwords=500",
    ),
)
