"""`nmt runs delete`: delete runs and corpora that nmt wrote and nobody uses."""

import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import data, files, training
from nmt.commands import talker
from nmt.commands.overview.listing import Row
from nmt.config import NMTError

if TYPE_CHECKING:
    from rich.console import Console


@dataclass
class Doomed:
    """A folder to delete."""

    row: Row
    kept: list[Path]
    """The files in it that nmt did not write."""

    @property
    def path(self) -> Path:
        return Path(self.row["name"])

    @property
    def lock(self) -> Path:
        """The file that a process locks while it uses the folder."""
        return self.path / ("tokenizer.model" if self.row["kind"] == "corpus" else ".lock")


def choose(name: str, folder: Path, rows: list[Row]) -> Doomed:
    """The run or corpus with a name, with or without runs/ or data/.

    NMTError if nmt must not delete it.
    """
    bases = (Path(), folder, folder / "runs", folder / "data")
    names = {str(base / name) for base in bases}
    # Only what the listing shows, so that no other path can be deleted. It lists no links.
    matching = [row for row in rows if row["name"] in names]
    if len(matching) != 1:
        many = "several folders have this name"
        problem = many if matching else "no such run or corpus, or a link"
        raise NMTError(f"{name}: {problem}; write a name that `nmt runs` lists")
    [row] = matching
    path = Path(row["name"])
    if "problem" in row:
        raise NMTError(f"{path}: {row['problem']}; nmt deletes only what it wrote")
    # That folder must be deleted separately, which checks and locks it.
    inside = [row["name"] for row in rows if path in Path(row["name"]).parents]
    if inside:
        raise NMTError(f"{path}: contains {', '.join(inside)}; delete that first")
    if row["kind"] == "corpus":
        data.check_ours(path, "move it out of the way first")
    return Doomed(row, kept=list(files.foreign_files(path, row["kind"])))


def announcement(doomed: Doomed) -> str:
    """The folder, its size, and the files in it that stay."""
    from nmt.commands.overview.tables import cell

    text = f"{doomed.path}  {cell('bytes', doomed.row['bytes'])}"
    if doomed.kept:
        kept = [file.relative_to(doomed.path).as_posix() for file in doomed.kept]
        text += f", except for files that nmt did not write: {', '.join(kept)}"
    return text


def delete(names: list[str], folder: Path, rows: list[Row], yes: bool) -> None:
    """Delete runs and corpora once the user agrees.

    The `latest` links to them then lead to the newest remaining run.
    """
    # All names are checked before anything is deleted.
    all_doomed = [choose(name, folder, rows) for name in names]
    paths = [doomed.path for doomed in all_doomed]
    console = talker()
    with ExitStack() as locks:
        for doomed in all_doomed:
            in_use = f"{doomed.path}: another nmt is using it; wait until it exits"
            # Held until the end, so that no process begins to use a folder before the user answers.
            locks.enter_context(files.locked_file(doomed.lock, True, in_use))
            # A file name could contain control sequences of the terminal.
            console.print(files.printable(announcement(doomed)))
        if not yes:
            ask(console)
        # Before the deletion, because a broken link no longer shows where it pointed.
        links = latest_links_to(paths)
        for doomed in all_doomed:
            delete_folder(doomed.path, doomed.kept)
    remaining = []
    for row in rows:
        path = Path(row["name"])
        if row["kind"] == "run" and path not in paths:
            remaining.append(path)
    for link in links:
        repair_link(link, remaining)
    console.print(f"deleted {', '.join(map(str, paths))}")


def ask(console: "Console") -> None:
    """Raise NMTError unless the user agrees."""
    # Without a terminal, a question would wait forever or read another program's input.
    if not sys.stdin.isatty():
        raise NMTError("nothing was deleted: to delete without a terminal, pass --yes")
    answer = console.input("Delete? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise NMTError("nothing was deleted")


def delete_folder(path: Path, kept: list[Path]) -> None:
    """Delete a folder as a whole, or everything in it except for certain files."""
    if not kept:
        # Renamed first, so that an interruption leaves no partial run under its name.
        shutil.rmtree(path.rename(files.temporary_name(path)))
        return
    contents = sorted(path.rglob("*"), reverse=True)  # a folder after its contents
    for file in contents:
        if file.is_symlink() or not file.is_dir():
            if file not in kept:
                file.unlink()
        # A folder with kept files stays.
        elif not any(file.iterdir()):
            file.rmdir()


def latest_links_to(folders: list[Path]) -> list[Path]:
    """The `latest` links above these folders that lead to one of them.

    nmt must not change any other link.
    """
    targets = {folder.resolve() for folder in folders}
    links = set()
    for folder in folders:
        links |= {parent / "latest" for parent in folder.parents}
    return [link for link in sorted(links) if link.is_symlink() and link.resolve() in targets]


def repair_link(link: Path, runs: list[Path]) -> None:
    """Point a `latest` link to the newest run beside it that has a model, or remove it.

    `runs` has the newest first.
    """
    for run in runs:
        if link.parent in run.parents and (run / "model").is_dir():
            training.point_latest_to(run, link)
            return
    link.unlink()
