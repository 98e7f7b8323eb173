"""Formulas of TeX in the text of Markdown."""

TWO_WORDS = r"(?<![\\\w{])[^\W\d_]{2,}[ \t]+[^\W\d_]{2,}"
"""Prose, which is not a formula: it costs $5 or maybe 10$."""
FORMULA = (
    r"\$\$(?=\S)[^$]{1,1000}\$\$"
    rf"|(?<![\w$\\])\$(?=[^\s$])(?![^$\\]{{0,150}}?{TWO_WORDS})"
    r"(?:[^$\\`\n]|\\.|\n(?!\s*\n)){1,200}(?<!\s)\$(?![\w$])"
)
"""A formula in dollars, as in Pandoc and GitHub. Amounts and shell variables are not formulas."""


def in_brackets(opening: str, closing: str) -> str:
    """A pattern for a formula in brackets, given their patterns."""
    inside = rf"(?:(?!{closing})[^\n])"
    has_sign = rf"(?={inside}{{0,150}}(?!{closing})[\\^_=+<>])"
    no_prose = rf"(?!(?:(?!{closing})[^\n\\]){{0,150}}?{TWO_WORDS})"
    return rf"(?<!\\){opening}{has_sign}{no_prose}{inside}{{1,150}}{closing}"


FORMULA_IN_BRACKETS = "|".join(
    [
        in_brackets(r"\\\(", r"\\\)"),
        in_brackets(r"\\\\\(", r"\\\\\)"),
        in_brackets(r"\\\\\[", r"\\\\\]"),
    ]
)
"""A formula as MathJax and KaTeX know it. Brackets without signs of a formula are escaped text."""
