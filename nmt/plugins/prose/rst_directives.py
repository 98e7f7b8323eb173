"""What the directives of docutils, Sphinx and common extensions contain.

Sources: https://docutils.sourceforge.io/docs/ref/rst/directives.html and
https://www.sphinx-doc.org/en/master/usage/restructuredtext/directives.html
"""

from dataclasses import dataclass
from enum import Enum


class Argument(Enum):
    """What follows the name of a directive on its line."""

    KEPT = "kept"
    TITLE = "title"
    BEGINNING = "beginning"
    """The beginning of the content."""
    VERSION = "version"
    """A version, and then text."""


@dataclass(frozen=True)
class Directive:
    argument: Argument = Argument.KEPT
    has_text: bool = False
    """Whether the content is text with markup."""
    options: tuple[str, ...] = ()
    """The options with text."""


NOTE = Directive(Argument.BEGINNING, has_text=True)
TITLED = Directive(Argument.TITLE, has_text=True, options=("subtitle",))
LINE = Directive(Argument.TITLE)
CHANGE = Directive(Argument.VERSION, has_text=True)
CONTAINER = Directive(has_text=True)
IMAGE = Directive(options=("alt",))
FIGURE = Directive(has_text=True, options=("alt",))
CODE = Directive(options=("caption",))
KINDS = {
    NOTE: "attention caution danger error hint important note tip warning seealso todo details"
    " availability impl-detail epigraph highlights pull-quote compound header footer hlist"
    " line-block",
    TITLED: "list-table table glossary admonition topic sidebar card grid-item-card"
    " dropdown tab tab-item collapse",
    LINE: "csv-table rubric centered contents title",
    CHANGE: "versionadded versionchanged deprecated versionremoved",
    CONTAINER: "container class only"
    " function method classmethod staticmethod attribute property exception data module"
    " decorator decoratormethod describe object option cmdoption envvar confval setting"
    " templatefilter templatetag django-admin django-admin-option fieldlookup directive role"
    " opcode pdbcommand coroutinefunction coroutinemethod abstractmethod awaitablemethod"
    " ifconfig grid grid-item tabs tab-set program macro"
    " member type struct enum enumerator union var cfunction cmember ctype event",
    IMAGE: "image",
    FIGURE: "figure",
    CODE: "code-block literalinclude toctree sourcecode code math tabularcolumns highlight"
    " parsed-literal raw include default-role currentmodule sectionauthor moduleauthor codeauthor"
    " index acks productionlist doctest testcode testoutput testsetup testcleanup ipython"
    " plot graphviz digraph inheritance-diagram mermaid uml literal automodule autoclass"
    " autofunction automethod autodata autoexception autoattribute autosummary automethod"
    " role-definition unicode date meta cssclass prompt console-output jupyter-execute"
    " py:module py:currentmodule c:namespace default-domain restructuredtext-test-directive"
    " rst-class click argparse program-output video youtube audio",
}
DOMAINS = frozenset(
    [
        "py",
        "c",
        "cpp",
        "js",
        "rst",
        "std",
        "http",
    ]
)


def by_name() -> dict[str, Directive]:
    directives = dict[str, Directive]()
    for directive, names in KINDS.items():
        directives |= dict.fromkeys(names.split(), directive)
    return directives


DIRECTIVES = by_name()


def directive_named(name: str) -> Directive | None:
    """The directive with this name; None if nmt does not know its content."""
    name = name.lower()
    domain, _, rest = name.partition(":")
    if name in DIRECTIVES:
        return DIRECTIVES[name]
    # The descriptions of classes, functions and the like.
    return CONTAINER if rest and domain in DOMAINS else None
