"""The HTML page of `nmt compare`: scores, buckets, and the lines on which systems differ most."""

import base64
import hashlib
from itertools import repeat
from typing import Any

from markupsafe import Markup

from nmt import evaluation
from nmt.plugins.results.breakdown import faults_of
from nmt.plugins.results.comparison_text import (
    COSTS,
    costs,
    how_tested,
    how_translated,
    p_value,
)
from nmt.plugins.results.pages import TEMPLATES, render
from nmt.plugins.results.significance import FEWEST_LINES, NAMES, SAME, TESTS
from nmt.plugins.results.systems import System
from nmt.plugins.results.test_set import TestSet
from nmt.text import scripts_of_language

EXAMPLES = 25
"""The page shows up to this many wins, and up to this many losses, of a system."""
Example = dict[str, Any]  # a line with its translations by two systems


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
        wins, losses = examples(test, baseline.seeds[0].hypotheses, translations)
        pairs.append((rival.name, wins, losses))
    return render(
        "comparison_page.html",
        tree=tree,
        language=test.language,
        least=FEWEST_LINES,
        pairs=pairs,
        counted=counted,
        names=NAMES,
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


def examples(
    test: TestSet, baseline: list[str], rival: list[str]
) -> tuple[list[Example], list[Example]]:
    """The lines on which a system gains most against the baseline, and where it loses most.

    Lines are compared by their sentence-level chrF2.
    """
    chrf = evaluation.sentence_scorer("chrf")
    scripts = scripts_of_language(test.language or "")
    sources = test.sources or repeat(None, len(baseline))
    lines: list[Example] = []
    rows = zip(sources, test.references, baseline, rival, strict=True)
    for number, (source, reference, *texts) in enumerate(rows, 1):
        faults: list[str] = []
        for text in texts:
            faults += faults_of(source, reference, text, scripts)
        scores = [chrf(text, reference) for text in texts]
        lines.append(
            {
                "number": number,
                "source": source,
                "reference": reference,
                "texts": texts,
                "faults": list(dict.fromkeys(faults)),
                "scores": scores,
                "gap": scores[1] - scores[0],
            }
        )
    # A stable sort, read from both ends: of equal gaps, a loss shows the later line first.
    ranked = sorted(lines, key=lambda line: -line["gap"])
    # A tie is neither a win nor a loss, so there may be fewer examples.
    wins = [line for line in ranked[:EXAMPLES] if line["gap"] > 0]
    losses = [line for line in ranked[::-1][:EXAMPLES] if line["gap"] < 0]
    return wins, losses
