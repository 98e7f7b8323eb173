"""Words of a sentence and of its translation: which are one because an item spans them, and which are an element's."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from nmt.text.protected import MEASURE, USUAL, Finder, form

Span = tuple[int, int]


class Words:
    """The words of a text and its protected items; words that an item spans are one, and `numbers` says which.

    An item that `cuts` names is cut at these of its characters, as it was by the markup of the source.
    """

    def __init__(self, text: str, edges: Iterable[int] = (), cuts: dict[str, list[int]] | None = None) -> None:
        words = [found.span() for found in re.finditer(r"\S+", text)]
        line, places = " ".join(text.split()), [at for begin, end in words for at in range(begin, end + 1)]
        inside = sorted({bisect_left(places, edge) for edge in edges})
        self.items, self.cuts = list[Span](), dict[str, list[int]]()
        """Items, cut at these edges of elements; of each that is cut, where."""
        for each in Finder([USUAL]).stretches(line):
            own = line[each.start : each.end]
            between = inside[bisect_left(inside, each.start + 1) : bisect_left(inside, each.end)]
            if found := [edge - each.start for edge in between]:
                self.cuts[own] = found
            ends = [0, *(found if cuts is None else cuts.get(own, ())), len(own)]
            for begin, end in pairwise(ends):
                part = own[begin:end]
                first, last = end - len(part.lstrip()), begin + len(part.rstrip())
                if first < last:
                    self.items.append((places[each.start + first], places[each.start + last - 1] + 1))
        self.spans, self.numbers = joined(words, self.items)
        self.starts = [begin for begin, _ in self.spans]

    def item_at(self, place: int) -> Span:
        """The item that a character other than its first one is in; else nothing, at that place."""
        before = bisect_left(self.items, (place, 0)) - 1
        return self.items[before] if before >= 0 and self.items[before][1] > place else (place, place)


def joined(words: Sequence[Span], items: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """Words, of which those that an item spans are one, and the number that each has then."""
    found, numbers, at = list[Span](), list[int](), 0
    for begin, end in words:
        while at < len(items) and items[at][1] <= begin:
            at += 1
        if found and at < len(items) and items[at][0] < found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
        numbers.append(len(found) - 1)
    return found, numbers


def places_in(target: str, text: str, begin: int, end: int) -> Iterator[Span]:
    """Where a text is between two places of a translation; a measure, as that writes it."""
    if MEASURE.fullmatch(text):
        yield from (found.span() for found in re.compile(form(text)).finditer(target, begin, end))
        return
    at = target.find(text, begin, end)
    while at >= 0:
        yield at, at + len(text)
        at = target.find(text, at + len(text), end)


def fit(word: str, outside: str, inside: str, aligned: bool) -> int:
    """How many characters at the beginning of a word stay outside of an element.

    In the source, `outside` stood before it in the same word, and `inside` in it. To be used for the end of a word, all
    are turned round. Only punctuation, and what both words have in common, is told apart from the rest of a word.
    """
    if outside and aligned and word.startswith(outside):
        return len(outside) % len(word)
    if any(map(str.isalnum, outside)):
        return len(word) - len(inside) if aligned and word.endswith(inside) else 0
    if outside or inside[:1].isalnum():
        return next((index for index, character in enumerate(word) if character.isalnum()), 0)
    return 0


def best_runs(owners: Sequence[int | None], count: int) -> list[tuple[int, int] | None]:
    """Of each owner, the run of words that holds most of its own and fewest that are nobody's, and none of others."""
    own: list[list[int]] = [[] for _ in range(count)]
    for word, owner in enumerate(owners):
        if owner is not None:
            own[owner].append(word)
    taken = list(accumulate((owner is not None for owner in owners), initial=0))
    return [best_run(words, taken) for words in own]


def best_run(words: Sequence[int], taken: Sequence[int]) -> tuple[int, int] | None:
    """The best run of an owner's words; `taken` counts the words before each that are somebody's."""
    best, most, begin, previous, score = None, (0, 0), 0, -1, -1
    for word in words:
        score -= word - previous - 1
        if score < 0 or taken[word] > taken[previous + 1]:
            begin, score = word, 0
        score, previous = score + 1, word
        if (score, word - begin) > most:
            best, most = (begin, word + 1), (score, word - begin)
    return best
