"""The sections below the curves: translations, corpus, configuration, environment."""

import re
from itertools import groupby
from typing import Any

from nmt.data.manifest import Manifest, flatten
from nmt.evaluation.scores import Score
from nmt.parsing.brackets import tree_of
from nmt.report.bars import Bar, draw_bars
from nmt.report.content import Content, in_words, signature
from nmt.report.markup import Markup, join, tag
from nmt.report.quality import TREES, Example, Quality, differences
from nmt.report.run import Run
from nmt.report.trees import draw_trees
from nmt.storage.foreign import SMALL, read_text

FEW = 20
"""Sentences that are too few for a score to say much."""


TEXT_LEGEND = (
    "Sentence-level chrF2 beside each; ",
    tag("mark", "missed", class_="missed"),
    " words of the reference, ",
    tag("mark", "other", class_="wrong"),
    " words of the translation.",
)
TREE_LEGEND = (
    "F1 beside each; above the words the reference with brackets that the parser ",
    tag("mark", "missed", class_="missed"),
    ", below them the parser's with those that are ",
    tag("mark", "its own", class_="wrong"),
    "; punctuation moves no bracket.",
)


def section(title: str, *contents: object) -> Markup:
    return tag("section", tag("h2", title), *contents)


def figure(title: str, unit: str, picture: Markup, legend: Markup | None = None) -> Markup:
    """A picture below its title and what it measures."""
    words = tag("span", tag("b", title), " ", tag("span", unit, class_="unit"))
    return tag("figure", tag("figcaption", words, legend), picture)


def marked(pieces: list[tuple[str, bool]], kind: str) -> Markup:
    """A text whose pieces that differ are marked."""

    def mark(text: str) -> Markup:
        before, words, after = re.fullmatch(r"(\s*)(.*?)(\s*)", text, flags=re.S).groups()  # type: ignore[union-attr]
        return join(before, tag("mark", words, class_=kind) if words else "", after)

    return join(*(mark(text) if differs else text for text, differs in pieces))


def example_block(example: Example, languages: tuple[str, str]) -> Markup:
    """Source, reference and translation below one another."""
    reference, hypothesis = differences(example.reference, example.hypothesis)
    rows = (
        ("source", example.source, languages[0]),
        ("reference", marked(reference, "missed"), languages[1]),
        ("translation", marked(hypothesis, "wrong") or tag("i", "(empty)"), languages[1]),
    )
    lines = [join(tag("dt", label), tag("dd", text, lang=code, dir="auto")) for label, text, code in rows]
    return tag("article", tag("div", f"{example.value:.1f}", class_="own"), tag("dl", *lines))


def tree_block(example: Example) -> Markup:
    """The reference's tree and the parser's over the same words."""
    reference, hypothesis = (tree_of(line, "tree") for line in (example.reference, example.hypothesis))
    picture = tag("div", draw_trees(reference, hypothesis), class_="scroll")
    return tag("article", tag("div", f"{example.value:.1f}", class_="own"), picture)


def scored(items: list[Score]) -> Markup:
    """Scores with their signatures, those that share one above it."""
    blocks = []
    for own, group in groupby(items, lambda item: item.signature):
        values = [(tag("dt", item.name), tag("dd", f"{item.value:.2f}", class_="value")) for item in group]
        blocks.append(tag("div", *(part for pair in values for part in pair), tag("dd", signature(own))))
    return tag("dl", *blocks, class_="scores")


def bar_charts(quality: Quality) -> tuple[Markup, Markup]:
    """The score by source length, and how many lines reach which score of their own."""
    lengths = [Bar(b.value, f"{b.value:.1f}", b.label, f"{b.count:,}", b.count < FEW) for b in quality.buckets]
    tenths = [
        Bar(count, f"{count:,}" if count else "", f"{10 * place}") for place, count in enumerate(quality.histogram)
    ]
    name, own = quality.scores[0].name, quality.measure.sentence_name
    by_length = draw_bars(f"{name} by source length", lengths, ("words", "lines"))
    by_score = draw_bars(f"Lines by sentence-level {own}", tenths, ("from", ""))
    return (
        figure(f"{name} by source length", f"pale: fewer than {FEW} lines", by_length),
        figure(f"Lines by {own}", "in steps of ten", by_score),
    )


def translations(content: Content) -> Markup:
    """Scores of the held-out set, by length, and examples."""
    quality, data = content.quality, content.run.config.get("data", {})
    trees = quality is not None and quality.measure is TREES
    title = "Trees" if trees else "Translations"
    if not quality:
        return section(title, tag("p", content.translated, class_="note"))
    pictures = tag("div", scored(quality.scores), *bar_charts(quality), class_="charts")
    languages = str(data.get("source", "")), str(data.get("target", ""))
    groups = [
        join(tag("h3", name), *(tree_block(e) if trees else example_block(e, languages) for e in group))
        for name, group in quality.examples.items()
    ]
    legend = tag("p", *(TREE_LEGEND if trees else TEXT_LEGEND), class_="note") if groups else ""
    return section(title, tag("p", content.translated, class_="note"), pictures, legend, *groups)


def table(head: list[str], rows: list[list[object]], numbers: int = 0) -> Markup:
    """A table; its last `numbers` columns are numbers."""

    def row(name: str, cells: list[object]) -> Markup:
        text = len(cells) - numbers
        return tag("tr", *(tag(name, c, class_="number" if i >= text else None) for i, c in enumerate(cells)))

    body = tag("tbody", *(row("td", cells) for cells in rows))
    return tag("div", tag("table", tag("thead", row("th", list(head))) if head else "", body), class_="scroll")


def corpus(run: Run) -> Markup:
    """Where the corpus came from, and what the filters made of it."""
    if not run.manifest:
        return section("Corpus", tag("p", run.corpus_problem, class_="note"))
    manifest: Manifest = run.manifest
    reasons = list(dict.fromkeys(reason for counts in manifest.counts.values() for reason in counts["dropped"]))
    rows: list[list[object]] = []
    for split, counts in manifest.counts.items():
        dropped = [f"{counts['dropped'].get(reason, 0):,}" for reason in reasons]
        tokens = [f"{counts.get('tokens', {}).get(side, 0):,}" for side in ("source", "target")]
        rows.append([split, f"{counts['read']:,}", *dropped, f"{counts.get('kept', 0):,}", *tokens])
    head = ["", "pairs read", *reasons, "kept", "source tokens", "target tokens"]
    kind = manifest.content["tokenizer"]["kind"]
    about: list[list[object]] = [
        ["vocabulary", f"{manifest.vocabulary_size:,} ({kind}, joint)"],
        ["fingerprint", tag("code", manifest.fingerprint)],
    ]
    sources = manifest.content.get("sources")
    for name, value in flatten(sources if isinstance(sources, dict) else {"source": sources}).items():
        about.append([name, tag("code", in_words(value))])
    return section("Corpus", table(head, rows, len(head) - 1), table([], about))


def configuration(content: Content) -> Markup:
    """What differs from the defaults, then everything."""
    own, default = flatten(content.run.config), flatten(content.defaults)
    rows: list[list[object]] = [
        [tag("code", key), tag("code", in_words(value)), tag("code", in_words(default.get(key)))]
        for key, value in own.items()
        if value != default.get(key) and key not in ("name", "prepared", "run")
    ]
    text = read_text(content.run.folder / "config.yaml", SMALL)
    whole = tag("details", tag("summary", "All of config.yaml"), tag("pre", text))
    differing = table(["differs from the defaults", "this run", "default"], rows) if rows else "The defaults."
    return section("Configuration", differing, whole)


def environment(content: Content) -> Markup:
    """Where and with which versions the run was trained, as far as it is recorded."""
    found: dict[str, Any] = dict(content.facts.versions) if content.facts else {}
    if content.facts and content.facts.devices:
        found["devices"] = content.facts.devices
    found |= content.run.environment
    if content.run.manifest:
        found["corpus prepared with"] = [f"{k} {v}" for k, v in content.run.manifest.versions.items()]
    order = ["commit", "nmt", "python", "torch", "lightning", "platform", "processor", "devices", "world_size"]
    keys = [*(key for key in order if key in found), *(key for key in found if key not in order)]
    rows: list[list[object]] = [[key.replace("_", " "), in_words(found[key]).strip("[]")] for key in keys]
    return section("Environment", table([], rows) if rows else tag("p", "Nothing is recorded.", class_="note"))
