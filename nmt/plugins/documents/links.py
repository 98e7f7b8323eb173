"""Which tokens of a translation each token of its source became."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from nmt.plugins.documents.refinement import kept_names, refined
from nmt.plugins.documents.words import Tokens
from nmt.translation import Alignment


class Links:
    """The aligned tokens of a source and its translation.

    A copy belongs to the copy with the same mark, and to nothing else.
    """

    def __init__(self, source: Tokens, target: Tokens, alignment: Alignment) -> None:
        self.source = source
        self.target = target
        self.copies_in_target = frozenset(target.copies)
        # For each token of one side, those of the other side, in order. A pair that the alignment
        # supports several times occurs as often.
        self.sources_of = defaultdict[int, list[int]](list)
        self.targets_of = defaultdict[int, list[int]](list)
        names = kept_names(source, target)
        self.kept_names = frozenset(names.values())
        # A pair may occur several times, which counts as several votes for it.
        pairs = refined(source, target, Counter(self.token_pairs(alignment)), names)
        # After the corrections, which know only about words.
        partners = self.partners_of_copies()
        pairs.update(partners.items())
        self.add(pairs, partners)

    def partners_of_copies(self) -> dict[int, int]:
        """Map copies in the source to those with the same marks in the translation."""
        of_source = copies_by_mark(self.source)
        of_target = copies_by_mark(self.target)
        partners = dict[int, int]()
        for mark, tokens in of_source.items():
            # A translator may lose marks, or repeat them.
            partners.update(zip(tokens, of_target[mark], strict=False))
        return partners

    def add(self, pairs: Counter[tuple[int, int]], partners: dict[int, int]) -> None:
        """Add pairs of tokens, except those of a copy with a token other than its partner."""
        # Copies whose marks the translator lost. `Gaps` puts them beside a word.
        lost = {*self.source.copies} - partners.keys()
        # With repetition, because `find_runs` counts votes.
        for source, target in sorted(pairs.elements()):
            is_target_copy = target in self.copies_in_target
            is_copy = is_target_copy or source in partners or source in lost
            if not is_copy or partners.get(source) == target:
                self.sources_of[target].append(source)
                self.targets_of[source].append(target)
            elif source in lost and not is_target_copy:
                # The copy is put beside this word, but not in its place.
                self.targets_of[source].append(target)

    def token_pairs(self, alignment: Alignment) -> Iterator[tuple[int, int]]:
        """Refine pairs of chunks into pairs of tokens.

        A chunk with several partners divides its words among them.
        """
        # Alignments count chunks, which blanks separate. Elements may begin and end inside a chunk.
        pairs = self.chunk_pairs(alignment)
        source_counts = Counter(source for source, _ in pairs)
        target_counts = Counter(target for _, target in pairs)
        source_numbers = Counter[int]()  # partners so far
        target_numbers = Counter[int]()
        # Each partner of a chunk gets the next share of the chunk's words.
        for source, target in pairs:
            of_source = self.source.sides(source)
            of_target = self.target.sides(target)
            source_words = share(of_source.words, source_numbers[source], source_counts[source])
            target_words = share(of_target.words, target_numbers[target], target_counts[target])
            source_numbers[source] += 1
            target_numbers[target] += 1
            # Punctuation is paired with punctuation on the same side of the word, never with the
            # word.
            yield from proportional_pairs(of_source.before, of_target.before)
            yield from proportional_pairs(source_words, target_words)
            yield from proportional_pairs(of_source.after, of_target.after)

    def chunk_pairs(self, alignment: Alignment) -> list[tuple[int, int]]:
        """The pairs of an alignment, in order; without one, as if the word order were the same."""
        sources = len(self.source.chunks)
        targets = len(self.target.chunks)
        if alignment is None:
            alignment = [(index * sources // targets, index) for index in range(targets)]
        pairs = set[tuple[int, int]]()
        for source, target in alignment:
            # Pairs outside of the text are ignored: an alignment may count words differently.
            if 0 <= source < sources and 0 <= target < targets:
                pairs.add((source, target))
        return sorted(pairs)


def copies_by_mark(tokens: Tokens) -> defaultdict[str, list[int]]:
    copies = defaultdict[str, list[int]](list)
    for token in tokens.copies:
        mark = tokens.of(token)[0]
        copies[mark].append(token)
    return copies


def share(words: range, number: int, count: int) -> range:
    """One of `count` parts of a chunk's words, which have at least one word each.

    `number` counts from 0. If there are fewer words than parts, parts share words.
    """
    if not words or count == 1:
        return words
    # Rounded down, but at least one word, and never behind the last one.
    first = min(len(words) * number // count, len(words) - 1)
    stop = max(len(words) * (number + 1) // count, first + 1)
    return words[first:stop]


def proportional_pairs(source: range, target: range) -> Iterator[tuple[int, int]]:
    """Pair two runs of tokens from their first to their last ones; nothing if one is empty."""
    if not source or not target:
        return
    # The longer side takes each token once; the shorter one repeats tokens.
    steps = max(len(source), len(target))
    for step in range(steps):
        yield source[step * len(source) // steps], target[step * len(target) // steps]
