"""Treebanks as corpora of sentences and their trees, and how to choose a tree from a model's output."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path

from nmt.config import require, without_compression
from nmt.plugins.parse.trees import Tree, escape, model_word, parse, read_linear
from nmt.preparation import Corpus, file_digests
from nmt.text import LINE_BYTES, MalformedLine, Pair, clean as clean_line, decode, read_lines
from nmt.translation import Translation, Translator

SUFFIXES = (".mrg", ".parse", ".prd", ".ptb", ".tree", ".trees")
# A line that begins like this starts a tree, even if the previous tree is not closed.
BEGINNING = re.compile(rb"\(\s*(\(|$)|\((TOP|ROOT|S1)(\s|$)")


def tree_files(entry: str) -> list[Path]:
    """The files that a file name, a folder (searched recursively) or a name pattern refers to, sorted by name."""
    path = Path(entry)
    if path.is_file():
        return [path]
    folders = [path] if path.is_dir() else sorted(path.parent.glob(path.name))
    advice = "check data.path, data.train, data.valid and data.test"
    require(bool(folders), f"{entry}: no such file or folder; {advice}")
    files = [file for folder in folders for file in sorted(folder.rglob("*"))]
    files = [file for file in files if without_compression(file.name).endswith(SUFFIXES)]
    require(bool(files), f"{entry}: contains no file that ends in {', '.join(SUFFIXES)}")
    return files


def tree_lines(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Group a file's lines into whole trees; yield each group's first line number and its lines."""
    group, depth, first, size = list[bytes](), 0, 1, 0
    for number, line in enumerate(chain(read_lines(path), [b"("]), 1):  # the last line ends the last tree
        # A tree larger than this is malformed; reading on could fill memory.
        if group and (depth <= 0 or BEGINNING.match(line) or size + len(line) > 2 * LINE_BYTES):
            yield first, group
            group = []
        if not group:
            first, depth, size = number, 0, 0
        group += [line] if group or line.strip() else []
        size += len(line)
        depth += line.count(b"(") - line.count(b")")


def read_trees(path: Path, errors: str, counts: Counter[str]) -> Iterator[Tree]:
    """The trees that have words; a broken tree raises NMTError or, with errors=skip, is counted."""
    for first, lines in tree_lines(path):
        try:
            yield from (tree for tree in parse("\n".join(map(decode, lines))) if tree.words)
        except MalformedLine as error:
            advice = "repair the tree that begins there, or pass data.errors=skip"
            require(errors != "strict", f"{path}, line {first}: {error}; {advice}")
            counts[error.counted_as] += 1
            for line in lines[1:]:  # single-line trees that follow an unclosed tree
                with suppress(MalformedLine):
                    yield from [tree for tree in parse(decode(line)) if tree.words] if line.startswith(b"(") else ()


def model_sentence(line: str) -> str:
    """A sentence as the model reads it: cleaned, and with brackets escaped, because they are reserved for trees."""
    return " ".join(map(model_word, line.split()))


class Treebank(Corpus):
    """Pairs of a sentence, with spaces between its words, and its tree on one line (section 6.3)."""

    structured = True

    def files(self, split: str) -> list[Path]:
        entries = [str(Path(self.data.path or "") / entry) for entry in getattr(self.data, split)]
        return [file for entry in entries for file in tree_files(entry)]

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        require(bool(self.data.train), "data=treebank needs bracketed trees; pass data.train=FOLDER or data.train=FILE")
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
    """The tree that needed the fewest repairs (in a tie, the best-ranked one) and the number of repairs."""
    words = escape(line).split()
    return min((read_linear(translation.text, words) for translation in translations), key=itemgetter(1))


def bracketed_trees(translator: Translator, lines: list[str]) -> list[str]:
    """Parse each line into a bracketed tree (section 6.3)."""
    translations = translator.translate([model_sentence(line) for line in lines])
    return [choose_tree(best, line)[0].bracketed() for best, line in zip(translations, lines, strict=True)]
