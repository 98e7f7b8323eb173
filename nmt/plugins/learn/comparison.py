"""Reject corrections by comparison with the model's own translations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.evaluation import sentence_scorer
from nmt.plugins.learn.additions import added_sentence
from nmt.plugins.learn.reading import Correction
from nmt.plugins.learn.rejection import Sifted
from nmt.text import encodes_languages, has_encoder, similarities
from nmt.translation import Translation, Translator, flagger, score_pairs

UNCHANGED = "left as the source, which the model translates"
FLAGGED = "flagged as a likely failure"
DISSIMILAR = "another meaning"
ADDED = "a sentence that the source lacks"
IMPROBABLE = "improbable and unlike the model's translation"
IGNORED_FLAGS = ("low_confidence", "copied_source")
"""Flags that say nothing about a person's translation, or have a rule of their own."""
LEAST_SIMILARITY = 0.3
"""Of 200 shuffled pairs from two domains, 193 were below; of 200 right ones, none."""
DOUBTFUL_SIMILARITY = 0.45
"""Below this, a correction must not be improbable as well. All shuffled pairs were below, and 3 of
200 right ones, short labels."""
IMPROBABLE_NATS = 2.0
"""How far below that of the model's own translation the mean log probability per token must be."""
# The model alone is a poor judge of a domain that it does not know: there, right corrections were
# 3.3 nats per token below its own translations (median), and shuffled ones 4.3.
FAR_LESS_PROBABLE = 4.0
"""The same where the similarity of meaning is not known."""
UNLIKE = 15.0
"""Then, the chrF2 with the model's own translation must be below this, too."""


@dataclass(frozen=True)
class Compared:
    """A correction and the model's own translation of its source."""

    correction: Correction
    translation: str
    flags: tuple[str, ...]
    """The flags of the correction that the model's translation does not have."""
    probability: float
    """The mean log probability per token of the correction, less that of the translation."""
    similarity: float | None
    """The similarity of the correction and the source in meaning; None: not known."""
    likeness: float
    """chrF2 of the correction with the model's translation."""
    added: str = ""
    """A sentence of the correction that has nothing to do with the source."""

    def reason(self) -> str:
        """Why the correction is rejected; empty if it is not."""
        source = self.correction.source
        if self.correction.target == source and self.translation != source:
            return UNCHANGED
        if self.flags:
            return f"{FLAGGED}: {', '.join(self.flags)}"
        return self.reason_of_meaning()

    def reason_of_meaning(self) -> str:
        """Why the correction has another meaning than the source; empty if it has not."""
        similarity = self.similarity
        if similarity is None:
            if self.probability < -FAR_LESS_PROBABLE and self.likeness < UNLIKE:
                return f"{IMPROBABLE}: {self.probability:.1f} nats per token"
            return ""
        is_improbable = self.probability < -IMPROBABLE_NATS
        least = DOUBTFUL_SIMILARITY if is_improbable else LEAST_SIMILARITY
        if similarity < least:
            return f"{DISSIMILAR}: similarity {similarity:.2f}"
        return f"{ADDED}: {self.added}" if self.added else ""


def compare(
    translator: Translator, corrections: Sequence[Correction], languages: tuple[str, str]
) -> Iterator[Compared]:
    """Compare each correction with the model's own translation."""
    sources = [correction.source for correction in corrections]
    targets = [correction.target for correction in corrections]
    translations = translate(translator, sources)
    probabilities = mean_log_probabilities(translator, sources, targets)
    own_probabilities = mean_log_probabilities(translator, sources, translations)
    similarity: list[float | None] = [None] * len(sources)
    added = [""] * len(sources)
    if has_encoder() and encodes_languages(*languages):
        pairs = [*zip(sources, targets, strict=True)]
        similarity = [*map(float, similarities(pairs))]
        added = [added_sentence(pair, languages) for pair in pairs]
    assert translator.models
    flags_of = flagger(translator.models)
    chrf = sentence_scorer("chrf")
    for index, correction in enumerate(corrections):
        translation = translations[index]
        flags = flags_of(correction.source, Translation(correction.target, 0.0, 0.0))
        usual = flags_of(correction.source, Translation(translation, 0.0, 0.0))
        new = [flag for flag in flags if flag not in usual and flag not in IGNORED_FLAGS]
        yield Compared(
            correction=correction,
            translation=translation,
            flags=tuple(new),
            probability=probabilities[index] - own_probabilities[index],
            similarity=similarity[index],
            likeness=chrf(correction.target, translation),
            added=added[index],
        )


def translate(translator: Translator, lines: Sequence[str]) -> list[str]:
    """The best translation of each line."""
    return [row[0].text for row in translator.translate([*lines])]


def mean_log_probabilities(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[float]:
    """The mean log probability of the tokens of each target, with the end symbol."""
    scores = score_pairs(translator, [*zip(sources, targets, strict=True)])
    return [score.log_probability / len(score.token_log_probabilities) for score in scores]


def loss_per_token(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> float:
    """The negative log probability per token of all targets together."""
    scores = score_pairs(translator, [*zip(sources, targets, strict=True)])
    tokens = sum(len(score.token_log_probabilities) for score in scores)
    return -sum(score.log_probability for score in scores) / tokens


def sift_by_model(
    translator: Translator, corrections: Sequence[Correction], languages: tuple[str, str]
) -> Sifted:
    """Reject corrections that the model, the flags or the meanings contradict."""
    sifted = Sifted()
    for compared in compare(translator, corrections, languages):
        reason = compared.reason()
        if reason:
            sifted.reject(compared.correction, reason)
        else:
            sifted.usable.append(compared.correction)
    return sifted
