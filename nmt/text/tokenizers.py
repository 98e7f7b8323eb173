"""Subword vocabularies, joint over both languages: BPE and unigram by sentencepiece, word-piece by tokenizers.

Every tokenizer is lossless: decode(encode(line)) is the NFKC-normalised line, whatever characters it holds.
"""

import io
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nmt.config import BOS, EOS, PAD, UNK, TokenizerConfig
from nmt.errors import NMTError, one_line
from nmt.storage.foreign import parse_json, read_bytes
from nmt.storage.whole import write_file

SYMBOLS = ["<pad>", "<s>", "</s>", "<unk>"]
assert [SYMBOLS[i] for i in (PAD, BOS, EOS, UNK)] == SYMBOLS
VOCABULARY_ENTRIES = 2**20
"""Size of the largest vocabulary that is read."""


def nfkc(text: str) -> str:
    """Unicode normalisation form KC (UAX #15)."""
    return unicodedata.normalize("NFKC", text)


def clean(line: str) -> str:
    """Normalise a line, as for everything that a model sees: NFKC, and white space collapsed to single blanks."""
    return " ".join(nfkc(line).split())


class Tokenizer(ABC):
    """Text to subword ids and back, without start and end symbols."""

    vocabulary_size: int

    def __init__(self, content: bytes) -> None:
        self.content = content
        """The bytes of the file that `load_tokenizer` reads."""

    @abstractmethod
    def symbol(self, id: int) -> str:
        """The entry of the vocabulary with that id, as the library writes it."""

    @abstractmethod
    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The line that the ids spell; special symbols give nothing."""

    def subwords(self, ids: Sequence[int]) -> list[str]:
        """The text of each id, for people to read; a blank is U+2581."""
        return [self.symbol(int(i)) for i in ids]

    def vocabulary(self) -> list[str]:
        """All entries as the library writes them, in the order of ids."""
        return [self.symbol(i) for i in range(self.vocabulary_size)]

    def tags(self) -> dict[str, int]:
        """The symbols that may be put before a source, such as <2de>, and their ids."""
        return {}

    def tag_id(self, tag: str) -> int:
        """The id of a tag; NMTError for one that the vocabulary does not have."""
        tags = self.tags()
        if tag not in tags:
            raise NMTError(f"tag {tag}: the vocabulary has {'only ' if tags else 'no tags'}{', '.join(tags)}")
        return tags[tag]

    def save(self, path: Path) -> None:
        write_file(path, self.content)

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        return type(self), (self.content,)


# sentencepiece writes a blank as U+2581. A U+2581 in the text itself is escaped.
ESCAPE, META = "\ue000", "\u2581"


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

    def symbol(self, id: int) -> str:
        return str(self.processor.id_to_piece(id))

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return self.processor.encode([escaped(line) for line in lines])  # type: ignore[no-any-return]

    def tags(self) -> dict[str, int]:
        return {self.symbol(i): i for i in range(UNK + 1, self.vocabulary_size) if self.processor.is_control(i)}

    def decode(self, ids: Sequence[int]) -> str:
        text = str(self.processor.decode([int(i) for i in ids if i > UNK]))
        return text.replace(ESCAPE + "1", META).replace(ESCAPE + "0", ESCAPE)


# Marks a subword that continues a word. Not "##": byte-level text contains "#" but never this character.
CONTINUES = "\u25b8"

WORD_BYTES = 500
"""Longer words are cut, and matched part by part: longest match takes quadratic time, 18 seconds for 10,000 letters. In
scripts without blanks, a sentence is a word, with three bytes for each character."""


class WordPieceTokenizer(Tokenizer):
    """Word-piece by greedy longest match (Wu et al. 2016), on the bytes of words, so that no text is unknown."""

    def __init__(self, content: bytes) -> None:
        import tokenizers
        from tokenizers import decoders

        super().__init__(content)
        self.tokenizer = tokenizers.Tokenizer.from_buffer(content)
        self.bytes = decoders.ByteLevel()
        self.vocabulary_size = int(self.tokenizer.get_vocab_size())

    def symbol(self, id: int) -> str:
        return str(self.tokenizer.id_to_token(id))

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch([nfkc(line) for line in lines])]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.bytes.decode([self.symbol(int(i)).removeprefix(CONTINUES) for i in ids if i > UNK]))

    def subwords(self, ids: Sequence[int]) -> list[str]:
        symbols = super().subwords(ids)
        texts = [str(self.bytes.decode([symbol.removeprefix(CONTINUES)])).replace(" ", META) for symbol in symbols]
        # A part of a character stays as it is written in the vocabulary.
        return [symbol if "\ufffd" in text else text for symbol, text in zip(symbols, texts, strict=True)]


def counted_words(lines: Iterable[str]) -> Iterator[str]:
    """The words of clean lines, each followed by a tab and its count."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split(" "))
    return (f"{word}\t{count}" for word, count in counts.items() if word and "\t" not in word)


def train_sentencepiece(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str], tags: Sequence[str]
) -> SentencePieceTokenizer:
    """Learn a BPE or unigram vocabulary of at most `config.vocabulary_size` entries, `words` and `tags` among them."""
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            # BPE only needs the counts of words, which take a fraction of the memory of millions of sentences. Unigram
            # takes its first candidates from the sentences.
            sentence_iterator=counted_words(lines) if config.kind == "bpe" else iter(lines),
            input_format="tsv" if config.kind == "bpe" else "text",
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocabulary_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=0.9999,
            # Lines are in NFKC already; sentencepiece's own table is of another Unicode version, and it trims blanks.
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            max_sentence_length=1_000_000,
            user_defined_symbols=[META + word for word in words],
            control_symbols=list(tags),
            num_threads=2,
            minloglevel=2,
        )
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        raise NMTError(
            f"tokenizer.vocabulary_size={config.vocabulary_size} is less than the different characters of the corpus: "
            "raise it"
        ) from error
    return SentencePieceTokenizer(model.getvalue())


def train_wordpiece(lines: Iterable[str], vocabulary_size: int) -> WordPieceTokenizer:
    """Learn a word-piece vocabulary of at most `vocabulary_size` entries."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # Every byte, at the beginning of a word and inside, as a special symbol so that its id is fixed.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    symbols = [*SYMBOLS, *alphabet, *(CONTINUES + byte for byte in alphabet)]
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token=SYMBOLS[UNK]))
    learner.pre_tokenizer = split
    learner.train_from_iterator(
        lines,
        trainers.WordPieceTrainer(
            vocab_size=vocabulary_size,
            special_tokens=symbols,
            continuing_subword_prefix=CONTINUES,
            show_progress=False,
        ),
    )
    return WordPieceTokenizer(wordpiece_of(learner.get_vocab()).to_str().encode())


def wordpiece_of(vocabulary: dict[str, int]) -> Any:
    """The library's tokenizer for a vocabulary."""
    import tokenizers
    from tokenizers import models, pre_tokenizers

    tokenizer = tokenizers.Tokenizer(
        models.WordPiece(
            vocab=vocabulary,
            unk_token=SYMBOLS[UNK],
            continuing_subword_prefix=CONTINUES,
            max_input_chars_per_word=1_000_000,
        )
    )
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut = pre_tokenizers.Split(tokenizers.Regex(f".{{1,{WORD_BYTES}}}"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, cut])
    return tokenizer


def train_tokenizer(
    lines: Iterable[str], config: TokenizerConfig, words: Sequence[str] = (), tags: Sequence[str] = ()
) -> Tokenizer:
    """Learn a vocabulary from clean lines of both languages (section 5.1).

    Each of `words` is an entry of its own, and each of `tags` one that no text is encoded to. The vocabulary is smaller
    than `config.vocabulary_size` if the lines cannot fill it.
    """
    if config.kind == "wordpiece":
        assert not words
        if tags:
            raise NMTError(f"data.tag={tags[0]}: tokenizer.kind=wordpiece has no tags; use bpe or unigram")
        return train_wordpiece(lines, config.vocabulary_size)
    return train_sentencepiece(lines, config, words, tags)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer file, which may come from anyone; NMTError if it is missing or not one of ours."""
    content = read_bytes(path)
    if not content:
        raise NMTError(f"{path}: not a tokenizer, but an empty file")
    try:
        if content.startswith(b"{"):
            check_wordpiece(content)
        tokenizer = WordPieceTokenizer(content) if content.startswith(b"{") else SentencePieceTokenizer(content)
        entries = tokenizer.vocabulary()  # raises if an entry is invalid UTF-8
    except Exception as error:  # the libraries raise bare RuntimeError and Exception
        raise NMTError(f"{path}: not a tokenizer ({one_line(error)})") from error
    if entries[: len(SYMBOLS)] != SYMBOLS:
        raise NMTError(f"{path}: not a tokenizer of ours (its first entries are not {' '.join(SYMBOLS)})")
    if not len(SYMBOLS) < len(entries) <= VOCABULARY_ENTRIES:
        raise NMTError(f"{path}: not a tokenizer of ours (it has {len(entries):,} entries)")
    return tokenizer


def check_wordpiece(content: bytes) -> None:
    """Raise ValueError if a definition differs from ours in more than the vocabulary."""
    tree = parse_json(content)
    vocabulary = tree["model"]["vocab"]
    if not isinstance(vocabulary, dict) or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("the ids of its vocabulary are not 0, 1, 2 and so on")
    ours = parse_json(wordpiece_of(vocabulary).to_str())
    for there, own, but in ((tree, ours, ("version", "model")), (tree["model"], ours["model"], ("vocab",))):
        if different := [key for key, value in own.items() if key not in but and there.get(key) != value]:
            raise ValueError(f"its {', '.join(different)} is not what ours have")
