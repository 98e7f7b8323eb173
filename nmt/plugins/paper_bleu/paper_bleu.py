"""BLEU as the authors computed it: multi-bleu on Moses tokens, with compounds split as in get_ende_bleu.sh."""

import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import version

from nmt.config import require
from nmt.evaluation import Score, Scoring


@cache
def moses(language: str) -> Callable[[str], str]:
    """Moses replace-unicode-punctuation, then the Moses tokenizer with escapes and without -a, from sacremoses."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    punctuation, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        replaced = punctuation.replace_unicode_punct(line)
        tokens = tokenizer.tokenize(replaced, aggressive_dash_splits=False, return_str=True)
        # tokenizer.perl always splits the period from a line's last word; sacremoses leaves it on abbreviations,
        # ordinals and host names. Several dots in a row are already one token.
        return re.sub(r"(?<=[^\s.])\.\s*$", " .", str(tokens))

    return tokenize


def split_compounds(tokens: str) -> str:
    """Turn hyphens into separate tokens, as get_ende_bleu.sh does; matches do not overlap, as with Perl's s///g."""
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokens)


def paper_bleu(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """multi-bleu on Moses tokens, as in table 2; the metric "split" also splits hyphenated compounds."""
    from sacrebleu.metrics import BLEU

    language, split = scoring.language or "", scoring.metric == "split"
    require(
        bool(language),
        f"metrics={scoring.metric}: Moses tokenizes by target language; pass language=CODE",
    )
    tokens = [list(map(moses(language), side)) for side in (hypotheses, references)]
    sides = [list(map(split_compounds, side)) if split else side for side in tokens]
    scorer = BLEU(tokenize="none", smooth_method="none", force=True, lowercase=scoring.lowercase)
    signature = (
        f"nrefs:1|case:{'lc' if scoring.lowercase else 'mixed'}|punct:replace-unicode|tok:moses-{language}|ends:moses"
        f"|split:{'hyphen' if split else 'no'}|smooth:none"
        f"|sacremoses:{version('sacremoses')}|sacrebleu:{version('sacrebleu')}"
    )
    name = f"BLEU (tokenized{', compounds split' * split})"
    return [Score(scoring.metric, name, scorer.corpus_score(sides[0], [sides[1]]).score, signature)]
