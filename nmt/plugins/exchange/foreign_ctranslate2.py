"""Folders of CTranslate2 and packages of Argos Translate, which may come from anyone, with the tokenizer of their text.

What nmt exported has its tokenizer beside it. Others have sentencepiece.model for both languages, or source.spm and
target.spm.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from nmt.config import LANGUAGE, UNK, DecodeConfig, ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import expected_search, is_exported, read_description, read_tokenizer
from nmt.model import Transformer
from nmt.plugins.exchange.argos import is_package, open_package
from nmt.plugins.exchange.certificate import Scores
from nmt.plugins.exchange.ctranslate2 import vocabularies
from nmt.plugins.exchange.foreign_model import tokenizer_of
from nmt.plugins.exchange.from_ctranslate2 import CTranslate2Model, checked_files, read_model
from nmt.search import Pair
from nmt.text import MARIAN_SYMBOLS, SOURCE, SYMBOLS, TAG, TARGET, MarianTokenizer, Tokenizer

ARGOS_PENALTY = 0.2
"""alpha in |Y|^alpha, by which Argos Translate ranks."""
FEWEST_PIECES = 0.5
"""The share of a vocabulary that its sentencepiece models must know."""


@dataclass
class ForeignCTranslate2:
    """A model of CTranslate2, and what its text and its search are."""

    where: Path
    found: CTranslate2Model
    tokenizer: Tokenizer
    length_penalty: float = 1.0
    """alpha."""
    length_penalty_kind: str = "marian"
    languages: tuple[str, str] = ("und", "und")
    known: dict[str, Any] = field(default_factory=dict)
    """What an exported model says of its training."""

    @property
    def origin(self) -> str:
        rounded = "" if self.found.precision == "float32" else f", dequantised from {self.found.precision}"
        return f"a model of CTranslate2{rounded}"

    @property
    def training(self) -> dict[str, Any]:
        """What the description of the imported model says of it."""
        penalty = {"length_penalty": self.length_penalty, "length_penalty_kind": self.length_penalty_kind}
        return {**self.known, "imported": self.origin, **penalty}

    def model(self) -> Transformer:
        """The model; NMTError where it is none that we have."""
        try:
            config = ModelConfig(name="ctranslate2", **self.found.model)
        except NMTError as error:
            raise NMTError(f"{self.where}: {error}") from error
        model = Transformer(config, len(self.found.vocabularies[TARGET]))
        model.load_state_dict({name: torch.from_numpy(array) for name, array in self.found.weights.items()})
        return model.eval()

    @cached_property
    def translator(self) -> Any:
        """CTranslate2 itself, in float32. It opens no file of the folder, which may hold more than what was read."""
        import ctranslate2

        files = checked_files(self.where)
        return ctranslate2.Translator("model", compute_type="float32", intra_threads=1, files=files)

    def run(self, method: str, *sides: list[list[str]], **options: Any) -> Any:
        """What CTranslate2 makes of whole sentences; NMTError where it cannot, as without positions for a long one."""
        try:
            return getattr(self.translator, method)(*sides, max_input_length=0, **options)
        except (RuntimeError, ValueError) as error:
            raise NMTError(f"{self.where}: CTranslate2 cannot compute it ({one_line(error)})") from error

    def tokens(self, sentences: Sequence[list[int]], side: int) -> list[list[str]]:
        """Sentences of our ids as CTranslate2 reads them."""
        return [[self.found.vocabularies[side][number] for number in ids] for ids in sentences]

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """The log probabilities that CTranslate2 gives to pairs of our ids."""
        sides = (self.tokens([pair[side] for pair in pairs], side) for side in (SOURCE, TARGET))
        found = self.run("score_batch", *sides, max_batch_size=1024, batch_type="tokens")
        return [result.log_probs for result in found]

    def translations(self, lines: Sequence[str], decode: DecodeConfig) -> list[str]:
        """The best translation of each clean line, by CTranslate2's own search and |Y|^alpha."""
        texts, groups = [""] * len(lines), defaultdict[int, list[int]](list)
        sentences = self.tokenizer.encode(lines)
        for index, ids in enumerate(sentences):
            groups[len(ids)].append(index)  # a search has one maximal length
        numbers = {token: number for number, token in enumerate(self.found.vocabularies[TARGET])}
        for length, indices in groups.items():
            found = self.run(
                "translate_batch",
                self.tokens([sentences[index] for index in indices], SOURCE),
                beam_size=decode.beam_size,
                length_penalty=decode.length_penalty,
                max_decoding_length=length + decode.max_extra_length,
            )
            for index, result in zip(indices, found, strict=True):
                texts[index] = self.tokenizer.decode([numbers.get(token, UNK) for token in result.hypotheses[0]])
        return [" ".join(text.split()) for text in texts]


def is_ctranslate2(path: Path) -> bool:
    """True for a folder of CTranslate2, and for a package of Argos Translate, packed or unpacked."""
    return is_package(path) or (path / "model.bin").is_file()


@contextmanager
def open_ctranslate2(path: Path, sentencepiece: str | None) -> Iterator[ForeignCTranslate2]:
    """The model in a folder or a package; NMTError where it is none that we can read.

    `sentencepiece` is the file of its model for both languages; None: it is in the folder.
    """
    if not is_package(path):
        yield read_folder(path, sentencepiece)
        return
    require(sentencepiece is None, f"sentencepiece={sentencepiece}: {path} has its own; leave it out")
    with open_package(path) as package:
        found = read_model(package.model)
        tokens = sentencepiece_tokenizer(package.model, found, [package.tokenizer] * 2)
        languages = language(package.source), language(package.target)
        yield ForeignCTranslate2(package.model, found, tokens, ARGOS_PENALTY, languages=languages)


def language(code: str) -> str:
    """A code of a language; "und" for what is none."""
    return code if LANGUAGE.fullmatch(code) else "und"


def read_folder(folder: Path, sentencepiece: str | None) -> ForeignCTranslate2:
    """The model in a folder of CTranslate2."""
    found, both = read_model(folder), [folder / "source.spm", folder / "target.spm"]
    if is_exported(folder) and sentencepiece is None:
        return read_exported(folder, found)
    if sentencepiece or not both[0].exists():
        both = [Path(sentencepiece) if sentencepiece else folder / "sentencepiece.model"] * 2
    there = all(path.exists() for path in both)
    require(there, f"{both[-1]}: not there; sentencepiece=FILE names the model that splits the text")
    return ForeignCTranslate2(folder, found, sentencepiece_tokenizer(folder, found, both))


def read_exported(folder: Path, found: CTranslate2Model) -> ForeignCTranslate2:
    """A model that nmt exported."""
    description, tokenizer = read_description(folder), read_tokenizer(folder)
    same = found.vocabularies == vocabularies(tokenizer)
    require(same, f"{folder}: its vocabulary is not that of tokenizer.model; export the model again")
    search = expected_search(DecodeConfig(), description)
    kind, languages = search.length_penalty_kind or "gnmt", (description.source, description.target)
    return ForeignCTranslate2(
        folder, found, tokenizer, search.length_penalty, kind, languages, known=description.training
    )


def sentencepiece_tokenizer(folder: Path, found: CTranslate2Model, models: list[Path]) -> MarianTokenizer:
    """The tokenizer of these sentencepiece models for a model; NMTError where they are those of another."""
    separate = found.model["source_vocabulary_size"] is not None
    entries = [side[len(SYMBOLS) :] for side in found.vocabularies[0 if separate else 1 :]]
    tags = any(TAG.fullmatch(entry) for entry in entries[0])
    tokenizer = tokenizer_of(folder, models, [[*MARIAN_SYMBOLS[:2], *side] for side in entries], tags)
    known = {model.id_to_piece(number) for model in tokenizer.processors for number in range(model.vocab_size())}
    for side in entries:
        count = sum(entry in known for entry in side)
        fits = count > FEWEST_PIECES * len(side)
        require(
            fits, f"{models[-1]}: knows {count:,} of the {len(side):,} entries of the vocabulary; name the right one"
        )
    return tokenizer
