"""Scores: BLEU, chrF and TER by sacreBLEU, the two tokenised BLEUs of the paper, and the bracketing of trees."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from nmt.errors import NMTError
from nmt.parsing.brackets import compare_trees
from nmt.text.files import not_parallel


@dataclass
class Score:
    """A score that says how it was computed."""

    metric: str
    """bleu, chrf, ter, tokenised, split or brackets (F1; its parts are brackets_precision and so on)."""
    name: str
    """Name for people, such as BLEU."""
    value: float
    """0 to 100; TER may exceed 100, and lower is better."""
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f}  {self.signature}"


# The full stop at the end of a line's last word. In Moses's output, several dots are a token of their own.
LAST_STOP = re.compile(r"(?<=[^\s.])\.\s*$")


@cache
def moses(language: str) -> Callable[[str], str]:
    """Moses replace-unicode-punctuation, then the Moses tokenizer with escapes and without -a, by sacremoses.

    tokenizer.perl splits off the full stop of a line's last word, whatever the word is. sacremoses leaves it on
    abbreviations, ordinals and host names, so it is split off here.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    punctuation = MosesPunctNormalizer(lang=language)
    tokenizer = MosesTokenizer(lang=language)

    def tokenise(line: str) -> str:
        replaced = punctuation.replace_unicode_punct(line)
        return LAST_STOP.sub(" .", str(tokenizer.tokenize(replaced, aggressive_dash_splits=False, return_str=True)))

    return tokenise


def split_compounds(tokenised: str) -> str:
    """Make every hyphen between non-blanks a token of its own, as get_ende_bleu.sh does: "a-b" -> "a ##AT##-##AT## b".

    As there, a character takes part in one split only.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokenised)


def sacrebleu_score(metric: str, hypotheses: list[str], references: list[str], lowercase: bool) -> Score:
    """BLEU (13a), chrF2 or TER on detokenised text, with sacreBLEU's defaults and signature."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    if metric == "ter":
        scorer: BLEU | CHRF | TER = TER()  # ignores case by default
    else:
        scorer = (BLEU if metric == "bleu" else CHRF)(lowercase=lowercase)
    result = scorer.corpus_score(hypotheses, [references])
    return Score(metric, result.name, result.score, str(scorer.get_signature()))


def sentence_scorer(metric: str) -> Callable[[str, str], float]:
    """chrF2 or smoothed BLEU, "chrf" or "bleu", of a sentence against its reference."""
    from sacrebleu.metrics import BLEU, CHRF

    scorer: BLEU | CHRF = BLEU(effective_order=True) if metric == "bleu" else CHRF()
    return lambda hypothesis, reference: float(scorer.sentence_score(hypothesis, [reference]).score)


def paper_bleu(hypotheses: list[str], references: list[str], language: str, split: bool, lowercase: bool) -> Score:
    """multi-bleu on Moses tokens of hypothesis and reference, as in Table 2; `split` splits hyphenated compounds."""
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
    """Labelled bracketing of trees, one per line: F1, precision, recall, complete match."""
    counts = compare_trees(hypotheses, references)
    figures = (
        ("brackets", "Bracketing F1", counts.f1),
        ("brackets_precision", "Bracketing precision", counts.precision),
        ("brackets_recall", "Bracketing recall", counts.recall),
        ("brackets_complete", "Complete match", counts.complete_match),
    )
    return [Score(metric, name, value, counts.signature) for metric, name, value in figures]


def score(
    hypotheses: list[str], references: list[str], metrics: list[str], language: str = "de", lowercase: bool = False
) -> list[Score]:
    """Corpus scores of detokenised hypotheses against one reference each, in the order of `metrics`.

    "brackets" gives four scores, any other metric one. Raises NMTError if the counts differ or are zero.
    """
    if len(hypotheses) != len(references):
        raise not_parallel(("the hypothesis", "the reference"), (len(hypotheses), len(references)))
    if not hypotheses:
        raise NMTError("nothing to score: hypotheses and references are empty")
    scores = list[Score]()
    for metric in metrics:
        if metric == "brackets":
            scores += bracket_scores(hypotheses, references)
        elif metric in ("tokenised", "split"):
            scores.append(paper_bleu(hypotheses, references, language, metric == "split", lowercase))
        else:
            scores.append(sacrebleu_score(metric, hypotheses, references, lowercase))
    return scores
