"""Word-piece vocabularies, with the library tokenizers."""

from collections.abc import Sequence
from typing import Any

from nmt.config import UNK
from nmt.files import parse_json
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET
from nmt.text.tokenizers import BEFORE_NORMALIZATION, META, SYMBOLS, Tokenizer

CONTINUES = "\u25b8"
"""Marks a word-piece that continues a word.

Not "##": byte-level text contains "#" but never this character.
"""
WORD_BYTES = 500
"""Longer words, such as sentences without spaces, are cut.

For 10,000 letters, longest match takes 18 seconds.
"""
OF_WORDPIECE = "nmt_normalization"
"""The key of our normalization in a word-piece vocabulary's JSON."""


class WordPieceTokenizer(Tokenizer):
    """Word-piece with greedy longest match (Wu et al. 2016) on bytes: no text is unknown."""

    kind = "wordpiece"

    def __init__(self, content: bytes) -> None:
        import tokenizers

        super().__init__(content)
        tree = parse_json(content)
        # Ignore the rest of the file, such as regular expressions.
        # A regular expression of a stranger could take exponential time.
        vocabulary = tree["model"]["vocab"]
        self.normalization = NORMALIZATIONS[tree.get(OF_WORDPIECE, BEFORE_NORMALIZATION)]
        if not isinstance(vocabulary, dict) or not has_consecutive_ids(vocabulary):
            raise ValueError("the ids of its vocabulary are not 0, 1, 2 and so on")
        self.tokenizer = wordpiece_of(vocabulary)
        self.bytes = tokenizers.decoders.ByteLevel()
        self.vocabulary_size = len(vocabulary)

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.tokenizer.id_to_token(id))

    def encode(self, lines: Sequence[str], side: int = SOURCE, tag: str = "") -> list[list[int]]:
        encodings = self.tokenizer.encode_batch(list(lines))
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        symbols = [self.symbol(int(id)) for id in ids if id > UNK]
        return self.text_of(symbols)

    def text_of(self, symbols: Sequence[str]) -> str:
        """The text whose bytes the symbols spell."""
        # Byte-level vocabularies write each byte as a visible character (as GPT-2 does).
        return str(self.bytes.decode([symbol.removeprefix(CONTINUES) for symbol in symbols]))

    def subwords(self, ids: Sequence[int], side: int = TARGET) -> list[str]:
        readable = []
        for symbol in super().subwords(ids):
            text = self.text_of([symbol]).replace(" ", META)
            # Bytes that are only part of a character stay in the vocabulary's notation.
            readable.append(symbol if "\ufffd" in text else text)
        return readable


def has_consecutive_ids(vocabulary: dict[str, int]) -> bool:
    return sorted(vocabulary.values()) == list(range(len(vocabulary)))


def wordpiece_of(vocabulary: dict[str, int]) -> Any:
    """The library's tokenizer with a vocabulary."""
    import tokenizers

    model = tokenizers.models.WordPiece(
        vocab=vocabulary,
        unk_token=SYMBOLS[UNK],
        continuing_subword_prefix=CONTINUES,
        max_input_chars_per_word=1_000_000,  # longer ones would become <unk>; WORD_BYTES is less
    )
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    stretch = tokenizers.Regex(f".{{1,{WORD_BYTES}}}")
    cut = tokenizers.pre_tokenizers.Split(stretch, "isolated")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, cut])
    return tokenizer
