"""Languages that a file says it is in, and those of a model."""

import re
from dataclasses import dataclass

from nmt.errors import NMTError

SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "src": "", "tgt": "", "mul": "", "und": ""}
"""Codes of one language, and codes of none."""


def base(code: str) -> str:
    """The language of a code such as de-AT or de_AT in small letters, without its country."""
    found = re.match(r"\s*([a-zA-Z]{2,8})(?![a-zA-Z])", code)
    return SAME.get(found[1].lower(), found[1].lower()) if found else ""


def differ(one: str, other: str) -> bool:
    """True for codes of two languages; of two and of three letters (de and deu), they cannot be compared."""
    return bool(base(one) and base(other)) and len(base(one)) == len(base(other)) and base(one) != base(other)


@dataclass(frozen=True)
class Direction:
    """From one language to another; empty: not known."""

    source: str = ""
    target: str = ""

    def __str__(self) -> str:
        words = (("from", self.source), ("into", self.target))
        return " ".join(f"{word} {code:.40}" for word, code in words if code)

    def check(self, model: "Direction") -> None:
        """NMTError where a model translates from, or into, another language than that of a file."""
        if differ(self.source, model.source) or differ(self.target, model.target):
            raise NMTError(f"it is {self}, but the model translates {model}: take another model, or mend its codes")
