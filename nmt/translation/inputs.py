"""Check that an input is lines of text, by its name and content.

A file that is translated line by line must have a name that stands for text, and its beginning must
not be that of another format. Everything else would come back damaged. Users switch both checks off
with `format=text`.
"""

import codecs
import re
from pathlib import Path, PurePath

from nmt.config import (
    NMTError,
    TranslateConfig,
    clusters,
    document_format,
    documents,
    shared_suffixes,
    without_compression,
)
from nmt.files import find_model_directory, read_description
from nmt.text import is_language, open_bytes, problem_of, reading
from nmt.translation.contents import kind_of_content
from nmt.translation.formats import ADVICE_BY_SUFFIX, Kind

HEAD_BYTES = 2**16
"""Bytes at the beginning of an input that decide its format."""
CORPUS_WORD = re.compile(
    r"bpe|clean|dedup|detok|dev|devtest|filtered|hyp|hypo|hypothesis|in|input|lc|lines|mono|mt"
    r"|norm|orig|out|output|pe|pred|predictions|raw|ref|references?|sents?|sentences|shuf|sorted"
    r"|source|sp|spm|src|sys|tags|target|tc|test|text|tgt|tok|tokenized|train|trans|translations?"
    r"|trg|true|truecased|txt|uniq|utf-?8|valid|words"
    r"|\d+[km]?"
)
"""Suffixes by which corpora name a side, a split, a part or a stage of processing."""
ALSO_CODE = re.compile("am|as|cs|es|gd|la|mk|ml|ms|nb|pl|ps|sc|sh|so|st|sv|tr|ts|vi")
"""Language codes that are also suffixes of source code; the content decides."""
OF_RECORDS = ("jsonl", "ndjson", "parquet", "pq")
"""Suffixes of files of records, which clusters translate."""


def suffix_of(name: str) -> str:
    """A file's suffix in its own case, without the dot and any compression suffix."""
    suffix = PurePath(without_compression(name)).suffix[1:]
    # In "Notes of Mr. Smith", the dot begins no suffix.
    return "" if " " in suffix else suffix


def is_name_of_text(suffix: str) -> bool:
    """Whether a suffix stands for lines of text, whatever the model."""
    small = suffix.lower()
    # Before language codes, because some suffixes of other formats are codes, too.
    if small in ADVICE_BY_SUFFIX and not ALSO_CODE.fullmatch(small):
        return False
    is_corpus_word = CORPUS_WORD.fullmatch(small) is not None
    return not suffix or is_corpus_word or is_language(suffix)


def may_be_code(suffix: str) -> bool:
    """Whether only the content decides if a file with this suffix is source code."""
    # A file without a suffix usually is plain text, such as the output of a script.
    if not suffix:
        return False
    return ALSO_CODE.fullmatch(suffix.lower()) is not None or not is_name_of_text(suffix)


def advice_for(suffix: str) -> str:
    """Advice to convert files with a suffix (without its dot) that nmt does not read.

    Empty if unknown.
    """
    return ADVICE_BY_SUFFIX.get(suffix.lower(), "")


def refusal(name: str, what: str, kind: Kind) -> NMTError:
    """The error for an input that is not text."""
    formats = documents()
    # What is a document format needs no conversion.
    advice = f"pass format={kind.format}" if kind.format in formats else kind.advice
    reads = f"nmt translates lines of text (.txt, .en) and documents ({', '.join(formats)})"
    more = "a plugin can add formats (docs/guides/plugins.md)"
    return NMTError(f"{name}: {what}; {advice}; {reads}; {more}")


def without_utf16(head: bytes) -> bytes:
    """The beginning of a file; in UTF-8 if it was in UTF-16."""
    # `bounded_lines` decodes UTF-16, too, so the content is judged as the translator will see it.
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace").encode()
    return head


def format_by_content(suffix: str, head: bytes) -> str:
    """The document format of a file that begins with `head`, if formats share its suffix.

    The suffix has no dot. "" if no format has such a suffix, or if the content is in none of them.
    """
    formats = shared_suffixes().get(f".{suffix.lower()}", [])
    if not formats:
        return ""
    kind = kind_of_content(without_utf16(head), may_be_code=False)
    return kind.format if kind and kind.format in formats else ""


def format_of_file(path: str) -> str:
    """The document format that a file's name or, if formats share its suffix, its content shows.

    "" if it is not a document.
    """
    by_name = document_format(path)
    if by_name:
        return by_name
    suffix = suffix_of(path)
    if f".{suffix.lower()}" not in shared_suffixes() or not Path(path).is_file():
        return ""
    with open_bytes(path) as file, reading(path):
        return format_by_content(suffix, file.read(HEAD_BYTES))


def check_content(name: str, head: bytes, suffix: str = "") -> None:
    """Raise NMTError if an input that begins with `head` is not text to translate line by line."""
    head = without_utf16(head)
    # First the kind, because its advice helps more than a message about an encoding.
    kind = kind_of_content(head, may_be_code(suffix))
    if kind:
        what = f"its content is {kind.name}, which line-by-line translation would damage"
        raise refusal(name, what, kind)
    problem = problem_of(head)
    if problem:
        raise NMTError(f"{name}: {problem}")


def languages_of_command(config: TranslateConfig) -> set[str | None]:
    """The languages that a command names, and those of its first model."""
    options = config.translator
    description = read_description(find_model_directory(options.run[0]))
    return {options.source, options.target, description.source, description.target}


def check_lines(config: TranslateConfig) -> None:
    """Raise NMTError if a file to be translated line by line is in another format."""
    if not config.is_guess or config.input == "-":
        return
    name = config.input
    suffix = suffix_of(name)
    if not Path(name).exists():
        raise NMTError(f"{name}: No such file or directory")
    # By suffix first, because its advice names a tool for exactly this format.
    advice = advice_for(suffix)
    is_text = is_name_of_text(suffix)
    if not is_text and advice:
        names = clusters()
        if suffix.lower() in OF_RECORDS and names:
            of_cluster = (
                f"pass cluster={next(iter(names))}, which translates a field of each record"
            )
            advice = f"{of_cluster}, or {advice}"
        raise refusal(name, f"nmt cannot read .{suffix} files", Kind(suffix, advice))
    # What a pipe contains cannot be read twice; `open_source` checks it.
    if Path(name).is_file():
        with open_bytes(name) as file, reading(name):
            check_content(name, file.read(HEAD_BYTES), suffix)
    # Last, because it reads the model, which files with other names need not have.
    if not is_text and suffix not in languages_of_command(config):
        advice = "if each line is text to translate, pass format=text"
        raise refusal(name, f"nmt cannot read .{suffix} files", Kind(suffix, advice))
