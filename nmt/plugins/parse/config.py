"""The keys of a treebank."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nmt.config import as_list, choice, require

if TYPE_CHECKING:
    from nmt.config import DataConfig


@dataclass
class TreebankConfig:
    """A treebank."""

    extra: Any = None
    """treebank: more training trees, in the form of train, such as the output of another parser on plain sentences."""
    leaves: str = choice("words", "words", "tags", "XX")
    """treebank: how the model writes a word: words (its tag and itself), tags (its tag alone) or XX."""

    def __post_init__(self) -> None:
        self.extra = as_list(self.extra)

    def check(self, owner: "DataConfig") -> None:
        unused = owner.kind == "treebank" or not self.extra
        require(unused, f"data.extra with data.kind={owner.kind}: it is for treebanks")
