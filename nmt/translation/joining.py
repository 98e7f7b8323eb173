"""Join the translations of a line's segments."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.search import Hypothesis
from nmt.text import WITHOUT_BLANKS, WORD_CHARACTER, Tokenizer, blank_between, single_blanks
from nmt.translation.lines import Segment


@dataclass
class JoinedText:
    """The translation of a line, joined from the translations of its segments."""

    text: str
    tokens: list[list[int]] = field(default_factory=list)
    """For each segment, the tokens that became text."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """For each segment, the span of its translation in the text."""

    def add(self, translation: str, tokens: list[int], separator: str) -> None:
        if translation:
            self.text += separator + translation
        end = len(self.text)
        self.tokens.append(tokens)
        self.spans.append((end - len(translation), end))


def join(
    tokenizer: Tokenizer,
    segments: list[Segment],
    parts: list[Hypothesis],
    prefix: Sequence[int],
) -> JoinedText:
    """Join the translations of a line's segments, each of which begins with `prefix`.

    The result has the prefix only once.
    """
    joined = JoinedText("")
    skipped = 0
    # A copy has no hypothesis that begins with the prefix, so the prefix is decoded on its own.
    if segments and segments[0].copied:
        joined.text = text(tokenizer, prefix)
        skipped = len(prefix)
    is_apart = False  # from the text so far
    before: Segment | None = None
    for segment, part in zip(segments, parts, strict=True):
        # Each search was forced to begin with the prefix. Only the first one may show it.
        tokens = part.tokens[skipped:]
        skipped = len(prefix)
        translation = segment.text if segment.copied else text(tokenizer, tokens)
        # After an empty translation, its separator is still added.
        is_apart = is_apart or not segment.glued
        # A segment that was glued in the source, such as a copied word in quotes, stays so.
        separator = ""
        if joined.text and is_apart:
            separator = blank_between(joined.text, translation)
        elif before and needs_blank(before, segment, joined.text, translation):
            separator = " "
        joined.add(translation, tokens, separator)
        if translation:
            is_apart = False
            before = segment
    return joined


def needs_blank(before: Segment, after: Segment, joined: str, translation: str) -> bool:
    """Whether segments that adjoin in the source need a blank in the translation.

    They do if only the script of the source has no blank there. One of the two is a copy.
    """
    if after.copied:
        letter = before.text[-1:]
        translated = joined[-1:]
        copied = translation[:1]
    else:
        letter = after.text[:1]
        translated = translation[:1]
        copied = joined[-1:]
    has_gained_blanks = WITHOUT_BLANKS.match(letter) and not WITHOUT_BLANKS.match(translated)
    are_letters = WORD_CHARACTER.match(translated) and WORD_CHARACTER.match(copied)
    return bool(has_gained_blanks and are_letters)


def text(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Decode tokens to a single line of text, even if their bytes spell a line break."""
    return single_blanks(tokenizer.decode(tokens))
