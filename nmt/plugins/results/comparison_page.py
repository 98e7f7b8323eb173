"""The HTML page of `nmt compare`: scores, buckets, and the lines on which systems differ most."""

import base64
import hashlib
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from markupsafe import Markup

from nmt import evaluation
from nmt.config import title_of_metric
from nmt.plugins.results.breakdown import faults_of
from nmt.plugins.results.comparison_text import (
    COSTS,
    costs,
    how_tested,
    how_translated,
    p_value,
)
from nmt.plugins.results.pages import TEMPLATES, render
from nmt.plugins.results.significance import FEWEST_LINES, SAME, TESTS
from nmt.plugins.results.systems import System
from nmt.plugins.results.test_set import TestSet
from nmt.text import scripts_of_language

# Enough to see a pattern, and few enough to read.
EXAMPLES = 25
"""The page shows up to this many wins and as many losses of a system."""


@dataclass(frozen=True)
class Example:
    """A line of the test set with its translations by the baseline and by another system."""

    number: int
    """Counted from 1."""
    source: str | None
    """None if the test set has no sources."""
    reference: str
    texts: list[str]
    """The two translations, the baseline's first."""
    faults: list[str]
    """What is wrong with one of them or both."""
    scores: list[float]
    """The chrF2 of each translation."""

    @property
    def gap(self) -> float:
        """How much better the other system is; negative if the baseline is better."""
        return self.scores[1] - self.scores[0]


def comparison_page(
    tree: dict[str, Any], systems: list[System], test: TestSet, counted: str
) -> str:
    """The page for the record `tree`; `counted` says where the training words were counted."""
    script = (TEMPLATES / "comparison.js").read_text(encoding="utf-8")
    # Browsers run the script with this hash and no other, whatever the texts contain.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    baseline, *rivals = systems
    pairs = []
    for rival in rivals:
        # Readers see the lines of one seed; all seeds would multiply the page.
        translations = rival.seeds[0].hypotheses
        wins, losses = most_different_lines(test, baseline.seeds[0].hypotheses, translations)
        pairs.append((rival.name, wins, losses))
    return render(
        "comparison_page.html",
        tree=tree,
        language=test.language,
        least=FEWEST_LINES,
        pairs=pairs,
        counted=counted,
        names={metric: title_of_metric(metric) for metric in tree["signatures"]},
        tests=TESTS,
        same=SAME,
        names_of_costs=COSTS,
        # Not escaped, because it is our own file; everything else on the page is escaped.
        script=Markup(script),
        digest=digest,
        costs=costs,
        how_tested=how_tested,
        how_translated=how_translated,
        p_value=p_value,
        signed=signed,
    )


def signed(value: float, digits: int = 1) -> str:
    # The minus sign (U+2212) is as wide as the plus sign.
    return f"{value:+,.{digits}f}".replace("-", "−")  # noqa: RUF001


def most_different_lines(
    test: TestSet, baseline: list[str], rival: list[str]
) -> tuple[list[Example], list[Example]]:
    """The lines on which a system wins most against the baseline, and those on which it loses most.

    Both begin with the largest difference, measured by sentence-level chrF2, and have at most
    EXAMPLES lines.
    """
    lines = compared_lines(test, baseline, rival)
    # A stable sort, read from both ends: of equal gaps, a loss shows the later line first.
    ranked = sorted(lines, key=lambda line: -line.gap)
    # A tie is neither a win nor a loss, so there may be fewer examples.
    wins = [line for line in ranked[:EXAMPLES] if line.gap > 0]
    losses = [line for line in ranked[::-1][:EXAMPLES] if line.gap < 0]
    return wins, losses


def compared_lines(test: TestSet, baseline: list[str], rival: list[str]) -> list[Example]:
    """All lines of a test set with their two translations."""
    chrf = evaluation.sentence_scorer("chrf")
    scripts = scripts_of_language(test.language or "")
    sources = test.sources or repeat(None, len(baseline))
    lines = list[Example]()
    rows = zip(sources, test.references, baseline, rival, strict=True)
    for number, (source, reference, *texts) in enumerate(rows, 1):
        faults = list[str]()
        for text in texts:
            faults += faults_of(source, reference, text, scripts)
        lines.append(
            Example(
                number=number,
                source=source,
                reference=reference,
                texts=texts,
                faults=list(dict.fromkeys(faults)),  # a fault of both translations is named once
                scores=[chrf(text, reference) for text in texts],
            )
        )
    return lines
