"""What the elements of a vocabulary of XML are for a translator."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Vocabulary:
    """The elements of a vocabulary by their names without prefixes.

    Elements in no category are inline if text is beside them, and blocks otherwise, so that none of
    their text is lost.
    """

    title: str
    """The vocabulary's name in messages."""

    evidence: str
    """A string before the text of its files, in lower case, if their root is not in `blocks`."""

    blocks: frozenset[str]
    """Elements that divide the text around them, even inside a paragraph."""

    inline: frozenset[str]
    """Elements whose text belongs to the sentence around them."""

    labels: frozenset[str]
    """Inline elements whose text is never a part of a word, such as menu items."""

    notes: frozenset[str]
    """Elements inside a sentence that have sentences of their own, such as footnotes."""

    copied: frozenset[str]
    """Code and names inside a sentence."""

    kept: frozenset[str]
    """Elements outside of sentences whose content stays, such as listings and dates."""

    titles: frozenset[str]
    """Names of commands and the like that are blocks if they have several words."""

    counted: Mapping[str, str]
    """Other elements that stay -> what a notice calls them."""

    scripts: Mapping[str, str]
    """Elements for superscripts and subscripts -> "sup" or "sub"."""

    attributes: frozenset[str]
    """Attributes that people read; inside sentences, they stay and are counted."""

    def divides(self, name: str) -> bool:
        """Whether an element divides the text around it."""
        is_block = name in self.blocks or name in self.titles
        return is_block or name in self.kept or name in self.counted
