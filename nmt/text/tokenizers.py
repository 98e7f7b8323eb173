"""Subword vocabularies, joint over both languages: BPE and unigram by sentencepiece, word-piece by tokenizers.

They are lossless: decode(encode(line)) is the line in NFKC. Plugins add other kinds of files.
"""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from nmt.config import BOS, EOS, PAD, UNK, ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import parse_json, read_bytes, read_description, sha256, write_file
from nmt.registry import entries_of

SOURCE, TARGET = 0, 1
"""The sides of a pair."""
SYMBOLS = ["<pad>", "<s>", "</s>", "<unk>"]
assert [SYMBOLS[i] for i in (PAD, BOS, EOS, UNK)] == SYMBOLS
VOCABULARY_ENTRIES = 2**20
"""Size of the largest vocabulary that is read."""
ESCAPE, META = "\ue000", "\u2581"
"""sentencepiece writes a blank as META, U+2581, which is escaped in the text itself."""
CONTINUES = "\u25b8"
"""Marks a word-piece that continues a word. Not "##": byte-level text contains "#" but never this character."""
WORD_BYTES = 500
"""Longer words, such as sentences without blanks, are cut: longest match takes 18 seconds for 10,000 letters."""


def nfkc(text: str) -> str:
    """Unicode normalisation form KC (UAX #15)."""
    return unicodedata.normalize("NFKC", text)


def single_blanks(line: str) -> str:
    return " ".join(line.split())


def clean(line: str) -> str:
    """A line as models trained here see it: in NFKC, with white space collapsed to single blanks."""
    return single_blanks(nfkc(line))


class Tokenizer(ABC):
    """Text to subword ids and back, without start and end symbols. Most treat both sides, SOURCE and TARGET, alike."""

    kind: str  # as in TokenizerConfig
    vocabulary_size: int  # of the target
    source_vocabulary_size: int | None = None  # None where there is one vocabulary for both sides
    clean: Callable[[str], str] = staticmethod(clean)
    """A line, normalised for `encode`."""

    def __init__(self, content: bytes) -> None:
        self.content = content  # of the file that `load_tokenizer` reads
        self.tags: dict[str, int] = {}
        """The symbols that a source may begin with, such as <2de>, and their ids; no other text is encoded to them."""

    @abstractmethod
    def symbol(self, id: int, side: int = TARGET) -> str:
        """The entry of the vocabulary with that id, as the library writes it."""

    @abstractmethod
    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        """Ids of each line."""

    @abstractmethod
    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        """The line that the ids spell; special symbols give nothing."""

    def subwords(self, ids: Sequence[int], side: int = TARGET) -> list[str]:
        """The text of each id, for people to read; a blank is U+2581."""
        return [self.symbol(int(i), side) for i in ids]

    def vocabulary(self, side: int = TARGET) -> list[str]:
        """All entries as the library writes them, in the order of ids."""
        size = self.source_vocabulary_size if side == SOURCE else None
        return [self.symbol(i, side) for i in range(size or self.vocabulary_size)]

    def leading_tag(self, line: str) -> str:
        return next((tag for tag in self.tags if line.startswith(tag)), "")

    def tag_id(self, tag: str) -> int:
        if tag not in self.tags:
            raise NMTError(f"tag {tag}: the vocabulary has {'only ' if self.tags else 'no tags'}{', '.join(self.tags)}")
        return self.tags[tag]

    def save(self, path: Path) -> None:
        write_file(path, self.content)

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        return type(self), (self.content,)


def escaped(line: str) -> str:
    """A line in NFKC as sentencepiece is given it."""
    return nfkc(line).replace(ESCAPE, ESCAPE + "0").replace(META, ESCAPE + "1")


class SentencePieceTokenizer(Tokenizer):
    """BPE or unigram; characters outside the vocabulary are spelled as bytes."""

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        self.vocabulary_size = int(self.processor.vocab_size())
        reserved = takewhile(self.processor.is_control, range(UNK + 1, self.vocabulary_size))
        self.tags = {self.symbol(id): id for id in reserved}

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.processor.id_to_piece(id))

    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        tags = [self.leading_tag(line) if side == SOURCE else "" for line in lines]
        texts = [line.removeprefix(tag).lstrip() if tag else line for line, tag in zip(lines, tags, strict=True)]
        ids: list[list[int]] = self.processor.encode(list(map(escaped, texts)))
        return [[self.tags[tag], *line] if tag else line for line, tag in zip(ids, tags, strict=True)]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        text = str(self.processor.decode([int(i) for i in ids if i > UNK]))
        return text.replace(ESCAPE + "1", META).replace(ESCAPE + "0", ESCAPE)


class WordPieceTokenizer(Tokenizer):
    """Word-piece by greedy longest match (Wu et al. 2016), on the bytes of words, so that no text is unknown."""

    kind = "wordpiece"

    def __init__(self, content: bytes) -> None:
        import tokenizers
        from tokenizers import decoders

        super().__init__(content)
        self.tokenizer = tokenizers.Tokenizer.from_buffer(content)
        self.bytes = decoders.ByteLevel()
        self.vocabulary_size = int(self.tokenizer.get_vocab_size())

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.tokenizer.id_to_token(id))

    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(map(nfkc, lines)))]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        return str(self.bytes.decode([self.symbol(int(i)).removeprefix(CONTINUES) for i in ids if i > UNK]))

    def subwords(self, ids: Sequence[int], side: int = TARGET) -> list[str]:
        symbols = super().subwords(ids)
        texts = [str(self.bytes.decode([symbol.removeprefix(CONTINUES)])).replace(" ", META) for symbol in symbols]
        # A part of a character stays as it is written in the vocabulary.
        return [symbol if "\ufffd" in text else text for symbol, text in zip(symbols, texts, strict=True)]


def wordpiece_of(vocabulary: dict[str, int]) -> Any:
    """The library's tokenizer for a vocabulary."""
    import tokenizers
    from tokenizers import models, pre_tokenizers

    options = {"continuing_subword_prefix": CONTINUES, "max_input_chars_per_word": 1_000_000}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocab=vocabulary, unk_token=SYMBOLS[UNK], **options))
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut = pre_tokenizers.Split(tokenizers.Regex(f".{{1,{WORD_BYTES}}}"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, cut])
    return tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer file, which may come from anyone; NMTError if it is missing or not one of ours."""
    content = read_bytes(path)
    require(bool(content), f"{path}: not a tokenizer, but an empty file")
    try:
        tokenizer = kind_of(content)(content)
        entries, source = tokenizer.vocabulary(), tokenizer.vocabulary(SOURCE)  # raises if one is invalid UTF-8
    except Exception as error:  # the libraries raise bare RuntimeError and Exception
        raise NMTError(f"{path}: not a tokenizer ({one_line(error)})") from error
    begins, problem = entries[: len(SYMBOLS)] == SYMBOLS, f"{path}: not a tokenizer of ours"
    require(begins, f"{problem} (its first entries are not {' '.join(SYMBOLS)})")
    sizes_fit = all(len(SYMBOLS) < len(side) <= VOCABULARY_ENTRIES for side in (entries, source))
    require(sizes_fit, f"{problem} (it has {len(entries):,} entries)")
    return tokenizer


def kind_of(content: bytes) -> type[Tokenizer]:
    if not content.startswith(b"{"):
        return SentencePieceTokenizer
    tree = parse_json(content)
    for entry in entries_of("tokenizer").values():
        if entry.facts["key"] in tree:
            return cast(type[Tokenizer], entry.load())
    vocabulary = tree["model"]["vocab"]
    if not isinstance(vocabulary, dict) or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("the ids of its vocabulary are not 0, 1, 2 and so on")
    ours = parse_json(wordpiece_of(vocabulary).to_str())
    for there, expected, but in ((tree, ours, ("version", "model")), (tree["model"], ours["model"], ("vocab",))):
        if different := [key for key, value in expected.items() if key not in but and there.get(key) != value]:
            raise ValueError(f"its {', '.join(different)} is not what ours have")
    return WordPieceTokenizer


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model directory; NMTError where it is not the one that the model was trained with."""
    path = folder / "tokenizer.model"
    tokenizer, description = load_tokenizer(path), read_description(folder)
    size = description.vocabulary_size
    sizes = size, ModelConfig(**description.model).source_vocabulary_size or size
    entries = tokenizer.vocabulary_size, tokenizer.source_vocabulary_size or tokenizer.vocabulary_size
    ours = sha256(path) == description.tokenizer and entries == sizes
    require(ours, f"{path} is not the tokenizer that {folder} was trained with: copy the directory again")
    return tokenizer
