"""Joint subword vocabularies for both languages: BPE and unigram with sentencepiece, word-piece with tokenizers.

They are lossless: decode(encode(line)) returns the line, which the caller normalizes first with `Tokenizer.clean`.
Plugins can add other kinds of tokenizer files.
"""

import io
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from nmt.config import BOS, EOS, PAD, UNK, ModelConfig, NMTError, TokenizerConfig, one_line, require
from nmt.files import parse_json, read_bytes, read_description, sha256, write_file
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET, Normalization

SYMBOLS = ["<pad>", "<s>", "</s>", "<unk>"]
assert [SYMBOLS[i] for i in (PAD, BOS, EOS, UNK)] == SYMBOLS
VOCABULARY_ENTRIES = 2**20
"""The maximum size of a vocabulary."""
ESCAPE, META = "\ue000", "\u2581"
"""sentencepiece writes spaces as META, so a META in the text itself is escaped."""
CONTINUES = "\u25b8"
"""Marks a word-piece that continues a word. Not "##": byte-level text contains "#" but never this character."""
WORD_BYTES = 500
"""Longer words, such as sentences without spaces, are cut: for 10,000 letters, longest match takes 18 seconds."""


BEFORE_NORMALIZATION = "nfkc"
"""How lines were normalized before the choice was stored in the tokenizer's file."""
OF_SENTENCEPIECE = "nmt_"
"""Precedes our normalization in a sentencepiece model, which itself normalizes nothing."""
OF_WORDPIECE = "nmt_normalization"
"""The key of our normalization in a word-piece vocabulary's JSON."""
MARIAN_KEY = "nmt_marian"
"""The key that identifies a MarianTokenizer's file; its value is the format version."""


def clean(line: str) -> str:
    """A source as models read it that were trained with the default normalization."""
    return NORMALIZATIONS[TokenizerConfig.normalization].source(line)


class Tokenizer(ABC):
    """Converts text to subword ids and back, without start and end symbols. Most treat SOURCE and TARGET alike."""

    vocabulary_size: int  # of the target side
    source_vocabulary_size: int | None = None  # None: both sides share a vocabulary
    normalization: Normalization = NORMALIZATIONS[BEFORE_NORMALIZATION]

    def __init__(self, content: bytes) -> None:
        self.content = content  # of the file that `load_tokenizer` reads
        self.tags: dict[str, int] = {}
        """Symbols that a source may begin with, such as <2de>, and their ids. No other text is encoded to these ids."""

    def clean(self, line: str, side: int = SOURCE) -> str:
        """Normalize a line of one side for `encode`."""
        return self.normalization.of(line, side)

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of vocabulary, as in TokenizerConfig."""

    @abstractmethod
    def symbol(self, id: int, side: int = TARGET) -> str:
        """The vocabulary entry for an id, as the library writes it."""

    @abstractmethod
    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        """Encode each line as ids."""

    @abstractmethod
    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        """The line that the ids spell, without special symbols."""

    def subwords(self, ids: Sequence[int], side: int = TARGET) -> list[str]:
        """The text of each id in readable form, with META for spaces."""
        return [self.symbol(int(i), side) for i in ids]

    def vocabulary(self, side: int = TARGET) -> list[str]:
        size = self.source_vocabulary_size if side == SOURCE else None
        return [self.symbol(i, side) for i in range(size or self.vocabulary_size)]

    def leading_tag(self, line: str) -> str:
        return next((tag for tag in self.tags if line.startswith(tag)), "")

    def tag_id(self, tag: str) -> int:
        if tag not in self.tags:
            raise NMTError(
                f"tag {tag}: the vocabulary has {'only ' if self.tags else 'no tags'}{', '.join(self.tags)}"
            )
        return self.tags[tag]

    def save(self, path: Path) -> None:
        write_file(path, self.content)

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        return type(self), (self.content,)


def escaped(line: str) -> str:
    """Convert a line to the form that sentencepiece receives."""
    return line.replace(ESCAPE, ESCAPE + "0").replace(META, ESCAPE + "1")


def stored_normalization(content: bytes) -> Normalization:
    """The normalization that a sentencepiece model records; models of earlier versions have other names there."""
    import sentencepiece

    # Importing the parser of whole models takes 50 ms. The first field is the name, after a tag and its length.
    spec = sentencepiece.SentencePieceNormalizer(model_proto=content).serialized_normalizer_spec()
    has_name = spec[:1] == b"\n"
    name = spec[2 : 2 + spec[1]].decode() if has_name else ""
    return NORMALIZATIONS.get(
        name.removeprefix(OF_SENTENCEPIECE), NORMALIZATIONS[BEFORE_NORMALIZATION]
    )


class SentencePieceTokenizer(Tokenizer):
    """BPE or unigram; characters outside the vocabulary are spelled as bytes. For few lines, it starts no threads."""

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        self.vocabulary_size = int(self.processor.vocab_size())
        self.normalization = stored_normalization(content)
        reserved = takewhile(self.processor.is_control, range(UNK + 1, self.vocabulary_size))
        self.tags = {self.symbol(id): id for id in reserved}

    @property
    def kind(self) -> str:
        trainer = self.parsed().trainer_spec
        return "unigram" if trainer.model_type == trainer.UNIGRAM else "bpe"

    def parsed(self) -> Any:
        """The vocabulary as sentencepiece stores it, with types and scores."""
        from sentencepiece import sentencepiece_model_pb2

        return sentencepiece_model_pb2.ModelProto.FromString(self.content)  # type: ignore[attr-defined]

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.processor.id_to_piece(id))

    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        tags = [self.leading_tag(line) if side == SOURCE else "" for line in lines]
        untagged = (
            line.removeprefix(tag).lstrip() if tag else line
            for line, tag in zip(lines, tags, strict=True)
        )
        texts = [*map(escaped, untagged)]
        encode, threads = self.processor.encode, 1 if len(texts) < 1000 else -1
        # Even with num_threads=1, encoding a list starts a thread, which takes longer than encoding a few texts.
        ids = [*map(encode, texts)] if len(texts) < 32 else encode(texts, num_threads=threads)
        return [
            [self.tags[tag], *line] if tag else line for line, tag in zip(ids, tags, strict=True)
        ]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        text = str(self.processor.decode([int(i) for i in ids if i > UNK]))
        return text.replace(ESCAPE + "1", META).replace(ESCAPE + "0", ESCAPE)


class WordPieceTokenizer(Tokenizer):
    """Word-piece with greedy longest match (Wu et al. 2016) on bytes, so that no text is unknown."""

    kind = "wordpiece"

    def __init__(self, content: bytes) -> None:
        import tokenizers

        super().__init__(content)
        tree = parse_json(content)
        # Ignore the rest of the file, such as regular expressions.
        vocabulary = tree["model"]["vocab"]
        self.normalization = NORMALIZATIONS[tree.get(OF_WORDPIECE, BEFORE_NORMALIZATION)]
        if not isinstance(vocabulary, dict) or sorted(vocabulary.values()) != list(
            range(len(vocabulary))
        ):
            raise ValueError("the ids of its vocabulary are not 0, 1, 2 and so on")
        self.tokenizer, self.bytes = wordpiece_of(vocabulary), tokenizers.decoders.ByteLevel()
        self.vocabulary_size = len(vocabulary)

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.tokenizer.id_to_token(id))

    def encode(self, lines: Sequence[str], side: int = SOURCE) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(lines))]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        return str(
            self.bytes.decode([self.symbol(int(i)).removeprefix(CONTINUES) for i in ids if i > UNK])
        )

    def subwords(self, ids: Sequence[int], side: int = TARGET) -> list[str]:
        symbols = super().subwords(ids)
        texts = [
            str(self.bytes.decode([symbol.removeprefix(CONTINUES)])).replace(" ", META)
            for symbol in symbols
        ]
        # Bytes that are only part of a character stay in the vocabulary's notation.
        return [
            symbol if "\ufffd" in text else text
            for symbol, text in zip(symbols, texts, strict=True)
        ]


def wordpiece_of(vocabulary: dict[str, int]) -> Any:
    import tokenizers

    options = {"continuing_subword_prefix": CONTINUES, "max_input_chars_per_word": 1_000_000}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(vocab=vocabulary, unk_token=SYMBOLS[UNK], **options)
    )
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(f".{{1,{WORD_BYTES}}}"), "isolated")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, cut])
    return tokenizer


def tokenizer_class(tree: dict[str, Any]) -> type[Tokenizer]:
    """The kind of tokenizer in a file, from its JSON content, which SentencePiece's files do not have."""
    if not tree:
        return SentencePieceTokenizer
    if MARIAN_KEY in tree:
        from nmt.text.marian import MarianTokenizer  # it builds on this module

        return MarianTokenizer
    return WordPieceTokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Read an untrusted tokenizer file; NMTError if it is missing or not one of ours."""
    content = read_bytes(path)
    require(bool(content), f"{path}: not a tokenizer (an empty file)")
    try:
        tree = parse_json(content) if content.startswith(b"{") else {}
        tokenizer = tokenizer_class(tree)(content)
        entries, source = (
            tokenizer.vocabulary(),
            tokenizer.vocabulary(SOURCE),
        )  # raises if an entry is invalid UTF-8
    except Exception as error:  # the libraries raise bare RuntimeError and Exception
        raise NMTError(f"{path}: not a tokenizer ({one_line(error)})") from error
    begins, problem = entries[: len(SYMBOLS)] == SYMBOLS, f"{path}: not a tokenizer for nmt"
    require(begins, f"{problem} (its first entries are not {' '.join(SYMBOLS)})")
    sizes_fit = all(len(SYMBOLS) < len(side) <= VOCABULARY_ENTRIES for side in (entries, source))
    require(sizes_fit, f"{problem} (it has {len(entries):,} entries)")
    return tokenizer


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model directory; NMTError if it is not the one that the model was trained with."""
    path = folder / "tokenizer.model"
    tokenizer, description = load_tokenizer(path), read_description(folder)
    size = description.vocabulary_size
    sizes = size, ModelConfig(**description.model).source_vocabulary_size or size
    entries = (
        tokenizer.vocabulary_size,
        tokenizer.source_vocabulary_size or tokenizer.vocabulary_size,
    )
    same = sha256(path) == description.tokenizer and entries == sizes
    require(
        same,
        f"{path} is not the tokenizer that {folder} was trained with: copy the directory again",
    )
    return tokenizer


def train_sentencepiece(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str], tags: Sequence[str]
) -> SentencePieceTokenizer:
    import sentencepiece

    model, counts, is_bpe = io.BytesIO(), Counter[str](), config.kind == "bpe"
    if is_bpe:  # BPE needs only word counts, which take less memory than sentences
        for line in lines:
            counts.update(line.split(" "))
        lines = (f"{word}\t{count}" for word, count in counts.items() if word and "\t" not in word)
    options: dict[str, Any] = {
        "model_type": config.kind,
        "input_format": "tsv" if is_bpe else "text",
    }
    options |= {
        "vocab_size": config.vocabulary_size,
        "hard_vocab_limit": False,
        "max_sentence_length": 1_000_000,
    }
    options |= {
        "byte_fallback": True,
        "character_coverage": 0.9999,
        "num_threads": 2,
        "minloglevel": 2,
    }
    # Lines are already normalized; sentencepiece's table is for another Unicode version.
    # Trimming would lose spaces.
    options |= {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    options |= {
        "pad_id": PAD,
        "bos_id": BOS,
        "eos_id": EOS,
        "unk_id": UNK,
        "control_symbols": list(tags),
    }
    options |= {"user_defined_symbols": [META + word for word in words]}
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, **options
        )
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        size = f"tokenizer.vocabulary_size={config.vocabulary_size}"
        raise NMTError(
            f"{size}: the corpus has more distinct characters than this; increase it"
        ) from error
    return SentencePieceTokenizer(with_normalization(model.getvalue(), config.normalization))


def with_normalization(content: bytes, name: str) -> bytes:
    """A sentencepiece model that records how its lines were normalized."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(content)  # type: ignore[attr-defined]
    model.normalizer_spec.name = OF_SENTENCEPIECE + name
    return bytes(model.SerializeToString())


def train_wordpiece(
    lines: Iterable[str], vocabulary_size: int, normalization: str
) -> WordPieceTokenizer:
    import tokenizers

    # Each byte, at the start of a word and inside one, is a special symbol, so that its id is fixed.
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    symbols = [*SYMBOLS, *alphabet, *(CONTINUES + byte for byte in alphabet)]
    learner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=SYMBOLS[UNK]))
    learner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=symbols,
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    tree = parse_json(wordpiece_of(learner.get_vocab()).to_str().encode())
    return WordPieceTokenizer(
        json.dumps({**tree, OF_WORDPIECE: normalization}, ensure_ascii=False).encode()
    )


def train_tokenizer(
    lines: Iterable[str],
    config: TokenizerConfig,
    words: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> Tokenizer:
    """Train on clean lines (section 5.1); `words` and `tags` become entries; no other text is encoded as a tag."""
    if config.kind != "wordpiece":
        return train_sentencepiece(lines, config, words, tags)
    assert not words
    if tags:
        raise NMTError(
            f"data.tag={tags[0]}: tokenizer.kind=wordpiece does not support tags; use bpe or unigram"
        )
    return train_wordpiece(lines, config.vocabulary_size, config.normalization)
