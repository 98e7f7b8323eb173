"""Joint subword vocabularies for both languages.

They are lossless: decode(encode(line)) returns the line, which the caller normalizes first with
`Tokenizer.clean`. Plugins can add other kinds of tokenizer files.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from nmt.config import BOS, EOS, PAD, UNK, NMTError, TokenizerConfig
from nmt.files import write_file
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET, Normalization

SYMBOLS = ["<pad>", "<s>", "</s>", "<unk>"]
assert [SYMBOLS[id] for id in (PAD, BOS, EOS, UNK)] == SYMBOLS
META = "\u2581"
"""How sentencepiece writes spaces."""
BEFORE_NORMALIZATION = "nfkc"
"""How lines were normalized before the choice was stored in the tokenizer's file."""


def clean(line: str) -> str:
    """A source as models read it that were trained with the default normalization."""
    return NORMALIZATIONS[TokenizerConfig.normalization].source(line)


class Tokenizer(ABC):
    """Converts text to subword ids and back, without start and end symbols.

    Most tokenizers treat SOURCE and TARGET alike.
    """

    vocabulary_size: int
    """The number of entries of the target side."""
    source_vocabulary_size: int | None = None
    """The number of entries of the source side; None: both sides share a vocabulary."""
    normalization: Normalization = NORMALIZATIONS[BEFORE_NORMALIZATION]

    def __init__(self, content: bytes) -> None:
        self.content = content  # of the file that `load_tokenizer` reads
        self.tags: dict[str, int] = {}
        """Symbols that a source may begin with, such as <2de>, and their ids.

        No other text is encoded to these ids.
        """
        self.languages: dict[str, int] = {}
        """The languages whose tags are in the vocabulary by themselves, as in NLLB, and their ids.

        Other vocabularies have `tags` as users spell them.
        """
        self.has_target_tags = False
        """Whether targets begin with a tag, too; the tag of a line then names both languages."""

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
    def encode(self, lines: Sequence[str], side: int = SOURCE, tag: str = "") -> list[list[int]]:
        """Encode each line as ids.

        `tag` is the tag of all lines, which is not part of them. It matters only in an extended
        vocabulary, which has subwords for some languages only.
        """

    @abstractmethod
    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        """The line that the ids spell, without special symbols."""

    def subwords(self, ids: Sequence[int], side: int = TARGET) -> list[str]:
        """The text of each id in readable form, with META for spaces."""
        return [self.symbol(int(id), side) for id in ids]

    def vocabulary(self, side: int = TARGET) -> list[str]:
        """All entries, in the order of their ids."""
        # Only Marian's models may have a vocabulary for each side.
        size = self.vocabulary_size
        if side == SOURCE and self.source_vocabulary_size:
            size = self.source_vocabulary_size
        return [self.symbol(id, side) for id in range(size)]

    def leading_tag(self, line: str) -> str:
        """The tag that a line begins with; empty if there is none."""
        for tag in self.tags:
            if line.startswith(tag):
                return tag
        return ""

    def languages_of(self, tag: str) -> tuple[str, str]:
        """The source and target language that the tag of a line names; empty if it names none."""
        return "", ""

    def target_start(self, tag: str) -> list[int]:
        """The tokens that the translation of a line with this tag begins with."""
        return []

    def tag_id(self, tag: str) -> int:
        """The id with which a source begins that has this tag."""
        if tag in self.tags:
            return self.tags[tag]
        if not self.tags:
            raise NMTError(f"tag {tag}: the vocabulary has no tags")
        raise NMTError(f"tag {tag}: the vocabulary has only {', '.join(self.tags)}")

    def save(self, path: Path) -> None:
        write_file(path, self.content)

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        # The libraries' objects cannot all be pickled, so a worker loads the file's content again.
        return type(self), (self.content,)
