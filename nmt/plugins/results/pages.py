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
Parts = list[tuple[str, bool]]
CODE = re.compile("`([^`]+)`")
# As training records them: "1 x cpu (2 threads)", "4 x NVIDIA H100".
CPU = re.compile(r"([0-9]+) x cpu \(([0-9]+) threads\)")


def number(value: float) -> str:
    """A number with about four significant digits, integers in full: 12,346, 3.142, 0.07, 1.64e+14."""
    return f"{value:,.0f}" if isinstance(value, int) or 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def printable(value: object) -> object:
    """A value as a template shows it: None is empty, and unprintable characters are replaced."""
    return (
        value
        if isinstance(value, Markup)
        else UNPRINTABLE.sub("\ufffd", "" if value is None else str(value))
    )


def with_code(text: str) -> Markup:
    """A message as HTML: what it puts between backticks is set as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))


def devices_in_words(recorded: str) -> str:
    """The devices of a training record for readers: "CPU, 1 thread" or "NVIDIA H100"."""
    match = CPU.fullmatch(recorded)
    if not match:
        return recorded.removeprefix("1 x ")
    processes, threads = int(match[1]), int(match[2])
    words = "CPU, 1 thread" if threads == 1 else f"CPU, {threads} threads"
    return words if processes == 1 else f"{processes} x {words} each"


def render(template: str, **content: Any) -> str:
    filters = (devices_in_words, files.duration, in_words, language_tag, number, with_code)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {function.__name__: function for function in filters}
    content |= {
        "version": __version__,
        "now": datetime.now().astimezone(),
        "differences": differences,
    }
    return environment.get_template(template).render(**content)


def differences(reference: str, hypothesis: str) -> tuple[Parts, Parts]:
    """Split both texts into words, punctuation and spaces; True marks a part that differs.

    In scripts without blanks between words, the parts are single characters as readers see them.
    """
    before = PART.findall(reference)
    after = PART.findall(hypothesis)
    blocks = difflib.SequenceMatcher(
        str.isspace, before, after, autojunk=False
    ).get_matching_blocks()

    def marked(parts: list[str], side: int) -> Parts:
        same = set[int]()
        for block in blocks:
            begin = block[side]
            same.update(range(begin, begin + block.size))
        return [(part, at not in same and not part.isspace()) for at, part in enumerate(parts)]

    return marked(before, 0), marked(after, 1)
