"""The declarations in the header of a message catalog: its language and its plural forms."""

from nmt.text import language_tag, match_language, script_name, subtags, usual_subtags

LANGUAGE = "Language"


def gettext_code(code: str) -> str:
    """A language code as gettext writes it; the code itself if it is unknown.

    Examples: zh_TW for zh-Hant, pt_BR for pt-BR, sr@latin for sr-Latn.
    """
    tag = language_tag(code)
    if not tag:
        return code
    language = tag.partition("-")[0]
    _, script, region, _ = subtags(tag)
    # The script that readers of the region expect by default.
    by_region = usual_subtags(f"{language}_{region}") or usual_subtags(language)
    if script == by_region.get("script"):
        return f"{language}_{region}" if region else language
    # A region may determine the script: zh_TW has traditional characters.
    likely = region or usual_subtags(f"{language}_{script}").get("region", "")
    if usual_subtags(f"{language}_{likely}").get("script") == script:
        return f"{language}_{likely}"
    place = f"{language}_{region}" if region else language
    return f"{place}@{script_name(script).lower()}"


def new_language(declared: str, source: str, target: str) -> tuple[str, str]:
    """The language that a translated catalog declares, and a notice if it replaces a third one.

    `declared` is the value in the header; `source` and `target` are language codes or empty.
    """
    if not target or (declared and match_language(declared, [target])):
        return declared, ""
    code = gettext_code(target)
    if not declared or (source and match_language(declared, [source])):
        return code, ""
    notice = (
        f"the header declared Language: {declared}, and now declares {code}: "
        "check the translations that the file had before"
    )
    return code, notice


def plural_header(target: str) -> str:
    """The line that declares the plural forms of a language in a header; "" if they are unknown."""
    from babel.messages.plurals import PLURALS  # takes 50 ms, which most catalogs need not spend

    forms = PLURALS.get(gettext_code(target)) or PLURALS.get(subtags(target).language)
    if not forms:
        return ""
    number, expression = forms
    return f'"Plural-Forms: nplurals={number}; plural={expression};\\n"'
