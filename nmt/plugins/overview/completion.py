"""`nmt --install-completion`, and `nmt --complete`, which the shells run at each Tab and which imports little."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import NoneType

from nmt.commands import COMMANDS
from nmt.config import OPTIONS, groups, in_words, keys_of, require
from nmt.plugins.overview.commands import folders_of
from nmt.registry import entries_of

KINDS = {key: ["run"] for key in ("run", "init", "RUN", "SYSTEM")}
KINDS |= {"prepared": ["corpus"], "CORPUS": ["corpus"], "NAME": ["run", "corpus"]}
"""A key, or a word of a command's usage -> the kinds of folders that it takes."""


def complete(words: list[str]) -> None:
    """Print completions of the last word, one per line. The first word is the shell; the rest follow `nmt`."""
    shell, *words = words
    # bash splits words at = and :, replaces only the last part, and keeps the backslashes that it needs.
    *before, word = re.sub(r"\n?([=:]+)\n?", r"\1", "\n".join(words)).split("\n")
    word = re.sub(r"\\(.)", r"\1", word)
    start = max(word.rfind("="), word.rfind(":")) + 1 if shell == "bash" else 0
    replies = [reply for reply in candidates(before, word) if reply.startswith(word) and reply.isprintable()]
    for reply in dict.fromkeys(replies):
        # Omit a folder if runs or corpora in it are also offered.
        if not (reply.endswith("/") and any(f"{other}/".startswith(reply) for other in replies if other != reply)):
            print(re.sub(r"([^\w@%+=:,./~[-])", r"\\\1", reply[start:]) if shell == "bash" else reply)


def candidates(before: list[str], word: str) -> Iterator[str]:
    """The words that can follow; of a dotted key, only the part up to the next dot."""
    name = next((word for word in before if word in entries_of("command")), "")
    if not name:
        yield from (*entries_of("command"), *entries_of("option"), "--help", "--version")
        return
    command, keys = COMMANDS[name], keys_of(COMMANDS[name].config)
    offered = {group: options for group, (_, options) in groups(command).items()}
    if "=" in word:
        key, start = word.partition("=")[0], max(map(word.rfind, "=[,")) + 1
        replies = [*offered.get(key, ())]
        if member := keys.get(key):
            also = [value for value, kind in ((True, bool), (False, bool), (None, NoneType)) if kind in member.types]
            replies += map(in_words, (*member.choices, *also))
            if member.is_text and "literal" not in member.metadata:
                replies += (*folders(*KINDS.get(key, ())), *files(word[start:]))
        yield from (word[:start] + reply for reply in replies)
    else:
        yield from (*OPTIONS, *command.options)
        hidden = tuple(f"{part}." for part in command.hides.split())
        for full in (full for full in (*keys, *offered) if not f"{full}.".startswith(hidden)):
            end = full.find(".", len(word))
            yield f"{full}=" if end < 0 else full[: end + 1]
        if command.words:
            kinds = [kind for part in re.findall("[A-Z]+", command.usage) for kind in KINDS.get(part, [])]
            yield from (*folders(*kinds), *re.findall("delete", command.usage), *files(word))


def folders(*kinds: str) -> list[str]:
    return [str(folder) for folder, kind in folders_of(Path()) if kind in kinds] if kinds else []


def files(start: str) -> list[str]:
    folder = start[: start.rfind("/") + 1]
    return [f"{folder}{path.name}{'/' * path.is_dir()}" for path in sorted(Path(folder or ".").glob("[!.]*"))]


def install(words: list[str]) -> None:
    """Write a completion file for the named shell or the shell that runs nmt; print how to use and remove the file."""
    from shellingham import ShellDetectionFailure, detect_shell

    from nmt.files import write_file

    shell = "".join(words)
    with suppress(ShellDetectionFailure):
        shell = shell or detect_shell()[0]
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    fish = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fish/completions/nmt.fish"
    places = {"bash": data / "bash-completion/completions/nmt", "zsh": data / "nmt/completion.zsh", "fish": fish}
    require(shell in places, f"{shell or 'unknown shell'}: pass yours: `nmt --install-completion bash` (or zsh, fish)")
    file = places[shell]
    is_ours = not file.exists() or "--install-completion" in file.read_text(errors="replace")
    require(is_ours, f"{file} was not written by nmt; move it out of the way first")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, (Path(__file__).parent / "shells" / shell).read_bytes())
    line = f"add the line `source {shlex.quote(str(file))}` to ~/.{shell}rc"
    how = {"bash": f"; without the package bash-completion, {line}", "zsh": f"; {line}", "fish": ""}
    print(f"wrote {file}: open a new shell{how[shell]}. To undo this, delete the file.")
