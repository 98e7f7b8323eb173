"""Arguments without `=`: files, folders and running text, distinguished by what exists."""

from pathlib import Path
from typing import Any

from nmt.config import exists
from nmt.errors import NMTError


def paths_and_texts(words: list[str], forms: str) -> tuple[list[str], list[str], list[str]]:
    """Sort words into files, folders and texts; NMTError, which ends in `forms`, for a word that is none of them."""
    files, folders, texts = list[str](), list[str](), list[str]()
    for word in words:
        path = Path(word)
        if not word.strip():
            raise NMTError(f"{word!r}: an empty word; is a variable of the shell not set? {forms}")
        if exists(path) and path.is_dir():
            folders.append(word)
        elif exists(path) or word == "-":
            files.append(word)
        elif "/" in word and " " in word and path.parent.name and exists(path.parent):
            raise NMTError(f"{word}: no such file or folder; a text is given by text='{word}' too; {forms}")
        elif any(character.isspace() for character in word):
            texts.append(word)
        elif word == "runs/latest":
            raise NMTError("runs/latest: train a model first: `nmt preprocess`, then `nmt train`")
        else:
            raise NMTError(f"{word}: no such file or folder; {forms}")
    return files, folders, texts


def one_run(words: list[str]) -> dict[str, Any]:
    """The run, or the model directory; NMTError for more than one."""
    if len(words) > 1:
        raise NMTError(f"{words[-1]}: this command takes one run; {words[0]} is given too")
    return {"run": words[0]}


def input_and_run(command: str, words: list[str], forms: str = "") -> dict[str, Any]:
    """The file or text to translate or parse, and the run or runs to do it with."""
    forms = forms or f"`nmt {command} FILE RUN`, or `nmt {command} 'A TEXT WITH BLANKS' RUN`; both may be left out"
    files, folders, texts = paths_and_texts(words, forms)
    if len(files) + len(texts) > 1:
        raise NMTError(f"{', '.join([*files, *texts])}: one file or text, please: {forms}")
    values = {"input": files, "text": texts, "run": folders}
    return {key: items[0] if len(items) == 1 else items for key, items in values.items() if items}
