"""Find the addresses in a text: pages, hosts, mail, accounts, and whatever a program would open.

Domain names: https://www.rfc-editor.org/rfc/rfc5890, section 2.3.1; the four dots of names in other
scripts: https://www.rfc-editor.org/rfc/rfc3490, section 3.1. Schemes:
https://www.iana.org/assignments/uri-schemes.
"""

import re
import unicodedata

LABEL = r"\w+(?:-+\w+)*"
COMMON_ENDINGS = (
    "com|net|org|info|biz|io|eu|app|xyz|top|shop|online|site|store|club|live|link|click|icu|vip"
    "|onion|de|fr|nl|uk|ru|su|ua|cn|jp|kr|tk|tv"
)
"""The ends of names of hosts that are hardly ever ends of names of files or of sentences."""
FILES = (
    "gz|xz|zip|tar|exe|dll|so|jar|conf|cfg|ini|list|txt|html|htm|php|xml|json|yaml|js|ts|png|svg"
)
"""The ends of names of files, after which a slash often means "or"."""
ENDING = rf"(?!(?:{FILES})\b)[a-z]{{2,24}}"
REST = r"[^\s<>\"'«»„\u201c\u201d\u2018\u2019]"
"""What may follow in an address."""
BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
SCHEMES = "https?|ftp|mailto|tel|sms|magnet|javascript|vbscript|skype|whatsapp|tg|bitcoin"
ADDRESS_IN_TEXT = re.compile(
    # An address with a scheme, such as tel:+4930123 or git://host.
    rf"(?<![\w+-])(?:(?:{SCHEMES}):(?=[^\s:])|data:(?=[a-z]+/)){REST}+"
    rf"|(?<![\w+-])[a-z][a-z0-9+-]*://(?=[\w\[]){REST}+"
    # A host with a path, whatever its ending, and one that begins with www.
    rf"|(?<![\w@-])(?:www\.{LABEL}|(?:{LABEL}\.){{1,9}}{ENDING}(?=[:/]\w)){REST}*"
    # Mail, such as me@host.example.
    rf"|(?<![\w.+-])[\w.+-]+@{LABEL}(?:\.{LABEL})+"
    # A host with a common ending or a name in ASCII that stands for another script.
    rf"|(?<![\w@-])(?:{LABEL}\.){{1,9}}(?:{COMMON_ENDINGS})(?![\w-])"
    r"|(?<![\w-])xn--[\w-]+"
    # The address of a machine.
    rf"|(?<![\w.]){BYTE}(?:\.{BYTE}){{3}}(?!\w|\.\d)(?::\d+)?(?:/{REST}*)?"
    # An account, such as @name.
    r"|(?<![\w.@/])@[^\W\d]\w{2,}(?![\w@])"
    # Signs that a person reads as parts of an address.
    rf"|(?<=\w) \.(?:{COMMON_ENDINGS})(?![\w-])"
    r"|[\[({] ?(?:at|dot|punkt|ät) ?[\])}]"
)
END_OF_ADDRESS = ".,;:!?)]}'*`/"
BEGINNING = re.compile(r"https?://(?:www\.)?|www\.")
OTHER_STOP = re.compile(r"(?<=\w)\u3002(?=\w)")
"""An ideographic stop within a name, which browsers accept as a dot."""


def addresses(text: str) -> set[str]:
    """The addresses in a text, in lower case and without the scheme of pages."""
    names = set[str]()
    for match in ADDRESS_IN_TEXT.finditer(folded(text)):
        name = match[0].strip().rstrip(END_OF_ADDRESS)
        names.add(BEGINNING.sub("", name, count=1) or name)
    return names


def new_addresses(source: str, target: str) -> set[str]:
    """The addresses in a target that its source lacks."""
    known = folded(source)
    new = addresses(target) - addresses(source)
    # After a space, the ending alone shows that the name is an address. Texts about software
    # have such endings in the source, too.
    return {name for name in new if not (name.startswith(".") and name in known)}


def folded(text: str) -> str:
    """A text in lower case, as browsers read the signs of addresses."""
    # Fullwidth letters and dots become ASCII.
    text = unicodedata.normalize("NFKC", text)
    visible = [letter for letter in text if unicodedata.category(letter) != "Cf"]
    return OTHER_STOP.sub(".", "".join(visible)).casefold()
