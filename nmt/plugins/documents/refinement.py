"""Corrections of a word alignment, which a model knows only for its own tokens.

Names and numbers that stay the same are aligned with themselves. One token of a model may spell
several Japanese phrases, of which a source word can only be one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from nmt.plugins.documents.words import IN_HIRAGANA, Tokens
from nmt.text import INFLECTED_WORD, script, scripts_of_text

Pairs = Counter[tuple[int, int]]
"""Pairs of a source token and a target token, with weights."""
OF_CHINESE = frozenset(["CJK", "HIRAGANA"])


def refined(source: Tokens, target: Tokens, pairs: Pairs, names: Mapping[int, int]) -> Pairs:
    """The pairs with these corrections; `names` maps the names that both sides have."""
    return with_phrases(source, target, with_names(pairs, names))


def with_names(pairs: Pairs, partners: Mapping[int, int]) -> Pairs:
    """The pairs, but names that the translation keeps are only aligned with themselves."""
    kept = {*partners.values()}
    result = Pairs()
    for (a, b), weight in pairs.items():
        if a not in partners and b not in kept:
            result[a, b] = weight
    for pair in partners.items():
        result[pair] = 1
    return result


def kept_names(source: Tokens, target: Tokens) -> dict[int, int]:
    """The names that both sides have equally often, source to target, if their scripts differ.

    In the same script, a word may only look like one of the other language.
    """
    partners = dict[int, int]()
    if scripts_of_text([source.text]) == scripts_of_text([target.text]):
        return partners
    of_target = places_of_names(target)
    for name, tokens in places_of_names(source).items():
        if len(tokens) == len(of_target.get(name, [])):
            partners.update(zip(tokens, of_target[name], strict=True))
    return partners


def places_of_names(tokens: Tokens) -> dict[str, list[int]]:
    """The words and numbers, except Chinese characters and hiragana, with their tokens."""
    places = defaultdict[str, list[int]](list)
    for token in range(len(tokens.starts)):
        word = tokens.of(token)
        has_signs = any(map(str.isalnum, word))
        if has_signs and OF_CHINESE.isdisjoint(map(script, word)):
            places[word].append(token)
    return places


def verb_is_last(source: Tokens, target: Tokens) -> bool:
    """Whether the verb moves to the end: to Japanese, but not from Japanese or Korean."""
    sides = [IN_HIRAGANA.search(tokens.text) is not None for tokens in (source, target)]
    return sides == [False, True] and "HANGUL" not in scripts_of_text([source.text])


def with_phrases(source: Tokens, target: Tokens, pairs: Pairs) -> Pairs:
    """The pairs with one Japanese phrase for each source word, as far as other words have none."""
    if not verb_is_last(source, target):
        return pairs
    phrases = phrases_of(target, pairs)
    words = [token for token in range(len(source.starts)) if source.is_word(token)]
    free = [token for token in words if token not in phrases and token not in source.copies]
    left = list[list[int]]()  # the phrases for them
    for token, of_token in phrases.items():
        left += of_token[:-1] if token == words[0] else of_token[1:]
    if not (free and left):
        return pairs
    left = sorted(left)[: len(free)]
    # Articles and the like, which are short, have no counterpart.
    longest = sorted(free, key=lambda token: (-len(source.of(token)), -token))
    owners = sorted(longest[: len(left)])
    if is_verb_at_end(target, left[-1]):
        owners.append(owners.pop(0))
    result = Pairs(pairs)
    new_owners = dict[int, int]()
    for owner, phrase in zip(owners, left, strict=True):
        new_owners |= dict.fromkeys(with_endings(target, phrase), owner)
    for a, b in pairs:
        if b in new_owners:
            del result[a, b]
    for token, owner in new_owners.items():
        result[owner, token] = 1
    return result


def with_endings(target: Tokens, phrase: list[int]) -> range:
    """A phrase with the hiragana after it."""
    stop = phrase[-1] + 1
    while target.is_hiragana(stop):
        stop += 1
    return range(phrase[0], stop)


def is_verb_at_end(target: Tokens, phrase: list[int]) -> bool:
    """Whether a phrase is the verb of its sentence, which in other languages comes earlier."""
    following = range(phrase[-1] + 1, len(target.starts))
    return is_inflected(target, phrase[0]) and not any(map(target.is_content, following))


def phrases_of(target: Tokens, pairs: Pairs) -> dict[int, list[list[int]]]:
    """For each source token, the phrases that are aligned with it: words with no particle between.

    A verb or adjective is a phrase of its own.
    """
    owners = dict[int, tuple[int, int]]()  # target token -> greatest weight, source token
    for (a, b), weight in pairs.items():
        if target.is_content(b):
            owners[b] = max(owners.get(b, (0, a)), (weight, a))
    phrases = defaultdict[int, list[list[int]]](list)
    for token, (_, owner) in sorted(owners.items()):
        of_owner = phrases[owner]
        continues = bool(of_owner) and of_owner[-1][-1] == token - 1
        if continues and not any(is_inflected(target, other) for other in (token - 1, token)):
            of_owner[-1].append(token)
        else:
            of_owner.append([token])
    return phrases


def is_inflected(target: Tokens, token: int) -> bool:
    return INFLECTED_WORD.fullmatch(target.of(token)) is not None
