"""Two constituency trees over the same words as one drawing: the reference above the words, the parser's below."""

from nmt.parsing.brackets import lacking
from nmt.parsing.trees import Tree
from nmt.report.markup import Markup, join, tag

LETTER = 6.8
"""Width of a letter, of the fixed width that the style sheet asks for at 11 px."""
LEVEL = 18
"""From one level of constituents to the next."""
GAP = 3
"""Between neighbours."""


def heights(tree: Tree) -> list[int]:
    """How far from its words each constituent stands: above all that it holds."""
    found = [0] * len(tree.constituents)
    top = [0] * len(tree.words)  # of what stands over each word already
    for number in reversed(range(len(found))):  # the inner before the outer
        _, start, end = tree.constituents[number]
        found[number] = max(top[start:end]) + 1
        top[start:end] = [found[number]] * (end - start)
    return found


def word_places(trees: list[Tree]) -> list[float]:
    """Where each word begins, and where the last one ends: wide enough for words, tags, and what spans them alone."""
    letters = [len(word) for word in trees[0].words]
    for tree in trees:
        alone = [(c.start, c.label) for c in tree.constituents if c.end == c.start + 1]
        for place, text in [*enumerate(tree.tags), *alone]:
            letters[place] = max(letters[place], len(text))
    places = [0.0]
    for count in letters:
        places.append(places[-1] + LETTER * count + 4 * GAP)
    return places


def draw_trees(reference: Tree, hypothesis: Tree) -> Markup:
    """The brackets that only the reference has are of class missed, those of the hypothesis alone wrong."""
    places = word_places([reference, hypothesis])
    above = heights(reference)
    line = LEVEL * (max(above, default=0) + 2)  # of the words
    drawn = [text(word, places[i], line, "word") for i, word in enumerate(reference.words)]
    drawn += half(reference, lacking(reference, hypothesis, reference.tags), "missed", places, (line, -LEVEL))
    drawn += half(hypothesis, lacking(hypothesis, reference, reference.tags), "wrong", places, (line, LEVEL))
    width, height = places[-1], line + LEVEL * (max(heights(hypothesis), default=0) + 2)
    said = f"{reference.bracketed()} and, parsed, {hypothesis.bracketed()}"
    size = f"width: {width:.0f}px; max-width: none"
    return tag(
        "svg", *drawn, class_="tree", viewBox=f"0 0 {width:.1f} {height}", style=size, role="img", aria_label=said
    )


def half(
    tree: Tree, marked: list[bool], kind: str, places: list[float], line_and_step: tuple[int, int]
) -> list[Markup]:
    """Tags and constituents of a tree, away from the line of its words."""
    line, step = line_and_step
    parts = [text(tag_, places[i], line + step) for i, tag_ in enumerate(tree.tags)]
    for constituent, height, differs in zip(tree.constituents, heights(tree), marked, strict=True):
        label, start, end = constituent
        y, width = line + step * (height + 1), places[end] - places[start] - GAP
        box = tag(
            "rect",
            class_=kind if differs else None,
            x=f"{places[start]:.1f}",
            y=y - 12,
            width=f"{width:.1f}",
            height=LEVEL - GAP,
            rx=2,
        )
        parts.append(join(box, text(label, places[start], y)))
    return parts


def text(words: str, x: float, y: float, kind: str | None = None) -> Markup:
    return tag("text", words, x=f"{x + 4:.1f}", y=y, class_=kind)
