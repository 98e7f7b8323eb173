"""Constituency trees: Penn-style brackets, linear trees for the model, repair of its output, bracket
scores, and treebanks as corpora.

Scores count labeled brackets as EVALB does with COLLINS.prm (Collins 1997): a bracket is a constituent's label with
the words that it spans. The top bracket and tags do not count. Punctuation is removed first, so that it does not shift
brackets; ADVP and PRT count as the same label.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import accumulate, chain, compress
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from nmt import __version__
from nmt.config import NMTError, require, without_compression
from nmt.evaluation import Score, Scoring
from nmt.preparation import Corpus, file_digests
from nmt.text import (
    LINE_BYTES,
    MalformedLine,
    Normalization,
    Pair,
    compatible,
    decode,
    read_lines,
    single_blanks,
)
from nmt.translation import Translation, Translator

TOPS = ("", "TOP", "ROOT", "S1")  # labels of a tree's outermost bracket, which is not a constituent
TRACE = "-NONE-"
UNKNOWN = "XX"  # the tag of a non-punctuation word whose tag is unknown
PUNCTUATION_TAGS = {
    **{mark: mark for mark in (",", ".", ":", "``", "''", "-LRB-", "-RRB-")},
    **{"?": ".", "!": ".", ";": ":", "--": ":", "...": ":"},
}
"""Punctuation mark -> the Penn Treebank tag by which scorers recognize it."""
SAME_LABEL = {"PRT": "ADVP"}
NOT_SCORED = (",", ":", "``", "''", ".")  # tags of words that are removed before counting brackets
# A word with its tag, an opening bracket with its label, a closing bracket, or other text.
TOKEN = re.compile(r"\(\s*([^\s()]+)\s+([^\s()]+)\s*\)|(\()\s*(?P<label>[^\s()]*)|(\))|[^\s()]+")
# NP-SBJ-1 and NP=2 become NP, but -LRB- is a whole tag.
PLAIN_LABEL = re.compile(r"-[^-]+-|[^-=]+|.+")
LINEAR_STEP = re.compile(r"(\()([^()]+)(\)?)|(\))([^()]+)")


def broken(problem: str) -> MalformedLine:
    return MalformedLine("broken tree", problem)


class Constituent(NamedTuple):
    label: str
    start: int  # the index of its first word
    end: int  # the index after its last word


@dataclass
class Tree:
    """A sentence's words, the tag of each word, and its constituents."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    constituents: list[Constituent] = field(default_factory=list)  # in the order in which they open
    opened: list[int] = field(
        default_factory=list
    )  # while the tree is being built: open constituents, innermost last

    def open(self, label: str) -> None:
        self.opened.append(len(self.constituents))
        self.constituents.append(Constituent(label, len(self.words), -1))

    def close(self) -> None:
        index = self.opened.pop()
        self.constituents[index] = self.constituents[index]._replace(end=len(self.words))

    def add(self, tag: str, word: str) -> None:
        self.words.append(word)
        self.tags.append(PUNCTUATION_TAGS.get(word, tag) if tag == UNKNOWN else tag)

    def without_empty(self) -> "Tree":
        return Tree(
            self.words, self.tags, [part for part in self.constituents if part.start < part.end]
        )

    def steps(self, leaves: list[str], close: Callable[[str], str]) -> Iterator[str]:
        """Brackets and leaves from left to right; `close` turns a label into a closing bracket."""
        waiting, opened = self.constituents[::-1], list[Constituent]()
        for index in range(len(self.words) + 1):
            while opened and opened[-1].end == index:
                yield close(opened.pop().label)
            while waiting and waiting[-1].start == index:
                opened.append(waiting.pop())
                yield f"({opened[-1].label}"
            if index < len(self.words):
                yield leaves[index]

    def bracketed(self) -> str:
        """The tree on one line, such as (TOP (S (NP (DT The) (NN end)))); empty if it has no words."""
        leaves = [f"({tag} {word})" for tag, word in zip(self.tags, self.words, strict=True)]
        steps = self.steps(leaves, lambda label: ")")
        return f"(TOP {' '.join(steps).replace(' )', ')')})" if self.words else ""

    def linear(self) -> str:
        """The sequence a model learns to write, such as (S (NP (DT) The (NN) end )NP )S (after Vinyals et al. 2015)."""
        leaves = [
            f"({tag}) {model_word(word)}" for tag, word in zip(self.tags, self.words, strict=True)
        ]
        return " ".join(self.steps(leaves, lambda label: f"){label}"))


def escape(text: str) -> str:
    """Escape brackets as treebanks do, so that they cannot be mistaken for a tree's brackets."""
    return text.replace("(", "-LRB-").replace(")", "-RRB-")


def model_word(word: str) -> str:
    """A word as a model reads and writes it."""
    return escape("".join(compatible(word).split()))


def parse(text: str) -> Iterator[Tree]:
    """The trees in a text, without traces, function tags or indices; MalformedLine if any text is not a tree."""
    tree, opened = Tree(), list[re.Match[str]]()
    for token in TOKEN.finditer(text):
        tag, word, opens, label, closes = token.groups()
        if tag and (plain := PLAIN_LABEL.findall(tag)[0]) != TRACE:
            tree.add(plain, word)
        elif opens:
            if opened and not label:
                raise broken("a bracket opens without a label, or the previous tree is not closed")
            opened.append(token)
            if len(opened) > 1 or label not in TOPS:
                tree.open(PLAIN_LABEL.findall(label)[0])
        elif closes:
            if not opened:
                raise broken("a closing bracket has no opening bracket")
            label = opened.pop()["label"]
            if opened or label not in TOPS:
                tree.close()
        elif not tag:
            raise broken(f"{token[0]!r} is not in brackets with a tag")
        if not opened:
            yield tree.without_empty()
            tree = Tree()
    if opened:
        raise broken("a tree is not closed")


def read_linear(line: str, words: list[str]) -> tuple[Tree, int]:
    """Read a model's output as a tree over exactly `words`; return the tree and the number of repairs.

    An unclosed constituent closes with its parent, or at the end. Closing brackets without an opening one and extra
    words are dropped. A missing word is inserted next to the previous word.
    """
    steps, written, repairs = (
        list[re.Match[str]](),
        list[str](),
        0,
    )  # `written`: the model's word after each tag
    for token in line.split():
        if step := LINEAR_STEP.fullmatch(token):
            steps.append(step)
            written += [""] if step[3] else []
        elif written:
            written[-1] += token
        else:
            repairs += 1
    tree, leaf, correct = Tree(), 0, [model_word(word) for word in words]
    if not written:
        for word in words:
            tree.add(UNKNOWN, word)
        return tree, repairs + len(steps) + len(words)
    # For each leaf, the indices of its words, by longest match; in a correct tree, each leaf has exactly one word.
    aligned: list[list[int]] = [[] for _ in written]
    for _, begin, end, first, last in SequenceMatcher(
        None, written, correct, autojunk=False
    ).get_opcodes():
        for index in range(first, last):
            aligned[max(0, min(begin + index - first, end - 1))].append(index)
    repairs += sum(abs(len(indices) - 1) for indices in aligned)
    for step in steps:
        if step[3]:
            # A tag belongs to the word after it; missing words next to that word have no tag.
            same = (index for index in aligned[leaf] if correct[index] == written[leaf])
            tagged = next(same, min(aligned[leaf], default=0))
            for index in aligned[leaf]:
                tree.add(step[2] if index == tagged and step[2] != TRACE else UNKNOWN, words[index])
            leaf += 1
        elif step[1]:
            tree.open(step[2])
        else:  # also close the constituents inside the innermost one with that label
            inwards = [tree.constituents[index].label for index in reversed(tree.opened)]
            levels = inwards.index(step[5]) + 1 if step[5] in inwards else 0
            repairs += abs(levels - 1)
            for _ in range(levels):
                tree.close()
    repairs += len(tree.opened) + sum(part.start == part.end for part in tree.constituents)
    while tree.opened:
        tree.close()
    return tree.without_empty(), repairs


def brackets(tree: Tree, is_word: list[bool]) -> Counter[tuple[str, int, int]]:
    """A tree's brackets; positions count only words that are not punctuation."""
    before = [0, *accumulate(is_word)]
    spans = (
        (SAME_LABEL.get(label, label), before[start], before[end])
        for label, start, end in tree.constituents
    )
    return Counter(
        (label, start, end) for label, start, end in spans if label not in TOPS and start < end
    )


def tree_of(line: str, where: str) -> Tree:
    """The tree on a line (without words if the line is blank); NMTError if there are several trees or a broken one."""
    try:
        trees = list(parse(line))
    except MalformedLine as error:
        raise NMTError(f"{where}: not a tree ({error})") from error
    require(len(trees) < 2, f"{where}: {len(trees)} trees; write one tree per line")
    return trees[0] if trees else Tree()


def compare_trees(hypotheses: list[str], references: list[str]) -> Counter[str]:
    """Count all brackets and the matching ones in trees given one per line, for F1 (table 4).

    Also counts the sentences that were compared, those with exactly the reference's brackets (complete), and errors:
    sentences that were not compared because their words differ, ignoring punctuation.
    The reference's tags decide what is punctuation; if the words differ, each tree's own tags do, as in EVALB.
    """
    sums = Counter[str]()
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True), 1):
        trees = (
            tree_of(hypothesis, f"hypothesis, line {number}"),
            tree_of(reference, f"reference, line {number}"),
        )
        tagged = trees[0] if trees[0].words != trees[1].words else trees[1]
        are_words = [[tag not in NOT_SCORED for tag in tree.tags] for tree in (tagged, trees[1])]
        written, words = (
            [*compress(tree.words, row)] for tree, row in zip(trees, are_words, strict=True)
        )
        if words and written != words:
            sums["errors"] += 1
        elif words:  # like EVALB, skip sentences of only punctuation
            ours, theirs = map(brackets, trees, are_words)
            sums.update(
                matched=(ours & theirs).total(), hypothesis=ours.total(), reference=theirs.total()
            )
            sums.update(complete=int(ours == theirs), sentences=1)
    return sums


def bracket_scores(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """Bracketing F1 (table 4), precision, recall and complete matches of trees given one per line."""
    sums = compare_trees(hypotheses, references)
    rules = "nrefs:1|rules:COLLINS|punct:by-reference-tags|length:all"
    signature = (
        f"{rules}|sentences:{sums['sentences']}|errors:{sums['errors']}|version:{__version__}"
    )
    figures = (
        ("brackets", "Bracketing F1", 2 * sums["matched"], sums["hypothesis"] + sums["reference"]),
        ("brackets_precision", "Bracketing precision", sums["matched"], sums["hypothesis"]),
        ("brackets_recall", "Bracketing recall", sums["matched"], sums["reference"]),
        ("brackets_complete", "Complete match", sums["complete"], sums["sentences"]),
    )
    return [
        Score(metric, name, 100 * part / max(1, whole), signature)
        for metric, name, part, whole in figures
    ]


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
    for number, line in enumerate(
        chain(read_lines(path), [b"("]), 1
    ):  # the last line ends the last tree
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
                    yield from (
                        [tree for tree in parse(decode(line)) if tree.words]
                        if line.startswith(b"(")
                        else ()
                    )


def model_sentence(line: str) -> str:
    """A sentence as the model reads it: cleaned, and with brackets escaped, because they are reserved for trees."""
    return " ".join(map(model_word, line.split()))


class Treebank(Corpus):
    """Pairs of a sentence, with spaces between its words, and its tree on one line (section 6.3)."""

    def files(self, split: str) -> list[Path]:
        entries = [str(Path(self.data.path or "") / entry) for entry in getattr(self.data, split)]
        return [file for entry in entries for file in tree_files(entry)]

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        require(
            bool(self.data.train),
            "data=treebank needs bracketed trees; pass data.train=FOLDER or data.train=FILE",
        )
        if not getattr(self.data, split):
            return None
        trees = chain.from_iterable(
            read_trees(file, self.data.errors, dropped) for file in self.files(split)
        )
        return ((" ".join(tree.words), tree.bracketed()) for tree in trees)

    def digests(self) -> dict[str, str]:
        return file_digests(
            file for split in ("train", "valid", "test") for file in self.files(split)
        )

    def as_read(self, pair: Pair, normalization: Normalization) -> Pair:
        [tree] = parse(pair[1])
        return model_sentence(pair[0]), single_blanks(tree.linear())

    def entries(self, target: str) -> list[str]:
        return [step for step in target.split(" ") if step[0] in "()"]


def choose_tree(translations: list[Translation], line: str) -> tuple[Tree, int]:
    """The tree that needed the fewest repairs (in a tie, the best-ranked one) and the number of repairs."""
    words = escape(line).split()
    return min(
        (read_linear(translation.text, words) for translation in translations), key=itemgetter(1)
    )


def bracketed_trees(translator: Translator, lines: list[str]) -> list[str]:
    """Parse each line into a bracketed tree (section 6.3)."""
    translations = translator.translate([model_sentence(line) for line in lines])
    return [
        choose_tree(best, line)[0].bracketed()
        for best, line in zip(translations, lines, strict=True)
    ]
