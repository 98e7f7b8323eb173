"""Lines that are in another script than the model's source language."""

from nmt.text import letters, script, scripts_of_language

FOREIGN_SHARE = 0.9
"""The share of a line's letters outside the scripts of the source language, and of those copied."""
LEAST_LETTERS = 2
"""A single letter, such as the Greek one of a formula, may be a symbol."""


def is_in_other_script(line: str, source: str | None) -> bool:
    """Whether nearly all letters of a line are in scripts that a language does not use.

    False if the language's scripts are unknown.
    """
    scripts = scripts_of_language(source) if source else None
    scripts_of_letters = [name for name in map(script, line) if name]
    if scripts is None or len(scripts_of_letters) < LEAST_LETTERS:
        return False
    # Characters of all scripts, such as digits and punctuation, have no name and do not count.
    foreign = sum(name not in scripts for name in scripts_of_letters)
    return foreign >= FOREIGN_SHARE * len(scripts_of_letters)


def foreign_source(
    line: str,
    copied: list[str],
    source: str,
) -> str | None:
    """The source language if a line is in another script, and was copied nearly whole."""
    if not copied or not is_in_other_script(line, source):
        return None
    # A model that reads another script, as in a mixed
    # corpus, does not copy it, and needs no warning.
    copied_letters = sum(map(str.isalpha, "".join(copied)))
    all_letters = sum(map(str.isalpha, line))
    if copied_letters < FOREIGN_SHARE * all_letters:
        return None
    return source


def is_left_as_it_is(line: str, translation: str, source: str | None) -> bool:
    """Whether a line in another script than the source language has the same letters as before."""
    return is_in_other_script(line, source) and letters(line) == letters(translation)
