"""XLIFF 1.2 (https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import unescape
from itertools import chain

from nmt.config import NMTError, require
from nmt.plugins.documents import icu
from nmt.plugins.documents.document import Part, Translated, notice_of
from nmt.plugins.documents.elements import Element, escaped, parse_xml, text_of
from nmt.plugins.documents.markup import Sentence, Token, find_pairs
from nmt.plugins.documents.scripts import join_scripts
from nmt.plugins.documents.strings import CODE, FIRST_CODE, String
from nmt.plugins.documents.xml import CODES, Flow, text_token
from nmt.text import language_tag, match_language, with_code

OPEN = ("new", "needs-translation")  # states of targets that nmt replaces
STATE = re.compile(r"""(?<!\s)(?:\s++state\s*=\s*("[^"]*"|'[^']*')|\s*+/?>$)""")
SCRIPT_TAG = re.compile(r"<(/?)(sup|sub)\b[^<>]*>", re.IGNORECASE)
SCRIPT_KIND = re.compile(
    r"""\sctype\s*=\s*["'](?:x-)?(?:html-)?"""
    r"""(sup|sub)(?:erscript|script)?["']""",
    re.IGNORECASE,
)
LINE_BREAK = re.compile(r"((?:[ ]*(?:[\t\r\n]|&#(?:[xX]0*[aAdD9]|0*(?:9|10|13));))+[ ]*)")
UNREADABLE = "{n, plural, {"  # stands for a message that cannot be translated
LOST = "units left untranslated because the model lost their placeholders"


def needs_target(file: Element) -> bool:
    """Whether a file of XLIFF declares a source language only."""
    return "source-language" in file.spans and not file.attributes.get("target-language")


def declared_target(file: Element, target: str) -> Part:
    """The target language of a file, behind its source language."""
    tag = language_tag(target) or target
    if "target-language" in file.spans:  # which is empty
        return Part(*file.spans["target-language"], otherwise=tag)
    at = file.spans["source-language"][1] + 1
    return Part(at, at, otherwise=f' target-language="{tag}"')


def check_languages(file: Element, source: str, target: str) -> None:
    """Raise NMTError if a file orders a translation between other languages than the model's."""
    for name, language in (("source-language", source), ("target-language", target)):
        declared = file.attributes.get(name, "").strip()[:40]
        if declared and language and not match_language(declared, [language]):
            line = file.file.count("\n", 0, file.begin) + 1
            problem = f'line {line}: declares {name}="{declared}", but the model has'
            advice = f"use a model for {with_code(declared)}, or change {name}"
            raise NMTError(f"{problem} {with_code(language)}: {advice}")


class Xliff(Flow):
    """Units without a translation are translated, segment by segment if they have segments."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.source = source
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        self.left = Counter[str]()  # what stays untranslated, by the reason
        self.units = list[MessageUnit]()
        self.language = target
        elements = parse_xml(text)
        files = [element for element in elements if element.name == "file" and target]
        for file in files:
            check_languages(file, self.source, target)
        declarations = [declared_target(file, target) for file in files if needs_target(file)]
        return [*declarations, *self.sentences(elements[0])]

    def text_tokens(self, raw: str) -> list[Token]:
        """Line breaks and tabs keep their places: Xcode's units and others contain whole paragraphs."""
        tokens = list[Token]()
        for number, piece in enumerate(LINE_BREAK.split(raw)):
            is_break = number % 2 > 0
            tokens.append(Token("point", piece, breaks=True) if is_break else text_token(piece))
        return tokens

    def sentences(self, element: Element, translate: str = "") -> list[Part]:
        attributes = element.attributes
        is_new = element.name == "xliff" and attributes.get("version", "").startswith("2")
        require(not is_new, "cannot read XLIFF 2: convert it to XLIFF 1.2")
        translate = attributes.get("translate", translate)
        if element.name != "trans-unit":
            inside = (self.sentences(child, translate) for child in element.children)
            return list(chain.from_iterable(inside))
        parts = {child.name: child for child in element.children}
        source, target = parts.get("source"), parts.get("target")
        if translate == "no" or source is None:
            return []
        segmented = parts.get("seg-source")
        segments = list(segments_of(segmented)) if segmented else []
        state = target.attributes.get("state") if target else "new"
        if target and state not in OPEN and target.text.strip():
            return self.filled(target, segments)
        end = (target or segmented or source).end
        content = segmented if segmented and segments else source
        return self.new_target(content, segments or [source], target, end)

    def new_target(
        self,
        content: Element,
        segments: list[Element],
        target: Element | None,
        end: int,
    ) -> list[Part]:
        """A target with a copy of `content`, whose segments are translated; it ends at `end`."""
        file, tag = content.file, (target or content).tag
        tag = tag.removesuffix((target or content).name) + "target"
        opening = STATE.sub("", file[target.begin : target.inside]) if target else f"<{tag}"
        opening += ' state="needs-review-translation">'
        parts = [Part(target.begin if target else end, end, otherwise=opening)]
        at = content.inside
        for segment in segments:
            sentence = self.sentence_of(segment)
            if sentence.lines:
                parts.append(Part(end, end, otherwise=file[at : sentence.begin]))
                parts.append(sentence)
                at = sentence.end
                sentence.begin = sentence.end = end
        if segments[0] is not content and has_words("".join(texts_between(content))):
            self.left["units with text between segments, which is left untranslated"] += 1
        rest = file[at : content.outside]
        parts.append(Part(end, end, otherwise=f"{rest}</{tag}>"))
        return parts if len(parts) > 2 else []

    def filled(self, target: Element, segments: list[Element]) -> list[Part]:
        """The translations of the segments that are empty in a target."""
        sources = {segment.attributes.get("mid", ""): segment for segment in segments}
        parts, left = list[Part](), set(sources)
        for empty in segments_of(target):
            mid = empty.attributes.get("mid", "")
            left.discard(mid)
            sentence = self.sentence_of(sources[mid]) if mid in sources else None
            if sentence and sentence.lines and not empty.text.strip():
                file, segment, end = target.file, sources[mid], empty.end
                tag = file[empty.begin : empty.inside]
                opening = tag.removesuffix("/>").removesuffix(">") + ">"
                before = opening + file[segment.inside : sentence.begin]
                after = file[sentence.end : segment.outside] + f"</{empty.tag}>"
                sentence.begin = sentence.end = end
                parts += [
                    Part(empty.begin, end, otherwise=before),
                    sentence,
                    Part(end, end, otherwise=after),
                ]
        if segments and any(segments_of(target)):
            missing = sum(has_words(sources[mid].text) for mid in left)
            self.left["segments left untranslated because their target lacks them"] += missing
        return parts

    def sentence_of(self, element: Element) -> Part:
        """The text of a source or a segment; without lines if it cannot be translated."""
        tokens = self.tokens_of(element)
        joined = join_scripts(with_scripts(tokens))
        has_tags = any(token.kind in ("open", "close") for token in joined)
        unit = message_unit(element, tokens if has_tags else joined)
        if unit is None:
            return Sentence(element.inside, joined, escaped)
        self.units.append(unit)
        if not unit.string.is_readable:
            self.left["units left untranslated because nmt cannot parse their ICU syntax"] += 1
        return unit

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        messages = [unit.string.message for unit in self.units if unit.string.message]
        refused = sum(unit.is_refused for unit in self.units)
        lacking = icu.lacking(messages, self.language)
        self.notice = notice_of(*self.left.items(), (LOST, refused), lacking)
        return content


def segments_of(element: Element) -> Iterator[Element]:
    """The segments of a source or target, in order."""
    for child in element.children:
        if child.name == "mrk" and child.attributes.get("mtype") == "seg":
            yield child
        else:
            yield from segments_of(child)


def texts_between(element: Element) -> Iterator[str]:
    """The text of a segmented source outside of its segments and codes."""
    at = element.inside
    for child in element.children:
        yield text_of(element.file[at : child.begin])
        at = child.end
        is_segment = child.name == "mrk" and child.attributes.get("mtype") == "seg"
        if child.name not in CODES and not is_segment:
            yield from texts_between(child)
    yield text_of(element.file[at : element.outside])


def has_words(text: str) -> bool:
    return any(map(str.isalpha, text))


class MessageUnit(Part):
    """An ICU message in which single characters stand for codes."""

    def __init__(self, element: Element, string: String, codes: dict[str, str]) -> None:
        super().__init__(element.inside, element.outside, string.lines)
        self.string, self.codes = string, codes
        self.raw = element.file[self.begin : self.end]
        self.is_refused = False

    def render(self, translations: Sequence[Translated]) -> str:
        text = self.string.render(translations)
        self.is_refused = not self.string.keeps(translations, text)
        if self.is_refused or text == self.string.text:
            return self.raw
        return CODE.sub(lambda code: self.codes[code[0]], escaped(text))


def with_scripts(tokens: Sequence[Token]) -> list[Token]:
    """The tokens in which codes for superscripts and subscripts are tags with these names."""
    result = [*tokens]
    partners = find_pairs(tokens)
    opened = list[str]()  # by single codes
    for index, token in enumerate(tokens):
        script = None if token.kind in ("text", "copy") else script_of(token.raw)
        if script is None:
            continue
        name, closes = script
        if token.kind == "open" and index in partners:
            last = partners[index]
            result[index] = replace(token, name=name, is_script=True)
            result[last] = replace(tokens[last], name=name)
        elif token.kind == "point" and name in opened and closes is not False:
            opened.remove(name)
            result[index] = replace(token, kind="close", name=name)
        elif token.kind == "point" and not closes:
            opened.append(name)
            result[index] = replace(token, kind="open", name=name, is_script=True)
    return result


def script_of(raw: str) -> tuple[str, bool | None] | None:
    """The element, sup or sub, that a code stands for, and whether the code closes it, if known."""
    text = unescape(unescape(raw))  # some tools escape the content twice
    tags = SCRIPT_TAG.findall(text)
    if len(tags) == 1:
        [(slash, name)] = tags
        return name.lower(), bool(slash)
    kind = None if tags else SCRIPT_KIND.search(text)
    return (kind[1].lower(), None) if kind else None


def message_unit(element: Element, tokens: Sequence[Token]) -> MessageUnit | None:
    """The ICU message that the tokens of an element form; None if they form none."""
    if not icu.is_message("".join(token.text for token in tokens)):
        return None
    text, codes = "", dict[str, str]()
    for token in tokens:
        code = chr(ord(FIRST_CODE) + len(codes))
        if token.kind == "text" and not CODE.search(token.text):
            text += token.text
        elif token.kind in ("point", "copy") and CODE.fullmatch(code):
            codes[code] = token.raw
            text += code
        else:  # the translation could tear a pair of tags apart
            text = UNREADABLE
            break
    return MessageUnit(element, String(text), codes)
