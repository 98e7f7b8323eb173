"""HTML pages from templates. A page is one file that loads nothing and runs nothing; foreign text stays text."""

import re
import tempfile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nmt import __version__
from nmt.errors import NMTError
from nmt.report.numbers import duration, in_words, number

# No browser shows these; NUL or half a surrogate pair would break the page for parsers and encoders.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(value: object) -> object:
    """A value as a template prints it, before it is escaped: None as nothing, and no unprintable characters."""
    if isinstance(value, Markup):
        return value
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", "" if value is None else str(value))


def templates() -> Environment:
    """The templates, with autoescape for everything that they print."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {f.__name__: f for f in (duration, in_words, number)}
    return found


def render(template: str, **content: Any) -> str:
    """The HTML of a template; HTML and XML parsers both read it."""
    return templates().get_template(template).render(version=__version__, **content)


def check_output(output: Path, name: str) -> Path:
    """The file to write; NMTError where that cannot be, before time is spent on what is to stand in it."""
    if output.is_dir():
        raise NMTError(f"output={output}: a folder; give the file to write, such as output={output / name}")
    if not output.parent.is_dir():
        raise NMTError(f"output={output}: there is no folder {output.parent}; make it first, or write elsewhere")
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            return output
    except OSError as error:
        raise NMTError(f"output={output}: cannot be written ({error.strerror}); write elsewhere") from error
