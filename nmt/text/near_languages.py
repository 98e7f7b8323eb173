"""The languages of a model that are near to one that it lacks."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import regex

from nmt.text.code_parts import own_language, subtags, usual_subtags
from nmt.text.codes import code_of_name
from nmt.text.language_names import with_code

MOST_NEAR = 5
MOST_LISTED = 30
"""With more languages, a message about one that is missing names only the near ones."""
CLOSE = 10
"""CLDR's distance up to which readers of either language understand the other.

The data are for a reader of the first language. Up to this distance, they are about varieties, such
as Egyptian Arabic and Arabic, and hold in the other direction, too. Larger distances are often
about second languages: most readers of Welsh read English, but not the reverse.
"""
RELATED = 20
"""The distance up to which languages, such as Czech and Slovak, come before second languages."""
OFFICIAL = 30
"""The distance of an official language of the country: that of most second languages in CLDR."""
STRANGERS = 80
"""CLDR's distance of languages that no data connects."""
OTHER_SCRIPT = 50
"""CLDR's distance of scripts, unless readers of a language know both."""


class Nearness(NamedTuple):
    """How near a language is; the least is the nearest."""

    kind: int
    """0 for the same language in another script, 1 for a related one, 2 for a second language."""
    distance: int


def near_languages(code: str, codes: Iterable[str]) -> list[str]:
    """At most five of `codes` for readers of a language that is not among them, nearest first.

    They are the same language in another script, then languages that CLDR's data for the matching
    of languages (UTS 35) count as close, then members of the same macrolanguage (ISO 639-3), then
    second languages by the same data, and the official languages of the language's usual country.
    CLDR has no data about families of languages: no language is near only because it is related.
    """
    return list(nearest(code, tuple(codes)))


# A file may name the same missing language in each line, and a server's clients any language.
@lru_cache(1000)
def nearest(code: str, codes: tuple[str, ...]) -> tuple[str, ...]:
    code = code_of_name(code, list(codes))
    language, script, region, _ = subtags(code)
    # What is no language code, such as a name that nobody knows, is near to nothing.
    if not regex.fullmatch("[a-z]{2,3}", language):
        return ()
    usual = usual_subtags(f"{language}_{script}") or usual_subtags(language)
    official = official_languages(region or usual.get("region", ""))
    nearness = dict[str, Nearness]()
    for other in codes:
        near = nearness_of(code, other)
        if subtags(other)[:2] in official:
            near = min(near, Nearness(2, OFFICIAL))
        if near.distance < STRANGERS:
            nearness[other] = near
    return tuple(sorted(nearness, key=lambda other: nearness[other])[:MOST_NEAR])


def near_in_words(code: str, codes: Iterable[str]) -> str:
    """The near languages for messages, such as "the nearest are Irish (ga)"; "" without any."""
    near = [with_code(other) for other in near_languages(code, codes)]
    if not near:
        return ""
    return f"the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"


def nearness_of(code: str, other: str) -> Nearness:
    """How near a language of a model is to another language by CLDR and ISO 639-3."""
    language = subtags(code).language
    other_language = subtags(other).language
    scripts = distance_of_scripts(code, other)
    if language == other_language:
        return Nearness(0, scripts)
    relation = distance_of_languages(language, other_language)
    if relation > RELATED and macrolanguage(code) == macrolanguage(other):
        relation = RELATED
    if relation <= RELATED:
        return Nearness(1, relation + scripts)
    return Nearness(2, relation)


def distance_of_languages(language: str, other: str) -> int:
    """CLDR's distance of two languages, whatever their scripts."""
    backward = cldr_distance(other, language, STRANGERS)
    forward = cldr_distance(language, other, STRANGERS)
    return min(forward, backward) if backward <= CLOSE else forward


def distance_of_scripts(code: str, other: str) -> int:
    """CLDR's distance of the scripts of two languages: 0 for the same one."""
    language, script, _, _ = subtags(code)
    other_script = subtags(other).script
    if script == other_script:
        return 0
    # The table is about scripts of the same language.
    return cldr_distance(f"{language}_{script}", f"{language}_{other_script}", OTHER_SCRIPT)


def cldr_distance(desired: str, supported: str, default: int) -> int:
    # The table itself, because the function of langcodes remembers every pair forever.
    from langcodes.data_dicts import LANGUAGE_DISTANCES  # takes 40 ms, which only messages spend

    return LANGUAGE_DISTANCES.get(desired, {}).get(supported, default)


def macrolanguage(code: str) -> str:
    """The macrolanguage of a language by ISO 639-3, such as ar for arz; otherwise the language."""
    from langcodes.data_dicts import MACROLANGUAGES

    return MACROLANGUAGES.get(own_language(code), subtags(code).language)


def official_languages(country: str) -> set[tuple[str, str]]:
    """The languages and scripts that are official in a whole country by CLDR's data."""
    from babel.languages import get_official_languages

    codes = get_official_languages(country, de_facto=True)
    return {subtags(official)[:2] for official in codes}
