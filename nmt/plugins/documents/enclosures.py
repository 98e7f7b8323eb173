"""Elements and the brackets around their words: an element has both signs of a pair, or neither."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import regex

from nmt.plugins.documents.words import TokenPair, Tokens

ENDS_SENTENCE = regex.compile(r"\p{Sentence_Terminal}+")


def trimmed(tokens: Tokens, run: range) -> range:
    """A run without the particles, the final marks and the brackets at its ends.

    Particles depend on the sentence, not on the word. The result is empty for a run that has only
    signs.
    """
    # Each step shortens the run, and what remains may have a sign at its end again.
    while run:
        first = run[0]
        last = run[-1]
        # The signs of a pair around the whole run go together.
        if tokens.partner(first) == last:
            run = run[1:-1]
        elif tokens.is_final_mark(last) or is_cut(tokens, last, run):
            run = run[:-1]
        elif tokens.is_final_mark(first) or is_cut(tokens, first, run):
            run = run[1:]
        # A run of particles only keeps one, because its element needs a word.
        elif len(run) > 1 and tokens.is_particle(last):
            run = run[:-1]
        elif len(run) > 1 and tokens.is_particle(first):
            run = run[1:]
        else:
            break
    return run


def is_cut(tokens: Tokens, token: int, run: range) -> bool:
    """Whether a token is a bracket whose partner is not in a run."""
    return is_split(tokens, token, run) and not tokens.is_word(token)


def is_balanced(tokens: Tokens, run: range) -> bool:
    """Whether a run splits no pair of brackets."""
    if not tokens.pair_at:  # usual, and worth the speed in deeply nested elements
        return True
    return not any(is_split(tokens, token, run) for token in run)


def balanced(tokens: Tokens, run: range, is_free: Callable[[int], bool]) -> range:
    """A run that splits no pair of brackets: it grows by free tokens or loses its smaller part."""
    may_grow = True
    while not is_balanced(tokens, run):
        token, partner = split_pair(tokens, run)
        larger = range(min(run.start, partner), max(run.stop, partner + 1))
        added = [other for other in larger if other not in run]
        before = range(run.start, token)
        after = range(token + 1, run.stop)
        smaller_part, larger_part = sorted(
            (before, after),
            key=lambda part: count_words(tokens, part),
        )
        # It must not grow by more words than it would lose otherwise.
        is_near = count_words(tokens, added) <= count_words(tokens, smaller_part)
        if may_grow and is_near and all(map(is_free, added)):
            run = larger
        else:
            # A run that grew again after this could do so forever.
            may_grow = False
            run = trimmed(tokens, larger_part)
    return run


def split_pair(tokens: Tokens, run: range) -> tuple[int, int]:
    """A bracket in a run, and its partner outside."""
    for token in run:
        partner = tokens.partner(token)
        if partner is not None and partner not in run:
            return token, partner
    raise AssertionError("the run is balanced")


def is_split(tokens: Tokens, token: int, run: range) -> bool:
    """Whether the partner of a token is not in a run."""
    partner = tokens.partner(token)
    return partner is not None and partner not in run


def count_words(tokens: Tokens, run: Sequence[int]) -> int:
    return sum(map(tokens.is_word, run))


def pairs_around(tokens: Tokens, run: range) -> Iterator[TokenPair]:
    """The pairs of brackets directly around a run, from the inside to the outside."""
    begin = run.start
    end = run.stop
    while begin > 0 and tokens.is_sign(begin - 1):
        begin -= 1
        pair = tokens.pair_at.get(begin)
        if pair is None:
            continue  # a sign without a partner, such as a dash
        # Only signs may stand between the words and the closing sign, as before the words.
        between = range(end, pair.closing)
        if pair.opening != begin or not all(map(tokens.is_sign, between)):
            return
        yield pair
        end = pair.closing + 1


def count_inside(source: list[TokenPair], inside: int, target: list[TokenPair]) -> int:
    """The number of pairs around translated words that belong to their element.

    `source` are the pairs around the source words, and the first `inside` ones belong to the
    element there.
    """
    # With the same number on both sides, pairs correspond from the inside to the outside.
    if len(source) == len(target):
        return inside
    # Languages nest brackets and quotation marks differently, so match them by kind.
    left = Counter(pair.is_quotation for pair in source[:inside])
    count = 0
    for pair in target:
        if not left[pair.is_quotation]:
            break
        left[pair.is_quotation] -= 1
        count += 1
    return count


def certain_part(source: Tokens, of_element: range, target: Tokens, run: range) -> range:
    """The part of a run that belongs to its element in any case: `run` without signs at its ends.

    `with_own_brackets` may add the signs again. The arguments are the same as there.
    """
    # The source already splits a pair, so there is no rule to keep.
    if not is_balanced(source, of_element):
        return run
    return trimmed(target, run) or run


def with_own_brackets(
    source: Tokens,
    of_element: range,
    target: Tokens,
    run: range,
    is_free: Callable[[int], bool],
) -> range:
    """A run of translated tokens with the brackets that its element has in the source.

    The element has the source tokens `of_element`, and `run` are the tokens aligned with them. For
    example, if only "yes" of <b>(yes)</b> is aligned with "ja" of "(ja)", the result is all of
    "(ja)"; for (<b>yes</b>), it is "ja". The run may grow by tokens that are free. The result is
    empty if `run` has only signs, but the element has words.
    """
    if not is_balanced(source, of_element):
        return run  # the author put one sign of a pair inside: there is nothing to keep
    words = trimmed(source, of_element)
    # An element of signs only, such as a bold bracket.
    if not words:
        return balanced(target, run, is_free)
    result = balanced(target, trimmed(target, run), is_free)
    # Only signs are aligned with the words of the element, so it needs a word from elsewhere.
    if not result:
        return result
    pairs = list(pairs_around(source, words))
    inside = [pair for pair in pairs if pair.opening in of_element and pair.closing in of_element]
    # Pairs that belong to another element do not count.
    free = free_pairs(target, result, is_free)
    count = count_inside(pairs, len(inside), free)
    if count:
        outermost = free[count - 1]
        result = range(outermost.opening, outermost.closing + 1)
    # A final mark outside of the element stays outside.
    if source.is_final_mark(of_element[-1]):
        result = with_final_marks(target, result, run, is_free)
        end = result.stop
        # The mark may be aligned with another one, if several sentences are translated together.
        if end not in run and is_same_mark(source, of_element[-1], target, end) and is_free(end):
            result = range(result.start, end + 1)
    return result


def is_same_mark(source: Tokens, mark: int, target: Tokens, token: int) -> bool:
    """Whether both tokens end a sentence, or are the same mark."""
    if not target.is_final_mark(token):
        return False
    marks = (source.of(mark), target.of(token))
    return marks[0] == marks[1] or all(map(ENDS_SENTENCE.fullmatch, marks))


def free_pairs(tokens: Tokens, run: range, is_free: Callable[[int], bool]) -> list[TokenPair]:
    """The pairs of brackets around a run that it may get, from the inside to the outside."""
    pairs = list[TokenPair]()
    for pair in pairs_around(tokens, run):
        before = range(pair.opening, run.start)
        after = range(run.stop, pair.closing + 1)
        if not (all(map(is_free, before)) and all(map(is_free, after))):
            break
        pairs.append(pair)
    return pairs


def with_final_marks(
    tokens: Tokens,
    part: range,
    run: range,
    is_free: Callable[[int], bool],
) -> range:
    """A part of a run with the free final marks that follow it in the run."""
    end = part.stop
    while end in run and tokens.is_final_mark(end) and is_free(end):
        end += 1
    return range(part.start, end)
