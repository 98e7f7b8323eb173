"""Translations with another word at a place that a user chooses, and the same words elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nmt.search import Constraints, Engine, Hypothesis
from nmt.text import NO_BLANK_BESIDE, TARGET, WITHOUT_BLANKS, Tokenizer, word_spans

# A page lists few alternatives, and some tokens begin the same word.
BEAM = 12
"""The number of tokens to try as the beginning of another word."""
# Each replaced word may take a search, and a request must not take many.
MOST_REPLACED = 40
"""The maximum number of words that a user can replace in a line with alternatives for the rest."""


class SplitText:
    """A text and its words, as alignments count them: in "Go home." they are "Go" and "home."."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = word_spans(text)
        """The characters (begin, end) of each word."""
        self.words = [text[begin:end] for begin, end in self.spans]

    def text_of(self, begin: int, end: int) -> str:
        """The words from number `begin` to before number `end`, as they are in the text."""
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
    """The number of the first word that differs; None if none does before one text ends."""
    for place, (word, other) in enumerate(zip(words, others, strict=False)):
        if word != other:
            return place
    return None


class SentenceResult(NamedTuple):
    """The translations of a sentence after searching for the words of a text."""

    hypotheses: list[Hypothesis]
    words: list[str]
    """The words of the best hypothesis."""
    differs: bool
    """Whether the best hypothesis still has other words than the text, after all searches."""
    searches: int
    """The number of searches that this took, besides the first one."""


@dataclass(frozen=True)
class OtherWordSearch:
    """Searches for translations of a line with another word in one place.

    A user sees `text`, the translation of the line so far, and asks for alternatives to its word
    number `at`. With the text "It is late. Go home." and at=3, the second sentence gets
    translations that begin with other words than "Go", and the first one stays as it is.
    """

    engine: Engine
    tokenizer: Tokenizer
    text: SplitText
    at: int
    start: list[int]
    """The tokens that name the target language, with which each prefix must begin."""

    def search(
        self,
        sentences: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        constraints: Constraints | None = None,
    ) -> list[list[Hypothesis]]:
        """Takes the place of the engine's search for the sentences of the line.

        The sentence with word `at` gets alternatives, best first, and each other sentence the
        translation that the user sees. Only the first search has `prefixes` and `constraints`; all
        further ones have words of the text as their prefixes.
        """
        # One batch for all sentences; most of them keep their translation.
        results = self.engine.search(sentences, prefixes, constraints)
        first_word = 0  # of the sentence, as a number in the text
        searches_left = MOST_REPLACED
        has_alternatives = False
        for index, sentence in enumerate(sentences):
            result = self.with_words_of_text(sentence, results[index], first_word, searches_left)
            searches_left -= result.searches
            results[index] = result.hypotheses
            next_sentence = first_word + len(result.words)
            # Where a sentence that differs ends in the text is unknown, so the word is taken to be
            # in it.
            may_end_later = result.differs
            has_word = self.at >= first_word and (self.at < next_sentence or may_end_later)
            if has_word and result.hypotheses and not has_alternatives:
                results[index] = self.with_other_words(sentence, first_word)
                has_alternatives = True
            first_word = next_sentence
        return results

    def with_words_of_text(
        self,
        sentence: list[int],
        hypotheses: list[Hypothesis],
        first_word: int,
        most_searches: int,
    ) -> SentenceResult:
        """Search again until the translation of a sentence has the words of the text.

        The sentence begins with word `first_word` of the text. Each search forces the words up to
        the first difference, and no more: after a word that a user has replaced, the model often
        continues as the text does.
        """
        words_of_text = self.text.words[first_word:]
        words = list[str]()
        difference: int | None = None
        forced = 0  # the number of words that the latest search was forced to begin with
        searches = 0
        while hypotheses:
            best = self.tokenizer.decode(hypotheses[0].tokens)
            words = SplitText(best).words
            difference = first_difference(words, words_of_text)
            is_all_forced = forced == len(words_of_text)
            if difference is None or is_all_forced or searches == most_searches:
                break
            # One word more in each round, so that the loop ends even if the search changes earlier
            # words.
            forced = max(forced, difference) + 1
            searches += 1
            prefix = self.tokens(first_word, forced)
            [hypotheses] = self.engine.search([sentence], [prefix])
        return SentenceResult(hypotheses, words, difference is not None, searches)

    def with_other_words(self, sentence: list[int], first_word: int) -> list[Hypothesis]:
        """Translations of a sentence that differ from word `at` of the text on.

        The sentence begins with word `first_word` of the text. One of the translations may have the
        word of the text itself.
        """
        prefix = self.tokens(first_word, self.at - first_word)
        beginnings = self.likely_beginnings(sentence, prefix)
        results = self.engine.search([sentence] * len(beginnings), beginnings)
        return [hypotheses[0] for hypotheses in results if hypotheses]

    def likely_beginnings(self, sentence: list[int], prefix: list[int]) -> list[list[int]]:
        """The prefix with each of the BEAM likeliest next tokens, likeliest first.

        If the sentence may end after the prefix, one of them is the prefix alone.
        """
        # A search for one more token than the prefix has; its hypotheses differ in that token only.
        # `max_extra_length` counts from the length of the source.
        extra = len(prefix) + 1 - len(sentence)
        wide = replace(self.engine.config, beam_size=BEAM, n_best=BEAM, max_extra_length=extra)
        [hypotheses] = self.engine.with_search(wide).search([sentence], [prefix])
        return [hypothesis.tokens[: len(prefix) + 1] for hypothesis in hypotheses]

    def tokens(self, first_word: int, count: int) -> list[int]:
        """The tokens of at most `count` words of the text, from word `first_word` on."""
        end = min(first_word + count, len(self.text.words))
        text = self.tokenizer.clean(self.text.text_of(first_word, end), TARGET)
        [tokens] = self.tokenizer.encode([text], TARGET)
        return self.start + tokens
