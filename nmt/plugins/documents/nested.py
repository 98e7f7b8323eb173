"""Sentences that contain other sentences, such as footnotes or the branches of a message."""

import re
from collections.abc import Callable, Sequence

from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.nodes import MarkupToken
from nmt.translation import Translated

MARK = "\0"  # encloses markup in a sentence
INSIDE = "\1"  # markup inside a run, or what pads a note
NOTE = re.compile(f"{MARK}(\\d+){INSIDE}*")


def marked(note: Spliced) -> str:
    """The stand-in for a note in a sentence: the note's offset, padded to the note's length."""
    # As long as the note, so that offsets behind it are those in the file.
    return f"{MARK}{note.begin}".ljust(len(note.text), INSIDE)


class Paragraph(Sentence):
    """A sentence whose tokens contain `marked` notes: elements with separate sentences."""

    def __init__(
        self,
        begin: int,
        tokens: Sequence[MarkupToken],
        notes: Sequence[Spliced],
        escape: Callable[[str], str],
    ) -> None:
        super().__init__(begin, tokens, escape)
        self.notes = dict[int, Spliced]()
        # Without words, the sentence is not written, so its notes are separate parts.
        if self.lines:
            inside = [note for note in notes if self.begin <= note.begin < self.end]
            self.notes = {note.begin: note for note in inside}
        for note in self.notes.values():
            self.lines += note.lines

    def render(self, translations: Sequence[Translated]) -> str:
        if not self.notes:
            return super().render(translations)
        # The first line is that of the sentence itself.
        sentence = super().render(translations[:1])
        # In the order of the notes, as in `lines`.
        left = iter(translations[1:])
        notes = {str(begin): note.render(left) for begin, note in self.notes.items()}
        # A mark that is not of a note is text of the file itself.
        return NOTE.sub(lambda mark: notes.get(mark[1], mark[0]), sentence)


def paragraph_parts(sentence: Paragraph, notes: Sequence[Spliced]) -> list[Part]:
    """The parts of a paragraph: itself, if it has words, and sentences of notes outside of it."""
    parts: list[Part] = [sentence] if sentence.lines else []
    for note in notes:
        if note.begin not in sentence.notes:
            parts += note.parts
    return parts
