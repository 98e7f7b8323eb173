"""The parts of language codes (BCP 47, POSIX, FLORES-200), by Unicode's data (CLDR)."""

from functools import cache
from typing import Any, Literal, NamedTuple

import regex

REGION = regex.compile(r"[A-Za-z]{2}|\d{3}")
NO_REGIONS = ("XX", "ZZ")
"""Regions that stand for none: XX in mBART-50's codes, such as en_XX, and ZZ in CLDR's."""
ALIASES = {
    "nb": "no",
    "zt": "zh_Hant",
    "pb": "pt_BR",
    "ns": "nso",
    "fuv": "ff",
    "pbt": "ps",
    "quy": "qu",
}
"""Codes in use besides CLDR's.

`no` is written as `nb`. `zt` and `pb` are LibreTranslate's, `ns` is M2M-100's. FLORES-200 has the
last three for Fula, Pashto and Quechua, of which CLDR knows other members (ISO 639-3).
"""
PUBLISHED = {
    "ar-ar": "ar",
    "sat-beng": "sat-olck",
    "zh-min-nan": "nan",
}
"""Codes whose parts do not mean what they say.

mBART-50's ar_AR is not Argentina's Arabic. NLLB-200's sat_Beng has text in Ol Chiki, as the authors
noted later (https://github.com/facebookresearch/fairseq/pull/4576). zh-min-nan is a tag from before
BCP 47, which must not be read as zh-min.
"""
SEPARATE = {
    "tgl": "tl",
    "twi": "tw",
}
"""Languages with a code of two letters that CLDR replaces by the code of another language."""
WITH_EXTENDED_LANGUAGES = frozenset(["ar", "kok", "lv", "ms", "sw", "uz", "zh"])
"""Languages whose codes may be followed by that of a member language (BCP 47): zh-yue for yue."""
SAME_SCRIPTS = {
    ("ko", "Hang"): "Kore",
}
"""Maps scripts of languages to their usual ones, of which these are the larger part."""
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
    written_language, *others = written_parts(code)
    language, *of_alias = canonical_language(written_language).split("_")
    # The subtags of the code take precedence over those of its alias.
    script = ""
    region = ""
    for part in [*others, *of_alias]:
        # Subtags are recognized by their form, because codes in use have them in any order.
        is_script = len(part) == 4 and part.isalpha()
        if is_script and not script:
            script = part.title()
        is_region = REGION.fullmatch(part) is not None and part.upper() not in NO_REGIONS
        if is_region and not region:
            region = part.upper()
    script = SAME_SCRIPTS.get((language, script), script)
    # A region may have a script of its own, as in zh_TW; most regions have that of the language.
    usual = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    return Subtags(
        language,
        script or usual.get("script", ""),
        region,
        is_plain=not script and not region,
    )


def written_parts(code: str) -> list[str]:
    """The parts of a code in lower case, the language first: yue and hk for zh-yue-HK."""
    written = normalized(without_modifier(code))
    language, *others = PUBLISHED.get(written, written).split("-")
    if others and language in WITH_EXTENDED_LANGUAGES and regex.fullmatch("[a-z]{3}", others[0]):
        return others
    return [language, *others]


def normalized(code: str) -> str:
    """A code in the form in which equal codes are equal texts."""
    # BCP 47 writes hyphens and POSIX underscores.
    return code.lower().replace("_", "-")


def canonical_language(written: str) -> str:
    """The preferred code of a language: de for deu.

    Some codes also stand for a script or a region, which follow an underscore: zh_Hant for zt.
    """
    canonical = written.lower()
    # Ours lead to codes of CLDR. CLDR's own may lead to one of ours again: from nob to nb to no.
    for aliases in (ALIASES, data_of("language_aliases"), ALIASES):
        canonical = aliases.get(canonical) or canonical
    return canonical


@cache
def own_language(code: str) -> str:
    """The language of a code before CLDR replaces it, in two letters where it has such a code.

    It is nb for nob, which counts as no; tw for twi, which counts as ak; and de for deu.
    """
    written = written_parts(code)[0]
    if written in SEPARATE:
        return SEPARATE[written]
    alias = str(data_of("language_aliases").get(written) or written)
    is_shorter = len(alias) == 2 < len(written)
    return alias if is_shorter else written


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


def without_region(code: str) -> str:
    """A code without its region, which may have decided its script: zh-Hant for zh_TW."""
    language, script, region, _ = subtags(code)
    # A region that is not written belongs to the language: prs is fa_AF, Dari.
    is_written = region.lower() in written_parts(code)
    return f"{language}-{script}" if is_written and script else code


def usual_subtags(code: str) -> dict[str, str]:
    """CLDR's usual script and region of a language, or of a language in a region."""
    table = data_of("likely_subtags")
    # CLDR has no entry for a language that it replaces, such as tw.
    likely = table.get(code) or table.get(canonical_language(code)) or ""
    parts = likely.split("_")
    # CLDR's likely subtags have the form language_script_region.
    if len(parts) != 3:
        return {}
    return {"script": parts[1], "region": parts[2]}


@cache
def languages_with_several_scripts() -> frozenset[str]:
    """Languages that are usually written in another script in some region, such as Serbian."""
    scripts: dict[str, set[str]] = {}
    for code, likely in data_of("likely_subtags").items():
        language, *others = code.split("_")
        if not others or REGION.fullmatch(others[0]):
            script = likely.split("_")[1]
            scripts.setdefault(language, set()).add(script)
    return frozenset(language for language in scripts if len(scripts[language]) > 1)
