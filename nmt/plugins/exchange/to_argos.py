"""Model directories as packages of Argos Translate (https://www.argosopentech.com), and what it makes of them. No
torch.

translate-en_de-1_0.argosmodel is a zip archive of a folder of that name:

metadata.json        languages
sentencepiece.model  splits text, after normalising it as the model directory's tokenizer does
model/               of CTranslate2
minisbd/             finds sentences
README.md            how to use it, and how far its results are those of the original

The same model gives the same bytes.
"""

import json
import shutil
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nmt import __version__
from nmt.config import LANGUAGE, DecodeConfig, require
from nmt.files import ModelDescription, cannot_write, certified, plain, read_tokenizer, whole_file
from nmt.plugins.exchange import ctranslate2
from nmt.plugins.exchange.argos import open_package
from nmt.plugins.exchange.argos_sentences import sentence_model, sentences
from nmt.plugins.exchange.certificate import Scores, same_translations
from nmt.plugins.exchange.ctranslate2_engine import vocabulary_files
from nmt.plugins.exchange.protobuf import message
from nmt.search import Pair
from nmt.text import (
    ESCAPE,
    META,
    SOURCE,
    TARGET,
    MarianTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    language_name,
    nfkc,
)

VERSION = "1.0"
SUFFIX = ".argosmodel"
TESTED = "1.11.0"
"""The version of Argos Translate that ran what we write."""
SEARCH = DecodeConfig(
    beam_size=4, length_penalty=0.2, length_penalty_kind="marian", max_length=256, max_extra_length=256
)
"""The search of Argos Translate, which no package changes."""
COMMENT = b"nmt export"
"""The comment of an archive of ours, which a new one may replace."""
CARD = "README.md"


def name_of(description: ModelDescription) -> str:
    """The name of the package, as Argos Translate names its own."""
    return f"translate-{description.source}_{description.target}-{VERSION.replace('.', '_')}"


def check(description: ModelDescription, tokenizer: Tokenizer, output: Path) -> None:
    """Raise NMTError if Argos Translate cannot run such a model, or something else is in the way."""
    kinds, known = (SentencePieceTokenizer, MarianTokenizer), [description.source, description.target]
    for fits, problem in (
        (isinstance(tokenizer, kinds), "Argos Translate has no word-pieces; use tokenizer.kind=bpe, or unigram"),
        (all(LANGUAGE.fullmatch(code) and code != "und" for code in known),
         f"it needs codes of languages, not {' and '.join(map(repr, known))}; import the model with source=, target="),
        (output.suffix == SUFFIX, f"output={output}: it is a file, whose name ends in {SUFFIX}"),
        (not output.exists() or is_ours(output), f"output={output}: there already, and not of nmt; name another file"),
    ):  # fmt: skip
        require(fits, f"format=argos: {problem}")


def is_ours(path: Path) -> bool:
    """True for an archive that `write` wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.comment == COMMENT
    except (zipfile.BadZipFile, OSError):
        return False


def write(package: "ArgosPackage", folder: Path, description: ModelDescription, tag: str, precision: str) -> None:
    """Write a model directory as a package.

    `tag` is that of the description's target in a model of several, with which every source begins, or empty.
    """
    tokenizer, whole = read_tokenizer(folder), package.whole
    check(description, tokenizer, package.path)
    with TemporaryDirectory() as temporary:
        model = Path(temporary) / "model"
        ctranslate2.write(folder, model, precision)
        if tag:
            begin_with(tag, model / "config.json")
        vocabularies = sorted({*vocabulary_files(model)})
        parts: dict[str, bytes | Path] = {
            "metadata.json": json.dumps(metadata(description), indent=4, ensure_ascii=False).encode(),
            "sentencepiece.model": sentencepiece_model(tokenizer),
            **{f"model/{name}": model / name for name in ("config.json", *vocabularies, "model.bin")},
            "minisbd/sentences.onnx": sentence_model(description.source, whole),
            CARD: card(description, whole).encode(),
        }
        pack({f"{name_of(description)}/{name}": part for name, part in parts.items()}, package.path)


def begin_with(tag: str, path: Path) -> None:
    """Have CTranslate2 put a tag before every source: it can do so with a start symbol, which ours have not."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "add_source_bos": True, "bos_token": tag}, indent=2), encoding="utf-8")


def pack(parts: dict[str, bytes | Path], output: Path) -> None:
    """Write an archive of these members, whole, with nothing in it that depends on time or machine."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(output, error) from error
    with whole_file(output) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        archive.comment = COMMENT
        for name, part in parts.items():
            member = zipfile.ZipInfo(name)  # of the first day of 1980
            member.create_system, member.external_attr = 3, 0o100644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as target:
                if isinstance(part, bytes):
                    target.write(part)
                else:
                    with part.open("rb") as source:
                        shutil.copyfileobj(source, target)


def certify(path: Path, told: list[str]) -> None:
    """Add to the card of a package what was found when its translations were compared."""
    with TemporaryDirectory() as folder, zipfile.ZipFile(path) as archive:
        parts: dict[str, bytes | Path] = {}
        for name in archive.namelist():
            parts[name] = Path(archive.extract(name, folder))
            if name.endswith(f"/{CARD}"):
                parts[name] = certified(archive.read(name).decode(), told).encode()
        pack(parts, path)


def metadata(description: ModelDescription) -> dict[str, Any]:
    """metadata.json of a package."""
    return {
        **{"package_version": VERSION, "argos_version": TESTED},
        **{"from_code": description.source, "from_name": language_name(description.source)},
        **{"to_code": description.target, "to_name": language_name(description.target)},
        "links": [],
    }


def card(description: ModelDescription, whole: int) -> str:
    """How to use a package."""
    source, target, name = plain(description.source), plain(description.target), name_of(description)
    return f"""# {source}-{target}

A Transformer that translates from {source} to {target}, for Argos Translate {TESTED} by nmt {__version__}:

```python
from argostranslate import package, translate

package.install_from_path("{name}{SUFFIX}")
print(translate.translate("A line.", "{description.source}", "{description.target}"))
```

A line of at most {whole:,} characters is translated as one, a longer one sentence by sentence; nothing is downloaded.
"""


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """The model that splits a source and joins a translation.

    A model of Marian normalises text by itself; of the target's pieces, those that it does not know are text as well.
    """
    if isinstance(tokenizer, MarianTokenizer):
        return tokenizer.models[SOURCE]
    normaliser, denormaliser = 3, 5
    back = {ESCAPE + "1": META, ESCAPE + "0": ESCAPE}
    encoding = cleaning() + message((1, "nmt"), (4, 1))  # with single blanks
    decoding = replacing(back) + message((3, 0), (4, 0), (5, 0))  # no blank before it, all blanks, none as U+2581
    return tokenizer.content + message((normaliser, encoding), (denormaliser, decoding))


@cache
def cleaning() -> bytes:
    """A normaliser that makes of text, blanks apart, what our tokenizers do: NFKC, and what they escape.

    sentencepiece has NFKC as a table, of letters with their accents, too. It is of another version of Unicode than
    Python, whose characters replace it, and has the accents in one order.
    """
    import sentencepiece

    sentencepiece.set_min_log_level(2)  # it tells of each table
    rules = dict(sentencepiece.SentencePieceNormalizer(rule_name="nfkc").Decompile())
    for character in (chr(number) for number in range(1, 0x110000) if not 0xD800 <= number < 0xE000):
        normal = " " if character.isspace() else nfkc(character)
        if normal != character:
            rules[character] = normal
        else:
            rules.pop(character, None)
            rules |= dict.fromkeys(spellings(character), character)
    return replacing({**rules, ESCAPE: ESCAPE + "0", META: ESCAPE + "1"})


def spellings(character: str) -> Iterator[str]:
    """A letter with several accents, spelled with these in any order, the first of them within the letter or not."""
    letter, *accents = list(unicodedata.normalize("NFD", character))
    for first, *others in permutations(accents) if len(accents) > 1 else ():
        for text in (letter + first, unicodedata.normalize("NFC", letter + first)):
            if nfkc(text + "".join(others)) == character:
                yield text + "".join(others)


def replacing(rules: dict[str, str]) -> bytes:
    """Replacements as a normaliser of sentencepiece; of several that fit, the longest counts."""
    import sentencepiece

    compiled = sentencepiece.SentencePieceNormalizer(norm_map=sorted(rules.items()))
    return bytes(compiled.serialized_normalizer_spec())


@dataclass
class ArgosPackage:
    """A package, run by CTranslate2 as Argos Translate runs it, without Argos itself."""

    path: Path
    whole: int
    """Lines of at most so many characters are not split into sentences."""

    def load(self, arithmetic: str) -> tuple[Any, Any]:
        """CTranslate2 and sentencepiece with the package's models; the arithmetic "default" is the package's own."""
        from ctranslate2 import Translator
        from sentencepiece import SentencePieceProcessor

        with open_package(self.path) as package:
            model, tokenizer = str(package.model), str(package.tokenizer)
            return Translator(model, compute_type=arithmetic), SentencePieceProcessor(model_file=tokenizer)

    def translate(self, lines: Sequence[str], arithmetic: str = "default") -> list[str]:
        """The translations of lines."""
        translator, processor = self.load(arithmetic)
        split = [sentences(line, self.whole) for line in lines]
        results = translator.translate_batch(
            [processor.encode(sentence, out_type=str) for row in split for sentence in row],
            replace_unknowns=True,
            max_batch_size=32,
            batch_type="tokens",
            beam_size=SEARCH.beam_size,
            length_penalty=SEARCH.length_penalty,
        )
        found = iter(result.hypotheses[0] for result in results)
        tokens = [[token for _ in row for token in next(found)] for row in split]
        return [processor.decode_pieces(row).replace(META, " ").replace("_", " ").removeprefix(" ") for row in tokens]

    def scores(self, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Scores:
        """The log probabilities of pairs of the original's ids."""
        translator, _ = self.load("default")
        names = ctranslate2.vocabularies(tokenizer)
        sides = [[[names[side][number] for number in pair[side]] for pair in pairs] for side in (SOURCE, TARGET)]
        found = translator.score_batch(*sides, max_batch_size=1024, batch_type="tokens", max_input_length=0)
        return [result.log_probs for result in found]

    def by_itself(self, lines: list[str], translations: list[str]) -> Iterator[str]:
        """How many lines are as by torch in the arithmetic that Argos Translate chooses, if it is another."""
        chosen, own = (self.load(arithmetic)[0].compute_type for arithmetic in ("auto", "default"))
        if chosen != own:
            found = {"torch": translations, "exported": self.translate(lines, "auto")}
            yield next(
                same_translations(lines, found, f"in {chosen}, Argos's choice without ARGOS_COMPUTE_TYPE=default")
            )
