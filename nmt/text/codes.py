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
LOCALE = regex.compile(r"(?P<code>[^.@]*)(?:\.[^@]*)?(?:@(?P<modifier>.*))?")
"""A code as POSIX writes it, with an encoding or a modifier: sr_RS.UTF-8@latin."""


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
    """Split a code such as pt-BR, zh_Hant_TW, eng_Latn or sr@latin."""
    language, *others = without_modifier(code).replace("_", "-").split("-")
    canonical = language.lower()
    for aliases in (ALIASES, data_of("language_aliases"), ALIASES):
        canonical = aliases.get(canonical) or canonical
    language, *more = canonical.split("_")
    others = [*others, *more]
    script = next((part.title() for part in others if len(part) == 4 and part.isalpha()), "")
    region = next((part.upper() for part in others if regex.fullmatch(r"[A-Za-z]{2}|\d{3}", part)), "")
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    return Subtags(language, script or usual.get("script", ""), region, is_plain=not script and not region)


def without_modifier(code: str) -> str:
    """A code without a modifier, unless this is a script: sr-Latn for sr@latin."""
    match = LOCALE.fullmatch(code)
    if match is None or match.end() == match.end("code"):
        return code
    script = codes_of_scripts().get((match["modifier"] or "").lower())
    return f"{match['code']}-{script}" if script else match["code"]


@cache
def codes_of_scripts() -> dict[str, str]:
    """Map the English names of scripts, in lower case, to their codes."""
    return {name.lower(): code for code, name in english().scripts.items()}


def script_name(script: str) -> str:
    """The English name of a script, such as Latin for Latn; if unknown, its code."""
    return str(english().scripts.get(script, script))


def usual_subtags(code: str) -> dict[str, str]:
    """CLDR's usual script and region of a language, or of a language in a region."""
    parts = (data_of("likely_subtags").get(code) or "").split("_")
    return {"script": parts[1], "region": parts[2]} if len(parts) == 3 else {}


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
    return name_in(english(), code) or code


@cache
def native_name(code: str) -> str:
    """A language's name in that language, such as Deutsch for de; if unknown, its English name."""
    from babel import Locale, UnknownLocaleError

    language, script, region, _ = subtags(code)
    for parts in ((language, script, region), (language, script), (language,)):
        try:
            locale = Locale.parse("_".join(filter(None, parts)))
        except (UnknownLocaleError, ValueError):  # CLDR has no names in this language
            continue
        name = name_in(locale, code)
        # In a list, names begin with a capital letter where the script has one.
        return name[:1].title() + name[1:] or language_name(code)
    return language_name(code)


def name_in(locale: Any, code: str) -> str:
    """The name of a language in the language of a locale; "" if it is unknown."""
    language, script, region, is_plain = subtags(code)
    name = locale.languages.get(language)
    if name is None or is_plain:
        return str(locale.languages.get(code.lower()) or name or "")
    has_usual_script = script == usual_subtags(language).get("script")
    written = locale.languages.get(f"{language}_{script}")  # such as Traditional Chinese
    if region and f"{language}_{region}" in locale.languages:
        return str(locale.languages[f"{language}_{region}"])
    notes = [] if has_usual_script or written else [locale.scripts.get(script)]
    notes.append(locale.territories.get(region))
    described = ", ".join(note for note in notes if note)
    return f"{written or name} ({described})" if described else str(written or name)


def language_tag(code: str | None) -> str:
    """A language code as HTML's `lang` has it (BCP 47): zh-CN for zh_CN, ja for jpn.

    Returns "", which stands for an unknown language, for None and for what is no code.
    """
    code = without_modifier(code or "")
    if not is_language(code):
        return ""
    code = names().get(code.lower(), code)
    language, script, region, _ = subtags(code)
    written, *others = regex.split("[-_]", code.lower())
    # `no` and `nb` are both valid, and so are other codes of two letters that CLDR replaces.
    if len(written) == 2 and written in english().languages:
        language = written
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    is_needed = script.lower() in others or script != usual.get("script")
    return "-".join(filter(None, (language, script if is_needed else "", region)))


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
