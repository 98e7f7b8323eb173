"""Whether a short text can be in Chinese or in Japanese, by the forms of its characters."""

import re
from collections.abc import Iterable

from nmt.text import HAN, KANA, lacking_han, subtags

MISFIT = 0.01
"""The factor for each character that the character set of a writing system lacks."""
UNSERVED = 0.05
"""The factor for a writing system that is not served if a served one fits equally well."""
WITHOUT_KANA = 35.0
"""The factor for Japanese texts without kana, which py3langid takes for Chinese, because the texts
that it learned from have kana. In translations of LibreOffice's user interface and names of CLDR
that fit both languages, the factor makes both equally likely at the border that separates them
best."""
RARE_CHARACTER = 0.3
"""The factor for each character of a Japanese text that is not among the common ones."""
IN_HAN = re.compile(f"[{HAN}]")
IN_KANA = re.compile(f"[{KANA}]")
LANGUAGE_OF_SYSTEM = {"Jpan": "ja", "Hans": "zh", "Hant": "zh"}
FIRST_RARE_ROW = 0xD0
"""Where the second level of JIS X 0208 begins, in its encoding EUC-JP."""


def chinese_script(text: str) -> str:
    """Hans or Hant, whichever has more characters of a Chinese text; "" if both have as many."""
    lacking = lacking_han(text)
    if lacking["Hans"] == lacking["Hant"]:
        return ""
    return "Hans" if lacking["Hans"] < lacking["Hant"] else "Hant"


def is_rare_in_japanese(character: str) -> bool:
    # JIS X 0208 puts the common characters in its first level; EUC-JP encodes them as two bytes in
    # the order of the rows.
    encoded = character.encode("euc_jp", "ignore")
    return len(encoded) == 2 and encoded[0] >= FIRST_RARE_ROW


def served_systems(systems: set[str], codes: Iterable[str]) -> set[str]:
    """The writing systems among these that are served.

    If none is, Chinese that is served in its other script counts, because that model translates it.
    """
    parts = [subtags(code) for code in codes]
    pairs = {(part.language, part.script) for part in parts}
    exact = {system for system in systems if (LANGUAGE_OF_SYSTEM[system], system) in pairs}
    if exact:
        return exact
    languages = {part.language for part in parts}
    return {system for system in systems if LANGUAGE_OF_SYSTEM[system] in languages}


def han_fits(text: str, codes: Iterable[str]) -> dict[str, float]:
    """Factors for how well a text with Han characters fits Japanese (ja) and Chinese (zh).

    `codes` are the served languages. The result is empty if the text has no Han characters.
    """
    characters = set(IN_HAN.findall(text))
    if not characters:
        return {}
    lacking = lacking_han(text)
    # Relative to the best system, because rare characters are missing in all sets.
    fewest = min(lacking.values())
    fits = {system: MISFIT ** (count - fewest) for system, count in lacking.items()}
    best = {system for system, count in lacking.items() if count == fewest}
    served = served_systems(best, codes)
    if served:
        for system in fits.keys() - served:
            fits[system] *= UNSERVED
    # Kana settles the question: py3langid then knows that the text is Japanese.
    if not IN_KANA.search(text):
        rare = sum(map(is_rare_in_japanese, characters))
        # Characters that Japanese writers rarely use lower the factor again.
        fits["Jpan"] *= WITHOUT_KANA * RARE_CHARACTER**rare
    return {"ja": fits["Jpan"], "zh": max(fits["Hans"], fits["Hant"])}
