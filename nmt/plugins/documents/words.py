"""Words of a sentence and of its translation, what an element around a part of a word covers, and the best runs."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import regex

from nmt.text import MEASURE, USUAL, WITHOUT_BLANKS, Finder, form

Span = tuple[int, int]
ONE = WITHOUT_BLANKS.pattern
WORD = regex.compile(rf"(?={ONE})\X[\p{{Pe}}\p{{Pf}}\p{{Po}}]*+|(?:(?!{ONE})\X)++")
"""In a script without blanks, each character a reader sees is a word, with the marks that close after it."""
WIDE = re.compile(f"{ONE}|[\u3000-\u303f\uff00-\uffef]")
"""A character of a script without blanks, or punctuation of one, beside which no blank stands."""
IN_WORD = regex.compile(rf"(?!{ONE})\w")


class Words:
    """The words of a text and its protected items.

    An item that `cuts` names is cut at these of its characters, as it was by the markup of the source.
    """

    def __init__(self, text: str, edges: Iterable[int] = (), cuts: dict[str, list[int]] | None = None) -> None:
        self.text = text
        self.between_blanks = [found.span() for found in re.finditer(r"\S+", text)]
        """What blanks separate, which alignments count."""
        line = " ".join(text.split())
        places = [at for begin, end in self.between_blanks for at in range(begin, end + 1)]
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
        self.clusters = {0, *(found.end() for found in regex.finditer(r"\X", text))}
        """Between which characters, as a reader sees them, the text may be cut."""

    def split(self, places: Iterable[int]) -> None:
        """Find the words, which end at these places, too, and at items; those that an item spans are one."""
        words, counts, cuts = list[Span](), [0], sorted(set(places))
        for begin, end in self.between_blanks:
            inside = cuts[bisect_left(cuts, begin + 1) : bisect_left(cuts, end)]
            for edges in pairwise([begin, *inside, end]):
                words += [found.span() for found in WORD.finditer(self.text, *edges)]
            counts.append(len(words))
        self.spans, numbers = joined(words, self.items)
        self.starts = [begin for begin, _ in self.spans]
        self.parts = [range(numbers[first], numbers[last - 1] + 1) for first, last in pairwise(counts)]
        """The words in each stretch between blanks."""

    def item_at(self, place: int) -> Span:
        """The item that a character other than its first one is in; else nothing, at that place."""
        before = bisect_left(self.items, (place, 0)) - 1
        return self.items[before] if before >= 0 and self.items[before][1] > place else (place, place)

    def is_inside_word(self, place: int) -> bool:
        """True between two characters of a word, in a script with blanks."""
        return bool(place and IN_WORD.match(self.text, place - 1) and IN_WORD.match(self.text, place))

    def is_gap(self, word: int) -> bool:
        """True if a tag may stand between this word and the one before it, without cutting what blanks separate."""
        if not 0 < word < len(self.spans):
            return True
        end, begin = self.spans[word - 1][1], self.spans[word][0]
        return end < begin or any(WITHOUT_BLANKS.match(self.text, at) for at in (self.spans[word - 1][0], begin))


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


def share(words: range, number: int, count: int) -> range:
    """The part with that number, counted from 0, of about equal parts of words; a part has one word or more."""
    first = words.start + min(len(words) * number // count, len(words) - 1)
    return range(first, max(words.start + len(words) * (number + 1) // count, first + 1))


def aligned_words(source: Words, target: Words, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Pairs of words, given those of stretches between blanks: words of a stretch are taken to be in the same order."""
    ordered, before = sorted(set(pairs)), [Counter[int](), Counter[int]()]
    counts = [Counter(pair[side] for pair in ordered) for side in (0, 1)]
    for pair in ordered:
        own, other = (
            share(words.parts[pair[side]], before[side][pair[side]], counts[side][pair[side]])
            for side, words in ((0, source), (1, target))
        )
        for side in (0, 1):
            before[side][pair[side]] += 1
        count = max(len(own), len(other))
        yield from ((own[n * len(own) // count], other[n * len(other) // count]) for n in range(count))


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


def best_runs(owners: Sequence[int | None], count: int, held: Collection[int]) -> list[Span | None]:
    """Of each owner, the run of words that holds most of its own and fewest that are nobody's, and none of others.

    It holds all of its words that are `held`, which have no others between them.
    """
    own: list[list[int]] = [[] for _ in range(count)]
    for word, owner in enumerate(owners):
        if owner is not None:
            own[owner].append(word)
    taken = list(accumulate((owner is not None for owner in owners), initial=0))
    return [best_run(words, taken, held) for words in own]


def best_run(words: Sequence[int], taken: Sequence[int], held: Collection[int]) -> Span | None:
    """The best run of an owner's words; `taken` counts the words before each that are somebody's."""
    best, most, begin, previous, score = None, (0, 0), 0, -1, -1
    for word in words:
        score -= word - previous - 1
        if score < 0 or taken[word] > taken[previous + 1]:
            begin, score = word, 0
        score, previous = score + (len(taken) if word in held else 1), word
        if (score, word - begin) > most:
            best, most = (begin, word + 1), (score, word - begin)
    return best
