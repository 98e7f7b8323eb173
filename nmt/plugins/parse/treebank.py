"""Treebanks as corpora: pairs of a sentence and its tree (section 6.3)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from nmt.config import NMTError, without_compression
from nmt.plugins.parse.trees import Tree, model_sentence, parse
from nmt.preparation import Corpus, file_digests
from nmt.text import (
    LINE_BYTES,
    MalformedLine,
    Normalization,
    Pair,
    decode,
    read_lines,
    single_blanks,
)

SUFFIXES = (".mrg", ".parse", ".prd", ".ptb", ".tree", ".trees")
BEGINNING = re.compile(rb"\(\s*(\(|$)|\((TOP|ROOT|S1)(\s|$)")
"""A line that begins like this starts a tree, even if the previous tree is not closed."""
TREE_BYTES = 2 * LINE_BYTES
"""A larger tree is malformed; reading on could fill memory."""


def tree_files(entry: str) -> list[Path]:
    """The files that a file name, a folder or a name pattern refers to, sorted by name.

    Folders are searched recursively.
    """
    path = Path(entry)
    if path.is_file():
        return [path]
    folders = [path] if path.is_dir() else sorted(path.parent.glob(path.name))
    if not folders:
        advice = "check data.path, data.train, data.valid and data.test"
        raise NMTError(f"{entry}: no such file or folder; {advice}")
    files = []
    for folder in folders:
        # Sorted: the order of the trees decides line numbers, samples and what is held out.
        for file in sorted(folder.rglob("*")):
            if without_compression(file.name).endswith(SUFFIXES):
                files.append(file)
    if not files:
        raise NMTError(f"{entry}: contains no file that ends in {', '.join(SUFFIXES)}")
    return files


def tree_lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Group a file's lines into whole trees; yield each group's first line number and its lines."""
    group: list[bytes] = []
    first = 1
    size = 0
    depth = 0  # open brackets
    for number, line in enumerate(read_lines(path), 1):
        is_too_large = size + len(line) > TREE_BYTES
        if group and (depth <= 0 or BEGINNING.match(line) or is_too_large):
            yield first, group
            group = []
        if not group:
            if not line.strip():
                continue
            first = number
            size = 0
            depth = 0
        group.append(line)
        size += len(line)
        # Treebanks write brackets in words as -LRB- and -RRB-. All other brackets form the tree.
        depth += line.count(b"(") - line.count(b")")
    if group:
        yield first, group


def read_trees(path: Path, errors: str, counts: Counter[str]) -> Iterator[Tree]:
    """The trees that have words.

    A broken tree raises NMTError or, with errors=skip, is counted.
    """
    for first, lines in tree_lines(path):
        try:
            yield from with_words(parse("\n".join(map(decode, lines))))
        except MalformedLine as error:
            if errors == "strict":
                advice = "repair the tree that begins there, or pass data.errors=skip"
                raise NMTError(f"{path}, line {first}: {error}; {advice}") from error
            counts[error.counted_as] += 1
            # The tree that is not closed took the trees after it into its group.
            yield from single_line_trees(lines[1:])


def with_words(trees: Iterable[Tree]) -> Iterator[Tree]:
    return (tree for tree in trees if tree.words)


def single_line_trees(lines: list[bytes]) -> Iterator[Tree]:
    """The trees on those lines that contain whole trees, after a tree that is not closed."""
    for line in lines:
        if line.startswith(b"("):
            with suppress(MalformedLine):
                # A list, so that a line is used as a whole or not at all.
                yield from list(with_words(parse(decode(line))))


class Treebank(Corpus):
    """Pairs of a sentence, with blanks between its words, and its tree on a line (section 6.3)."""

    def files(self, split: str) -> list[Path]:
        folder = Path(self.data.path or "")
        files = []
        for entry in getattr(self.data, split):
            files += tree_files(str(folder / entry))
        return files

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        if not self.data.train:
            advice = "pass data.train=FOLDER or data.train=FILE"
            raise NMTError(f"data=treebank needs bracketed trees; {advice}")
        if not getattr(self.data, split):
            return None
        return self.pairs(self.files(split), dropped)

    def pairs(self, files: list[Path], dropped: Counter[str]) -> Iterator[Pair]:
        for file in files:
            for tree in read_trees(file, self.data.errors, dropped):
                # Without traces, function tags and indices: held-out sets are scored with the same
                # trees.
                yield " ".join(tree.words), tree.bracketed()

    def digests(self) -> dict[str, str]:
        files = [*self.files("train"), *self.files("valid"), *self.files("test")]
        return file_digests(files)

    def as_read(self, pair: Pair, normalization: Normalization) -> Pair:
        source, target = pair
        [tree] = parse(target)
        return model_sentence(source), single_blanks(tree.linear())

    def entries(self, target: str) -> list[str]:
        # Tags and brackets become entries as a whole. Words are spelled with the subwords of the
        # sources.
        return [step for step in target.split(" ") if step[0] in "()"]
