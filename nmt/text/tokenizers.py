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
MOST_ENTRIES = 2**20
"""Largest vocabulary."""


def nfkc(text: str) -> str:
    """Unicode normalisation form KC (UAX #15)."""
    return unicodedata.normalize("NFKC", text)


def clean(line: str) -> str:
    """Normalise a line as every line that a model sees: NFKC, and white space collapsed to single blanks."""
    return " ".join(nfkc(line).split())


class Tokenizer(ABC):
    """Text to subword ids and back; neither start nor end symbol is added."""

    vocabulary_size: int

    def __init__(self, content: bytes) -> None:
        self.content = content
        """Of the one file that `load_tokenizer` reads."""

    @abstractmethod
    def symbol(self, id: int) -> str:
        """The entry of the vocabulary with that id, as the library writes it."""

    @abstractmethod
    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The line of the ids; special symbols give nothing."""

    def subwords(self, ids: Sequence[int]) -> list[str]:
        """The text of each id, as people may look at it; a blank is U+2581."""
        return [self.symbol(int(i)) for i in ids]

    def vocabulary(self) -> list[str]:
        """Every entry as the library writes it, in the order of ids."""
        return [self.symbol(i) for i in range(self.vocabulary_size)]

    def save(self, path: Path) -> None:
        write_file(path, self.content)

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        return type(self), (self.content,)


# sentencepiece writes a blank as U+2581, so a U+2581 of the text's own is written with an escape.
ESCAPE, META = "\ue000", "\u2581"


class SentencePieceTokenizer(Tokenizer):
    """BPE or unigram; characters outside the vocabulary are spelt in bytes."""

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        self.vocabulary_size = int(self.processor.vocab_size())

    def symbol(self, id: int) -> str:
        return str(self.processor.id_to_piece(id))

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        escaped = [nfkc(line).replace(ESCAPE, ESCAPE + "0").replace(META, ESCAPE + "1") for line in lines]
        return self.processor.encode(escaped)  # type: ignore[no-any-return]

    def decode(self, ids: Sequence[int]) -> str:
        text = str(self.processor.decode([int(i) for i in ids if i > UNK]))
        return text.replace(ESCAPE + "1", META).replace(ESCAPE + "0", ESCAPE)


# Marks a subword that continues a word. Not "##": byte-level text contains "#" but never this character.
CONTINUES = "\u25b8"

# Longest match takes quadratic time, 18 seconds for a word of 10,000 letters: longer words are cut there, and matched
# part by part. Scripts without blanks have words of a sentence, of three bytes a character.
LONGEST_WORD = 500
"""Bytes."""


class WordPieceTokenizer(Tokenizer):
    """Word-piece by greedy longest match (Wu et al. 2016), on the bytes of words, so that nothing is unknown."""

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
        # Bytes that are no character by themselves stay as they are written in the vocabulary.
        return [symbol if "\ufffd" in text else text for symbol, text in zip(symbols, texts, strict=True)]


def counted_words(lines: Iterable[str]) -> Iterator[str]:
    """The words of clean lines, each behind a tab with its count."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split(" "))
    return (f"{word}\t{count}" for word, count in counts.items() if word and "\t" not in word)


def train_sentencepiece(
    lines: Iterable[str], kind: str, vocabulary_size: int, words: Sequence[str] = ()
) -> SentencePieceTokenizer:
    """Learn a BPE or unigram vocabulary of at most `vocabulary_size` entries, of which each of `words` is one."""
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            # BPE learns from the counts of words alone, which need a fraction of the memory of millions of sentences.
            # Unigram's first candidates come from the sentences.
            sentence_iterator=counted_words(lines) if kind == "bpe" else iter(lines),
            input_format="tsv" if kind == "bpe" else "text",
            model_writer=model,
            model_type=kind,
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=0.9999,
            # Lines come in NFKC; sentencepiece's own table is of another Unicode version, and it trims blanks.
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            max_sentence_length=1_000_000,
            user_defined_symbols=[META + word for word in words],
            num_threads=2,
            minloglevel=2,
        )
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
        raise NMTError(
            f"tokenizer.vocabulary_size={vocabulary_size} is less than the different characters of the corpus: raise it"
        ) from error
    return SentencePieceTokenizer(model.getvalue())


def train_wordpiece(lines: Iterable[str], vocabulary_size: int) -> WordPieceTokenizer:
    """Learn a word-piece vocabulary of at most `vocabulary_size` entries."""
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # Every byte at the beginning of a word and within, given as symbols so that their ids do not vary.
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
    """The tokenizer of the library for a vocabulary."""
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
    cut = pre_tokenizers.Split(tokenizers.Regex(f".{{1,{LONGEST_WORD}}}"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, cut])
    return tokenizer


def train_tokenizer(lines: Iterable[str], config: TokenizerConfig, words: Sequence[str] = ()) -> Tokenizer:
    """Learn the vocabulary from clean lines of both languages (section 5.1); each of `words` is one entry of it.

    It is smaller than `config.vocabulary_size` where the lines cannot fill it.
    """
    if config.kind == "wordpiece":
        assert not words
        return train_wordpiece(lines, config.vocabulary_size)
    return train_sentencepiece(lines, config.kind, config.vocabulary_size, words)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer file, which may come from anyone; NMTError where it is missing or none of ours."""
    if not path.is_file():
        raise NMTError(f"{path}: no tokenizer there")
    content = read_bytes(path)
    if not content:
        raise NMTError(f"{path}: not a tokenizer, but an empty file")
    try:
        if content.startswith(b"{"):
            check_wordpiece(content)
        tokenizer = WordPieceTokenizer(content) if content.startswith(b"{") else SentencePieceTokenizer(content)
        entries = tokenizer.vocabulary()  # all of them, as each may be invalid UTF-8
    except Exception as error:  # the libraries raise bare RuntimeError and Exception
        raise NMTError(f"{path}: not a tokenizer ({one_line(error)})") from error
    if entries[: len(SYMBOLS)] != SYMBOLS:
        raise NMTError(f"{path}: not a tokenizer of ours (its first entries are not {' '.join(SYMBOLS)})")
    if not len(SYMBOLS) < len(entries) <= MOST_ENTRIES:
        raise NMTError(f"{path}: not a tokenizer of ours (it has {len(entries):,} entries)")
    return tokenizer


def check_wordpiece(content: bytes) -> None:
    """Raise ValueError where a definition differs from ours in more than the vocabulary."""
    tree = parse_json(content)
    vocabulary = tree["model"]["vocab"]
    if not isinstance(vocabulary, dict) or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("the ids of its vocabulary are not 0, 1, 2 and so on")
    ours = parse_json(wordpiece_of(vocabulary).to_str())
    for there, own, but in ((tree, ours, ("version", "model")), (tree["model"], ours["model"], ("vocab",))):
        if different := [key for key, value in own.items() if key not in but and there.get(key) != value]:
            raise ValueError(f"its {', '.join(different)} is not what ours have")
