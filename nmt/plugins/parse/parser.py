"""Sentences to constituency trees (section 6.3)."""

from operator import itemgetter

from nmt.errors import NMTError
from nmt.files import find_model_directory, is_parser, read_description
from nmt.plugins.parse.treebank import model_sentence
from nmt.plugins.parse.trees import Tree, escape, read_linear
from nmt.translation import Translation, Translator


def check_parsers(names: list[str]) -> None:
    """Raise NMTError for a model that was not trained on a treebank."""
    for name in names:
        description = read_description(find_model_directory(name))
        if not is_parser(description):
            raise NMTError(
                f"run={name}: translates from {description.source} to {description.target}, and parses nothing; "
                "use `nmt translate`, or name a model that was trained with data=treebank"
            )


def choose_tree(translations: list[Translation], line: str) -> tuple[Tree, int]:
    """The tree of a line that needs the fewest repairs, the best-ranked of equals; and the number of its repairs."""
    words = escape(line).split()
    return min((read_linear(translation.text, words) for translation in translations), key=itemgetter(1))


def bracketed_trees(translator: Translator, lines: list[str]) -> list[str]:
    """The tree of each line (section 6.3), with its brackets, as training scores it."""
    translations = translator.translate([model_sentence(line) for line in lines])
    return [choose_tree(best, line)[0].bracketed() for best, line in zip(translations, lines, strict=True)]
