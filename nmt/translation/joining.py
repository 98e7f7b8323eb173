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
    # Each search was forced to begin with the prefix. Only the first translation shows it.
    hidden = 0  # tokens of a hypothesis that are not shown
    # A copy has no hypothesis that begins with the prefix, so the prefix is decoded on its own.
    if segments and segments[0].copied:
        joined.text = text(tokenizer, prefix)
        hidden = len(prefix)
    is_apart = False  # whether the next translation is apart from the text so far
    last: Segment | None = None  # the last segment whose translation is not empty
    for segment, part in zip(segments, parts, strict=True):
        tokens = part.tokens[hidden:]
        hidden = len(prefix)
        translation = segment.text if segment.copied else text(tokenizer, tokens)
        # Still true after an empty translation, so that what follows it is also apart.
        is_apart = is_apart or not segment.glued
        # A segment that was glued in the source, such as a copied word in quotes, stays so.
        separator = ""
        if joined.text and is_apart:
            separator = blank_between(joined.text, translation)
        elif last and needs_blank(last, segment, joined.text, translation):
            separator = " "
        joined.add(translation, tokens, separator)
        if translation:
            is_apart = False
            last = segment
    return joined


def needs_blank(before: Segment, after: Segment, joined: str, translation: str) -> bool:
    """Whether segments that adjoin in the source need a blank in the translation.

    They do if only the script of the source has no blank there. For example, in `我用Python`, the
    word `Python` is copied, but needs a blank in English. One of the two segments is a copy.
    `joined` ends with the translation of `before`, and `translation` is that of `after`.
    """
    # `letter` is in the source, beside the copy, and `translated` in its translation.
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
