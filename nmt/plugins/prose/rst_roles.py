"""Roles of reStructuredText and Sphinx (https://www.sphinx-doc.org/en/master/usage/restructuredtext/roles.html)."""

TEXT_ROLES = frozenset(
    [
        "dfn",
        "emphasis",
        "guilabel",
        "strong",
        "title",
        "title-reference",
        "t",
    ]
)
"""Roles whose content is text."""

CODE_ROLES = frozenset(
    [
        "any",
        "attr",
        "class",
        "const",
        "data",
        "dict",
        "djadmin",
        "enum",
        "envvar",
        "exc",
        "func",
        "macro",
        "member",
        "meth",
        "mod",
        "obj",
        "option",
        "setting",
        "struct",
        "tfilter",
        "token",
        "ttag",
        "type",
        "var",
    ]
)
"""Roles of the names of a program; a text besides a name may be code, too."""
