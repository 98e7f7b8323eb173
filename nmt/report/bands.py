"""Attention as bands between two columns of tokens, as the paper's figures 3 to 5 have it, and as heat maps.

The style sheet shows the heads that are chosen, and the bands of the token under the pointer. Shapes: H heads,
Q queries, K keys.
"""

from dataclasses import dataclass
from typing import Any

from nmt.report.heat import ALL, Weights, data_uri, head_colour
from nmt.report.markup import Markup, join, tag
from nmt.text.tokenizers import META

ROW = 20
LEFT, RIGHT, WIDTH = 124, 236, 360
TOP = 30
LEAST = 0.05
"""A weight that is drawn as a band."""
CELL = 17
LONGEST = 15
"""Characters of a token that are shown."""


@dataclass
class Matrix:
    """The weights of one layer's heads, [H, Q, K], and whose they are."""

    layer: int
    """Counted from 1."""
    heads: list[int]
    """Counted from 1."""
    of: int
    """Heads that the layer has, drawn or not."""
    weights: Weights
    queries: list[str]
    keys: list[str]


def shorten(token: str) -> str:
    return token if len(token) <= LONGEST else f"{token[: LONGEST - 1]}…"


def label(token: str, **attributes: Any) -> Markup:
    """A token as SVG text, the mark of a blank before it paler."""
    text = shorten(token)
    blank = tag("tspan", META, class_="blank") if text.startswith(META) else None
    return tag("text", blank, text.removeprefix(META), **attributes)


def column(tokens: list[str], kind: str, x: int, anchor: str) -> Markup:
    """A column of tokens, each in a strip that the pointer meets."""
    left = 0 if anchor == "end" else x
    rows = []
    for place, token in enumerate(tokens):
        top = TOP + ROW * place
        strip = tag("rect", x=left, y=top, width=LEFT, height=ROW)
        words = label(token, x=x, y=top + 14, text_anchor=anchor)
        rows.append(tag("g", tag("title", token), strip, words, class_=f"token {kind}{place}"))
    return join(*rows)


def beside(place: int, count: int) -> float:
    """How far below the middle of a token's row the bands of one of several heads lie."""
    return (place - (count - 1) / 2) * 0.8 * ROW / count


def head_bands(matrix: Matrix, place: int) -> Markup:
    """The bands of one head, each from a query to a key; several heads' lie beside one another."""
    head, count = matrix.heads[place], len(matrix.heads)
    middle = TOP + ROW / 2 + beside(place, count)
    paths = [
        tag(
            "path",
            class_=f"q{query} k{key}",
            d=f"M{LEFT + 6} {middle + ROW * query:.1f}L{RIGHT - 6} {middle + ROW * key:.1f}",
            opacity=f"{weight:.2f}",
        )
        for query, row in enumerate(matrix.weights[place])
        for key, weight in enumerate(row)
        if weight >= LEAST
    ]
    colour = "#{:02x}{:02x}{:02x}".format(*head_colour(head - 1, matrix.of))
    return tag(
        "g", *paths, class_=f"head head-{head}", stroke=colour, stroke_width=f"{max(0.8 * ROW / count, 1.2):.1f}"
    )


def draw_bands(matrix: Matrix, words: tuple[str, str]) -> Markup:
    """Bands of all heads between queries on the left and keys on the right; `words` stand above the columns."""
    height = TOP + ROW * max(len(matrix.queries), len(matrix.keys)) + 4
    return tag(
        "svg",
        tag("text", words[0], x=LEFT, y=14, text_anchor="end", class_="title"),
        tag("text", words[1], x=RIGHT, y=14, class_="title"),
        *(head_bands(matrix, place) for place in range(len(matrix.heads))),
        column(matrix.queries, "q", LEFT, "end"),
        column(matrix.keys, "k", RIGHT, "start"),
        viewBox=f"0 0 {WIDTH} {height}",
        class_="bands",
        role="img",
        aria_label=f"Attention of layer {matrix.layer}, from each of {len(matrix.queries)} tokens to the others",
    )


def draw_map(matrix: Matrix) -> Markup:
    """A heat map: a row for each query, a column for each key; of the head that is chosen, or the mean of all."""
    side = 12 + 7 * max(len(shorten(token)) for token in (*matrix.queries, *matrix.keys))
    width, height = CELL * len(matrix.keys), CELL * len(matrix.queries)
    place = {"x": side, "y": side, "width": width, "height": height, "preserveAspectRatio": "none"}
    pictures = [tag("image", href=data_uri(matrix.weights.mean(axis=0), ALL), class_="mean", **place)]
    for head, weights in zip(matrix.heads, matrix.weights, strict=True):
        colour = head_colour(head - 1, matrix.of)
        pictures.append(tag("image", href=data_uri(weights, colour), class_=f"head head-{head}", **place))
    rows = [
        label(token, x=side - 6, y=side + CELL * n + 13, text_anchor="end") for n, token in enumerate(matrix.queries)
    ]
    columns = [
        label(token, transform=f"translate({side + CELL * n + 13} {side - 6})rotate(-90)")
        for n, token in enumerate(matrix.keys)
    ]
    frame = tag("rect", x=side, y=side, width=width, height=height, class_="frame")
    full = (side + width + 2, side + height + 2)
    return tag(
        "svg",
        *(frame, *pictures, *rows, *columns),
        viewBox=f"0 0 {full[0]} {full[1]}",
        width=full[0],
        class_="map",
        role="img",
        aria_label=f"Heat map of layer {matrix.layer}",
    )
