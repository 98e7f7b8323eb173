"""Superscripts and subscripts that are no words: powers, indices, chemical formulas, and calls of footnotes.

Their text must not be joined to the word before: a model would read the power in 10<sup>6</sup> as 106.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from nmt.plugins.documents.markup import Token, find_pairs, without_ends

NAMES = frozenset(("sup", "sub"))  # elements of HTML
LONGEST = 20  # characters
# Signs, digits and single letters, but not the "st" of 1st.
SCRIPT = re.compile(r"(?:[^\w]|[\d_]|[^\W\d_](?![^\W\d_]))+|TM|SM")
INDEX = re.compile(r"\w+")  # of a symbol: the max of U<sub>max</sub>
ORDINALS = frozenset("aeor\u00e8")  # the French 2e and the like, after a number
UNIT = (
    "[kcdmhn\u00b5\u03bc]?m|km|k?g|s|ft|yd|mi|[kM]?W|k?J|k?N|[kM]?Pa|[kMG]?Hz|mol|ha|px|h|A|K|V|L|l"
)
NUMBER = r"[-+\u2212\u00b1]?(?:\d[\d.,\u00d7\u00b7*/=+\u2212-]*)?\d"
SYMBOL = r"[^\W\d_]"
EQUATION = r"\w{1,3}(?:[=+*/\u00b7\u00d7\u2212-]\w{1,3})+"
FORMULA = r"(?:[A-Z][a-z]?\d*|[()\[\]])+"
# What a script belongs to, at the end of the text before it.
BASE = re.compile(
    rf"(?<!\w)(?:{NUMBER}|(?:{UNIT})(?:[/\u00b7](?:{UNIT}))*|{EQUATION}|{SYMBOL}|\([^\s()]{{1,{LONGEST}}}\)"
    r"|sin|cos|tan|log|ln|exp|lim|max|min)$|(?<=\d )in$"
)
# Before a subscript or a charge, a chemical formula, too.
CHEMICAL_BASE = re.compile(rf"(?<![\w]){FORMULA}$")
CHARGE = re.compile(r"\d*[-+\u2212\u2013]")
# The rest of a formula behind a script: the O of H2O.
REST = re.compile(rf"{FORMULA}(?![a-z])")


def join_scripts(tokens: Sequence[Token]) -> list[Token]:
    """Join each script to the number, unit, symbol or formula before it, as one item that is copied.

    A script after a word or punctuation, such as the call of a footnote, becomes a tag without text.
    """
    if not any(token.is_script for token in tokens):
        return [*tokens]
    tokens = joined_texts(tokens)
    partners, result, at = find_pairs(tokens), list[Token](), 0
    while at < len(tokens):
        token, last = tokens[at], partners.get(at, at)
        text = "".join(inside.text for inside in tokens[at : last + 1]).strip()
        is_sub = token.name == "sub"
        if (
            token.is_script
            and last > at
            and len(text) <= LONGEST
            and is_no_text(text, is_sub, result)
        ):
            raw = "".join(inside.raw for inside in tokens[at : last + 1])
            base = take_base(result, text, is_sub)
            if base is None:  # an ordinal number
                result.append(token)
                at += 1
                continue
            at = last + 1
            rest = tokens[at] if at < len(tokens) and tokens[at].kind == "text" else None
            follows = REST.match(rest.text) if rest and (base or is_at_edge(result)) else None
            if rest and follows and rest.raw.startswith(follows[0]) and (is_sub or not base):
                raw += follows[0]
                tokens[at] = without_ends(rest, len(follows[0]), 0)
            elif not base:
                result.append(Token("point", raw))
                continue
            result.append(Token("copy", base + raw, name="expression"))
        else:
            result.append(token)
            at += 1
    return result


def is_no_text(script: str, is_sub: bool, before: Sequence[Token]) -> bool:
    """True if a script does not consist of words; an index may be a word."""
    if SCRIPT.fullmatch(script):
        return True
    base = before[-1].text if before else ""
    return is_sub and bool(INDEX.fullmatch(script) and re.search(rf"(?<!\w){SYMBOL}$", base))


def joined_texts(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with neighboring texts joined, and without empty ones."""
    result = list[Token]()
    for token in tokens:
        if token.kind == "text" and result and result[-1].kind == "text":
            result[-1] = replace(
                result[-1], raw=result[-1].raw + token.raw, text=result[-1].text + token.text
            )
        elif token.kind != "text" or token.raw:
            result.append(token)
    return result


def is_at_edge(tokens: Sequence[Token]) -> bool:
    """True if no text directly precedes: the beginning of the isotope 14C."""
    return not tokens or (tokens[-1].kind == "text" and tokens[-1].text[-1:] in (" ", "\n", "("))


def take_base(tokens: list[Token], script: str, is_sub: bool) -> str | None:
    """Remove what a script belongs to from the end of the tokens, and return it.

    Empty if the script belongs to nothing; None if it is an ordinal, whose letter is text.
    """
    before = tokens[-1] if tokens else Token("point", "")
    if before.kind == "copy":
        return tokens.pop().raw
    # A symbol in italics: <i>x</i><sub>i</sub>
    if (
        before.kind == "close"
        and len(tokens) > 2
        and tokens[-3].kind == "open"
        and tokens[-3].name == before.name
    ):
        if base_of(tokens[-2], script, is_sub) != tokens[-2].text:
            return ""
        element = tokens[-3:]
        del tokens[-3:]
        return "".join(token.raw for token in element)
    base = base_of(before, script, is_sub)
    if base and base[-1].isdigit() and script in ORDINALS:
        return None
    if base:
        tokens[-1] = without_ends(before, 0, len(base))
    return base


def base_of(token: Token, script: str, is_sub: bool) -> str:
    """The end of a text that a script belongs to; empty if there is none, or if it is written with escapes."""
    if token.kind != "text":
        return ""
    tail = token.text[-2 * LONGEST :]
    match = BASE.search(tail)
    if not match and (is_sub or CHARGE.fullmatch(script)):
        match = CHEMICAL_BASE.search(tail)
    return match[0] if match and token.raw.endswith(match[0]) else ""
