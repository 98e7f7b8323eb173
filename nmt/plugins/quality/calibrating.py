"""Translate held-out lines, and fit the probability of a good translation to their scores."""

import hashlib
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from nmt import __version__
from nmt.config import DecodeConfig, NMTError, TranslatorOptions, build
from nmt.evaluation import score, sentence_scorer
from nmt.files import expected_search, find_model_directory, is_parser, sha256
from nmt.plugins.quality.command import CalibrateConfig
from nmt.plugins.quality.features import ALWAYS, SIGNS, Features, Judged, judged_pair
from nmt.plugins.quality.fitting import FOLDS, fitted
from nmt.plugins.quality.isotonic import Numbers
from nmt.plugins.quality.record import NAME, WEIGHTS, Record, StoredFit, read_record, stored
from nmt.plugins.results.test_set import corpus_of_model, held_out_text
from nmt.text import not_parallel, read_texts
from nmt.translation import Models, Translator, load_translator, warn

BLOCK = 500
"""Lines to translate between updates of the progress."""
FEWEST_LINES = 10 * FOLDS
FEWEST_OF_EACH = FOLDS
"""The minimum number of good lines, and of others."""
RELIABLE_LINES = 500


def calibrate(config: CalibrateConfig, console: Console) -> tuple[Path, Record]:
    """The model directory, and what `nmt calibrate` writes into it."""
    folder = find_model_directory(config.run)
    like = config.like
    if like is not None:
        config = like_before(config, like)
    sources, references = held_out_lines(config, like or config.run)
    text = digest_of(sources, references)
    if like is not None:
        check_same_text(like, text)
    if len(sources) < RELIABLE_LINES:
        warn(f"only {len(sources):,} lines: probabilities need about {RELIABLE_LINES} to be exact")
    # With the options of plugins, such as protection, as for `nmt translate`.
    options = build(TranslatorOptions, {}, base=replace(config.translator, run=[config.run]))
    translator = load_translator(options, warn)
    assert translator.models
    if is_parser(translator.models.descriptions[0]):
        raise NMTError(f"run={config.run}: is a parser, whose trees are not calibrated")
    judged = translate(translator, sources, console)
    signature, scores = scores_of(judged, references)
    check_outcomes(scores, config.threshold)
    is_good = (scores >= config.threshold).astype(float)
    decode = expected_search(options.decode, translator.models.descriptions[0])
    record = Record(
        weights=sha256(folder / WEIGHTS),
        threshold=config.threshold,
        metric=signature,
        lines=len(judged),
        good=int(is_good.sum()),
        fits=fits_of(translator.models, options, judged, is_good),
        decode=asdict(decode),
        nmt=__version__,
        precision=options.compute.precision,
        source=config.source,
        reference=config.reference,
        prepared=config.prepared,
        text=text,
    )
    return folder, record


def like_before(config: CalibrateConfig, model: str) -> CalibrateConfig:
    """The options with those that the calibration of another model recorded.

    Raises NMTError if that model is not calibrated, or if its files are gone.
    """
    record = read_record(find_model_directory(model, "like"), model)
    if not record.text:
        raise NMTError(f"like={model}: {NAME} does not name its validation lines; omit like")
    for name in (record.source, record.reference):
        # Standard input cannot be read again, either.
        if name is not None and not Path(name).is_file():
            raise NMTError(
                f"like={model}: {name}, a file of its validation lines, is missing; omit like"
            )
    decode = build(DecodeConfig, record.decode)
    compute = replace(config.translator.compute, precision=record.precision)
    return replace(
        config,
        like=None,
        source=record.source,
        reference=record.reference,
        prepared=record.prepared,
        threshold=record.threshold,
        translator=replace(config.translator, compute=compute, decode=decode),
    )


def check_same_text(model: str, text: str) -> None:
    """Raise NMTError unless a model was calibrated on lines with this digest."""
    if read_record(find_model_directory(model), model).text != text:
        raise NMTError(f"like={model}: its validation lines have changed; omit like")


def digest_of(sources: list[str], references: list[str]) -> str:
    digest = hashlib.sha256()
    for pair in zip(sources, references, strict=True):
        digest.update("".join(f"{line}\n" for line in pair).encode())
    return digest.hexdigest()


def held_out_lines(config: CalibrateConfig, model: str) -> tuple[list[str], list[str]]:
    """Sources and references of the lines with a source, of files or of a model's corpus."""
    if config.source is not None and config.reference is not None:
        sources = list(read_texts(config.source))
        references = list(read_texts(config.reference))
        if len(sources) != len(references):
            names = (config.source, config.reference)
            raise not_parallel(names, (len(sources), len(references)))
    else:
        corpus = corpus_of_model(model, config.prepared)
        sources, references = held_out_text(corpus, "valid")
        sources = corpus.tagged("valid", sources)
    kept = [number for number, source in enumerate(sources) if source.strip()]
    if len(kept) < FEWEST_LINES:
        lines = "1 line" if len(kept) == 1 else f"{len(kept)} lines"
        if config.source is not None:
            name = config.source
            advice = "pass longer files"
        else:
            name = "the validation set"
            advice = "pass source=FILE reference=FILE"
        raise NMTError(
            f"{name} has {lines} with text, but at least {FEWEST_LINES} are needed; {advice}"
        )
    return [sources[number] for number in kept], [references[number] for number in kept]


def translate(translator: Translator, sources: list[str], console: Console) -> list[Judged]:
    """The best translations of lines."""
    judged = list[Judged]()
    with console.status("translating") as status:
        for start in range(0, len(sources), BLOCK):
            block = sources[start : start + BLOCK]
            for source, row in zip(block, translator.translate(block), strict=True):
                best = row[0]
                judged.append(
                    judged_pair(translator, source, best.text, best.log_probability, best.tokens)
                )
            status.update(f"translated {len(judged):,} of {len(sources):,} lines")
    return judged


def scores_of(judged: list[Judged], references: list[str]) -> tuple[str, Numbers]:
    """The signature and the sentence chrF2 of each line."""
    score_sentence = sentence_scorer("chrf")
    scores = []
    for line, reference in zip(judged, references, strict=True):
        scores.append(score_sentence(line.translation, reference))
    [whole] = score([judged[0].translation], [references[0]], ["chrf"])
    return whole.signature, np.array(scores)


def check_outcomes(scores: Numbers, threshold: float) -> None:
    """Raise NMTError if nearly all lines have the same outcome."""
    good = np.count_nonzero(scores >= threshold)
    bad = len(scores) - good
    if min(good, bad) >= FEWEST_OF_EACH:
        return
    which = "good" if good < bad else "other"
    median = float(np.median(scores))
    raise NMTError(
        f"threshold={threshold:g}: {good:,} of {len(scores):,} translations reach it, but at least "
        f"{FEWEST_OF_EACH} {which} ones are needed; half of them reach {median:.1f}, so pass a "
        f"threshold near it"
    )


def fits_of(
    models: Models, options: TranslatorOptions, judged: list[Judged], is_good: Numbers
) -> list[StoredFit]:
    """The fit with all features and, if these need the encoder, another without it."""
    features = Features(models, models.direction(options))
    names = features.names
    values = features.compute(judged, names)
    fits = [stored(*fitted(values, names, is_good, SIGNS))]
    if names != ALWAYS:
        fits.append(stored(*fitted(values, ALWAYS, is_good, SIGNS)))
    return fits
