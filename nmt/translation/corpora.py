"""How to translate and score a kind of corpus."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt import data
from nmt.config import structured_targets
from nmt.extensions import import_attribute
from nmt.translation.translator import Translator


def best_translations(translator: Translator, lines: list[str]) -> list[str]:
    """The best translation of each line."""
    return [translations[0].text for translations in translator.translate(lines)]


@dataclass(frozen=True)
class CorpusKind:
    """How to translate and score a kind of corpus; from the facts of a plugin's "corpus" entry."""

    translate: Callable[[Translator, list[str]], list[str]] = best_translations
    metric: str = "bleu"
    column: str = "valid_bleu"
    """The column of metrics.csv."""


def kind_of_corpus(corpus: "data.PreparedCorpus") -> CorpusKind:
    structured = structured_targets(corpus.manifest.content["data"]["kind"])
    if structured is None:
        return CorpusKind()
    translate = import_attribute(structured.translate)
    return CorpusKind(translate, structured.metric, structured.column)
