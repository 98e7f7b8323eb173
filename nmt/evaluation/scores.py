"""Scores: BLEU, chrF and TER by sacreBLEU, the two tokenised BLEUs of the paper, and the bracketing of trees."""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from nmt.errors import NMTError
from nmt.parsing.brackets import compare_trees
from nmt.text.files import not_parallel

METRICS = ("bleu", "chrf", "ter", "tokenised", "split")
"""Of text; that of trees is brackets."""


@dataclass
class Score:
    """A score that says how it was computed."""

    metric: str
    """bleu, chrf, ter, tokenised, split or brackets (F1; its parts are brackets_precision and the like)."""
    name: str
    """As people call it."""
    value: float
    """0 to 100; TER may exceed 100, and lower is better."""
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f}  {self.signature}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


# The full stop on the last word of a line; one of several dots never stands on a word in Moses's output.
LAST_STOP = re.compile(r"(?<=[^\s.])\.\s*$")


@cache
def moses(language: str) -> Callable[[str], str]:
    """Moses replace-unicode-punctuation, then the Moses tokenizer with escapes and without -a, by sacremoses.

    The script splits the full stop of a line's last word whatever stands before it, as tokenizer.perl says in "split
    last words independently"; sacremoses leaves it on abbreviations, ordinals and hosts, so that is done here.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    punctuation = MosesPunctNormalizer(lang=language)
    tokenizer = MosesTokenizer(lang=language)

    def tokenise(line: str) -> str:
        replaced = punctuation.replace_unicode_punct(line)
        return LAST_STOP.sub(" .", str(tokenizer.tokenize(replaced, aggressive_dash_splits=False, return_str=True)))

    return tokenise


def split_compounds(tokenised: str) -> str:
    """Every hyphen between non-blanks as a token of its own: "a-b" -> "a ##AT##-##AT## b".

    As the authors' get_ende_bleu.sh does; a character is part of one split only.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokenised)


def sacrebleu_score(metric: str, hypotheses: list[str], references: list[str], lowercase: bool) -> Score:
    """BLEU (13a), chrF2 or TER on detokenised text, with sacreBLEU's defaults and signature."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    scorer: BLEU | CHRF | TER
    if metric == "bleu":
        scorer = BLEU(lowercase=lowercase)
    elif metric == "chrf":
        scorer = CHRF(lowercase=lowercase)
    else:
        scorer = TER()  # sacreBLEU's TER ignores case unless told otherwise
    result = scorer.corpus_score(hypotheses, [references])
    return Score(metric, result.name, result.score, str(scorer.get_signature()))


def paper_bleu(hypotheses: list[str], references: list[str], language: str, split: bool, lowercase: bool) -> Score:
    """multi-bleu on Moses tokens, hypothesis and reference alike, as in Table 2; `split`: hyphenated compounds too."""
    from sacrebleu.metrics import BLEU

    def process(line: str) -> str:
        tokenised = moses(language)(line)
        return split_compounds(tokenised) if split else tokenised

    scorer = BLEU(tokenize="none", smooth_method="none", force=True, lowercase=lowercase)
    result = scorer.corpus_score([process(line) for line in hypotheses], [[process(line) for line in references]])
    signature = (
        f"nrefs:1|case:{'lc' if lowercase else 'mixed'}|punct:replace-unicode|tok:moses-{language}|ends:moses"
        f"|split:{'hyphen' if split else 'no'}|smooth:none"
        f"|sacremoses:{version('sacremoses')}|sacrebleu:{version('sacrebleu')}"
    )
    name = "BLEU (tokenised, compounds split)" if split else "BLEU (tokenised)"
    return Score("split" if split else "tokenised", name, result.score, signature)


def bracket_scores(hypotheses: list[str], references: list[str]) -> list[Score]:
    """Labelled bracketing of trees, one a line: F1, precision, recall, complete match."""
    counts = compare_trees(hypotheses, references)
    figures = {
        "": ("Bracketing F1", counts.f1),
        "_precision": ("Bracketing precision", counts.precision),
        "_recall": ("Bracketing recall", counts.recall),
        "_complete": ("Complete match", counts.complete_match),
    }
    return [Score(f"brackets{part}", name, value, counts.signature) for part, (name, value) in figures.items()]


def score_by(metric: str, hypotheses: list[str], references: list[str], language: str, lowercase: bool) -> list[Score]:
    """The scores of one metric: four of brackets, one of any other."""
    if metric == "brackets":
        return bracket_scores(hypotheses, references)
    if metric in ("tokenised", "split"):
        return [paper_bleu(hypotheses, references, language, metric == "split", lowercase)]
    return [sacrebleu_score(metric, hypotheses, references, lowercase)]


def score(
    hypotheses: list[str], references: list[str], metrics: list[str], language: str = "de", lowercase: bool = False
) -> list[Score]:
    """Corpus scores of detokenised hypotheses against one reference each, in the order of `metrics`.

    Raises NMTError where the counts differ or there is nothing to score.
    """
    if len(hypotheses) != len(references):
        raise not_parallel(("the hypothesis", "the reference"), (len(hypotheses), len(references)))
    if not hypotheses:
        raise NMTError("nothing to score: hypotheses and references are empty")
    return [item for metric in metrics for item in score_by(metric, hypotheses, references, language, lowercase)]
