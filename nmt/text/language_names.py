"""Names of languages, by Unicode's data (CLDR) and the registry of BCP 47 (IANA)."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from nmt.text.code_parts import english, own_language, subtags, usual_subtags, without_region


def script_name(script: str) -> str:
    """The English name of a script, such as Latin for Latn; if unknown, its code."""
    return str(english().scripts.get(script, script))


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
    name = name_without_subtags(locale, code)
    if not name or is_plain:
        return name
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


def name_without_subtags(locale: Any, code: str) -> str:
    """The name of a language, whatever its script and region; "" if it is unknown."""
    # The code as it is written may have a name of its own, such as Bokmål for nb.
    own = own_language(code)
    for language in (own, subtags(code).language):
        if language in locale.languages:
            return str(locale.languages[language])
    if locale.language == "en":
        return registered_names().get(own, "")
    return ""


def with_code(code: str) -> str:
    """A language for messages, such as German (de)."""
    name = language_name(code)
    return name if name == code else f"{name} ({code})"


@cache
def names() -> dict[str, str]:
    """Map English names, in lower case, to the codes of their languages."""
    languages = english().languages
    codes = dict[str, str]()
    for code, name in languages.items():
        # A code takes precedence over a name: ga is Irish, not the language Ga.
        if "_" not in code and name.lower() not in languages:
            codes[name.lower()] = code
    return codes


@cache
def all_names(code: str) -> frozenset[str]:
    """The names of a language with and without its region, in English and itself, in lower case."""
    written = []
    for one in (code, without_region(code)):
        written.append(language_name(one))
        written.append(native_name(one))
    return frozenset(name.casefold() for name in written)


@cache
def registered_names() -> dict[str, str]:
    """Map codes to English names by the registry, which has all languages of ISO 639-3."""
    registered = dict[str, str]()
    for code, descriptions in registered_languages():
        registered[code] = descriptions[0]
    return registered


@cache
def codes_of_registered_names() -> dict[str, str]:
    """Map the registry's English names, in lower case, to codes: bn for Bengali, CLDR's Bangla."""
    codes = dict[str, str]()
    for code, descriptions in registered_languages():
        for description in descriptions:
            codes.setdefault(description.lower(), code)
    return codes


@cache
def registered_languages() -> list[tuple[str, list[str]]]:
    """The code and the names of each language in the registry."""
    # It has 9,000 records: reading them takes 100 ms, so only rare languages and names are looked
    # up in it.
    from langcodes.registry_parser import parse_registry

    languages = list[tuple[str, list[str]]]()
    for record in parse_registry():  # type: ignore[no-untyped-call]
        if record["Type"] == "language":
            languages.append((record["Subtag"], record["Description"]))
    return languages
