"""English names of languages, by Babel, an extra."""

from functools import cache


@cache
def language_name(code: str) -> str:
    """The name of a language, such as German for de; its code where Babel does not know it or is not there."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return code
    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code
