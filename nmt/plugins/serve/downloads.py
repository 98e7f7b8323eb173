"""Translated files, which the server keeps in memory until clients download them."""

import asyncio
import secrets
import unicodedata
from urllib.parse import quote

import regex

from nmt.plugins.serve.parsing import file_name, file_suffix, supported_suffixes
from nmt.text import is_language

KEPT_SECONDS = 600
"""Seconds for which files are kept."""
KEPT_BYTES = 64 * 2**20
"""The maximum total size of files; the oldest files are removed first."""
UNSAFE = regex.compile(r"[^\w\p{M} ().-]+")
"""Characters that a file's name must not have."""
MOST_NAME_BYTES = 200
"""Maximum bytes in a file's name without its suffix."""


class Downloads:
    """The files by their tokens, the oldest first."""

    def __init__(self) -> None:
        self.files = dict[str, bytes]()

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file for a while; returns an unguessable token, which ends with the name."""
        # 128 random bits, because whoever knows the address may read the file without a key.
        token = f"{secrets.token_urlsafe(16)}.{name}"
        self.files[token] = content
        # The file may already have made room for others by then.
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.files.pop, token, None)
        while sum(map(len, self.files.values())) > KEPT_BYTES:
            # Dictionaries keep the order of insertion.
            oldest = next(iter(self.files))
            self.files.pop(oldest)
        return token


def name_of_token(token: str) -> str:
    return token.partition(".")[2]


def safe_name(name: str, target: str) -> str:
    """The name for a translated file, with only letters, digits, blanks and a few signs.

    The target language replaces a suffix that names a language: `test.de` for `test.en`.
    """
    # macOS sends names in decomposed form, in which accents are separate characters.
    name = file_name(unicodedata.normalize("NFC", name))
    suffix = file_suffix(name)
    stem = name.removesuffix(suffix)
    # A leading dot would hide the file.
    stem = UNSAFE.sub("_", stem).strip("._ ")
    # File systems limit names to 255 bytes, and the cut may fall within a character.
    stem = stem.encode()[:MOST_NAME_BYTES].decode(errors="ignore")
    if not stem:
        stem = "file"
    names_language = suffix not in supported_suffixes() and is_language(suffix[1:])
    if names_language:
        return f"{stem}.{target}"
    return f"{stem}_{target}{suffix.lower()}"


def name_in_ascii(name: str) -> str:
    """A file's name without accents; if letters would be lost, "translation" replaces the stem."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    # NFKD separates accents from their letters, and the encoding drops the accents; but it also
    # drops whole letters of other scripts.
    letters = sum(map(str.isalnum, name))
    letters_left = sum(map(str.isalnum, ascii_name))
    if letters_left == letters:
        return ascii_name
    # In 設定_de.txt, the language code begins after the last underscore.
    separator = "_" if "_" in name else "."
    ending = name.rpartition(separator)[2]
    return f"translation{separator}{ending}"


def attachment(name: str) -> str:
    """The header for a download, as RFC 6266 recommends.

    The name comes in ASCII for programs such as curl, and then in UTF-8, which browsers prefer.
    """
    ascii_name = name_in_ascii(name)
    header = f'attachment; filename="{ascii_name}"'
    if name == ascii_name:
        return header
    return f"{header}; filename*=UTF-8''{quote(name)}"
