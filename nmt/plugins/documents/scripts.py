"""Superscripts and subscripts that are not words: powers, indices, formulas and footnotes.

Their text must not be joined to the word before: a model would read the power in 10<sup>6</sup> as
106.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.plugins.documents.nodes import MarkupToken, find_pairs
from nmt.plugins.documents.trimming import without_ends

NAMES = frozenset(["sup", "sub"])  # elements of HTML
# Longer scripts are text, and longer expressions in brackets too.
LONGEST = 20  # characters
SCRIPT = re.compile(r"(?:[^\w]|[\d_]|[^\W\d_](?![^\W\d_]))+|TM|SM")
"""Signs, digits and single letters, but not the "st" of 1st."""
INDEX = re.compile(r"\w+")  # of a symbol: the max of U<sub>max</sub>
ORDINAL_LETTERS = frozenset("aeor\u00e8")  # after a number, as in the French 2e
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


def join_scripts(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """Join each script to the number, unit, symbol or formula before it, as one copied item.

    A script after a word or punctuation, such as the call of a footnote, becomes a tag without
    text.
    """
    # Usual, and worth the speed.
    if not any(token.is_script for token in tokens):
        return [*tokens]
    # What a script belongs to may be split over several texts.
    tokens = with_joined_texts(tokens)
    partners = find_pairs(tokens)
    result = list[MarkupToken]()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        closing = partners.get(at, at)
        joined: MarkupToken | None = None
        if token.is_script and closing > at:
            script = script_of(tokens[at : closing + 1])
            joined = join_script(script, result, tokens, closing + 1)
        if joined:
            result.append(joined)
            at = closing + 1
        else:
            result.append(token)
            at += 1
    return result


def script_of(element: Sequence[MarkupToken]) -> Script:
    """The script that an element contains, from its opening to its closing tag."""
    text = "".join(token.text for token in element).strip()
    raw = "".join(token.raw for token in element)
    return Script(text, raw, is_sub=element[0].name == "sub")


def join_script(
    script: Script,
    before: list[MarkupToken],
    tokens: list[MarkupToken],
    after: int,
) -> MarkupToken | None:
    """The token for a script, together with the number, symbol or formula that it belongs to.

    - 10<sup>6</sup>, H<sub>2</sub>O or <sup>14</sup>C: an item to copy as a whole
    - word<sup>1</sup>: a tag without text, for the script alone
    - 1<sup>st</sup> or 2<sup>e</sup>: None, because the script is text

    `before` are the tokens before the script, and `tokens[after]` is the one behind it. What the
    script belongs to, such as the H and the O of H2O, is removed from both.
    """
    if len(script.text) > LONGEST or not is_no_text(script, before):
        return None
    if is_ordinal(script, before):
        return None
    base = take_base(before, script)
    # After its base, a superscript ends a formula, as a charge does.
    continues = script.is_sub if base else is_at_edge(before)
    rest = take_rest(tokens, after) if continues else ""
    if not base and not rest:
        return MarkupToken("point", script.raw)
    return MarkupToken("copy", base + script.raw + rest, name="expression")


def is_no_text(script: Script, before: Sequence[MarkupToken]) -> bool:
    """True if a script does not consist of words, unlike the "st" of 1<sup>st</sup>.

    The index of a symbol may be a word, as in U<sub>max</sub>.
    """
    if SCRIPT.fullmatch(script.text):
        return True
    if not script.is_sub or not INDEX.fullmatch(script.text):
        return False
    text_before = before[-1].text if before else ""
    return SYMBOL_AT_END.search(text_before) is not None


def is_ordinal(script: Script, before: Sequence[MarkupToken]) -> bool:
    """Whether a script is the letter of an ordinal number, as in 2<sup>e</sup>."""
    if not before or script.text not in ORDINAL_LETTERS:
        return False
    return base_of(before[-1], script)[-1:].isdigit()


def with_joined_texts(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens with neighboring texts joined into one, and without empty texts."""
    result = list[MarkupToken]()
    for token in tokens:
        if token.kind != "text":
            result.append(token)
        elif result and result[-1].kind == "text":
            last = result[-1]
            raw = last.raw + token.raw
            result[-1] = replace(last, raw=raw, text=last.text + token.text)
        # A blank without `raw` is for the model only.
        elif token.raw or token.text:
            result.append(token)
    return result


def is_at_edge(tokens: Sequence[MarkupToken]) -> bool:
    """True if no text directly precedes: the beginning of the isotope 14C."""
    if not tokens:
        return True
    last = tokens[-1]
    return last.kind == "text" and last.text[-1:] in (" ", "\n", "(")


def take_base(tokens: list[MarkupToken], script: Script) -> str:
    """Remove the base of a script from the end of the tokens before it, and return its `raw`.

    The base is what the script belongs to, such as the x of x<sup>2</sup>. It is empty if the
    script belongs to nothing.
    """
    if not tokens:
        return ""
    last = tokens[-1]
    # Code is a base as a whole: `x`<sup>2</sup>
    if last.kind == "copy":
        return tokens.pop().raw
    if ends_with_base_in_element(tokens, script):
        element = tokens[-3:]
        del tokens[-3:]
        return "".join(token.raw for token in element)
    base = base_of(last, script)
    if base:
        tokens[-1] = without_ends(last, 0, len(base))
    return base


def ends_with_base_in_element(tokens: Sequence[MarkupToken], script: Script) -> bool:
    """Whether the last tokens are an element that has only a base: the <i>x</i> of a power."""
    if len(tokens) < 3:
        return False
    opening, content, closing = tokens[-3:]
    if opening.kind != "open" or closing.kind != "close" or opening.name != closing.name:
        return False
    return base_of(content, script) == content.text


def base_of(token: MarkupToken, script: Script) -> str:
    """The end of a text that a script after it belongs to, such as the "10" of "about 10".

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


def take_rest(tokens: list[MarkupToken], at: int) -> str:
    """Remove the rest of a formula, the O of H<sub>2</sub>O, from token `at`, and return it.

    Empty if the token is no text or does not begin with a rest.
    """
    if at == len(tokens) or tokens[at].kind != "text":
        return ""
    text = tokens[at]
    rest = REST.match(text.text)
    if not rest or not text.raw.startswith(rest[0]):
        return ""
    tokens[at] = without_ends(text, len(rest[0]), 0)
    return rest[0]
