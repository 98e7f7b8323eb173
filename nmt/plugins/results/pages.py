"""HTML pages from templates: single files that load nothing, with all text escaped.

Only the comparison page has a script, which its content security policy allows by hash.
"""

import difflib
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import regex
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from nmt import __version__, files
from nmt.config import in_words
from nmt.text import WITHOUT_BLANKS, WORD_CHARACTER, language_tag

TEMPLATES = Path(__file__).parent / "templates"
# Browsers do not show these; NUL or half a surrogate pair would break parsers and encoders.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
NO_BLANKS = WITHOUT_BLANKS.pattern
# A grapheme cluster of a script without blanks, a word of another script, blanks, or punctuation.
PART = regex.compile(rf"(?={NO_BLANKS})\X|(?:(?!{NO_BLANKS}){WORD_CHARACTER.pattern})+|\s+|\X")
MarkedParts = list[tuple[str, bool]]
"""The parts of a text in order, and whether each differs from another text."""
CODE = re.compile("`([^`]+)`")
# As training records them: "1 x cpu (2 threads)", "4 x NVIDIA H100".
CPU = re.compile(r"([0-9]+) x cpu \(([0-9]+) threads\)")


def number(value: float) -> str:
    """A number with about four significant digits: 12,346, 3.142, 1.64e+14; integers in full."""
    if isinstance(value, int) or 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def printable(value: object) -> object:
    """A value as a template shows it: None is empty, and unprintable characters are replaced."""
    if value is None:
        return ""
    if isinstance(value, Markup):
        return value
    # Texts come from corpora and models, so a template may get anything.
    return UNPRINTABLE.sub("\ufffd", str(value))


def with_code(text: str) -> Markup:
    """A message as HTML, with text between backticks as code."""
    # Escaped first: the only tags in the result are those added here.
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))


def devices_in_words(recorded: str) -> str:
    """The devices of a training record for readers: "CPU, 1 thread" or "NVIDIA H100"."""
    match = CPU.fullmatch(recorded)
    if not match:
        return recorded.removeprefix("1 x ")
    processes = int(match[1])
    threads = int(match[2])
    words = "CPU, 1 thread" if threads == 1 else f"CPU, {threads} threads"
    return words if processes == 1 else f"{processes} x {words} each"


def render(template: str, **content: Any) -> str:
    """The page of a template with this content and the filters that all pages share."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        # All names end in .html, but templates are also included, so escaping does not depend on
        # the name.
        autoescape=True,
        finalize=printable,
        # A misspelled name would otherwise show as nothing.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "devices_in_words": devices_in_words,
        "duration": files.duration,
        "in_words": in_words,
        "language_tag": language_tag,
        "number": number,
        "with_code": with_code,
    }
    content |= {
        "version": __version__,
        "now": datetime.now().astimezone(),
        "differences": differences,
    }
    return environment.get_template(template).render(**content)


def differences(reference: str, hypothesis: str) -> tuple[MarkedParts, MarkedParts]:
    """Split both texts into words, punctuation and spaces; True marks a part that differs.

    In scripts without blanks between words, the parts are single characters as readers see them.
    """
    before = PART.findall(reference)
    after = PART.findall(hypothesis)
    # `autojunk` would ignore words that are frequent in texts of 200 or more parts. Blanks are
    # junk, or matches would consist of blanks alone.
    matcher = difflib.SequenceMatcher(str.isspace, before, after, autojunk=False)
    same_before: set[int] = set()
    same_after: set[int] = set()
    for begin, other_begin, size in matcher.get_matching_blocks():
        same_before.update(range(begin, begin + size))
        same_after.update(range(other_begin, other_begin + size))
    return mark_others(before, same_before), mark_others(after, same_after)


def mark_others(parts: list[str], same: set[int]) -> MarkedParts:
    """Mark the parts whose indices are not in `same`, except for spaces."""
    marked = []
    for index, part in enumerate(parts):
        differs = index not in same and not part.isspace()
        marked.append((part, differs))
    return marked
