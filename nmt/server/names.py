"""English names of languages, by Babel."""

from functools import cache


@cache
def language_name(code: str) -> str:
    """The name of a language, such as German for de; the code itself where it has none."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code
