"""`nmt --complete`, which shells run at each Tab, and `nmt --install-completion`.

This file imports little, because a Tab must not take seconds.
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import NoneType

from nmt import files
from nmt.commands import COMMANDS
from nmt.commands.overview.listing import folders_of
from nmt.config import OPTIONS, Command, NMTError, groups, in_words, keys_of
from nmt.extensions import CommandEntry
from nmt.registry import entries_of

KINDS = {
    "run": ("run",),
    "init": ("run",),
    "RUN": ("run",),
    "SYSTEM": ("run",),
    "prepared": ("corpus",),
    "CORPUS": ("corpus",),
    "NAME": ("run", "corpus"),
}
"""A key, or a word of a command's usage -> the kinds of folders that it takes."""
JOINTS = re.compile(r"\n?([=:]+)\n?")
"""Where bash splits a word, after the parts have been joined by line breaks: model, =, base."""
ESCAPED = re.compile(r"\\(.)")
"""A character with the backslash that keeps bash from interpreting it."""
SPECIAL = re.compile(r"([^\w@%+=:,./~[-])")
"""A character that bash would interpret."""
TYPES_OF_WORDS = (
    (True, bool),
    (False, bool),
    (None, NoneType),
)
"""Values to offer, with the types that a key must accept."""


def complete(words: list[str]) -> None:
    """Print completions of the last word, one per line.

    The first word is the shell; the rest follow `nmt`.
    """
    shell, *words = words
    # bash splits words at = and :, replaces only the last part, and keeps the backslashes that it
    # needs. Here the parts of a word become one again.
    *before, word = JOINTS.sub(r"\1", "\n".join(words)).split("\n")
    word = ESCAPED.sub(r"\1", word)
    replies = []
    for reply in candidates(before, word):
        # A name with a line break or control characters could end in the shell as several replies.
        if reply.startswith(word) and reply.isprintable():
            replies.append(reply)
    for reply in dict.fromkeys(replies):
        if holds_another(reply, replies):
            continue
        if shell == "bash":
            # Only the part that bash replaces, without what it has split off.
            start = max(word.rfind("="), word.rfind(":")) + 1
            print(SPECIAL.sub(r"\\\1", reply[start:]))
        else:
            print(reply)


def holds_another(reply: str, replies: list[str]) -> bool:
    """Whether a reply is a folder that contains runs or corpora that are also offered."""
    if not reply.endswith("/"):
        return False
    return any(f"{other}/".startswith(reply) for other in replies if other != reply)


def candidates(before: list[str], word: str) -> Iterator[str]:
    """The words that can follow; of a dotted key, only the part up to the next dot."""
    names = [word for word in before if word in entries_of(CommandEntry)]
    if not names:
        yield from entries_of(CommandEntry)
        yield from ("--install-completion", "--help", "--version")
        return
    command = COMMANDS[names[0]]
    if "=" in word:
        yield from values(command, word)
        return
    yield from (*OPTIONS, *command.options)
    yield from keys(command, word)
    if command.words:
        yield from words_without_key(command, word)


def keys(command: Command, word: str) -> Iterator[str]:
    """The keys and groups of a command, up to the dot that follows `word`."""
    hidden = tuple(f"{part}." for part in command.hides.split())
    for key in (*keys_of(command.config), *groups(command)):
        # The dot, so that hiding `model` does not hide a key such as `models`.
        if f"{key}.".startswith(hidden):
            continue
        end = key.find(".", len(word))
        yield f"{key}=" if end < 0 else key[: end + 1]


def values(command: Command, word: str) -> Iterator[str]:
    """The values of the key in `word`; of a list, those of the last item."""
    key, _, _ = word.partition("=")
    start = max(word.rfind("="), word.rfind("["), word.rfind(",")) + 1
    replies: list[str] = []
    options = groups(command)
    if key in options:
        _, names = options[key]
        replies += names
    member = keys_of(command.config).get(key)
    if member:
        replies += [in_words(value) for value in member.choices]
        replies += [in_words(value) for value, kind in TYPES_OF_WORDS if kind in member.types]
        # A literal key takes the text itself, such as a sentence, not a path.
        if member.is_text and "literal" not in member.metadata:
            replies += folders(KINDS.get(key, ()))
            replies += paths(word[start:])
    for reply in replies:
        yield word[:start] + reply


def words_without_key(command: Command, word: str) -> Iterator[str]:
    """The words that a command takes without `KEY=`: folders, `delete` and paths."""
    kinds: list[str] = []
    for name in re.findall("[A-Z]+", command.usage):
        kinds += KINDS.get(name, ())
    yield from folders(kinds)
    if "delete" in command.usage:
        yield "delete"
    yield from paths(word)


def folders(kinds: list[str] | tuple[str, ...]) -> list[str]:
    """The folders of these kinds in runs/ and data/."""
    # The listing looks at every folder in runs/ and data/, so make it only for keys that need it.
    if not kinds:
        return []
    return [str(folder) for folder, kind in folders_of(Path()) if kind in kinds]


def paths(start: str) -> list[str]:
    """The files and folders beside a path that the user has begun to write."""
    folder = start[: start.rfind("/") + 1]
    names = []
    for path in sorted(Path(folder or ".").glob("[!.]*")):
        ending = "/" if path.is_dir() else ""
        names.append(f"{folder}{path.name}{ending}")
    return names


def install(words: list[str]) -> None:
    """Write a completion file for the named shell or the shell that runs nmt.

    Prints how to use and remove the file.
    """
    from shellingham import ShellDetectionFailure, detect_shell

    shell = "".join(words)
    if not shell:
        with suppress(ShellDetectionFailure):
            shell, _ = detect_shell()
    # The XDG Base Directory Specification; an empty variable counts as not set.
    home_data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    home_config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    places = {
        "bash": home_data / "bash-completion/completions/nmt",
        "zsh": home_data / "nmt/completion.zsh",
        "fish": home_config / "fish/completions/nmt.fish",
    }
    if shell not in places:
        example = "`nmt --install-completion bash` (or zsh, fish)"
        raise NMTError(f"{shell or 'unknown shell'}: pass yours: {example}")
    file = places[shell]
    # Every file that nmt writes here contains this word in its first line.
    if file.exists() and "--install-completion" not in file.read_text(errors="replace"):
        raise NMTError(f"{file} was not written by nmt; move it out of the way first")
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_file(file, (Path(__file__).parent / "shells" / shell).read_bytes())
    # bash reads its folder only with the package bash-completion, fish always reads its own, and
    # zsh has no such folder of the user.
    line = f"add the line `source {shlex.quote(str(file))}` to ~/.{shell}rc"
    steps = {
        "bash": f"; without the package bash-completion, {line}",
        "zsh": f"; {line}",
        "fish": "",
    }
    print(f"wrote {file}: open a new shell{steps[shell]}. To undo this, delete the file.")
