"""The languages that a translation file declares for its texts, and those of the model."""

from collections.abc import Iterable
from dataclasses import dataclass

from nmt.config import NMTError
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element
from nmt.text import is_language, language_tag, match_language, with_code

LONGEST_CODE = 40  # of a language, in messages


@dataclass(frozen=True)
class LanguageAttributes:
    """The names of the attributes that declare the two languages of a file."""

    source: str
    target: str
    separator: str = "-"
    """Between the parts of a code, such as "_" in pt_BR."""

    def check(self, element: Element, source: str, target: str) -> None:
        """Raise NMTError if an element orders a translation between languages besides these two."""
        attributes = element.attributes
        for name, language in ((self.source, source), (self.target, target)):
            declared = attributes.get(name, "").strip()[:LONGEST_CODE]
            if not declared or not language or match_language(declared, [language]):
                continue
            line = element.file.count("\n", 0, element.begin) + 1
            raise NMTError(
                f'line {line}: declares {name}="{declared}", but the model has '
                f"{with_code(language)}: use a model for {with_code(declared)}, or change {name}"
            )

    def declared(self, element: Element, target: str) -> list[Part]:
        """The declaration of the target language, if the element has none."""
        tag = (language_tag(target) or target).replace("-", self.separator)
        spans = element.spans
        if element.attributes.get(self.target):
            return []
        if self.target in spans:  # which is empty
            return [Part(*spans[self.target], otherwise=tag)]
        at = end_of_attributes(element)
        if self.source in spans:
            at = spans[self.source][1] + 1  # behind the quote of the value
        return [Part(at, at, otherwise=f' {self.target}="{tag}"')]

    def settled(self, elements: Iterable[Element], source: str, target: str) -> list[Part]:
        """Check the elements that declare languages, and return the declarations they lack."""
        parts = list[Part]()
        if not target:
            return parts
        for element in elements:
            # Before anything is translated, because the translation would be in the wrong language.
            self.check(element, source, target)
            parts += self.declared(element, target)
        return parts


def check_source(declared: str, place: str, source: str, target: str) -> None:
    """Raise NMTError if a file's texts are in another language than the model translates from.

    `declared` is the language that the file declares at `place`, such as its key `@@locale`. Codes
    that no language has are accepted, as are all languages if that of the model is unknown.
    """
    declared = declared.strip()
    if not source or not is_language(declared) or match_language(declared, [source]):
        return
    if target and match_language(declared, [target]):
        raise NMTError(
            f"{place} declares {with_code(declared)}, the language of the translation: pass the "
            f"file in {with_code(source)}"
        )
    raise NMTError(
        f"{place} declares {with_code(declared)}, but the model translates from "
        f"{with_code(source)}: use a model for {with_code(declared)}, or correct the declaration"
    )


def end_of_attributes(element: Element) -> int:
    """The offset in an opening tag where another attribute can be written."""
    behind_name = element.begin + 1 + len(element.tag)
    # Behind the closing quote of the last attribute.
    ends = [end + 1 for _, end in element.spans.values()]
    return max(ends, default=behind_name)
