"""Changes to the text of a translation, with the words of its details."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import regex

from nmt.text import NO_BLANK_BESIDE, WITHOUT_BLANKS, is_word_border, word_spans
from nmt.translation import Details, Words

MARKS_AROUND = regex.compile(r"(\W*).*?(\W*)", regex.DOTALL)


class Change(NamedTuple):
    """Text in place of the characters from `begin` to `end`."""

    begin: int
    end: int
    text: str


class Rewriting:
    """A text with changes, and the places of its words in the new text."""

    def __init__(self, text: str, changes: Iterable[Change]) -> None:
        """The changes must not overlap, and are made in order of their places."""
        self.before = text
        self.text = ""
        self.added = list[tuple[int, int]]()
        """The span of each change in the new text."""
        self.begins = list[int]()
        self.ends = list[int]()
        """For each character of the old text, the span of its replacement in the new text."""
        at = 0
        for change in sorted(changes):
            self.keep(at, change.begin)
            begin = len(self.text)
            self.text += change.text
            end = len(self.text)
            self.added.append((begin, end))
            # Every character that was replaced became the whole new text.
            self.begins += [begin] * (change.end - change.begin)
            self.ends += [end] * (change.end - change.begin)
            at = change.end
        self.keep(at, len(text))
        self.new_words = Words(self.text)

    def keep(self, begin: int, end: int) -> None:
        first = len(self.text)
        last = first + end - begin
        self.text += self.before[begin:end]
        self.begins += range(first, last)
        self.ends += range(first + 1, last + 1)

    def words(self) -> list[range]:
        """For each word of the old text, its words in the new text."""
        return [
            self.new_words.at(self.begins[begin], self.ends[end - 1])
            for begin, end in Words(self.before).spans
        ]


class Places:
    """The places for names that a translation has lost.

    Each place is used once, and never one of the words that contain other names.
    """

    def __init__(
        self,
        text: str,
        alignment: Sequence[tuple[int, int]],
        words_with_names: Mapping[str, Sequence[int]],
    ) -> None:
        self.text = text
        self.words = word_spans(text)
        # A word may be aligned to several on either side, so both directions are needed.
        self.targets_of = defaultdict[int, list[int]](list)
        self.sources_of = defaultdict[int, set[int]](set)
        for source, target in alignment:
            self.targets_of[source].append(target)
            self.sources_of[target].add(source)
        self.taken = set[int]()
        for words in words_with_names.values():
            self.taken.update(words)

    def change(self, name: str, sources: Sequence[int]) -> Change | None:
        """The change that adds a name with these source words; None if no free word is aligned."""
        place = self.first_free(sources)
        if place is None:
            return None
        run = self.run(place, set(sources))
        # The next name must not replace the same words, nor stand between them.
        self.taken.update(run or [place])
        if not run:
            return self.behind(place, name)
        begin = self.words[run[0]][0]
        end = self.words[run[-1]][1]
        # Punctuation stays: the name replaces only the letters.
        marks = MARKS_AROUND.fullmatch(self.text[begin:end])
        assert marks
        before, after = marks.groups()
        return Change(begin + len(before), end - len(after), name)

    def first_free(self, sources: Sequence[int]) -> int | None:
        """The first free word that is aligned with a source word."""
        for source in sources:
            for target in self.targets_of[source]:
                if target not in self.taken:
                    return target
        return None

    def run(self, place: int, sources: set[int]) -> range:
        """The adjoining words around one that are aligned with these source words only."""

        def is_part(word: int) -> bool:
            aligned = self.sources_of[word]
            # A word that is aligned to other source words too translates them as well, so it stays.
            if word in self.taken or not aligned:
                return False
            return aligned <= sources

        if not is_part(place):
            return range(0)
        first = place
        while first > 0 and self.adjoin(first - 1) and is_part(first - 1):
            first -= 1
        # In scripts without blanks, several of these form a word for readers. A blank ends it.
        after = place + 1
        while after < len(self.words) and self.adjoin(after - 1) and is_part(after):
            after += 1
        return range(first, after)

    def adjoin(self, word: int) -> bool:
        """Whether no blank separates a word from the next one."""
        return self.words[word][1] == self.words[word + 1][0]

    def ends_word(self, word: int) -> bool:
        """Whether a word ends there for readers, too, which it does not within katakana."""
        return is_word_border(self.text, self.words[word][1])

    def behind(self, place: int, name: str) -> Change:
        """The name after a word, or after the katakana that it is part of."""
        # Words of scripts without blanks are single characters here, and katakana is one word for
        # readers.
        while not self.ends_word(place) and place + 1 not in self.taken:
            place += 1
            self.taken.add(place)
        end = self.words[place][1]
        before = self.text[end - 1]
        after = self.text[end : end + 1]
        # As people write the script: blanks around the name unless a neighbor takes none.
        if not WITHOUT_BLANKS.match(before):
            name = " " + name
        if after.strip() and not NO_BLANK_BESIDE.match(after):
            name += " "
        return Change(end, end, name)


def rewritten(
    details: Details,
    targets: Rewriting,
    sources: Rewriting | None = None,
    added: Iterable[tuple[int, int]] = (),
) -> Details:
    """The details of a changed translation of a line that may have changed, too.

    `added` are pairs of a source word and a target word of the new texts.
    """
    of_target = targets.words()
    of_source = sources.words() if sources else None
    pairs = set(added)
    for source, target in details.alignment:
        # A word may have become several, and several may have become one, hence all pairs and a
        # set.
        source_words = of_source[source] if of_source else [source]
        pairs.update(product(source_words, of_target[target]))
    return replace(
        details,
        alignment=sorted(pairs),
        word_log_probabilities=scores_of(details, of_target, len(targets.new_words)),
    )


def scores_of(details: Details, words: Sequence[range], count: int) -> list[float | None]:
    """The log probabilities of `count` new words, given those that each word became."""
    scores: list[float | None] = [None] * count
    for score, row in zip(details.word_log_probabilities, words, strict=True):
        if score is not None:
            for word in row:
                # Merged words are one event, so their log probabilities add up.
                scores[word] = (scores[word] or 0.0) + score
    return scores
