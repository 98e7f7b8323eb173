"""Bar charts as SVG, of the size of the curves."""

from dataclasses import dataclass

from nmt.report.curves import HEIGHT, LEFT, RIGHT, TOP, WIDTH
from nmt.report.markup import Markup, join, tag
from nmt.report.scales import Scale, compact, linear_ticks

BASE = 174
"""Where bars stand; two lines of labels are below."""
WIDEST = 44


@dataclass
class Bar:
    """A bar, with what is written above it and below."""

    value: float
    above: str
    label: str
    below: str = ""
    pale: bool = False


def draw_bar(bar: Bar, middle: float, width: float, y: Scale) -> Markup:
    """A bar and its words."""
    top = y(bar.value)
    shape = tag(
        "rect",
        class_="bar few" if bar.pale else "bar",
        x=f"{middle - width / 2:.1f}",
        y=f"{top:.1f}",
        width=f"{width:.1f}",
        height=f"{y(0) - top:.1f}",
    )
    words = ((bar.above, top - 4, "value"), (bar.label, BASE + 16, None), (bar.below, BASE + 32, None))
    texts = [
        tag("text", text, x=f"{middle:.1f}", y=f"{height:.1f}", text_anchor="middle", class_=kind)
        for text, height, kind in words
        if text
    ]
    return join(shape, *texts)


def draw_bars(title: str, bars: list[Bar], labels: tuple[str, str]) -> Markup:
    """A bar chart from zero; `labels` name the two lines of words below the bars."""
    ticks = linear_ticks(0, max([bar.value for bar in bars] + [1]), 4)
    y = Scale(0, ticks[-1], BASE, TOP)
    parts = [tag("path", class_="grid", d="".join(f"M{LEFT} {y(tick):.1f}H{RIGHT}" for tick in ticks))]
    for words, height in [(compact(tick), y(tick) + 4) for tick in ticks]:
        parts.append(tag("text", words, x=LEFT - 6, y=f"{height:.1f}", text_anchor="end"))
    for words, height in zip(labels, (BASE + 16, BASE + 32), strict=True):
        parts.append(tag("text", words, x=LEFT - 12, y=height, text_anchor="end"))
    pitch = min((RIGHT - LEFT) / len(bars), WIDEST)
    for place, bar in enumerate(bars):
        parts.append(draw_bar(bar, LEFT + (place + 0.5) * pitch, 0.7 * pitch, y))
    said = f"{title}: " + ", ".join(f"{bar.label} {bar.above}" for bar in bars)
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=said)
