"""Runs of words in a translation whose source words are in the same element."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

NONE = -1
"""The owner of tokens outside of all elements."""


class Run(NamedTuple):
    """Tokens of a translation, with at most one token of another owner between two of them."""

    owner: int
    """The index of a node."""

    tokens: range


def find_runs(
    tokens: range,
    sources_of: Mapping[int, Sequence[int]],
    owners: Mapping[int, int],
) -> list[Run]:
    """The runs among some tokens of a translation.

    `sources_of` maps these tokens to source tokens, and `owners` maps source tokens to nodes.
    """
    runs = list[Run]()
    for token in tokens:
        owner = owner_of(sources_of[token], owners)
        if owner == NONE:
            continue
        # One token between two of a run is often a word that only the target language needs.
        if runs and runs[-1].owner == owner and token - runs[-1].tokens.stop < 2:
            runs[-1] = Run(owner, range(runs[-1].tokens.start, token + 1))
        else:
            runs.append(Run(owner, range(token, token + 1)))
    return runs


def owner_of(sources: Sequence[int], owners: Mapping[int, int]) -> int:
    """The owner of most of these source tokens."""
    if not sources:
        return NONE
    if len(sources) == 1:  # usual, and worth the speed in deeply nested elements
        return owners.get(sources[0], NONE)
    votes = Counter(owners.get(source, NONE) for source in sources)
    # In a tie, the later node. No node, which is -1, loses every tie.
    return max(votes, key=lambda index: (votes[index], index))


def best_runs(runs: Sequence[Run], marks: Collection[int]) -> dict[int, range]:
    """For each owner, the run with the most marks; of several, the longest and then the first.

    `marks` are the tokens of copies. If several runs of an owner have marks, and no run of another
    owner is between them, the owner gets all of them.
    """
    owner_of_token = dict[int, int]()
    runs_of = defaultdict[int, list[range]](list)
    for owner, tokens in runs:
        owner_of_token.update(dict.fromkeys(tokens, owner))
        runs_of[owner].append(tokens)

    def rank(run: range) -> tuple[int, int, int]:
        # Copies decide, because an element must keep its own. Otherwise, a long run is the best
        # evidence.
        marks_in_run = sum(token in marks for token in run)
        return marks_in_run, len(run), -run.start

    best = dict[int, range]()
    for owner, candidates in runs_of.items():
        if len(candidates) == 1:  # usual
            best[owner] = candidates[0]
            continue
        # Copies that are apart belong to one element, so the words between them do, too.
        marked = [run for run in candidates if any(token in marks for token in run)]
        if len(marked) > 1:
            whole = range(marked[0].start, marked[-1].stop)
            if all(owner_of_token.get(token, owner) == owner for token in whole):
                candidates = [whole]
        best[owner] = max(candidates, key=rank)
    return best
