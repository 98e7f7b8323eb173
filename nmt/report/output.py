"""Where a page goes."""

import tempfile
from pathlib import Path

from nmt.errors import NMTError


def check_output(output: Path, example: Path) -> Path:
    """The file to write; NMTError where that cannot be, before time is spent on what is to stand in it."""
    if output.is_dir():
        raise NMTError(f"output={output}: a folder; give the file to write, such as output={example}")
    if not output.parent.is_dir():
        raise NMTError(f"output={output}: there is no folder {output.parent}; make it first, or write elsewhere")
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            return output
    except OSError as error:
        raise NMTError(f"output={output}: cannot be written ({error.strerror}); write elsewhere") from error
