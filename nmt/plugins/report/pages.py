"""HTML pages from templates: each is one file that loads nothing, and in which all text is escaped.

It runs nothing, but for the script of a comparison, which its policy knows by hash.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nmt import __version__
from nmt.errors import NMTError
from nmt.plugins.report.numbers import duration, in_words, number

# Not shown by browsers; NUL or half a surrogate pair would break parsers and encoders.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(value: object) -> object:
    """A value as templates print it, before it is escaped: None as nothing, without unprintable characters."""
    if isinstance(value, Markup):
        return value
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", "" if value is None else str(value))


def templates() -> Environment:
    """The environment of the templates, which escapes everything that they print."""
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
    """Render a template to HTML that XML parsers can read as well."""
    return templates().get_template(template).render(version=__version__, **content)


def check_output(output: Path, name: str) -> Path:
    """Check that a file can be written, before time is spent on its content; NMTError if not. Returns it."""
    if output.is_dir():
        raise NMTError(f"output={output}: a folder; give the file to write, such as output={output / name}")
    if not output.parent.is_dir():
        raise NMTError(f"output={output}: there is no folder {output.parent}; make it first, or write elsewhere")
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            return output
    except OSError as error:
        raise NMTError(f"output={output}: cannot be written ({error.strerror}); write elsewhere") from error
