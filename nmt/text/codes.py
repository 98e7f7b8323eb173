"""Language codes (BCP 47) and names, by Unicode's data (CLDR)."""

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, NamedTuple

import regex

from nmt.text.languages import usual_scripts

SUBTAG = regex.compile(r"[a-z]{4}|[a-z]{2}|\d{3}")
"""A script or a region in a language code, in lower case."""
ALIASES = {"nb": "no", "zt": "zh_Hant", "pb": "pt_BR", "pbt": "ps", "quy": "qu"}
"""Codes in use besides CLDR's: `no` is written as `nb`; `zt` and `pb` are LibreTranslate's."""


def english() -> Any:
    """English names of languages, scripts and regions."""
    from babel import Locale  # takes 50 ms, which most commands need not spend

    return Locale("en")


def data_of(name: Literal["language_aliases", "likely_subtags"]) -> Any:
    """A table of CLDR that belongs to no language."""
    from babel.core import get_global

    return get_global(name)


class Subtags(NamedTuple):
    """The parts of a language code."""

    language: str  # as CLDR writes it, such as de for deu
    script: str  # such as Latn; the language's usual script if the code has none
    region: str  # such as BR; "" if the code has none
    is_plain: bool  # whether the code has neither a script nor a region


@cache
def subtags(code: str) -> Subtags:
    """Split a code such as pt-BR, zh_Hant_TW or eng_Latn."""
    language, *others = code.replace("_", "-").split("-")
    canonical = language.lower()
    for aliases in (ALIASES, data_of("language_aliases"), ALIASES):
        canonical = aliases.get(canonical) or canonical
    language, *more = canonical.split("_")
    others = [*others, *more]
    script = next((part.title() for part in others if len(part) == 4 and part.isalpha()), "")
    region = next((part.upper() for part in others if regex.fullmatch(r"[A-Za-z]{2}|\d{3}", part)), "")
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    return Subtags(language, script or usual.get("script", ""), region, is_plain=not script and not region)


def usual_subtags(code: str) -> dict[str, str]:
    """CLDR's usual script and region of a language, or of a language in a region."""
    parts = (data_of("likely_subtags").get(code) or "").split("_")
    return {"script": parts[1], "region": parts[2]} if len(parts) == 3 else {}


def language_tag(code: str | None) -> str:
    """A language code as HTML's `lang` has it (BCP 47): zh-CN for zh_CN, ja for jpn.

    Returns "", which stands for an unknown language, for None and for what is no code.
    """
    if not code or not is_language(code):
        return ""
    code = names().get(code.lower(), code)
    language, script, region, _ = subtags(code)
    is_written = script.lower() in regex.split("[-_]", code.lower())
    written = [script] if is_written or script != usual_script(language, region) else []
    return "-".join([language, *written, *([region] if region else [])])


def usual_script(language: str, region: str) -> str | None:
    """The script that a language is usually written in, in a region if there is one."""
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    return usual.get("script")


def match_language(code: str, codes: Iterable[str]) -> str | None:
    """The one of `codes` that means the same language in the same script; of several, the one for the same region.

    A code without script and region, such as zh, also means a language that is only there in another script. English
    names of languages are accepted, too.
    """
    codes = list(codes)
    if code in codes:
        return code
    code = names().get(code.lower(), code)
    same = [other for other in codes if other.lower().replace("_", "-") == code.lower().replace("_", "-")]
    if same:
        return same[0]
    language, script, region, is_plain = subtags(code)
    same = [other for other in codes if subtags(other).language == language]
    in_script = [other for other in same if subtags(other).script == script]
    same = in_script or (same if is_plain else [])
    regions = region, "", usual_subtags(language).get("region")
    rank = {place: number for number, place in reversed([*enumerate(regions)])}
    return min(same, key=lambda other: rank.get(subtags(other).region, len(rank)), default=None)


def language_name(code: str) -> str:
    """A language's English name, such as Brazilian Portuguese for pt_BR; if unknown, its code."""
    locale = english()
    language, script, region, is_plain = subtags(code)
    name = locale.languages.get(language)
    if name is None or is_plain:
        return str(locale.languages.get(code.lower(), name or code))
    has_usual_script = script == usual_subtags(language).get("script")
    written = locale.languages.get(f"{language}_{script}")  # such as Traditional Chinese
    if region and f"{language}_{region}" in locale.languages:
        return str(locale.languages[f"{language}_{region}"])
    notes = [] if has_usual_script or written else [locale.scripts.get(script)]
    notes.append(locale.territories.get(region))
    described = ", ".join(note for note in notes if note)
    return f"{written or name} ({described})" if described else str(written or name)


def with_code(code: str) -> str:
    """A language for messages, such as German (de)."""
    name = language_name(code)
    return name if name == code else f"{name} ({code})"


@cache
def names() -> dict[str, str]:
    """Map English names, in lower case, to the codes of their languages."""
    languages = english().languages
    return {name.lower(): code for code, name in languages.items() if "_" not in code}


@cache
def is_language(code: str) -> bool:
    """Whether a text is a language code or an English name: de, zh_CN, eng_Latn, es-419, en-de, German."""
    language, *others = regex.split("[-_]", code.lower())
    if not others and usual_scripts(language):  # known without Unicode's data
        return True
    if code.lower() in names():
        return True
    if subtags(language).language in english().languages:
        # Two languages, as in en-de, also name a corpus.
        return all(SUBTAG.fullmatch(part) or is_language(part) for part in others)
    # There are too many three-letter codes to know them all, but few files have such suffixes.
    is_code = regex.fullmatch("[a-z]{3}", language) is not None
    return is_code and bool(others) and all(map(SUBTAG.fullmatch, others))
