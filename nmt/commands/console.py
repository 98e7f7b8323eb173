"""Progress and notices of the commands, on standard error."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.training import is_first_process

if TYPE_CHECKING:
    from rich.console import Console


def talker() -> "Console":
    """A console on standard error that does not wrap lines; silent in all but the first of several processes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=not is_first_process())


def tell_latest(runs: list[str]) -> None:
    """Print which run `runs/latest` is, on a terminal or if there are other runs beside it."""
    latest = Path("runs/latest")
    if runs != [str(latest)] or not latest.is_symlink():
        return
    others = [path for path in latest.parent.iterdir() if path.is_dir() and not path.name.startswith(".")]
    if sys.stderr.isatty() or len(others) > 2:  # the link, and what it leads to
        print(f"nmt: run={latest.parent / latest.readlink()}, the newest; run=OTHER takes another", file=sys.stderr)
