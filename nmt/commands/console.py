"""What commands share: the words without `=` that they read, and progress and notices on standard error."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config import exists
from nmt.errors import NMTError
from nmt.training import is_first_process

if TYPE_CHECKING:
    from rich.console import Console


def paths_and_texts(words: list[str], forms: str) -> tuple[list[str], list[str], list[str]]:
    """Sort words into files, folders and texts; NMTError, which ends in `forms`, for a word that is none of them."""
    files, folders, texts = list[str](), list[str](), list[str]()
    for word in words:
        if word == "-" or (word.strip() and exists(Path(word))):
            (folders if Path(word).is_dir() else files).append(word)
        elif len(word.split()) > 1:
            texts.append(word)
        elif word == "runs/latest":
            raise NMTError("runs/latest: train a model first: `nmt preprocess`, then `nmt train`")
        else:
            raise NMTError(f"{word or repr(word)}: no such file or folder; {forms}")
    return files, folders, texts


def one_run(words: list[str]) -> dict[str, Any]:
    """The run, or the model directory; NMTError for more than one."""
    if len(words) > 1:
        raise NMTError(f"{words[-1]}: this command takes one run; {words[0]} is given too")
    return {"run": words[0]}


def talker() -> "Console":
    """A console on standard error that does not wrap lines; silent in all but the first of several processes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=not is_first_process())
