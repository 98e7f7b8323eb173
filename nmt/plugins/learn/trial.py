"""Decide whether a model that has learned takes the place of its parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import evaluation
from nmt.config import title_of_metric
from nmt.evaluation import paired_test, sacrebleu_metric, sentence_scorer
from nmt.plugins.learn.comparison import loss_per_token, translate
from nmt.plugins.learn.reading import Correction
from nmt.plugins.learn.replay import GeneralSet
from nmt.translation import Translator

TESTS = {"bs": 1000, "ar": 10_000}
"""sacreBLEU's tests and the numbers of their samples, as in `nmt compare`."""
HARM = 0.05
"""The lowest significance level for a loss on general text. `alpha` may be lower, but a stricter
proof that corrections help must not let a worse model pass."""
MORE_CORRECTIONS = "collect more corrections of this kind"
LESS_CHANGE = "halve `passes` or `share`, or collect more corrections"
CAUTION = 0.4
"""The part of the margin that the choice of the strength may use. With a loss that was 3.9% higher,
general text was significantly worse by chrF2 (53.5 before, 52.5 after)."""


@dataclass(frozen=True)
class Rules:
    """When a model is delivered."""

    metric: str
    alpha: float
    margin: float
    """The largest increase of the loss on general text, as a share of the loss before."""
    seed: int
    language: str
    """The target language."""


@dataclass(frozen=True)
class Difference:
    """The scores of two models on the same lines."""

    before: float
    after: float
    signature: str
    p: dict[str, float]
    """The p-value of each test; empty if all translations are equal."""

    def is_significant(self, alpha: float) -> bool:
        """Whether both tests find a difference, as in `nmt compare`."""
        return bool(self.p) and max(self.p.values()) < alpha

    def is_gain(self, alpha: float) -> bool:
        return self.after > self.before and self.is_significant(alpha)

    def is_loss(self, alpha: float) -> bool:
        return self.after < self.before and self.is_significant(alpha)


def test_difference(
    before: list[str], after: list[str], references: list[str], rules: Rules
) -> Difference:
    """Test two systems by the metric of the rules."""
    tokenize = evaluation.DEFAULT_TOKENIZER
    if rules.metric == "bleu":
        tokenize = evaluation.bleu_tokenizer(None, rules.language, references)
    name = title_of_metric(rules.metric)
    p = {}
    # Without a difference, sacreBLEU returns its lowest p-value.
    for test, samples in TESTS.items():
        metrics = {name: sacrebleu_metric(rules.metric, tokenize)}
        paired = paired_test(test, [before, after], references, metrics, samples, rules.seed)
        old, new = paired.results[name]
        if before != after:
            p[test] = float(new.p_value)
    return Difference(float(old.score), float(new.score), paired.signatures[name], p)


@dataclass(frozen=True)
class WorseLine:
    """A held-out correction to which the new translation is less similar than the old one."""

    correction: Correction
    before: str
    after: str
    loss: float
    """The loss in sentence-level chrF2."""


@dataclass(frozen=True)
class Verdict:
    """What the tests found."""

    held_out: Difference
    general: Difference
    loss_before: float
    """On the general test set, in nats per token."""
    loss_after: float
    worse: list[WorseLine]
    problem: str
    """Why the model is not delivered; empty if it is."""
    advice: str
    """What to do about the problem."""

    def as_tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for name, difference in (("held_out", self.held_out), ("general", self.general)):
            tree[name] = vars(difference)
        tree["general_loss"] = {"before": self.loss_before, "after": self.loss_after}
        tree["held_out_lines_worse"] = len(self.worse)
        return tree


def judge(
    old: Translator,
    new: Translator,
    held_out: Sequence[Correction],
    general: GeneralSet,
    rules: Rules,
) -> Verdict:
    """Test a new model against the old one on held-out corrections and on general text."""
    sources = [correction.source for correction in held_out]
    references = [correction.target for correction in held_out]
    before = translate(old, sources)
    after = translate(new, sources)
    of_corrections = test_difference(before, after, references, rules)
    general_before = translate(old, general.sources)
    general_after = translate(new, general.sources)
    of_general = test_difference(general_before, general_after, general.references, rules)
    loss_before = loss_per_token(old, general.sources, general.references)
    loss_after = loss_per_token(new, general.sources, general.references)
    increase = loss_after / loss_before - 1
    helps = of_corrections.is_gain(rules.alpha)
    return Verdict(
        held_out=of_corrections,
        general=of_general,
        loss_before=loss_before,
        loss_after=loss_after,
        worse=worse_lines(held_out, before, after),
        problem=problem_of(of_corrections, of_general, increase, rules),
        advice=LESS_CHANGE if helps else MORE_CORRECTIONS,
    )


def problem_of(held_out: Difference, general: Difference, increase: float, rules: Rules) -> str:
    """Why a model is not delivered; empty if it is."""
    name = title_of_metric(rules.metric)
    scores = f"{name} {held_out.before:.1f} before, {held_out.after:.1f} after"
    change = f"{name} {general.before:.1f} before, {general.after:.1f} after"
    if held_out.after <= held_out.before:
        return f"the held-out corrections are not better: {scores}"
    if not held_out.is_gain(rules.alpha):
        largest = max(held_out.p.values(), default=1.0)
        return f"the held-out corrections are not significantly better: {scores}, p = {largest:.3f}"
    if general.is_loss(max(rules.alpha, HARM)):
        return f"general text is significantly worse: {change}"
    if increase > rules.margin:
        return f"the loss on general text rises by {increase:.1%}, more than {rules.margin:.1%}"
    return ""


def worse_lines(
    corrections: Sequence[Correction], before: Sequence[str], after: Sequence[str]
) -> list[WorseLine]:
    """The lines that became less similar to their corrections, the worst first."""
    chrf = sentence_scorer("chrf")
    lines = list[WorseLine]()
    for correction, old, new in zip(corrections, before, after, strict=True):
        loss = chrf(old, correction.target) - chrf(new, correction.target)
        if loss > 0:
            lines.append(WorseLine(correction, old, new, loss))
    return sorted(lines, key=lambda line: -line.loss)


@dataclass(frozen=True)
class CandidateLosses:
    """The losses of a candidate on tuning corrections and on general validation text."""

    strength: float
    path: Path
    tuning: float
    general: float


def choose(
    candidates: Sequence[CandidateLosses], general_loss: float, margin: float
) -> CandidateLosses:
    """The candidate with the lowest loss on corrections that hardly forgets.

    `general_loss` is the parent's. If all candidates forget too much, the weakest.
    """
    limit = general_loss * (1 + CAUTION * margin)
    remembering = [candidate for candidate in candidates if candidate.general <= limit]
    if not remembering:
        return min(candidates, key=lambda candidate: candidate.strength)
    return min(remembering, key=lambda candidate: candidate.tuning)
