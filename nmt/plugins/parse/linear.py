"""Trees from a model's output, which is repaired if it is not a tree over the sentence's words."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from nmt.plugins.parse.trees import TRACE, UNKNOWN, Tree, escape, model_sentence, model_word
from nmt.translation import Translation, Translator

STEP = re.compile(r"\((?P<tag>[^()]+)\)|\((?P<opens>[^()]+)|\)(?P<closes>[^()]+)")
"""A tag, such as (NN), or the opening or closing bracket of a constituent, (NP or )NP."""


@dataclass
class Output:
    """A model's output."""

    steps: list["re.Match[str]"]
    written: list[str]
    """The word that the model wrote after each tag."""
    unplaced: int
    """Number of words before the first tag."""


def split_output(line: str) -> Output:
    """A line in steps and words."""
    output = Output([], [], 0)
    for token in line.split():
        step = STEP.fullmatch(token)
        if step:
            output.steps.append(step)
            if step["tag"]:
                output.written.append("")
        elif output.written:
            # A word of the model may come in several pieces if it decodes them with spaces.
            output.written[-1] += token
        else:
            output.unplaced += 1
    return output


def read_linear(line: str, words: list[str]) -> tuple[Tree, int]:
    """Read a model's output as a tree over exactly `words`.

    Returns the tree and the number of repairs. An unclosed constituent closes with its parent, or
    at the end. Closing brackets without an opening one and extra words are dropped. A missing word
    is inserted next to the previous word.
    """
    output = split_output(line)
    # Without a tag, nothing shows where a word belongs.
    if not output.written:
        return flat_tree(words), output.unplaced + len(output.steps) + len(words)
    tree = Tree()
    repairs = output.unplaced
    # Compared as the model writes words, but the tree gets them as the user wrote them.
    correct = [model_word(word) for word in words]
    leaves = words_of_leaves(output.written, correct)
    # In a correct tree, each leaf has exactly one word.
    repairs += sum(abs(len(indices) - 1) for indices in leaves)
    leaf = 0
    for step in output.steps:
        if step["tag"]:
            tagged = tagged_word(leaves[leaf], correct, output.written[leaf])
            for index in leaves[leaf]:
                # Readers of trees drop words with the tag of a trace, but the tree must have all
                # words.
                has_tag = index == tagged and step["tag"] != TRACE
                tree.add(step["tag"] if has_tag else UNKNOWN, words[index])
            leaf += 1
        elif step["opens"]:
            tree.open(step["opens"])
        else:
            repairs += close(tree, step["closes"])
    repairs += len(tree.opened)
    repairs += sum(phrase.start == phrase.end for phrase in tree.constituents)
    while tree.opened:
        tree.close()
    return tree.without_empty(), repairs


def flat_tree(words: list[str]) -> Tree:
    """Words without constituents and tags."""
    tree = Tree()
    for word in words:
        tree.add(UNKNOWN, word)
    return tree


def words_of_leaves(written: list[str], correct: list[str]) -> list[list[int]]:
    """For each leaf of the model's tree, the indices of the sentence's words that belong there.

    `written` has the word that the model wrote at each leaf, `correct` the words of the sentence.
    Every word of the sentence gets exactly one leaf, in order; a leaf may get several words or
    none. For written [a, x, d] and correct [a, b, c, d, e], the result is [[0], [1, 2], [3, 4]]: x
    stands for b and c, and e, which the model omitted, joins the leaf before it.
    """
    leaves: list[list[int]] = [[] for _ in written]
    # By default, difflib ignores frequent items of sequences with 200 or more, such as commas.
    matcher = SequenceMatcher(None, written, correct, autojunk=False)
    # The blocks cover both sequences: written[leaf:leaf_end] is equal to correct[word:word_end],
    # replaces it, or one of the two is empty.
    for _, leaf, leaf_end, word, word_end in matcher.get_opcodes():
        # Without leaves in the block, the one before it; at the beginning, the first one.
        last_leaf = max(0, leaf_end - 1)
        for offset, index in enumerate(range(word, word_end)):
            # One by one as long as there are leaves; the last one also gets the remaining words.
            leaves[min(leaf + offset, last_leaf)].append(index)
    return leaves


def tagged_word(indices: list[int], correct: list[str], written: str) -> int | None:
    """The index of the word that a tag belongs to, out of those that the model's word stands for.

    Missing words next to that word have no tag.
    """
    for index in indices:
        if correct[index] == written:
            return index
    return indices[0] if indices else None


def close(tree: Tree, label: str) -> int:
    """Close the innermost constituent with a label, and the constituents inside it.

    Returns the number of repairs: constituents inside it, or 1 if there is none with this label.
    """
    inwards = [tree.constituents[index].label for index in reversed(tree.opened)]
    if label not in inwards:
        return 1
    inside = inwards.index(label)
    for _ in range(inside + 1):
        tree.close()
    return inside


def choose_tree(translations: list[Translation], line: str) -> tuple[Tree, int]:
    """The tree that needed the fewest repairs, and their number; in a tie, the best-ranked one."""
    words = escape(line).split()
    candidates = [read_linear(translation.text, words) for translation in translations]
    # `min` returns the first of equal candidates, and they are in the order of their rank.
    return min(candidates, key=lambda candidate: candidate[1])


def bracketed_trees(translator: Translator, lines: list[str]) -> list[str]:
    """Parse each line into a bracketed tree (section 6.3)."""
    sentences = [model_sentence(line) for line in lines]
    trees = []
    for translations, line in zip(translator.translate(sentences), lines, strict=True):
        tree, _ = choose_tree(translations, line)
        trees.append(tree.bracketed())
    return trees
