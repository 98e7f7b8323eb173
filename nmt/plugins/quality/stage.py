"""The stage that gives each translation the probability that it is good."""

from typing import Any

from nmt.config import NMTError, TranslatorOptions
from nmt.files import expected_search
from nmt.plugins.quality.features import SIMILARITY, Features, Judged, computes_similarity
from nmt.plugins.quality.record import Record, fit_of, read_record
from nmt.text import ENCODER_NAME, Tokenizer, encoder_version
from nmt.translation import (
    MARKED,
    OMITTED,
    TRUSTED,
    Limits,
    Line,
    Models,
    Outcome,
    RefusedLine,
    Rest,
    Stage,
    Translation,
    find_models,
)

SEARCH = ("beam_size", "length_penalty", "length_penalty_kind", "do_sample")
"""The search settings that change which translations are probable."""
BELOW = "less probable to be good than minimum={minimum:.10g}"
TRUST = {"mark": MARKED, "omit": OMITTED}


class QualityStage(Stage):
    """Adds probabilities, and compares them with the minimum that the user asks for."""

    def __init__(self, options: TranslatorOptions, models: Models, record: Record) -> None:
        self.minimum: float | None = None
        self.below = MARKED
        chosen = options.plugins.get("quality")
        if chosen:
            self.minimum = chosen.minimum
            self.below = TRUST[chosen.below]
        self.features = Features(models, models.direction(options))
        self.fit = fit_of(record.stored_fit(self.features.has_similarity))

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        outcomes = rest(lines)
        judged = list[Judged]()
        translations = list[Translation]()
        for line, outcome in zip(lines, outcomes, strict=True):
            if isinstance(outcome, RefusedLine):
                continue
            for candidate in outcome:
                translations.append(candidate)
                judged.append(
                    Judged(
                        line.text,
                        candidate.text,
                        candidate.log_probability,
                        candidate.tokens,
                        line.tag,
                    )
                )
        if judged:
            self.judge(judged, translations)
        return outcomes

    def judge(self, judged: list[Judged], translations: list[Translation]) -> None:
        features = self.features.compute(judged, self.fit.features)
        probabilities = self.fit.probabilities(features).tolist()
        lowest = min(self.fit.calibration.probabilities)
        for line, translation, probability in zip(judged, translations, probabilities, strict=True):
            # The model translated nothing, or a person did.
            is_certain = translation.is_from_memory or not line.source.strip()
            if not is_certain and not line.tokens and self.features.count_flags(line):
                # In a script that the model does not know, nmt copied all of the text.
                probability = lowest
            translation.probability = 1.0 if is_certain else round(probability, 4)
            if self.minimum is not None:
                is_kept = translation.probability >= self.minimum
                translation.trust = TRUSTED if is_kept else self.below

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        if best.is_below:
            assert best.probability is not None
            note = BELOW.format(minimum=self.minimum)
            # With all digits, so that 0.6998 does not look like a minimum of 0.7.
            best.notes[note] = f"probability {best.probability:.4f}"
        return {}


def quality(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Stage:
    """The stage for a calibrated model.

    Raises NMTError if a minimum is given and the model is not calibrated. Without a minimum, a
    notice of the stage says why the output has no probabilities.
    """
    models = find_models(options.run)
    [folder] = models.folders
    chosen = options.plugins.get("quality")
    try:
        record = read_record(folder, options.run[0])
    except NMTError as error:
        if chosen and chosen.minimum is not None:
            raise error.within(f"minimum={chosen.minimum}") from error
        # Weights that were averaged again must still translate.
        silent = Stage()
        silent.notices = [f"without probabilities: {error}"]
        return silent
    stage = QualityStage(options, models, record)
    stage.notices = notices_of_search(options, models, record)
    highest = max(stage.fit.calibration.probabilities)
    if stage.minimum is not None and stage.minimum > highest:
        stage.notices.append(
            f"minimum={stage.minimum:.10g}: this model's translations have probabilities of at "
            f"most {highest:.4f}; its README.md has a table of values"
        )
    return stage


def state(options: TranslatorOptions) -> dict[str, str]:
    """The version of the sentence encoder, if the probabilities depend on it."""
    models = find_models(options.run)
    try:
        record = read_record(models.folders[0], options.run[0])
    except NMTError:
        # There are no probabilities; the stage reports why.
        return {}
    stored_fit = record.stored_fit(computes_similarity(models.direction(options)))
    if SIMILARITY not in stored_fit.features:
        return {}
    return {f"sentence encoder (package {ENCODER_NAME})": encoder_version()}


def notices_of_search(options: TranslatorOptions, models: Models, record: Record) -> list[str]:
    """A notice for each setting of the search that differs from that of the calibration."""
    decode = vars(expected_search(options.decode, models.descriptions[0]))
    notices = list[str]()
    for key in SEARCH:
        before = record.decode.get(key)
        if before != decode[key]:
            setting = f"decode.{key}={decode[key]}"
            notices.append(f"{setting}: the probabilities were calibrated with {before}")
    return notices
