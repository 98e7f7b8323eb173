"""BLEU as the authors computed it: multi-bleu on Moses tokens.

tensor2tensor's get_ende_bleu.sh also splits compounds.
"""

import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import version

from nmt.config import NMTError
from nmt.evaluation import Score, Scoring


# Once per language: sacremoses reads files of prefixes and compiles many expressions.
@cache
def moses(language: str) -> Callable[[str], str]:
    """The Moses tokenizer with escapes and without -a, after replace-unicode-punctuation.

    Both are those of sacremoses.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    punctuation = MosesPunctNormalizer(lang=language)
    tokenizer = MosesTokenizer(lang=language)

    def tokenize(line: str) -> str:
        replaced = punctuation.replace_unicode_punct(line)
        tokens = tokenizer.tokenize(replaced, aggressive_dash_splits=False, return_str=True)
        # tokenizer.perl always splits the period from a line's last word; sacremoses leaves it on
        # abbreviations, ordinals and host names. Several dots in a row are already one token.
        return re.sub(r"(?<=[^\s.])\.\s*$", " .", str(tokens))

    return tokenize


def split_compounds(tokens: str) -> str:
    """Turn hyphens into separate tokens, as get_ende_bleu.sh does.

    Matches do not overlap, as with Perl's s///g.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokens)


def paper_bleu(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """multi-bleu on Moses tokens, as in table 2.

    The metric "split" also splits hyphenated compounds.
    """
    from sacrebleu.metrics import BLEU

    language = scoring.language
    if not language:
        advice = "pass language=CODE"
        raise NMTError(f"metrics={scoring.metric}: Moses tokenizes by target language; {advice}")
    tokenize = moses(language)
    hypothesis_tokens = [tokenize(line) for line in hypotheses]
    reference_tokens = [tokenize(line) for line in references]
    name = "BLEU (tokenized)"
    split = scoring.metric == "split"
    if split:
        hypothesis_tokens = [split_compounds(line) for line in hypothesis_tokens]
        reference_tokens = [split_compounds(line) for line in reference_tokens]
        name = "BLEU (tokenized, compounds split)"
    # As in multi-bleu: tokens are split at spaces, and counts are not smoothed. `force` keeps
    # sacreBLEU from warning that the text is tokenized.
    scorer = BLEU(tokenize="none", smooth_method="none", force=True, lowercase=scoring.lowercase)
    value = scorer.corpus_score(hypothesis_tokens, [reference_tokens]).score
    # sacreBLEU's own signature would say only that it did not tokenize.
    signature = {
        "nrefs": "1",
        "case": "lc" if scoring.lowercase else "mixed",
        "punct": "replace-unicode",
        "tok": f"moses-{language}",
        "ends": "moses",
        "split": "hyphen" if split else "no",
        "smooth": "none",
        "sacremoses": version("sacremoses"),
        "sacrebleu": version("sacrebleu"),
    }
    parts = [f"{key}:{part}" for key, part in signature.items()]
    return [Score(scoring.metric, name, value, "|".join(parts))]
