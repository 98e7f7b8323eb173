"""Superscripts and subscripts that are not words: powers, indices, formulas and footnotes.

Their text must not be joined to the word before: a model would read the power in 10<sup>6</sup> as
106.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.plugins.documents.nodes import Token, find_pairs
from nmt.plugins.documents.trimming import without_ends

NAMES = frozenset(["sup", "sub"])  # elements of HTML
LONGEST = 20  # characters
SCRIPT = re.compile(r"(?:[^\w]|[\d_]|[^\W\d_](?![^\W\d_]))+|TM|SM")
"""Signs, digits and single letters, but not the "st" of 1st."""
INDEX = re.compile(r"\w+")  # of a symbol: the max of U<sub>max</sub>
ORDINALS = frozenset("aeor\u00e8")  # the French 2e and the like, after a number
UNIT = (
    r"[kcdmhn\u00b5\u03bc]?m|km|k?g|s|ft|yd|mi"
    r"|[kM]?W|k?J|k?N|[kM]?Pa|[kMG]?Hz|mol|ha|px|h|A|K|V|L|l"
)
NUMBER = r"[-+\u2212\u00b1]?(?:\d[\d.,\u00d7\u00b7*/=+\u2212-]*)?\d"
SYMBOL = r"[^\W\d_]"
SYMBOL_AT_END = re.compile(rf"(?<!\w){SYMBOL}$")
EQUATION = r"\w{1,3}(?:[=+*/\u00b7\u00d7\u2212-]\w{1,3})+"
FORMULA = r"(?:[A-Z][a-z]?\d*|[()\[\]])+"
BASE = re.compile(
    r"(?<!\w)(?:"
    rf"{NUMBER}"
    rf"|(?:{UNIT})(?:[/\u00b7](?:{UNIT}))*"
    rf"|{EQUATION}"
    rf"|{SYMBOL}"
    rf"|\([^\s()]{{1,{LONGEST}}}\)"
    r"|sin|cos|tan|log|ln|exp|lim|max|min"
    r")$"
    r"|(?<=\d )in$"
)
"""The base of a script, at the end of the text before it."""
CHEMICAL_BASE = re.compile(rf"(?<![\w]){FORMULA}$")
"""Another base of a subscript or a charge."""
CHARGE = re.compile(r"\d*[-+\u2212\u2013]")
REST = re.compile(rf"{FORMULA}(?![a-z])")
"""The rest of a formula behind a script: the O of H2O."""


@dataclass(frozen=True)
class Script:
    """A superscript or subscript."""

    text: str
    raw: str
    is_sub: bool


def join_scripts(tokens: Sequence[Token]) -> list[Token]:
    """Join each script to the number, unit, symbol or formula before it, as one copied item.

    A script after a word or punctuation, such as the call of a footnote, becomes a tag without
    text.
    """
    # Usual, and worth the speed.
    if not any(token.is_script for token in tokens):
        return [*tokens]
    # The base of a script may be split over several texts.
    tokens = joined_texts(tokens)
    partners = find_pairs(tokens)
    result = list[Token]()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        last = partners.get(at, at)
        item: Token | None = None
        if token.is_script and last > at:
            script = script_of(tokens[at : last + 1])
            item = take_item(script, result, tokens, last + 1)
        if item:
            result.append(item)
            at = last + 1
        else:
            result.append(token)
            at += 1
    return result


def script_of(element: Sequence[Token]) -> Script:
    """The script that an element contains, from its opening to its closing tag."""
    text = "".join(token.text for token in element).strip()
    raw = "".join(token.raw for token in element)
    return Script(text, raw, is_sub=element[0].name == "sub")


def take_item(
    script: Script,
    before: list[Token],
    tokens: list[Token],
    after: int,
) -> Token | None:
    """The token for a script and its base; None for a script with words.

    The base is removed from the tokens `before` it, and from its successor
    `tokens[after]`.
    """
    if len(script.text) > LONGEST or not is_no_text(script, before):
        return None
    base = take_base(before, script)
    if base is None:
        return None
    rest = ""
    if base:
        if script.is_sub:  # a superscript ends a formula, as a charge does
            rest = take_rest(tokens, after)
    elif is_at_edge(before):
        rest = take_rest(tokens, after)
    if not base and not rest:
        return Token("point", script.raw)
    return Token("copy", base + script.raw + rest, name="expression")


def is_no_text(script: Script, before: Sequence[Token]) -> bool:
    """True if a script does not consist of words; an index may be a word."""
    if SCRIPT.fullmatch(script.text):
        return True
    if not script.is_sub or not INDEX.fullmatch(script.text):
        return False
    base = before[-1].text if before else ""
    return SYMBOL_AT_END.search(base) is not None


def joined_texts(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with neighboring texts joined, and without empty ones."""
    result = list[Token]()
    for token in tokens:
        if token.kind != "text":
            result.append(token)
        elif result and result[-1].kind == "text":
            before = result[-1]
            raw = before.raw + token.raw
            result[-1] = replace(before, raw=raw, text=before.text + token.text)
        elif token.raw:
            result.append(token)
    return result


def is_at_edge(tokens: Sequence[Token]) -> bool:
    """True if no text directly precedes: the beginning of the isotope 14C."""
    if not tokens:
        return True
    last = tokens[-1]
    return last.kind == "text" and last.text[-1:] in (" ", "\n", "(")


def take_base(tokens: list[Token], script: Script) -> str | None:
    """Remove the base of a script from the end of the tokens, and return it.

    Empty if the script has no base; None if it is an ordinal, whose letter is text.
    """
    if not tokens:
        return ""
    before = tokens[-1]
    # Code before a script is its base, such as `x` in `x`<sup>2</sup>.
    if before.kind == "copy":
        return tokens.pop().raw
    if before.kind == "close" and len(tokens) > 2:
        opening, content, _ = tokens[-3:]
        # A symbol in italics: <i>x</i><sub>i</sub>
        if opening.kind == "open" and opening.name == before.name:
            if base_of(content, script) != content.text:
                return ""
            del tokens[-3:]
            return opening.raw + content.raw + before.raw
    base = base_of(before, script)
    if not base:
        return ""
    if base[-1].isdigit() and script.text in ORDINALS:
        return None
    tokens[-1] = without_ends(before, 0, len(base))
    return base


def base_of(token: Token, script: Script) -> str:
    """The end of a text that a script belongs to.

    It is empty if there is none, or if it is written with escapes.
    """
    if token.kind != "text":
        return ""
    # Only the end of the text is searched, so that each script costs the same.
    tail = token.text[-2 * LONGEST :]
    base = BASE.search(tail)
    if not base and (script.is_sub or CHARGE.fullmatch(script.text)):
        base = CHEMICAL_BASE.search(tail)
    # Escapes or references in the base cannot be cut off by the number of its letters.
    if not base or not token.raw.endswith(base[0]):
        return ""
    return base[0]


def take_rest(tokens: list[Token], at: int) -> str:
    """Remove the rest of a formula from the beginning of a text, and return it."""
    if at == len(tokens) or tokens[at].kind != "text":
        return ""
    text = tokens[at]
    rest = REST.match(text.text)
    if not rest or not text.raw.startswith(rest[0]):
        return ""
    tokens[at] = without_ends(text, len(rest[0]), 0)
    return rest[0]
