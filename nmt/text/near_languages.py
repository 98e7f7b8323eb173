"""The languages of a model that are near to one that it lacks."""

from collections.abc import Iterable
from functools import cache
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
ANY_REGION = "001"
"""The world: the same region for both languages, because only languages and scripts count."""


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
    codes = list(codes)
    code = code_of_name(code, codes)
    nearness = dict[str, Nearness]()
    for other in codes:
        near = nearness_of(code, other)
        if near is not None:
            nearness[other] = near
    return sorted(nearness, key=lambda other: nearness[other])[:MOST_NEAR]


def near_in_words(code: str, codes: Iterable[str]) -> str:
    """The near languages for messages, such as "the nearest are Irish (ga)"; "" without any."""
    near = [with_code(other) for other in near_languages(code, codes)]
    if not near:
        return ""
    return f"the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"


@cache
def nearness_of(code: str, other: str) -> Nearness | None:
    """How near a language of a model is to another language; None if no data connects them."""
    language, script, region, _ = subtags(code)
    # What is no language code, such as a name that nobody knows, is near to nothing.
    if not regex.fullmatch("[a-z]{2,3}", language):
        return None
    other_language = subtags(other).language
    relation = distance_of_languages(language, other_language)
    if relation <= RELATED:
        kind = 0 if language == other_language else 1
        return Nearness(kind, relation + distance_of_scripts(code, other))
    if macrolanguage(code) == macrolanguage(other):
        return Nearness(1, RELATED + distance_of_scripts(code, other))
    country = region or usual_subtags(f"{language}_{script}").get("region")
    country = country or usual_subtags(language).get("region", "")
    if is_official(other, country):
        return Nearness(2, min(relation, OFFICIAL))
    if relation < distance_of_strangers():
        return Nearness(2, relation)
    return None


def distance_of_languages(language: str, other: str) -> int:
    """CLDR's distance of two languages, whatever their scripts."""
    from langcodes import tag_distance  # takes 50 ms, which only messages need to spend

    distances = []
    for pair in ((language, other), (other, language)):
        desired, supported = (f"{name}-{ANY_REGION}" for name in pair)
        distances.append(tag_distance(desired, supported, ignore_script=True))
    forward, backward = distances
    return min(forward, backward) if backward <= CLOSE else forward


def distance_of_scripts(code: str, other: str) -> int:
    """CLDR's distance of the scripts of two languages: 0 for the same one."""
    from langcodes import tag_distance

    # The language that is asked for, because scripts are compared for readers of one language.
    language, script, _, _ = subtags(code)
    other_script = subtags(other).script
    if not script or not other_script:
        return 0
    desired = f"{language}-{script}-{ANY_REGION}"
    return tag_distance(desired, f"{language}-{other_script}-{ANY_REGION}")


def distance_of_strangers() -> int:
    """CLDR's distance of languages that no data connects."""
    from langcodes.language_distance import DEFAULT_LANGUAGE_DISTANCE

    return DEFAULT_LANGUAGE_DISTANCE


def macrolanguage(code: str) -> str:
    """The macrolanguage of a language by ISO 639-3, such as ar for arz; otherwise the language."""
    from langcodes.data_dicts import MACROLANGUAGES

    return MACROLANGUAGES.get(own_language(code), subtags(code).language)


def is_official(code: str, country: str) -> bool:
    """Whether a language, in its script, is official in a whole country by CLDR's data."""
    from babel.languages import get_official_languages

    language, script, _, _ = subtags(code)
    for official in get_official_languages(country, de_facto=True):
        parts = subtags(official)
        if (parts.language, parts.script) == (language, script):
            return True
    return False
