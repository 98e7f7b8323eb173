"""Keyboard shortcuts in labels of menus, such as "&Open\\tCtrl+O"."""

import re

MODIFIER = r"(?:Ctrl|Control|Strg|Shift|Alt|AltGr|Option|Opt|Cmd|Command|Meta|Super|Win|[⌘⇧⌥⌃])"
KEY = r"(?:F\d{1,2}|Del|Delete|Ins|Insert|Esc|Escape|PgUp|PgDn|Page ?Up|Page ?Down|Backspace)"
NAMED_KEY = r"(?:Home|End|Space|Tab|Enter|Return|Up|Down|Left|Right)"
"""A key whose name is also a word."""
KEYS = rf"(?:{MODIFIER}\s?[+-]\s?|[⌘⇧⌥⌃])+\S[\w ]{{0,12}}|{KEY}"
SHORTCUT = re.compile(rf"\s*(?:{KEYS})\s*")
ANY_SHORTCUT = re.compile(rf"\s*(?:{KEYS}|{NAMED_KEY})\s*")
ACCELERATOR = re.compile(r"[&_][^\W_]")
LONGEST_LABEL = 200
"""The characters before a tab that may be the label."""


def is_shortcut(text: str, begin: int, end: int) -> bool:
    """True if what a tab separates from the text before it is a shortcut.

    If the label before the tab has no accelerator, a name such as Home may be another column of a
    table.
    """
    # A window, so that a string with thousands of tabs takes linear time.
    label_begin = max(0, begin - LONGEST_LABEL)
    has_accelerator = ACCELERATOR.search(text, label_begin, begin)
    pattern = ANY_SHORTCUT if has_accelerator else SHORTCUT
    return pattern.fullmatch(text, begin, end) is not None
