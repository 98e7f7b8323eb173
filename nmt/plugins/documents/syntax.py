"""Patterns for possible markup in a block of Markdown."""

import re

from nmt.plugins.documents.extensions import ATTRIBUTES, TAG
from nmt.plugins.documents.formulas import FORMULA, FORMULA_IN_BRACKETS
from nmt.plugins.documents.roles import ROLE
from nmt.plugins.documents.tags import MARKUP as HTML_MARKUP

LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]", re.DOTALL)
LONGEST_LABEL = 999
"""Characters in the label of a link, as in CommonMark."""
MAIL = r"[\w.!#$%&'*+/=?^`{|}~-]{1,200}@[a-zA-Z\d](?:[a-zA-Z\d.-]{0,200}[a-zA-Z\d])?"
BARE_URL = (
    r"(?<![^\W_])(?i:https?://|ftp://|(?<![/@.-])www\.)(?=\w)"
    "(?:[^\\s<>()\\[\\]`\u201c\u201d\u3001\u3002\uff08\uff09\uff0c]"
    r"|\([^\s<>()\[\]`]{0,500}\)){1,2000}"
)
"""An address as GitHub links it, without brackets that the address does not close."""
AFTER_URL = "?!.,:;'\"\\"
"""Punctuation that ends a sentence."""
PUNCTUATION = r"[!-/:-@\[-`{-~]"
# A run of blanks is tried once, not from each of its blanks.
HARD_BREAK = r"(?:(?<! )[ ]{2,}+|\\)\r?\n[ \t>]*"
SOFT_BREAK = r"(?:(?<![ \t])[ \t]++)?\r?\n[ \t>]*"
CODE = r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
AUTOLINK = rf"<(?P<auto>[a-zA-Z][\w.+-]{{1,31}}:[^\s<>]*|{MAIL})>"
# Further syntax than CommonMark's:
FOOTNOTE_MARK = r"\[\^[^\]\s]+\]:?"
TASK_BOX = r"\A\[[ xX]\](?=\s)"
ALERT = r"\[!\w[\w|-]{0,40}\][+-]?"
CITATION = r"\[(?:(?:see|cf\.|e\.g\.,?) )?-?@\w[^\[\]\n]{0,300}\]"
WIKI_PAGE = (
    r"!?\[\[(?P<page>[^\[\]\n|\\]{1,300})"
    r"(?P<bar>\\?\|(?P<shown>[^\[\]\n]{0,300}))?\]\](?!\()"
)
COMMENT_OF_MDX = r"\{/\*[^{}\n]{0,500}\*/\}"
LITERAL = (
    r"%%[^%\n]{1,500}%%"  # a comment of Obsidian
    r"|(?<!\S)\^[\w-]{1,60}(?=[ \t]*\Z)"  # the name of a block of Obsidian
    r"|(?<![^\s(])#[a-zA-Z][\w/-]{0,100}(?<=\w)(?!\w)"  # a tag of Obsidian
    r"|\+\+\w[\w+\"'-]{0,60}\+\+"  # keys of PyMdown
)
HIGHLIGHT = (
    r"(?<![A-Za-z0-9=])==(?=[^\s=])(?=[^=\n]{1,300}(?<=\S)==(?!=))|(?<=[^\s=])==(?!=)"
    r"|(?<![A-Za-z0-9^])\^\^(?=[^\s^])(?=[^^\n]{1,300}(?<=\S)\^\^(?!\^))|(?<=[^\s^])\^\^(?!\^)"
)
"""The beginning or the end of ==highlighted text== or ^^underlined text^^."""
OPENING_BRACKET = r"(?:!(?!\[\^[^\]\s]+\](?!\())|\^)?\["
# The first alternative wins. As in CommonMark, code, addresses and tags bind more tightly than
# brackets, and these more tightly than emphasis.
BEFORE_TAGS = (
    rf"(?P<brackets>{FORMULA_IN_BRACKETS})"
    rf"|(?P<hard>{HARD_BREAK})"
    rf"|(?P<soft>{SOFT_BREAK})"
    rf"|\\(?P<escaped>{PUNCTUATION})"
    r"|&#?\w{1,32};"
    rf"|{ROLE.pattern}"
    rf"|{CODE}"
    rf"|{AUTOLINK}"
    rf"|(?P<url>{BARE_URL})"
)
AFTER_TAGS = (
    rf"|(?P<formula>{FORMULA})"
    rf"|(?P<literal>{LITERAL})"
    rf"|(?P<highlight>{HIGHLIGHT})"
    rf"|(?P<mark>{FOOTNOTE_MARK}|{TASK_BOX}|{ALERT}|\[TOC\])"
    rf"|(?P<citation>{CITATION})(?!\()"
    rf"|(?P<wiki>{WIKI_PAGE})"
    rf"|(?P<open>{OPENING_BRACKET})"
    r"|(?P<close>\])"
    r"|(?P<emphasis>\*+|_+|~{2,})"
)
VALUE = r"\{\{(?![<%])[^{}\n]{1,500}\}\}"
"""A value that a template writes, such as {{ page.title }}."""
TAGS = (
    rf"|(?P<value>{VALUE})|(?P<tags>(?:{TAG.pattern})+|{ATTRIBUTES}|{COMMENT_OF_MDX})(?P<jsx>(?!))?"
)
TAGS_OF_MDX = rf"|(?P<value>(?!))|(?P<tags>{ATTRIBUTES})|(?P<jsx>[<{{])"
MARKUP = re.compile(
    BEFORE_TAGS + TAGS + AFTER_TAGS + rf"|(?P<tag>{HTML_MARKUP.pattern})",
    re.DOTALL,
)
MARKUP_OF_MDX = re.compile(
    BEFORE_TAGS + TAGS_OF_MDX + AFTER_TAGS + r"|(?P<tag>(?P<name>(?!)))",
    re.DOTALL,
)
MAY_BE_MARKUP = re.compile(r"[\\\n\r&{`<$%^#+=\[\]*_~!]|://|www\.", re.IGNORECASE)
"""Every match of the patterns above, and all that markdown-it takes for inline markup, has such a
sign. Most blocks have none, and searching for one is much faster."""
ESCAPED = re.compile(rf"\\({PUNCTUATION})")
LINE_PREFIX = re.compile(r"\n[ \t>]+")
