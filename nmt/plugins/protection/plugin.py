"""Placeholders, tags and other items kept unchanged in translations, and glossaries."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nmt.config import NMTError, setting
from nmt.extensions import Add, OptionsEntry, StageEntry

if TYPE_CHECKING:
    from nmt.config import TranslatorOptions

WORDS = ["usual", "none", "true", "yes", "null"]
"""Words that are not regular expressions; similar words are probably misspelled."""


@dataclass
class ProtectionConfig:
    """What to keep unchanged, and the glossary to use."""

    protect: list[str] = field(default_factory=lambda: ["usual"])
    """What to keep unchanged: usual (placeholders, addresses, file names, code, numbers with
    units), none, or a list of regular expressions that may include usual, such as
    [usual,'ACME-[0-9]+']."""
    glossary: str | None = setting(None, is_file=True)
    """Glossary file: each line has a term, a tab (in .csv files, a comma or semicolon) and the
    translation of the term (repeat the term to keep it); see docs/guides/glossaries.md."""

    def __post_init__(self) -> None:
        for kind in self.protect:
            # Here, because a mistake should fail when the options are read, not at the first line.
            if kind not in ("usual", "none"):
                check_pattern(str(kind))
        if "none" in self.protect:
            if len(self.protect) > 1:
                raise NMTError("protect=none: cannot be combined with other values")
            # An empty list is what `Finder` takes: no patterns at all.
            self.protect = []

    def check(self, owner: "TranslatorOptions") -> None:
        if self.glossary is not None and owner.decode.do_sample:
            # A glossary constrains beam search; sampling has no beam to constrain.
            problem = "not supported with decode.do_sample=true; omit one of them"
            raise NMTError(f"glossary={self.glossary}: {problem}")


def check_pattern(kind: str) -> None:
    """Raise NMTError if a value of `protect` is not a regular expression.

    As a pattern, a misspelled word would disable the usual kinds.
    """
    is_word = bool(get_close_matches(kind.lower(), WORDS, cutoff=0.8))
    if is_word:
        example = f"[{kind[:1]}]{kind[1:]}"
        raise NMTError(
            f"protect={kind}: pass usual, none, or regular expressions, such as {example}"
        )
    import regex  # slow to import and rarely needed

    try:
        # A pattern such as "x*" would find an empty item at every position.
        matches_nothing = regex.compile(kind).match("") is not None
    except (regex.error, RecursionError) as error:
        raise NMTError(f"protect={kind}: not a regular expression ({error})") from error
    if matches_nothing:
        advice = "make it match at least one character"
        raise NMTError(f"protect={kind}: matches the empty string; {advice}")


def register(add: Add) -> None:
    # Protection comes before terms: when a line is cut or masked, its terms are found again.
    path = "nmt.plugins.protection"
    # Without a key, because even protect=none keeps what documents copy.
    add(StageEntry("protected", f"{path}.protection:protection", order=20))
    add(StageEntry("terms", f"{path}.term_stage:terms", order=30, key=("protection", "glossary")))
    add(OptionsEntry("translator.protection", f"{path}.plugin:ProtectionConfig", is_inline=True))
