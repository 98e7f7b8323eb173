"""Options of `nmt translate`: what arrives as it is, and a glossary."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nmt.config import require, undecided
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.config import TranslatorOptions

MEANT = ["usual", "none", "true", "yes", "null"]
"""Words that are probably no regular expressions, nor those that look like them."""


def protected_kinds(kinds: list[str]) -> list[str]:
    """usual and regular expressions, as `protect` has them; NMTError where one is none. Nothing for none."""
    if kinds == ["none"]:
        return []
    require("none" not in kinds, "protect: none stands alone, not in a list")
    for kind in kinds:
        if kind == "usual":
            continue
        shape = f"[{str(kind)[:1]}]{str(kind)[1:]}"
        is_word = get_close_matches(str(kind).lower(), MEANT, cutoff=0.8)  # misspelt, it would turn all others off
        require(not is_word, f"protect={kind}: usual, none, or regular expressions; {shape} is one")
        import regex  # takes time to load, and few need it

        try:
            empty = regex.compile(kind).match("")
        except (regex.error, RecursionError) as error:
            raise NMTError(f"protect={kind}: no regular expression ({error}); mend it") from error
        require(not empty, f"protect={kind}: it also matches no text at all; let it match one character or more")
    return kinds


@dataclass
class ProtectionConfig:
    """What arrives as it is, and the terms of a glossary."""

    protect: list[str] = field(default_factory=lambda: ["usual"])
    """What arrives as it is: usual (placeholders, addresses, file names, code, numbers with units), none, or a list of
    regular expressions and usual, such as [usual,'ACME-[0-9]+']."""
    glossary: str | None = undecided(None, "content")
    """File of terms: a term, a tab and its translation, the same again to keep it; docs/terms.md."""

    def __post_init__(self) -> None:
        self.protect = protected_kinds(self.protect)

    def check(self, owner: "TranslatorOptions") -> None:
        """NMTError where no search is for given words."""
        engine = owner.compute.engine
        how = "engine=ctranslate2" if engine == "ctranslate2" else "decode.do_sample=true" * owner.decode.do_sample
        instead = "engine=torch" if engine == "ctranslate2" else "a beam search"
        require(
            self.glossary is None or not how,
            f"glossary={self.glossary} with {how}: no search for given words; use {instead}",
        )
