"""Treebanks: files of Penn-style bracketed trees as pairs of a sentence and its tree; and trees by a parser."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from itertools import chain
from operator import itemgetter
from pathlib import Path

from nmt.errors import NMTError
from nmt.plugins.parse.trees import BrokenTree, Tree, escape, model_word, parse, read_linear
from nmt.preparation import Corpus, file_digests
from nmt.text import COMPRESSIONS, LINE_BYTES, MalformedLine, Pair, clean as clean_line, decode, read_lines
from nmt.translation import Translation, Translator

SUFFIXES = (".mrg", ".parse", ".prd", ".ptb", ".tree", ".trees")
# A line that begins like this begins a tree, even if the tree before it has not ended.
BEGINNING = re.compile(rb"\(\s*(\(|$)|\((TOP|ROOT|S1)(\s|$)")


def tree_files(entry: str) -> list[Path]:
    """The files of an entry of data.train, data.valid or data.test, sorted by name.

    An entry is a file, a folder, which is searched recursively, or a pattern of their names. NMTError if there is none.
    """
    path = Path(entry)
    if path.is_file():
        return [path]
    siblings = path.parent.iterdir() if path.parent.is_dir() else ()
    folders = [path] if path.is_dir() else sorted(item for item in siblings if fnmatch(item.name, path.name))
    if not folders:
        raise NMTError(f"{entry}: no such file or folder; check data.path, data.train, data.valid and data.test")
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
    """The trees of a file that have words; a broken tree is an NMTError, or counted with errors=skip."""
    for first, lines in tree_lines(path):
        texts = list[str]()
        try:
            for line in lines:
                texts.append(decode(line))
            yield from (tree for tree in parse("\n".join(texts)) if tree.words)
        except (BrokenTree, MalformedLine) as error:
            # BrokenTree has the place within the text; MalformedLine is about the line after it.
            inside = "\n".join(texts).count("\n", 0, error.index) if isinstance(error, BrokenTree) else len(texts)
            if errors == "strict":
                problem = f"{path}, line {first + inside}: {error}; mend it, or pass data.errors=skip"
                raise NMTError(problem) from error
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

    def files(self, split: str) -> list[Path]:
        entries = [str(Path(self.data.path or "") / entry) for entry in getattr(self.data, split)]
        return [file for entry in entries for file in tree_files(entry)]

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        if not self.data.train:
            raise NMTError("data=treebank needs data.train=FOLDER of bracketed trees, or a file")
        if not getattr(self.data, split):
            return None
        trees = chain.from_iterable(read_trees(file, self.data.errors, dropped) for file in self.files(split))
        return ((" ".join(tree.words), tree.bracketed()) for tree in trees)

    def digests(self) -> dict[str, str]:
        return file_digests(file for split in ("train", "valid", "test") for file in self.files(split))

    def as_read(self, pair: Pair, clean: Callable[[str], str]) -> Pair:
        [tree] = parse(pair[1])
        return model_sentence(pair[0]), clean_line(tree.linear())

    def entries(self, target: str) -> list[str]:
        return [step for step in target.split(" ") if step[0] in "()"]


def choose_tree(translations: list[Translation], line: str) -> tuple[Tree, int]:
    """The tree of a line that needs the fewest repairs, the best-ranked of equals; and the number of its repairs."""
    words = escape(line).split()
    return min((read_linear(translation.text, words) for translation in translations), key=itemgetter(1))


def bracketed_trees(translator: Translator, lines: list[str]) -> list[str]:
    """The tree of each line (section 6.3), with its brackets, as training scores it."""
    translations = translator.translate([model_sentence(line) for line in lines])
    return [choose_tree(best, line)[0].bracketed() for best, line in zip(translations, lines, strict=True)]
