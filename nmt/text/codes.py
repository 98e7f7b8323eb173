"""Language codes (BCP 47) and names, by Unicode's data (CLDR)."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import regex

from nmt.text.languages import usual_scripts

SUBTAG = regex.compile(r"[a-z]{4}|[a-z]{2}|\d{3}")
"""A script or a region in a language code, in lower case."""
REGION = regex.compile(r"[A-Za-z]{2}|\d{3}")
ALIASES = {
    "nb": "no",
    "zt": "zh_Hant",
    "pb": "pt_BR",
    "pbt": "ps",
    "quy": "qu",
}
"""Codes in use besides CLDR's: `no` is written as `nb`; `zt` and `pb` are LibreTranslate's."""
MISTAKEN = ("br", "kr", "se")
"""Countries whose codes are often written for their languages, and are those of rare languages."""
LOCALE = regex.compile(r"(?P<code>[^.@]*)(?:\.[^@]*)?(?:@(?P<modifier>.*))?")
"""A code as POSIX writes it, with an encoding or a modifier: sr_RS.UTF-8@latin."""


def english() -> Any:
    """English names of languages, scripts and regions."""
    from babel import Locale  # takes 50 ms, which most commands need not spend

    return Locale("en")


def data_of(name: Literal["language_aliases", "likely_subtags"]) -> Any:
    """A table of CLDR that is not specific to a language."""
    from babel.core import get_global

    return get_global(name)


class Subtags(NamedTuple):
    """The parts of a language code."""

    language: str
    """The language code as CLDR writes it, such as de for deu."""
    script: str
    """The script, such as Latn; the language's usual script if the code has none."""
    region: str
    """The region, such as BR; "" if the code has none."""
    is_plain: bool
    """Whether the code has neither a script nor a region."""


@cache
def subtags(code: str) -> Subtags:
    """Split a code such as pt-BR, zh_Hant_TW, eng_Latn or sr@latin into its parts.

    For deu, they are de and its usual script, Latn. For zh_TW, they are zh, Hant, which is usual in
    Taiwan, and TW.
    """
    # BCP 47 writes hyphens and POSIX underscores.
    written_language, *others = without_modifier(code).replace("_", "-").split("-")
    language, *of_alias = canonical_language(written_language).split("_")
    # The subtags of the code take precedence over those of its alias.
    script = ""
    region = ""
    for part in [*others, *of_alias]:
        # Subtags are recognized by their form, because codes in use have them in any order.
        is_script = len(part) == 4 and part.isalpha()
        if is_script and not script:
            script = part.title()
        is_region = REGION.fullmatch(part) is not None
        if is_region and not region:
            region = part.upper()
    # A region may have a script of its own, as in zh_TW; most regions have that of the language.
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    return Subtags(
        language,
        script or usual.get("script", ""),
        region,
        is_plain=not script and not region,
    )


def canonical_language(written: str) -> str:
    """The preferred code of a language: de for deu.

    Some codes also stand for a script or a region, which follow an underscore: zh_Hant for zt.
    """
    canonical = written.lower()
    # Ours lead to codes of CLDR. CLDR's own may lead to one of ours again: from nob to nb to no.
    for aliases in (ALIASES, data_of("language_aliases"), ALIASES):
        canonical = aliases.get(canonical) or canonical
    return canonical


def without_modifier(code: str) -> str:
    """A code without a modifier, unless this is a script: sr-Latn for sr@latin."""
    match = LOCALE.fullmatch(code)
    if match is None or match.end() == match.end("code"):
        return code
    code = match["code"]
    modifier = match["modifier"] or ""
    script = codes_of_scripts().get(modifier.lower())
    return f"{code}-{script}" if script else code


@cache
def codes_of_scripts() -> dict[str, str]:
    """Map the English names of scripts, in lower case, to their codes."""
    return {name.lower(): code for code, name in english().scripts.items()}


def script_name(script: str) -> str:
    """The English name of a script, such as Latin for Latn; if unknown, its code."""
    return str(english().scripts.get(script, script))


def without_region(code: str) -> str:
    """A code without its region, which may have decided its script: zh-Hant for zh_TW."""
    language, script, region, _ = subtags(code)
    return f"{language}-{script}" if region and script else code


def usual_subtags(code: str) -> dict[str, str]:
    """CLDR's usual script and region of a language, or of a language in a region."""
    likely = data_of("likely_subtags").get(code) or ""
    parts = likely.split("_")
    # CLDR's likely subtags have the form language_script_region.
    if len(parts) != 3:
        return {}
    return {"script": parts[1], "region": parts[2]}


def match_language(code: str, codes: Iterable[str]) -> str | None:
    """The one of `codes` that means the same language in the same script.

    Of several, it is the one for the same region. A code without script and region, such as zh,
    also means a language that is only there in another script. English names of languages are
    accepted, too, and the names of `codes` in their own languages.
    """
    codes = list(codes)
    if code in codes:
        return code
    code = code_of_name(code, codes)
    for other in codes:
        # The same code in another form needs no data, and
        # is preferred to a code that only means the same.
        if normalized(other) == normalized(code):
            return other
    language, script, region, is_plain = subtags(code)
    same_language = [other for other in codes if subtags(other).language == language]
    candidates = [other for other in same_language if subtags(other).script == script]
    # `zh` may mean any Chinese; `zh_TW` asks for traditional characters.
    if not candidates and is_plain:
        candidates = same_language
    usual_region = usual_subtags(language).get("region")

    def preference(other: str) -> int:
        """The rank of a code; the smallest is preferred, and the first of equal ranks."""
        # The same region, then no region, then the usual one: pt means pt_BR rather than pt_PT.
        regions = [region, "", usual_region]
        other_region = subtags(other).region
        return regions.index(other_region) if other_region in regions else len(regions)

    return min(candidates, key=preference, default=None)


def normalized(code: str) -> str:
    """A code in the form in which equal codes are equal texts."""
    return code.lower().replace("_", "-")


def code_of_name(name: str, codes: list[str]) -> str:
    """The code of a language's English name, or of its name in itself if it is one of `codes`.

    Returns what is not a name as it is.
    """
    code = names().get(name.lower(), name)
    # A code, even an unusual one, is never looked up as a name.
    if subtags(code).language in english().languages:
        return code
    for other in codes:
        if code.casefold() in all_names(other):
            return other
    return code


@cache
def all_names(code: str) -> frozenset[str]:
    """The names of a language with and without its region, in English and itself, in lower case."""
    written = []
    for one in (code, without_region(code)):
        written.append(language_name(one))
        written.append(native_name(one))
    return frozenset(name.casefold() for name in written)


def language_of_country(code: str) -> str:
    """The language of a country whose code was written instead: ja for jp; "" if there is none."""
    country = code.upper()
    if len(country) != 2 or country not in english().territories:
        return ""
    likely = data_of("likely_subtags").get(f"und_{country}") or ""
    return str(likely.partition("_")[0])


def did_you_mean(code: str, codes: Iterable[str] | None = None) -> str:
    """A hint for messages if a code is that of a country, otherwise "".

    If `codes` are given, it names one of them if possible. The codes in `MISTAKEN`, which are also
    those of languages, then stand for countries, too.
    """
    language = language_of_country(code)
    if not language or language == code.lower():
        return ""
    match = match_language(language, codes or ())
    if is_language(code) and (match is None or code.lower() not in MISTAKEN):
        return ""
    return f"did you mean {match or language} ({language_name(match or language)})?"


def language_name(code: str) -> str:
    """A language's English name, such as Brazilian Portuguese for pt_BR; if unknown, its code."""
    return name_in(english(), code) or code


@cache
def native_name(code: str) -> str:
    """A language's name in that language, such as Deutsch for de; if unknown, its English name."""
    from babel import Locale, UnknownLocaleError

    language, script, region, _ = subtags(code)
    # From the most specific locale to the most general.
    for parts in ([language, script, region], [language, script], [language]):
        identifier = "_".join(part for part in parts if part)
        try:
            locale = Locale.parse(identifier)
        except (UnknownLocaleError, ValueError):  # CLDR has no names in this language
            continue
        name = name_in(locale, code)
        if not name:
            break
        # In a list, names begin with a capital letter where the script has one.
        return name[:1].title() + name[1:]
    return language_name(code)


def name_in(locale: Any, code: str) -> str:
    """The name of a language in the language of a locale; "" if it is unknown.

    In English, it is German for de, Brazilian Portuguese for pt_BR and Serbian (Latin) for sr_Latn.
    """
    language, script, region, is_plain = subtags(code)
    names_of_languages: Mapping[str, str] = locale.languages
    name = names_of_languages.get(language)
    if name is None or is_plain:
        # The code as it is written may have a name of its own, such as Bokmål for nb.
        return names_of_languages.get(code.lower()) or name or ""
    # Such as Brazilian Portuguese.
    regional_name = names_of_languages.get(f"{language}_{region}")
    if region and regional_name is not None:
        return regional_name
    # What CLDR has no combined name for follows in parentheses: the script, the region or both.
    notes = []
    name_in_script = names_of_languages.get(f"{language}_{script}")  # Traditional Chinese
    if name_in_script:
        name = name_in_script
    elif script != usual_subtags(language).get("script"):
        notes.append(locale.scripts.get(script))
    notes.append(locale.territories.get(region))
    described = ", ".join(note for note in notes if note)
    return f"{name} ({described})" if described else name


def language_tag(code: str | None) -> str:
    """A language code as HTML's `lang` has it (BCP 47): zh-CN for zh_CN, ja for jpn.

    Returns "", which stands for an unknown language, for None and for what is not a code.
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
    parts = [language]
    if script and (script.lower() in others or script != usual.get("script")):
        parts.append(script)
    if region:
        parts.append(region)
    return "-".join(parts)


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
    """Whether a text is a language code or an English name.

    Examples: de, zh_CN, eng_Latn, es-419, en-de, German.
    """
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
