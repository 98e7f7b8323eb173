"""Elements of templates whose content is not text, by their name or by their content."""

import re

WITHOUT_TEXT = frozenset(
    [
        "chart",
        "code",
        "codeblock",
        "comment",
        "gist",
        "graphviz",
        "highlight",
        "katex",
        "latex",
        "math",
        "mermaid",
        "plantuml",
        "raw",
        "schema",
        "script",
        "style",
        "verbatim",
    ]
)
"""Tags whose content is not text."""
PART_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
OF_CODE = re.compile(
    r"code(?:block|box|fence|file|new|sample|snippet|toggle|view)?s?"
    r"|(?:highlight|snippet|listing|terminal|mermaid|plantuml|graphviz|katex|math)s?"
)
"""A part of a name, as in code-toggle, go_code or codeBlock."""
FENCE = re.compile(r"`{3}|~{3}")
VALUE = (
    r"(?:\"[^\"]*\"|'[^']*'|[-+]?\d[\w:.+-]*|true|false|null|\[.*|\{.*|[|>][+-]?)"
    r"[ \t]*,?(?:[ \t]+#.*)?"
)
SETTING = re.compile(
    r"(?:- )?(?:"
    rf"(?:[\w.-]+|\"[^\"]*\"|'[^']*')[ \t]*=[ \t]*{VALUE}"
    rf"|(?:[a-z][\w.-]*|\"[^\"]*\"|'[^']*'):[ \t]+{VALUE}"
    r")"
)
"""A line of TOML, YAML or JSON with a key: key = 'value', key: 1, "key": [."""
AROUND_SETTINGS = re.compile(
    r"\[{1,2}[\w.\"'-]+\]{1,2}|[\[\]{}]+,?|#.*|-{3}|\+{3}|- ?[\w.-]*|(?:- )?[\w.-]+:(?:[ \t]+\S+)?|"
)
"""A line that text may have, too: a table of TOML, a bracket, a comment, a word, or nothing."""


def is_of_code(name: str) -> bool:
    """Whether the content of a tag with this name is probably code."""
    if name in WITHOUT_TEXT:
        return True
    return any(OF_CODE.fullmatch(part.lower()) for part in PART_OF_NAME.findall(name))


def is_setting(line: str) -> bool:
    """Whether a line is one of a configuration file."""
    return SETTING.fullmatch(line) is not None


def may_be_setting(line: str) -> bool:
    """Whether a line may be in a configuration file."""
    return is_setting(line) or AROUND_SETTINGS.fullmatch(line) is not None
