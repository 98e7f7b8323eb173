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
WITHOUT_NAMES = frozenset(["CJK", "HIRAGANA"])
"""Scripts that write no foreign names: those have Latin letters, katakana or digits."""


def refined(source: Tokens, target: Tokens, pairs: Pairs, names: Mapping[int, int]) -> Pairs:
    """The pairs with these corrections; `names` maps the names that both sides have."""
    return with_one_phrase_per_word(source, target, with_names(pairs, names))


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
    """The tokens of each word or number that may be a name, such as "Linux" -> [3, 7]."""
    places = defaultdict[str, list[int]](list)
    for token in range(len(tokens.starts)):
        word = tokens.of(token)
        is_word = any(map(str.isalnum, word))
        if is_word and WITHOUT_NAMES.isdisjoint(map(script, word)):
            places[word].append(token)
    return places


def verb_is_last(source: Tokens, target: Tokens) -> bool:
    """Whether the verb moves to the end: to Japanese, but not from Japanese or Korean."""
    # Only Japanese is written in hiragana.
    if IN_HIRAGANA.search(source.text) or not IN_HIRAGANA.search(target.text):
        return False
    # In Korean, the verb is last, too.
    return "HANGUL" not in scripts_of_text([source.text])


def with_one_phrase_per_word(source: Tokens, target: Tokens, pairs: Pairs) -> Pairs:
    """The pairs in which no Japanese phrase is missing at one source word and spare at another.

    For example, a model spells 設定を開く, its translation of "Open settings", with one token and
    aligns it with "settings". The spare phrase 開く is aligned with "Open" instead.
    """
    new_owners = owners_of_spare_phrases(source, target, pairs)
    if not new_owners:
        return pairs
    result = Pairs()
    # Tokens that change their owner lose all pairs that they had.
    for (source_token, target_token), weight in pairs.items():
        if target_token not in new_owners:
            result[source_token, target_token] = weight
    for target_token, owner in new_owners.items():
        result[owner, target_token] = 1
    return result


def owners_of_spare_phrases(source: Tokens, target: Tokens, pairs: Pairs) -> dict[int, int]:
    """Target token -> source token, for phrases to be aligned with a word that has none."""
    new_owners = dict[int, int]()
    if not verb_is_last(source, target):
        return new_owners
    phrases = phrases_of(target, pairs)
    words = [token for token in range(len(source.starts)) if source.is_word(token)]
    without_phrase = sorted(set(words).difference(phrases, source.copies))
    if not without_phrase:
        return new_owners
    # Each word without a phrase gets at most one.
    spare = spare_phrases(phrases, words[0])[: len(without_phrase)]
    if not spare:
        return new_owners
    owners = owners_of_phrases(source, target, without_phrase, spare)
    for owner, phrase in zip(owners, spare, strict=True):
        new_owners.update(dict.fromkeys(with_endings(target, phrase), owner))
    return new_owners


def spare_phrases(phrases: Mapping[int, list[list[int]]], first_word: int) -> list[list[int]]:
    """All phrases of each source token but one, in order.

    The first word, such as a verb in the imperative, keeps its last phrase, because verbs are last
    in Japanese. All others keep their first one.
    """
    spare = list[list[int]]()
    for word, of_word in phrases.items():
        spare += of_word[:-1] if word == first_word else of_word[1:]
    return sorted(spare)


def owners_of_phrases(
    source: Tokens,
    target: Tokens,
    without_phrase: Sequence[int],
    phrases: Sequence[list[int]],
) -> list[int]:
    """The source word for each of these phrases, which are in the order of the translation.

    `without_phrase` are the words to choose from, at least one per phrase.
    """
    # Articles and the like, which are short, have no counterpart. Of words with the same length,
    # the later one comes first.
    longest_first = sorted(without_phrase, key=lambda token: (-len(source.of(token)), -token))
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
    """For each source token, the phrases that are aligned with it, as lists of their tokens.

    A phrase is a run of words with no particle between them. A verb or adjective is a phrase of its
    own.
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
        is_adjacent = bool(of_owner) and of_owner[-1][-1] == token - 1
        if is_adjacent and not is_inflected(target, token - 1) and not is_inflected(target, token):
            of_owner[-1].append(token)
        else:
            of_owner.append([token])
    return phrases


def is_inflected(target: Tokens, token: int) -> bool:
    """Whether a token is a Japanese verb or adjective with its ending."""
    return INFLECTED_WORD.fullmatch(target.of(token)) is not None
