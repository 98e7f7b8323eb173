"""Which lines of a text are commands or source code."""

import re
from collections.abc import Sequence

LEAST_INDENT = 2
"""The number of columns by which code in a text is indented."""
MOST_WORDS = 3
"""The number of words in small letters up to which a line may be code."""
CONDITION = r"(?:not )?[\w.]+(?:\(.*\)| (?:[=!<>]=|[<>]|in|is|not in) \S.{0,99})?"
CERTAIN = re.compile(
    r"[$%#] \S"  # a prompt, or a comment
    r"|.*[{}\\]$"
    r"|<[^<>]+>$"
    r"|(?:async )?(?:def|class|function|func|fn) \w+ ?[(:{]"
    r"|for \w+(?:, ?\w+)* in [\w.]+(?:\(.*\)|\[.*\])?:$"
    rf"|(?:if|elif|while) {CONDITION}:$"
    r"|(?:for|if|while|switch) ?\(.*[;=<>].*\)$"
    r"|with [\w.]+\(.*:$|except [A-Z(][\w., ()]*:$"
    r"|from [\w.]{1,99} import \w|#include\b|//|/\*"
)
"""A line that is hardly ever text if it is indented."""
PROBABLE = re.compile(r"\w[\w.]*\(.*\)$|[\w.\[\]]+ ?[-+*/|:]?= ?\S")
"""A call or an assignment; longer ones are text that mentions it."""
WEAK = re.compile(
    r".*;$|(?:[\w*]+ ){1,3}\w+\((?!e?s\)).*\)$"
    r"|(?:return|import|using|package|raise|throw|yield|assert|del|global)\b"
    r"|(?:pass|break|continue|else|try|finally|do|end|fi|done|default)\b:?$"
)
"""A line that is code beside other code."""
SIGN = re.compile(
    r"\w\((?!e?s\))|\w\[|[\w)\]] ?(?:[-+*/%|&^<>!=]=|=|<<|>>|&&|\|\|) ?[\w\"'(\[{&*!-]"
    r"|\w::\w|\w\.\w+\(|\w->\w|\+\+|\w--;|[\"']\)?;$"
    r"|(?<![\w.])(?:int|char|bool|void|using|typedef|struct|const|var) \w+;$"
    r"|[A-Z]{4,10} (?:[A-Z]{3,10} )?[\w*]+.*;$"
)
"""Signs of code in a line that ends in a semicolon, as many lines of text do."""
WORD = re.compile(r"(?<![^\s(\"'])[a-z]{2,}(?=[,.;:!?)\"']{0,3}(?:\s|$))")
"""A word of running text; names in code mostly have other signs beside them."""


def code_lines(texts: Sequence[str], columns: Sequence[int]) -> list[bool]:
    """Whether each line of a block is code; `columns` are those at which the lines begin."""
    are_code = list[bool]()
    for text, column in zip(texts, columns, strict=True):
        are_code.append(column >= LEAST_INDENT and is_code(text))
    if not any(are_code):  # usual
        return are_code
    add_neighbors(are_code, texts, columns)
    return are_code


def add_neighbors(are_code: list[bool], texts: Sequence[str], columns: Sequence[int]) -> None:
    """Mark the lines that are code because of the line before or after them, in place."""
    indices = range(len(texts))
    may_be_code = list[bool]()
    for text, column in zip(texts, columns, strict=True):
        may_be_code.append(column >= LEAST_INDENT and is_short(text))
    for index in indices[1:]:
        before = index - 1
        if are_code[before] and may_be_code[index]:
            # A block of a statement such as `if` is code, as far as it is short.
            is_inside = texts[before].endswith(":") and columns[index] > columns[before]
            are_code[index] |= is_inside or is_weak(texts[index])
    for index in reversed(indices[:-1]):
        if are_code[index + 1] and may_be_code[index]:
            are_code[index] |= is_weak(texts[index])


def is_weak(text: str) -> bool:
    return WEAK.match(text) is not None


def is_code(text: str) -> bool:
    """Whether an indented line is code, whatever its neighbors are."""
    if CERTAIN.match(text):
        return True
    if text.endswith(";"):
        signs = SIGN.findall(text)
        return len(signs) > 1 or (len(signs) == 1 and is_short(text))
    return PROBABLE.match(text) is not None and is_short(text)


def is_short(text: str) -> bool:
    """Whether a line has too few words for running text."""
    return len(WORD.findall(text)) <= MOST_WORDS
