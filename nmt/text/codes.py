"""Language codes and names: which mean the same language, and how to write them (BCP 47)."""

from collections.abc import Iterable
from functools import cache

import regex

from nmt.text.code_parts import (
    data_of,
    english,
    languages_with_several_scripts,
    normalized,
    own_language,
    subtags,
    usual_subtags,
    without_modifier,
    written_parts,
)
from nmt.text.language_names import all_names, codes_of_registered_names, language_name, names
from nmt.text.languages import usual_scripts

SUBTAG = regex.compile(r"[a-z]{4}|[a-z]{2}|\d{3}")
"""A script or a region in a language code, in lower case."""
CODE = regex.compile(r"[a-z]{2,3}(-.*)?")
"""The form of a code, in lower case and with hyphens. English names are recognized before it."""
MISTAKEN = ("br", "kr", "se")
"""Countries whose codes are often written for their languages, and are those of rare languages."""

SCRIPT_OMITTED = frozenset(["kk", "ms", "pa"])
"""Languages with other scripts whose usual one is left out (Suppress-Script in the registry)."""


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
    language, script, _, is_plain = subtags(code)
    same_language = [other for other in codes if subtags(other).language == language]
    candidates = [other for other in same_language if subtags(other).script == script]
    # `zh` may mean any Chinese; `zh_TW` asks for traditional characters.
    if not candidates and is_plain:
        candidates = same_language
    # Of equal ranks, the first.
    return min(candidates, key=lambda other: preference(other, code), default=None)


def preference(other: str, code: str) -> tuple[bool, bool, int]:
    """The rank of a code that means the same language as `code`; the smallest is preferred."""
    language, _, region, _ = subtags(code)
    other_region = subtags(other).region
    # fa_AF means Dari, prs, rather than pes.
    is_elsewhere = bool(region) and other_region != region
    # CLDR counts Twi (tw) as Akan (ak), but a model may have both.
    is_replaced = own_language(other) != own_language(code)
    # The same region, then no region, then the usual one: pt means pt_BR rather than pt_PT.
    regions = [region, "", usual_subtags(language).get("region")]
    place = regions.index(other_region) if other_region in regions else len(regions)
    return is_elsewhere, is_replaced, place


def code_of_name(name: str, codes: list[str]) -> str:
    """The code of a language's English name, or of its name in itself if it is one of `codes`.

    Returns what is not a name as it is.
    """
    code = names().get(name.lower(), name)
    # A code, even an unusual one, is never looked up as a name.
    if subtags(code).language in english().languages:
        return code
    # CLDR does not know every language. No name is looked up for a code, because that takes long.
    if CODE.fullmatch(normalized(code)):
        return code
    for other in codes:
        if code.casefold() in all_names(other):
            return other
    return codes_of_registered_names().get(name.lower(), code)


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


def language_tag(code: str | None) -> str:
    """A language code as HTML's `lang` has it (BCP 47): zh-CN for zh_CN, ja for jpn.

    A script that says no more than the language is left out: en for eng_Latn, but zh-Hans for
    zho_Hans. Returns "", which stands for an unknown language, for None and for what is not a code.
    """
    code = without_modifier(code or "")
    if not is_language(code):
        return ""
    code = names().get(code.lower(), code)
    language, script, region, _ = subtags(code)
    # `no` and `nb` are both valid, and so are other codes of two letters that CLDR replaces.
    own = own_language(code)
    if len(own) == 2 and own in english().languages:
        language = own
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    is_written = script.lower() in written_parts(code)
    has_others = language in languages_with_several_scripts() - SCRIPT_OMITTED
    parts = [language]
    if script and ((is_written and has_others) or script != usual.get("script")):
        parts.append(script)
    if region:
        parts.append(region)
    return "-".join(parts)


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
