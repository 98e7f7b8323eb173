"""Translations with another word at a place that a user chooses, and the same words elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nmt.search import Engine, Hypothesis
from nmt.text import NO_BLANK_BESIDE, TARGET, WITHOUT_BLANKS, Tokenizer, word_spans

BEAM = 12
"""The number of tokens to try as the beginning of another word."""
MOST_REPLACED = 40
"""The maximum number of words that a user can replace in a line with alternatives for the rest."""


class Words:
    """The words of a text, as alignments count them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = word_spans(text)
        self.words = [text[begin:end] for begin, end in self.spans]

    def text_of(self, begin: int, end: int) -> str:
        """The text from word `begin` to before word `end`."""
        if begin >= end:
            return ""
        first_character, _ = self.spans[begin]
        _, last_character = self.spans[end - 1]
        return self.text[first_character:last_character]


def joined(prefix: str, rest: str) -> str:
    """A translation from its two parts, between which clients may omit a blank."""
    # Either side may be in a script without blanks.
    for neighbor in (prefix[-1:], rest[:1]):
        if neighbor.isspace() or WITHOUT_BLANKS.match(neighbor) or NO_BLANK_BESIDE.match(neighbor):
            return prefix + rest
    return f"{prefix} {rest}"


def first_difference(words: Sequence[str], others: Sequence[str]) -> int | None:
    """The first place with different words, as far as both texts go."""
    for place, (word, other) in enumerate(zip(words, others, strict=False)):
        if word != other:
            return place
    return None


class SentenceResult(NamedTuple):
    """The translations of a sentence that was searched with words of a text."""

    hypotheses: list[Hypothesis]
    words: list[str]
    """The words of the best one."""
    is_different: bool
    """Whether it lacks words of the text, after all searches."""
    searches: int


@dataclass(frozen=True)
class OtherWords:
    """Searches for a line whose translation so far is `text`.

    The sentence with word `at` gets translations with other words there; the other sentences keep
    the words of the text.
    """

    engine: Engine
    tokenizer: Tokenizer
    text: Words
    at: int

    def search(self, sentences: Sequence[list[int]], *more: Any) -> list[list[Hypothesis]]:
        """The same as the engine's own search, for the sentences of the line."""
        # One batch for all sentences; most of them keep their translation.
        results = self.engine.search(sentences, *more)
        first = 0  # the first word of the sentence in the text
        searches_left = MOST_REPLACED
        is_replaced = False
        for index, sentence in enumerate(sentences):
            result = self.with_words_of_text(sentence, results[index], first, searches_left)
            searches_left -= result.searches
            results[index] = result.hypotheses
            # If a sentence still differs after all searches, its words cannot be counted, so the
            # place is taken to be here.
            is_within = self.at < first + len(result.words) or result.is_different
            if result.hypotheses and not is_replaced and self.at >= first and is_within:
                results[index] = self.with_other_words(sentence, first)
                is_replaced = True
            first += len(result.words)
        return results

    def with_words_of_text(
        self,
        sentence: list[int],
        hypotheses: list[Hypothesis],
        first: int,
        most_searches: int,
    ) -> SentenceResult:
        """Search again until the translation of a sentence has the words of the text.

        Each search forces the words up to the first difference, and no more: after a word that a
        user has replaced, the model often continues as the text does.
        """
        words = self.text.words[first:]
        best = list[str]()
        difference: int | None = None
        forced = 0
        searches = 0
        while hypotheses:
            best = Words(self.tokenizer.decode(hypotheses[0].tokens)).words
            difference = first_difference(best, words)
            if difference is None or forced == len(words) or searches == most_searches:
                break
            # One word more in each round, so that the loop ends even if the search changes earlier
            # words.
            forced = max(forced, difference) + 1
            searches += 1
            [hypotheses] = self.engine.search([sentence], [self.tokens(first, forced)])
        return SentenceResult(hypotheses, best, difference is not None, searches)

    def with_other_words(self, sentence: list[int], first: int) -> list[Hypothesis]:
        """Translations of a sentence, each with another word at the place."""
        prefix = self.tokens(first, self.at - first)
        # At a maximum length of one more token, the beam consists of the likeliest ones.
        # `max_extra_length` counts from the length of the source.
        extra = len(prefix) + 1 - len(sentence)
        wide = replace(self.engine.config, beam_size=BEAM, n_best=BEAM, max_extra_length=extra)
        [continued] = self.engine.with_search(wide).search([sentence], [prefix])
        # Each of the likeliest next tokens begins another word; the second search completes the
        # sentence after it.
        prefixes = [hypothesis.tokens[: len(prefix) + 1] for hypothesis in continued]
        results = self.engine.search([sentence] * len(prefixes), prefixes)
        return [hypotheses[0] for hypotheses in results if hypotheses]

    def tokens(self, first: int, count: int) -> list[int]:
        """The tokens of some words of the text, from word `first` on."""
        end = min(first + count, len(self.text.words))
        text = self.tokenizer.clean(self.text.text_of(first, end), TARGET)
        [tokens] = self.tokenizer.encode([text], TARGET)
        return tokens
