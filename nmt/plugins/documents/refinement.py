"""Corrections of a word alignment, which a model knows only for its own tokens.

Names and numbers that stay the same are aligned with themselves. One token of a model may spell
several Japanese phrases, of which a source word can only be one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

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
    kept_in_target = frozenset(partners.values())
    result = Pairs()
    for (source, target), weight in pairs.items():
        # A name on one side only is not evidence, so its pairs stay.
        if source not in partners and target not in kept_in_target:
            result[source, target] = weight
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
    in_target = places_of_names(target)
    for name, tokens in places_of_names(source).items():
        others = in_target.get(name, [])
        # With different numbers, nothing shows which occurrence became which.
        if len(tokens) == len(others):
            partners.update(zip(tokens, others, strict=True))
    return partners


def places_of_names(tokens: Tokens) -> dict[str, list[int]]:
    """The words and numbers, except Chinese characters and hiragana, with their tokens."""
    places = defaultdict[str, list[int]](list)
    for token in range(len(tokens.starts)):
        word = tokens.of(token)
        is_word = any(map(str.isalnum, word))
        if is_word and OF_CHINESE.isdisjoint(map(script, word)):
            places[word].append(token)
    return places


def verb_is_last(source: Tokens, target: Tokens) -> bool:
    """Whether the verb moves to the end: to Japanese, but not from Japanese or Korean."""
    # Only Japanese is written in hiragana.
    if IN_HIRAGANA.search(source.text) or not IN_HIRAGANA.search(target.text):
        return False
    # In Korean, the verb is last, too.
    return "HANGUL" not in scripts_of_text([source.text])


def with_phrases(source: Tokens, target: Tokens, pairs: Pairs) -> Pairs:
    """The pairs with one Japanese phrase for each source word, as far as other words have none."""
    if not verb_is_last(source, target):
        return pairs
    phrases = phrases_of(target, pairs)
    words = [token for token in range(len(source.starts)) if source.is_word(token)]
    # The words whose phrases went to another word with the token of the model.
    free = sorted(set(words).difference(phrases, source.copies))
    if not free:
        return pairs
    # Each word without a phrase gets at most one.
    spare = spare_phrases(phrases, words[0])[: len(free)]
    if not spare:
        return pairs
    owners = owners_of_phrases(source, target, free, spare)
    new_owners = dict[int, int]()  # target token -> source token
    for owner, phrase in zip(owners, spare, strict=True):
        new_owners.update(dict.fromkeys(with_endings(target, phrase), owner))
    result = Pairs()
    # Phrases that change their owner lose all pairs that they had.
    for pair, weight in pairs.items():
        if pair[1] not in new_owners:
            result[pair] = weight
    for token, owner in new_owners.items():
        result[owner, token] = 1
    return result


def spare_phrases(phrases: Mapping[int, list[list[int]]], first_word: int) -> list[list[int]]:
    """All phrases of each source token but one, in order.

    The first word, such as a verb in the imperative, keeps its last phrase, because verbs are last
    in Japanese. All others keep their first one.
    """
    spare = list[list[int]]()
    for token, of_token in phrases.items():
        spare += of_token[:-1] if token == first_word else of_token[1:]
    return sorted(spare)


def owners_of_phrases(
    source: Tokens,
    target: Tokens,
    free: Sequence[int],
    phrases: Sequence[list[int]],
) -> list[int]:
    """A source word without a phrase for each of these phrases, which are in order."""
    # Articles and the like, which are short, have no counterpart. Of two as long, the later one
    # comes first.
    longest_first = sorted(free, key=lambda token: (-len(source.of(token)), -token))
    owners = sorted(longest_first[: len(phrases)])
    # In the source, the verb is the first of these words. In Japanese, its phrase is the last one.
    if is_verb_at_end(target, phrases[-1]):
        verb = owners.pop(0)
        owners.append(verb)
    return owners


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

    A verb or adjective is a separate phrase.
    """
    owners = dict[int, tuple[int, int]]()  # target token -> greatest weight, source token
    for (source_token, token), weight in pairs.items():
        if target.is_content(token):
            # With equal weights, the later source token.
            candidate = (weight, source_token)
            owners[token] = max(owners.get(token, candidate), candidate)
    phrases = defaultdict[int, list[list[int]]](list)
    for token, (_, owner) in sorted(owners.items()):
        of_owner = phrases[owner]
        follows = bool(of_owner) and of_owner[-1][-1] == token - 1
        if follows and not is_inflected(target, token - 1) and not is_inflected(target, token):
            of_owner[-1].append(token)
        else:
            of_owner.append([token])
    return phrases


def is_inflected(target: Tokens, token: int) -> bool:
    """Whether a token is a Japanese verb or adjective with its ending."""
    return INFLECTED_WORD.fullmatch(target.of(token)) is not None
