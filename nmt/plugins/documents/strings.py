"""Sentences of short texts, such as messages of a program and subtitles: tags in them, and line ends that matter."""

import re
from collections.abc import Iterator, Sequence

from nmt.plugins.documents.document import Direction, Part, Spliced, Text, Translated
from nmt.plugins.documents.markup import Sentence, Token
from nmt.text import WITHOUT_BLANKS

MARKUP = re.compile(
    r"(?P<line>\r?\n)|</?(?P<name>(?!PRI[diouxX])[a-zA-Z][\w:-]*)(?:\s+[\w:-]+\s*=[^<>]*|\s*/)?>|\{\\[^{}]*\}|\A\s*[-*•\u2013]\s+"
)
"""A line end, a tag, a command of subtitles such as {\\an8}, or the dash at the beginning."""
PARAGRAPH = re.compile(r"\r?\n(?=[ \t\r\n]|[-*•\u2013]|\d+[.)])")
"""The end of a line after which nothing goes on: an empty line, an item of a list, or an indented line follows."""
TIMES = r"[ \t]*\d[\d:.,]* +--> "
CUE = re.compile(rf"^{TIMES}.*\n(?P<text>(?:(?!(?:\d+[ \t\r]*\n)?{TIMES})[ \t\r]*+\S.*(?:\n|\Z))*+)", re.MULTILINE)
MOST_CUES, MOST_CHARACTERS = 4, 200
"""Subtitles that are read as one sentence, and characters of two of them that follow each other."""


def tokens_of(text: str) -> Iterator[Token]:
    at = 0
    for markup in MARKUP.finditer(text):
        raw, name, is_end = markup[0], markup["name"], bool(markup["line"])
        yield Token("text", text[at : markup.start()], text[at : markup.start()])
        at = markup.end()
        if not name or raw.endswith("/>"):
            yield Token("point", raw, breaks=is_end, optional=is_end)
        else:
            yield Token("close" if raw[1] == "/" else "open", raw, name=name.lower())
    yield Token("text", text[at:], text[at:])


def sentences_of(text: str, begin: int = 0) -> list[Sentence]:
    """The sentences of a text that stands at `begin` in a file."""
    sentences, at = list[Sentence](), 0
    for end in [*(match.end() for match in PARAGRAPH.finditer(text)), len(text)]:
        sentences.append(Sentence(begin + at, list(tokens_of(text[at:end])), str))
        at = end
    return sentences


class Passage:
    """A sentence that goes on over several subtitles, of which each gets some of the translation."""

    def __init__(self, text: str, sentences: list[Sentence]) -> None:
        self.begin, self.end = sentences[0].begin, sentences[-1].end
        for sentence in sentences:
            sentence.begin, sentence.end = sentence.begin - self.begin, sentence.end - self.begin
        self.content = Spliced(text[self.begin : self.end], sentences)
        self.lines = [" ".join(self.content.lines)]

    def render(self, translations: Sequence[Translated]) -> str:
        return self.content.render(list(self.shares(translations[0])))

    def shares(self, translation: Translated) -> Iterator[Translated]:
        """What each subtitle gets: the words that align to its own, or where that is not known, as many."""
        words, sizes = translation.text.split(), [len(line.split()) for line in self.content.lines]
        blank, pairs = " ", list(translation.alignment or ())
        if len(words) < len(sizes) and WITHOUT_BLANKS.search(translation.text):
            words, blank, pairs = list(translation.text), "", []
        words += ["\u2026"] * (len(sizes) - len(words))
        first = begin = 0
        for number, size in enumerate(sizes, 1):
            last, end = first + size, len(words)
            if number < len(sizes):  # the end that most pairs agree with, and of those the one in proportion
                ends = range(begin + 1, max(begin + 2, end - len(sizes) + number + 1))
                right = [sum((source < last) == (word < cut) for source, word in pairs) for cut in ends]
                apart = [abs(cut - last * len(words) / sum(sizes)) for cut in ends]
                end = max(zip(right, (-distance for distance in apart), ends, strict=True))[2]
            aligned = [(source - first, word - begin) for source, word in pairs if begin <= word < end]
            yield Translated(blank.join(words[begin:end]), aligned if pairs else None)
            first, begin = last, end


def goes_on(cue: list[Sentence], following: list[Sentence]) -> bool:
    """True where a sentence clearly goes on: a subtitle ends in a word or a comma, and a small letter is next."""
    lines = [line for sentence in cue + following for line in sentence.lines]
    alone = len(cue) == len(following) == 1 and len(lines) == 2 and sum(map(len, lines)) <= MOST_CHARACTERS
    return alone and (lines[0][-1].isalnum() or lines[0][-1] == ",") and lines[1][0].islower()


class Subtitles(Text):
    """Subtitles of SubRip: lines of text below a line of times, up to an empty line."""

    def parts(self, text: str, model: Direction) -> list[Part]:
        parts, group = list[Part](), list[Sentence]()
        cues = [sentences_of(text[slice(*match.span("text"))], match.start("text")) for match in CUE.finditer(text)]
        for cue, following in zip(cues, [*cues[1:], list[Sentence]()], strict=False):
            group += cue
            if len(group) == MOST_CUES or not goes_on(cue, following):
                parts += group if len(group) == len(cue) else [Passage(text, group)]
                group = []
        return parts
