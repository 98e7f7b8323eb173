"""Treebanks: folders and files of Penn-style bracketed trees, as pairs of a sentence and its tree (section 6.3)."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from nmt.errors import NMTError
from nmt.plugins.parse.trees import BrokenTree, Tree, model_word, parse
from nmt.preparation import Corpus, file_digests
from nmt.text import COMPRESSIONS, LINE_BYTES, MalformedLine, Pair, clean as clean_line, decode, read_lines

SUFFIXES = (".mrg", ".parse", ".prd", ".ptb", ".tree", ".trees")
# A line that begins like this begins a tree, even if the tree before it has not ended.
BEGINNING = re.compile(rb"\(\s*(\(|$)|\((TOP|ROOT|S1)(\s|$)")
SECTIONS = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)


def tree_files(entry: str) -> list[Path]:
    """The files of an entry of data.train, data.valid or data.test, sorted by name.

    An entry is a file, a folder, which is searched recursively, or sections of a folder: wsj/02-21 stands for the
    folders 02 to 21 of wsj. Raises NMTError if there are none.
    """
    path, folders = Path(entry), [Path(entry)]
    if path.is_file():
        return folders
    if not path.is_dir():
        sections = SECTIONS.fullmatch(path.name)
        if not (sections and path.parent.is_dir()):
            keys = "data.path, data.train, data.extra, data.valid and data.test"
            raise NMTError(f"{entry}: no such file or folder; check {keys}")
        names = (folder for folder in path.parent.iterdir() if SECTIONS.fullmatch(f"0-{folder.name}"))
        numbered = {int(folder.name): folder for folder in names}
        numbers = range(int(sections[1]), int(sections[2]) + 1)
        missing = [f"{number:02}" for number in islice((n for n in numbers if n not in numbered), 4)]
        if missing or not numbers:
            shown = ", ".join(missing[:3]) + (" and more" if len(missing) > 3 else "")
            raise NMTError(f"{path.parent}: no section {shown} (from {entry!r}); check data.path")
        folders = [numbered[number] for number in numbers]
    endings = tuple(suffix + compression for suffix in SUFFIXES for compression in COMPRESSIONS)
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.name.endswith(endings)]
    if not files:
        raise NMTError(f"{entry}: no file there whose name ends in {', '.join(SUFFIXES)}")
    return files


def tree_lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Group the lines of a file so that each group holds whole trees; yields its first line number and its lines."""
    group, depth, first, size = list[bytes](), 0, 1, 0
    for number, line in enumerate(read_lines(path), 1):
        # A tree that has not closed within so many bytes is broken: waiting longer would fill the memory.
        if group and (BEGINNING.match(line) or size + len(line) > 2 * LINE_BYTES):
            yield first, group
            group = []
        if not group:
            if not line.strip():
                continue
            first, depth, size = number, 0, 0
        group.append(line)
        size += len(line)
        depth += line.count(b"(") - line.count(b")")
        if depth <= 0:
            yield first, group
            group = []
    if group:
        yield first, group


def read_trees(path: Path, errors: str, counts: Counter[str]) -> Iterator[Tree]:
    """The trees of a file that have words.

    A broken tree is an error that names its line; with errors=skip it is counted.
    """
    for first, lines in tree_lines(path):
        texts = list[str]()
        try:
            for line in lines:
                texts.append(decode(line))
            yield from (tree for tree in parse("\n".join(texts)) if tree.words)
        except (BrokenTree, MalformedLine) as error:
            # BrokenTree has the place within the text; MalformedLine is about the line after it.
            inside = "\n".join(texts).count("\n", 0, error.index) if isinstance(error, BrokenTree) else len(texts)
            number = first + inside
            begins = f" (the tree begins on line {first})" if number > first else ""
            if errors == "strict":
                raise NMTError(f"{path}, line {number}: {error}{begins}; mend it, or pass data.errors=skip") from error
            counts["broken tree" if isinstance(error, BrokenTree) else error.counted_as] += 1
            for line in lines[1:]:  # lines of whole trees behind a tree that does not close
                with suppress(BrokenTree, MalformedLine):
                    yield from [tree for tree in parse(decode(line)) if tree.words] if line.startswith(b"(") else ()


def model_sentence(line: str) -> str:
    """A sentence as the model reads it: clean, and with brackets escaped, since those belong to trees."""
    return " ".join(map(model_word, line.split()))


class Treebank(Corpus):
    """Files of bracketed trees (section 6.3): pairs of a sentence, separated by blanks, and a tree on one line."""

    structured = True

    def paths(self, split: str) -> list[str]:
        """The entries of a split, relative to data.path except for those of data.extra."""
        entries = [str(Path(self.data.path or "") / entry) for entry in getattr(self.data, split)]
        return entries + self.data.plugins["treebank"].extra if split == "train" else entries

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        if not self.data.train:
            raise NMTError("data=treebank needs data.train=FOLDER of bracketed trees, or a file")
        paths = self.paths(split)
        return self.pairs(paths, dropped) if paths else None

    def pairs(self, paths: list[str], dropped: Counter[str]) -> Iterator[Pair]:
        for path in (file for entry in paths for file in tree_files(entry)):
            for tree in read_trees(path, self.data.errors, dropped):
                yield " ".join(tree.words), tree.bracketed()

    def digests(self) -> dict[str, str]:
        entries = [entry for split in ("train", "valid", "test") for entry in self.paths(split)]
        return file_digests(path for entry in entries for path in tree_files(entry))

    def as_read(self, pair: Pair, clean: Callable[[str], str]) -> Pair:
        [tree] = parse(pair[1])
        return model_sentence(pair[0]), clean_line(tree.linear(self.data.plugins["treebank"].leaves))

    def entries(self, target: str) -> list[str]:
        return [step for step in target.split(" ") if step[0] in "()"]
