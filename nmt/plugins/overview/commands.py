"""`nmt runs`: list the runs and prepared corpora of a folder, or delete some, without torch. `nmt plugins`.

`nmt --install-completion`, and `nmt --complete`, which the shells run at each Tab: this file imports little.
"""

import json
import math
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import Any

from nmt import data, files, training
from nmt.commands import COMMANDS, talker
from nmt.config import (
    OPTIONS,
    Command,
    NMTError,
    answer,
    choice,
    groups,
    in_words,
    keys_of,
    matches,
    one_line,
    require,
    shown,
)
from nmt.registry import entries_of, registry

Row = dict[str, Any]  # facts about a folder
FIRST_KINDS = ("run", "corpus", "export")
"""The kinds of folders that the tables list first; a model directory counts as a run."""


@dataclass
class RunsConfig:
    """Options of `nmt runs`."""

    folder: str = "."
    """Folder that contains runs/ and data/, or runs themselves, or one run; may be given without folder=."""
    delete: list[str] = field(default_factory=list)
    """Runs and corpora to delete; may be given as `nmt runs delete NAME...`."""
    yes: bool = False
    """Delete without asking."""
    format: str = choice("text", "text", "json")
    """Output format: text or json."""


def folders_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """The runs and corpora in a folder's runs/ and data/, or in itself, or the folder if it is one, with their kinds.

    Follows no links inside. A folder in runs/ or data/ that contains neither has the kind "foreign".
    """
    roots = [root for root in (folder / "runs", folder / "data") if root.is_dir()]
    tops = [
        top
        for root in roots or [folder]
        for top in sorted(root.glob("[!.]*/"))
        if not top.is_symlink()
    ]
    for top in [folder] if not roots and files.kind_of_folder(folder) else tops:
        inner = [
            top,
            *(path for path in (*top.glob("*/"), *top.glob("*/*/")) if path.name != "model"),
        ]
        base = Path(os.path.realpath(top))
        real = [
            path for path in inner if Path(os.path.realpath(path)) == base / path.relative_to(top)
        ]
        kinds = {path: kind for path in real if (kind := files.kind_of_folder(path))}
        runs = {path for path, kind in kinds.items() if kind == "run"}
        # An export in a run belongs to that run.
        kinds = {
            path: kind
            for path, kind in kinds.items()
            if kind != "export" or runs.isdisjoint(path.parents)
        }
        yield from (kinds or dict.fromkeys([top][: len(roots)], "foreign")).items()


def about_run(folder: Path) -> Row:
    config, trained = (
        training.read_config(folder) if (folder / "config.yaml").exists() else {},
        dict[str, Any](),
    )
    if not config or (folder / "model").exists():
        trained = files.read_description(files.find_model_directory(str(folder))).training
    rows, planned = (
        training.read_metrics(folder, last=500),
        files.within(config, "trainer", "max_steps"),
    )
    planned, delivered = planned if matches(planned, int) else 0, trained.get("updates", 0)
    saved = map(training.checkpoint_step, training.list_checkpoints(folder))
    update = max([delivered, *saved, *(int(row["step"]) for row in rows[-1:])])
    state = training.run_state(folder, update, planned, delivered) if config else "model"
    validated = next((row for row in reversed(rows) if row.get("valid_loss")), {})
    scores = {
        key: float(validated.get(key) or "nan") for key in ("valid_loss", "valid_bleu", "valid_f1")
    }
    # The model of a finished run may be an earlier checkpoint or a mean.
    if state == "finished" and matches(score := files.within(trained, "score", "value"), float):
        scores["valid_f1" if validated.get("valid_f1") else "valid_bleu"] = score
        scores["valid_loss"] = min(
            trained.get("candidates", {}).values(), default=scores["valid_loss"]
        )
    finite = {key: score if math.isfinite(score) else None for key, score in scores.items()}
    return {"state": state, "updates": update, "planned": planned, **finite}


def about_corpus(folder: Path) -> Row:
    tree = files.read_mapping(folder / "manifest.json", files.parse_json, files.LARGE)
    facts = {side: files.within(tree, "content", "data", side) for side in ("source", "target")}
    facts |= {
        "pairs": files.within(tree, "counts", "train", "kept"),
        "vocabulary": tree.get("vocabulary_size"),
    }
    is_ours = all(map(matches, facts.values(), (str, str, int, int)))
    require(is_ours, f"{folder / 'manifest.json'} was not written by `nmt preprocess`")
    return {"state": "prepared", **facts}


def about(folder: Path, kind: str) -> Row:
    """The facts about a folder or the `problem` with it; `modified` is in seconds since 1970."""
    size, facts = (
        dict.fromkeys(("bytes", "modified"), 0),
        {"state": "foreign" if kind == "foreign" else "damaged"},
    )
    try:
        require(kind != "foreign", "not a run or corpus of nmt")
        stats = [(path.name, path.lstat()) for path in folder.rglob("*") if not path.is_dir()]
        times = [stat.st_mtime for name, stat in stats if name in ("metrics.csv", *files.markers())]
        size = {
            "bytes": sum(stat.st_size for _, stat in stats),
            "modified": int(max(times, default=0)),
        }
        if kind == "run":
            facts = about_run(folder)
        elif kind == "corpus":
            facts = about_corpus(folder)
        else:
            facts = {"state": kind}
    except (NMTError, OSError, ValueError) as error:
        facts["problem"] = one_line(error)
    return {"kind": kind, "name": str(folder), **facts, **size}


def cell(key: str, value: Any) -> str:
    from rich.filesize import decimal

    if key in ("bytes", "modified"):
        return decimal(value) if key == "bytes" else files.duration(time.time() - value)
    if key == "problem":
        return shown(value)
    number = ",d" if isinstance(value, int) else ".3f" if key == "valid_loss" else ".2f"
    return files.printable(value) if isinstance(value, str) else format(value, number)


def print_tables(rows: list[Row]) -> None:
    """Print a table of each kind of folder, without empty columns; plain columns if the output is not a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    box, width = (SIMPLE_HEAD, None) if sys.stdout.isatty() else (None, 10_000)
    for kind, group in groupby(rows, lambda row: row["kind"]):
        cells = [{key: cell(key, value) for key, value in row.items() if value} for row in group]
        table, titles = (
            Table(box=box, padding=(0, 1, 0, 0)),
            {"name": kind, "bytes": "size", "modified": "age"},
        )
        keys = [key for key in dict.fromkeys(key for row in cells for key in row) if key != "kind"]
        for key in keys:
            table.add_column(titles.get(key, key.replace("_", " ")), no_wrap=key == "name")
        for row in cells:
            table.add_row(*(row.get(key, "") for key in keys))
        Console(width=width, markup=False, highlight=False, emoji=False).print(table)


def place_of(kind: str) -> tuple[int, str]:
    """The place of a kind of folder in the tables. Plugins' kinds follow nmt's own, and foreign folders come last."""
    if kind in FIRST_KINDS:
        return FIRST_KINDS.index(kind), kind
    return len(FIRST_KINDS) + (kind == "foreign"), kind


def run(config: RunsConfig) -> None:
    folder = Path(config.folder)
    rows = [about(*pair) for pair in folders_of(folder)]
    rows.sort(key=lambda row: (*place_of(row["kind"]), -row["modified"]))
    if config.delete:
        try:
            delete(
                [chosen(name, folder, rows) for name in dict.fromkeys(config.delete)],
                rows,
                config.yes,
            )
        except FileNotFoundError as error:
            raise NMTError(f"{error.filename}: another program has deleted this") from error
        return
    from nmt.plugins.overview.details import details_of  # completion, in this file, imports little

    details = (
        details_of(folder)
        if [row["name"] for row in rows if row["kind"] == "run"] == [str(folder)]
        else []
    )
    if config.format == "json":
        tree = {"folder": str(folder), "folders": rows}
        print(json.dumps(tree | {"details": dict(details)} if details else tree, indent=2))
    elif rows:
        print_tables(rows)
        if details:
            print()
        for name, value in details:
            print(files.printable(f"{name:12}{value}"))
    else:
        talker().print(f"no runs or prepared corpora in {folder}; start with `nmt preprocess`")


def chosen(name: str, folder: Path, rows: list[Row]) -> Row:
    """The row of a run or corpus, named with or without runs/ or data/; NMTError if nmt must not delete it."""
    names = {str(base / name) for base in (Path(), folder, folder / "runs", folder / "data")}
    matching = [row for row in rows if row["name"] in names]
    problem = "several folders have this name" if matching else "no such run or corpus, or a link"
    require(len(matching) == 1, f"{name}: {problem}; write a name that `nmt runs` lists")
    row, path = matching[0], Path(matching[0]["name"])
    require("problem" not in row, f"{path}: {row.get('problem')}; nmt deletes only what it wrote")
    inside = [row["name"] for row in rows if path in Path(row["name"]).parents]
    require(not inside, f"{path}: contains {', '.join(inside)}; delete that first")
    if row["kind"] == "corpus":
        data.check_ours(path, "move it out of the way first")
    row["kept"] = list(files.foreign_files(path, row["kind"]))
    kept = ", ".join(file.relative_to(path).as_posix() for file in row["kept"])
    row["others"] = f", except for files that nmt did not write: {kept}" if kept else ""
    return row


def delete_folder(path: Path, kept: list[Path]) -> None:
    """Delete a folder as a whole, or everything in it except for certain files."""
    if not kept:
        shutil.rmtree(path.rename(files.temporary_name(path)))
        return
    contents = sorted(path.rglob("*"), reverse=True)  # a folder after its contents
    for file in contents:
        if file.is_symlink() or not file.is_dir():
            if file not in kept:
                file.unlink()
        elif not any(file.iterdir()):
            file.rmdir()


def latest_links_to(folders: list[Path]) -> list[Path]:
    """The `latest` links above these folders that lead to one of them; all others are not nmt's to change."""
    targets = {folder.resolve() for folder in folders}
    links = {parent / "latest" for folder in folders for parent in folder.parents}
    return [link for link in sorted(links) if link.is_symlink() and link.resolve() in targets]


def delete(doomed: list[Row], rows: list[Row], yes: bool) -> None:
    """Delete runs and corpora once the user agrees; point the `latest` links to them to the newest remaining run."""
    paths, console = [Path(row["name"]) for row in doomed], talker()
    with ExitStack() as locks:
        for path, row in zip(paths, doomed, strict=True):
            lock = path / ("tokenizer.model" if row["kind"] == "corpus" else ".lock")
            locks.enter_context(
                files.locked_file(
                    lock, True, f"{path}: another nmt is using it; wait until it exits"
                )
            )
            console.print(files.printable(f"{path}  {cell('bytes', row['bytes'])}{row['others']}"))
        require(
            yes or sys.stdin.isatty(),
            "nothing was deleted: to delete without a terminal, pass --yes",
        )
        require(
            yes or console.input("Delete? [y/N] ").strip().lower() in ("y", "yes"),
            "nothing was deleted",
        )
        links = latest_links_to(paths)
        for path, row in zip(paths, doomed, strict=True):
            delete_folder(path, row["kept"])
    runs = [Path(row["name"]) for row in rows if row not in doomed and row["kind"] == "run"]
    for link in links:
        newest = next(
            (run for run in runs if link.parent in run.parents and (run / "model").is_dir()), None
        )
        if newest:
            training.point_latest_to(newest, link)
        else:
            link.unlink()
    console.print(f"deleted {', '.join(map(str, paths))}")


def folder_or_names(words: list[str]) -> dict[str, Any]:
    name, *more = words
    if name == "delete":
        require(bool(more), "delete: name what to delete, as in `nmt runs delete runs/mine`")
        return {"delete": more}
    folders = [
        folder for folder in (Path(name), Path("runs", name), Path("data", name)) if folder.is_dir()
    ]
    unknown = f"{name}: no such folder, run or corpus; `nmt runs` lists those in this folder"
    require(bool(folders), answer("runs", [f"{name}="]) or unknown)
    require(not more, f"{words[-1]}: give one folder or run, or `nmt runs delete NAME...`")
    return {"folder": str(folders[0])}


RUNS = Command(
    *("runs", RunsConfig, run, folder_or_names),
    usage="[FOLDER or RUN] or delete NAME...",
    examples=("", "delete runs/old data/old"),
    options={"--json": "format=json", "--yes": "yes=true"},
)


@dataclass
class PluginsConfig:
    """No options."""


def list_plugins(config: PluginsConfig) -> None:
    names = dict[tuple[str, str], list[str]]()
    for kind, entries in registry().items():
        for entry in entries.values():
            names.setdefault((entry.plugin, kind), []).append(entry.name)
    for (plugin, kind), added in sorted(
        names.items(), key=lambda row: (row[0][0] != "core", row[0])
    ):
        print(f"{plugin:12} {kind:9} {', '.join(added)}")


PLUGINS = Command("plugins", PluginsConfig, list_plugins, examples=("", "| grep metric"))


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
    replies = [
        reply
        for reply in candidates(before, word)
        if reply.startswith(word) and reply.isprintable()
    ]
    for reply in dict.fromkeys(replies):
        # Omit a folder if runs or corpora in it are also offered.
        if not (
            reply.endswith("/")
            and any(f"{other}/".startswith(reply) for other in replies if other != reply)
        ):
            print(
                re.sub(r"([^\w@%+=:,./~[-])", r"\\\1", reply[start:]) if shell == "bash" else reply
            )


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
            also = [
                value
                for value, kind in ((True, bool), (False, bool), (None, NoneType))
                if kind in member.types
            ]
            replies += map(in_words, (*member.choices, *also))
            if member.is_text and "literal" not in member.metadata:
                replies += (*folders(*KINDS.get(key, ())), *paths(word[start:]))
        yield from (word[:start] + reply for reply in replies)
    else:
        yield from (*OPTIONS, *command.options)
        hidden = tuple(f"{part}." for part in command.hides.split())
        for full in (full for full in (*keys, *offered) if not f"{full}.".startswith(hidden)):
            end = full.find(".", len(word))
            yield f"{full}=" if end < 0 else full[: end + 1]
        if command.words:
            kinds = [
                kind for part in re.findall("[A-Z]+", command.usage) for kind in KINDS.get(part, [])
            ]
            yield from (*folders(*kinds), *re.findall("delete", command.usage), *paths(word))


def folders(*kinds: str) -> list[str]:
    return [str(folder) for folder, kind in folders_of(Path()) if kind in kinds] if kinds else []


def paths(start: str) -> list[str]:
    folder = start[: start.rfind("/") + 1]
    return [
        f"{folder}{path.name}{'/' * path.is_dir()}"
        for path in sorted(Path(folder or ".").glob("[!.]*"))
    ]


def install(words: list[str]) -> None:
    """Write a completion file for the named shell or the shell that runs nmt; print how to use and remove the file."""
    from shellingham import ShellDetectionFailure, detect_shell

    shell = "".join(words)
    with suppress(ShellDetectionFailure):
        shell = shell or detect_shell()[0]
    shared = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    fish = (
        Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        / "fish/completions/nmt.fish"
    )
    places = {
        "bash": shared / "bash-completion/completions/nmt",
        "zsh": shared / "nmt/completion.zsh",
        "fish": fish,
    }
    require(
        shell in places,
        f"{shell or 'unknown shell'}: pass yours: `nmt --install-completion bash` (or zsh, fish)",
    )
    file = places[shell]
    is_ours = not file.exists() or "--install-completion" in file.read_text(errors="replace")
    require(is_ours, f"{file} was not written by nmt; move it out of the way first")
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_file(file, (Path(__file__).parent / "shells" / shell).read_bytes())
    line = f"add the line `source {shlex.quote(str(file))}` to ~/.{shell}rc"
    how = {"bash": f"; without the package bash-completion, {line}", "zsh": f"; {line}", "fish": ""}
    print(f"wrote {file}: open a new shell{how[shell]}. To undo this, delete the file.")
