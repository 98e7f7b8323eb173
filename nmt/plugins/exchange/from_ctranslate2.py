"""Folders of CTranslate2 and packages of Argos Translate, which may come from anyone, with the tokenizer of their text.

What nmt exported has its tokenizer beside it. Others have sentencepiece.model for both languages, or source.spm and
target.spm. A package, NAME.argosmodel, is a zip archive of a folder with a model of CTranslate2 in model/,
metadata.json, and sentencepiece.model. What else it holds, as models that split text into sentences, is not read.
"""

import lzma
import re
import shutil
import zipfile
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from nmt.config import DecodeConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import expected_search, is_exported, opened, parse_json, read_description, read_mapping, read_tokenizer
from nmt.plugins.exchange.ctranslate2 import CTranslate2Program
from nmt.plugins.exchange.ctranslate2_reader import CTranslate2Model, read_model
from nmt.plugins.exchange.foreign import Foreign, language
from nmt.plugins.exchange.marian_weights import tokenizer_of
from nmt.text import MARIAN_SYMBOLS, SYMBOLS, TAG, MarianTokenizer, Tokenizer
from nmt.translation import Translator

MEMBER = re.compile(r"(?:[^/]+/)?(metadata\.json|(?:sentencepiece|bpe)\.model|model/[a-z_]+\.(?:bin|json|txt))")
MOST_GROWTH = 10
"""A package holds at most so many times its own bytes. Numbers of a model hardly shrink."""
ARGOS_PENALTY = 0.2
"""alpha in |Y|^alpha, by which Argos Translate ranks."""
FEWEST_PIECES = 0.5
"""The share of a vocabulary that its sentencepiece models must know."""


def is_ctranslate2(path: Path) -> bool:
    """True for a folder of CTranslate2, and for a package of Argos Translate, packed or unpacked."""
    return is_package(path) or (path / "model.bin").is_file()


def is_package(path: Path) -> bool:
    return path.suffix == ".argosmodel" or (path / "metadata.json").is_file()


def read_ctranslate2(path: Path, sentencepiece: str | None) -> Foreign:
    """The model in a folder or a package; NMTError where it is none that nmt reads.

    `sentencepiece` is the file of its model for both languages; None: it is in the folder.
    """
    if not is_package(path):
        return read_folder(path, sentencepiece)
    require(sentencepiece is None, f"sentencepiece={sentencepiece}: {path} has its own; leave it out")
    if path.is_dir():
        return read_package(path)
    with TemporaryDirectory() as folder:
        try:
            unpack(path, Path(folder))
            return read_package(Path(folder))
        except NMTError as error:
            raise NMTError(str(error).replace(folder, str(path))) from error


def read_folder(folder: Path, sentencepiece: str | None) -> Foreign:
    """The model in a folder of CTranslate2."""
    model = read_model(folder)
    if is_exported(folder) and sentencepiece is None:
        description, tokenizer = read_description(folder), read_tokenizer(folder)
        same = model.vocabularies == (tokenizer.vocabulary(0), tokenizer.vocabulary(1))
        require(same, f"{folder}: its vocabulary is not that of tokenizer.model; export the model again")
        search = expected_search(DecodeConfig(), description)
        foreign = foreign_of(model, tokenizer)
        foreign.length_penalty, foreign.length_penalty_kind = (
            search.length_penalty,
            search.length_penalty_kind or "gnmt",
        )
        foreign.languages, foreign.training = (description.source, description.target), description.training
        return foreign
    sides = [folder / "source.spm", folder / "target.spm"]
    if sentencepiece or not sides[0].exists():
        sides = [Path(sentencepiece) if sentencepiece else folder / "sentencepiece.model"] * 2
    there = all(path.exists() for path in sides)
    require(there, f"{sides[-1]}: not there; sentencepiece=FILE names the model that splits the text")
    return foreign_of(model, sentencepiece_tokenizer(model, sides))


def read_package(folder: Path) -> Foreign:
    """The model in a package that is unpacked."""
    path, tokenizer, model = folder / "metadata.json", folder / "sentencepiece.model", folder / "model"
    metadata = read_mapping(path, parse_json)
    prefix = metadata.get("target_prefix", "")
    require(not prefix, f"{path}: each translation begins with {str(prefix)[:40]!r}, which nmt would not cut off")
    require(tokenizer.is_file(), f"{folder}: nmt reads packages with sentencepiece.model, not those with bpe.model")
    require(not model.is_symlink(), f"{model}: a link, which is not followed")
    content = read_model(model)
    foreign = foreign_of(content, sentencepiece_tokenizer(content, [tokenizer] * 2))
    foreign.length_penalty = ARGOS_PENALTY
    foreign.languages = language(metadata.get("from_code")), language(metadata.get("to_code"))
    return foreign


def unpack(path: Path, folder: Path) -> None:
    """Unpack what we read of a package; whatever its members are called, all of it goes to this folder."""
    try:
        with opened(path) as file, zipfile.ZipFile(file) as archive:
            matches = [(MEMBER.fullmatch(member.filename), member) for member in archive.infolist()]
            members = {match[1]: member for match, member in matches if match}
            require(len(members) == sum(match is not None for match, _ in matches), f"{path}: it holds two packages")
            size = sum(member.file_size for member in members.values())
            fits = size <= MOST_GROWTH * path.stat().st_size
            require(fits, f"{path}: it claims to hold {MOST_GROWTH} times its own bytes")
            for name, member in members.items():
                (folder / name).parent.mkdir(exist_ok=True)
                with archive.open(member) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError) as error:
        reason = one_line(error) or "it is cut"
        raise NMTError(f"{path}: not a package of Argos Translate, or damaged ({reason})") from error


def sentencepiece_tokenizer(model: CTranslate2Model, paths: list[Path]) -> MarianTokenizer:
    """The tokenizer of these sentencepiece models for a model; NMTError where they are those of another."""
    separate = model.config.source_vocabulary_size is not None
    entries = [side[len(SYMBOLS) :] for side in model.vocabularies[0 if separate else 1 :]]
    tags = any(TAG.fullmatch(entry) for entry in entries[0])
    tokenizer = tokenizer_of(paths, [[*MARIAN_SYMBOLS[:2], *side] for side in entries], tags)
    pieces = {part.id_to_piece(number) for part in tokenizer.processors for number in range(part.vocab_size())}
    for side in entries:
        count = sum(entry in pieces for entry in side)
        problem = f"{paths[-1]}: knows {count:,} of the {len(side):,} entries of the vocabulary; name the right one"
        require(count > FEWEST_PIECES * len(side), problem)
    return tokenizer


def foreign_of(model: CTranslate2Model, tokenizer: Tokenizer) -> Foreign:
    def program(decode: DecodeConfig) -> CTranslate2Program:
        from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine

        return CTranslate2Program(Translator(CTranslate2Engine(model, decode, "float32", threads=1), tokenizer))

    rounded = "" if model.precision == "float32" else f", dequantized from {model.precision}"
    weights = {name: torch.from_numpy(array) for name, array in model.weights.items()}
    origin = f"a model of CTranslate2{rounded}"
    return Foreign(origin, model.config, weights, tokenizer, package="ctranslate2", program=program)
