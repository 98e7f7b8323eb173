"""The languages that office documents declare for their text, which spelling checkers use."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nmt.plugins.documents.directions import Turn
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element
from nmt.text import language_tag, subtags, usual_subtags

# Documents declare three languages for a text: one for characters of each kind of script.
EAST_ASIAN = frozenset(["Hans", "Hant", "Jpan", "Kore"])
COMPLEX = frozenset(
    [
        "Arab",
        "Beng",
        "Deva",
        "Gujr",
        "Guru",
        "Hebr",
        "Khmr",
        "Knda",
        "Laoo",
        "Mlym",
        "Mymr",
        "Nkoo",
        "Orya",
        "Sinh",
        "Syrc",
        "Taml",
        "Telu",
        "Thaa",
        "Thai",
        "Tibt",
    ]
)
IN_RUNS = frozenset(["rPr", "endParaRPr", "defRPr"])  # elements with a language in DrawingML
OF_WORD = ("val", "eastAsia", "bidi")
OF_OPEN_DOCUMENT = ("language", "language-asian", "language-complex")


@dataclass(frozen=True)
class Language:
    """A language as documents name it."""

    language: str
    region: str
    script: str

    @property
    def tag(self) -> str:
        """The language as Word names it, such as ja-JP; with its script only if it has several."""
        by_region = usual_subtags(f"{self.language}_{self.region}")
        usual = by_region or usual_subtags(self.language)
        is_usual = usual.get("script") == self.script
        parts = [self.language, "" if is_usual else self.script, self.region]
        return "-".join(filter(None, parts))

    def is_named(self, value: str) -> bool:
        """True if a document's value, such as en or en-US, means this language in any region."""
        return value.replace("_", "-").partition("-")[0].lower() == self.language


def change_of(source: str, target: str) -> "Change | None":
    """The change between two language codes; None if one of them is empty or unknown."""
    before = language_of(source)
    after = language_of(target)
    return Change(before, after) if before and after else None


def language_of(code: str) -> Language | None:
    """A language with its usual region and script (CLDR); None for an empty or unknown code."""
    _, script, region, is_plain = subtags(code)
    language = language_tag(code).partition("-")[0]
    names = [f"{language}_{region}", language]
    # The script comes first, because it may have its own usual region, as in zh-Hant.
    if not is_plain:
        names.insert(0, f"{language}_{script}")
    for name in names:
        usual = usual_subtags(name)
        if usual:
            return Language(language, region or usual["region"], script or usual["script"])
    return None


@dataclass(frozen=True)
class Change:
    """A change of the declared language from a source to a target language."""

    source: Language
    target: Language

    def parts(self, elements: Iterable[Element]) -> Iterator[Part]:
        """Declarations of the source language, to be replaced with those of the target language."""
        for element in elements:
            # Word has an element for languages, PowerPoint attributes of the properties of runs.
            if element.name == "lang":
                yield from self.replaced(element, self.values_of_word(), OF_WORD)
            elif element.name in IN_RUNS:
                yield from self.replaced(element, {"lang": self.target.tag}, ["lang"])
            elif element.name == "text-properties":
                values = self.values_of_open_document()
                yield from self.replaced(element, values, OF_OPEN_DOCUMENT)

    def values_of_word(self) -> dict[str, str]:
        tag = self.target.tag
        values = {"val": tag}
        if self.target.script in EAST_ASIAN:
            values["eastAsia"] = tag
        elif self.target.script in COMPLEX:
            values["bidi"] = tag
        return values

    def values_of_open_document(self) -> dict[str, str]:
        language = self.target.language
        # OpenDocument's word for no region.
        region = self.target.region or "none"
        values = {"language": language, "country": region}
        if self.target.script in EAST_ASIAN:
            values["language-asian"] = language
            values["country-asian"] = region
        elif self.target.script in COMPLEX:
            values["language-complex"] = language
            values["country-complex"] = region
        return values

    def replaced(
        self,
        element: Element,
        values: dict[str, str],
        names: Collection[str],
    ) -> Iterator[Part]:
        """Set attributes to `values` if one of the attributes `names` is the source language."""
        attributes = element.attributes
        spans = element.spans
        # A text that declares a third language, such as a quotation, keeps all its attributes.
        if not any(self.source.is_named(attributes.get(name, "")) for name in names):
            return
        added = ""
        for name, value in values.items():
            if name in spans:
                yield Part(*spans[name], otherwise=value)
            else:
                # In OpenDocument, only these two have a separate prefix.
                is_western = name in ("language", "country")
                prefix = "fo:" if is_western else element.tag.removesuffix(element.name)
                added += f' {prefix}{name}="{value}"'
        end = max(end for _, end in spans.values()) + 1  # behind the quote of the last attribute
        yield Part(end, end, otherwise=added)


def declared(elements: Sequence[Element], change: Change | None, turn: Turn | None) -> list[Part]:
    """The changes in a file for a change of language and of direction."""
    parts = list[Part]()
    if change:
        parts += change.parts(elements)
    if turn:
        parts += turn.parts(elements)
    return parts
