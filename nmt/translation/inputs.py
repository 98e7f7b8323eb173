"""Which inputs are lines of text, decided by name and content, and how to convert the others.

A file that is translated line by line must have a name that stands for text, and its beginning must
not be that of another format. Everything else would come back damaged. Users switch both checks off
with `format=text`.
"""

import codecs
import re
from pathlib import Path, PurePath
from typing import NamedTuple

from nmt.config import NMTError, TranslateConfig, documents, without_compression
from nmt.files import find_model_directory, read_description
from nmt.text import is_language, open_text, problem_of, reading

HEAD_BYTES = 2**16  # how much of an input decides what it is
CORPUS_WORD = re.compile(
    r"bpe|clean|dedup|detok|dev|devtest|filtered|hyp|hypo|hypothesis|in|input|lc|lines|mono|mt|norm"
    r"|orig|out|output|pe|pred|predictions|raw|ref|references?|sents?|sentences|shuf|sorted|source|sp"
    r"|spm|src|sys|tags|target|tc|test|text|tgt|tok|tokenized|train|trans|translations?|trg|true"
    r"|truecased|txt|uniq|utf-?8|valid|words"
    r"|\d+[km]?"
)
"""Suffixes by which corpora name a side, a split, a part or a stage of processing."""
ALSO_CODE = re.compile("am|as|cs|es|gd|la|mk|ml|ms|nb|pl|ps|sc|sh|so|st|sv|tr|ts|vi")
"""Language codes that are also suffixes of source code; the content decides."""
CODE = re.compile(
    rb"^[ \t]*(?:[#*;%@<]|//|--|[\w.$-]+[ \t]*[:+?]?=)"
    rb"|^[ \t]*(?:import|from|use|using|namespace|package|module|open|let|var|const|my|func|function"
    rb"|def|class|public|private|export|extends|interface|type|if|else|end)\b.*[^.!?\s]\s*$"
    rb"|[{};(\[=]\s*$"
)
"""A line of source code; few lines of other text match."""


class Kind(NamedTuple):
    """A kind of file that cannot be translated line by line."""

    name: str
    advice: str
    format: str = ""  # the document format of such content, if there is one


THROUGH_XLIFF = "extract its text to XLIFF with Okapi's `tikal -x FILE`, and merge the translation with `tikal -m`"
THROUGH_PO = (
    "convert it to PO with translate-toolkit's {0}2po, and the translation back with po2{0}"
)
THROUGH_PO4A = "convert it to PO with po4a-gettextize, and the translation back with po4a-translate"
THROUGH_OFFICE = "run `soffice --convert-to {} FILE`"
THROUGH_JUPYTEXT = "run `jupytext --to md FILE`, and `jupytext --to ipynb` on the translation"
FROM_XCODE = "export its text as XLIFF with Xcode (Product > Export Localizations)"
FROM_CODE = "extract its messages to a catalog, for example to PO with xgettext"
CONVERT = "convert it to a format that nmt reads"
CATALOGS = {
    "dtd": "dtd",
    "ical": "ical ics",
    "idml": "idml",
    "ini": "ini",
    "mozlang": "lang",
    "php": "php",
    "prop": "properties",
    "rc": "rc",
    "resx": "resx",
    "sub": "ass ssa sub",
    "toml": "toml",
    "ts": "ts",
    "yaml": "yaml yml",
}
"""The suffixes of files that translate-toolkit converts to PO, by the names of its converters."""
ADVICE = {
    **{suffixes: THROUGH_PO.format(name) for name, suffixes in CATALOGS.items()},
    "xml": THROUGH_XLIFF,
    "doc docm dot dotm dotx fodt ott rtf sxw wpd wps": THROUGH_OFFICE.format("docx"),
    "fods ots sxc xls xlsb xlsm xlt xltm xltx": THROUGH_OFFICE.format("xlsx"),
    "fodp otp pps ppsm ppsx ppt pptm potm potx sxi": THROUGH_OFFICE.format("pptx"),
    "csv tab tsv": "save it as .xlsx, or extract the column to translate to a .txt file",
    "pdf": "run `pdftotext FILE` to extract its text",
    "shtml xht xhtm": "pass format=html",
    "mdown mdtext mdwn mdx mkd mkdn qmd rmd": "pass format=markdown",
    "ipynb": THROUGH_JUPYTEXT,
    "fb2 mediawiki muse opml org rest rst t2t textile typ wiki": "run `pandoc FILE -o OTHER.md`",
    "adoc asc asciidoc dbk docbook latex man mdoc pod sgml tex texi texinfo": THROUGH_PO4A,
    "geojson har jsonld topojson webmanifest": "pass format=json",
    "json5 jsonc": "remove its comments and save it as .json",
    "jsonl ndjson": "extract the field to translate: `jq -r .text FILE > lines.txt`",
    "arb": "remove its keys that begin with `@`, and save it as .json",
    "strings stringsdict xcstrings": FROM_XCODE,
    "dfxp lrc sami sbv smi stl ttml usf vtt": "convert it to SRT, for example with Subtitle Edit",
    "mqxliff mxliff sdlxliff txlf txml xlz": "export it as XLIFF 1.2 from your translation tool",
    "tbx tmx": "export the text to translate as XLIFF 1.2; `nmt preprocess` trains on TMX",
    "sgm": "extract its segments to a text file, one per line",
    "dita ditamap gpx kml plist resw rss svg usx xsd xsl xslt": THROUGH_XLIFF,
    "asp aspx astro ejs erb haml hbs j2 jinja jsp liquid mustache pug svelte twig vue": FROM_CODE,
    "bash bat c cc cpp css dart go h hpp hs java js jsx kt lua m mjs ps1 py r rb rs scala scss sql"
    " swift tsx vb zsh": FROM_CODE,
    "bak bin cat chm efi ipk ksh lzh mol msa mus ota sam scr sid snd str": CONVERT,
    "ai avi cfg conf db dwg eml env eps exe fm ftl gif graphql hcl indd jpeg jpg mbox mif mkv mp3"
    " mp4 msg npz odg parquet pkl png proto psd pub safetensors sfm sqlite tf tiff ttf usfm vcf vsd"
    " vsdx wav webp woff": CONVERT,
    "7z bz2 gz lz4 rar tar tgz xz z zip": "unpack it",
}
ADVICE_BY_SUFFIX = {
    suffix: advice for suffixes, advice in ADVICE.items() for suffix in suffixes.split()
}
STRING = rb'"(?:[^"\\\n]|\\.){0,200}"'
BEFORE_ROOT = rb"(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->)){0,2000}-->\s*)*"
ROOTS = rb"article|book|concept|plist|reference|resources|root|rss|svg|task|tmx|topic|usx"
OF_XML = Kind("XML", THROUGH_XLIFF)
FRONT_MATTER = rb"---[ \t]*\n(?:[\w-]+:.*\n|[ \t#-].*\n|\n){1,200}---[ \t]*\n\s*\S"
OF_SUBTITLES = ADVICE_BY_SUFFIX["sbv"]
CONTENTS = (
    (rb"PK[\3\5]", Kind("a ZIP archive", "name the format of a document, such as format=docx")),
    (rb"(?i:<!DOCTYPE\s+html|<html[\s>])", Kind("HTML", "pass format=html", "html")),
    (BEFORE_ROOT + rb"<xliff\s", Kind("XLIFF", "pass format=xliff", "xliff")),
    (BEFORE_ROOT + rb"(?:<!DOCTYPE TS|<TS[\s>])", Kind("a Qt catalog", ADVICE_BY_SUFFIX["ts"])),
    (BEFORE_ROOT + rb"<resources[\s>]", Kind("Android strings", THROUGH_XLIFF)),
    (rb"<\?xml\s|<!DOCTYPE\s|<[\w:.-]+\s[^<>]{0,2000}\bxmlns\b", OF_XML),
    # A line of tags, before another tag or the end of an element.
    (
        rb"(?:<(?:[A-Za-z/][\w:.-]*(?:\s[^<>\n]{0,2000})?|!--[^\n]{0,2000}?--)>[ \t]*)+\r?\n"
        rb"(?=\s*<|[\s\S]*</)",
        OF_XML,
    ),
    (rb"<(?:" + ROOTS + rb")>\s*\n", OF_XML),
    (rb"<\?php\b", Kind("PHP", ADVICE_BY_SUFFIX["php"])),
    (rb"\{.{0,2000}\}\s*\n\s*\{\s*\"", Kind("JSON Lines", ADVICE_BY_SUFFIX["jsonl"])),
    (rb"(?:\[\s*)*\{\s*" + STRING + rb"\s*:", Kind("JSON", "pass format=json", "json")),
    (rb"\[\s*" + STRING + rb"\s*,?\s*\n", Kind("JSON", "pass format=json", "json")),
    (
        rb"\[\s*" + STRING + rb"\s*(?:,\s*" + STRING + rb"\s*)*\]\s*$",
        Kind("JSON", "pass format=json", "json"),
    ),
    (rb'(?:#.*\n|\s)*msg(?:id|ctxt) "', Kind("a PO catalog", "pass format=po", "po")),
    (rb"\d+\s*\n\s*\d+:\d\d:\d\d[,.]\d+\s*-->", Kind("subtitles", "pass format=srt", "srt")),
    (
        rb"\d:\d\d:\d\d\.\d+,\d+:\d\d|\{\d+\}\{\d+\}|\[\d\d:\d\d[.:]\d\d",
        Kind("subtitles", OF_SUBTITLES),
    ),
    (STRING + rb"\s*=\s*" + STRING + rb"\s*;", Kind("a table of strings", FROM_XCODE)),
    (rb"WEBVTT\b", Kind("WebVTT", ADVICE_BY_SUFFIX["vtt"], "vtt")),
    (rb"\[Script Info\]", Kind("subtitles", ADVICE_BY_SUFFIX["ass"])),
    (rb"\[[\w .-]+\]\s*\n[\w.-]+ ?=", Kind("a configuration file", ADVICE_BY_SUFFIX["ini"])),
    (rb"\\id [A-Z0-9]{3}\b", Kind("USFM", CONVERT)),
    (
        rb"(?:%.*\n|\s)*\\(?:documentclass|usepackage|begin|section|chapter)\b",
        Kind("LaTeX", THROUGH_PO4A),
    ),
    (rb"(?:[.']\\\".*\n)*\.(?:TH|Dd|SH) ", Kind("a manual page", THROUGH_PO4A)),
    (FRONT_MATTER, Kind("Markdown with front matter", "pass format=markdown", "markdown")),
    (rb"[\w-]+:[ \t]*\n[ \t]+[\w.-]+:[ \t]", Kind("YAML", ADVICE_BY_SUFFIX["yaml"])),
    (rb"%YAML |---\s*\n[\w-]+:\s", Kind("YAML", ADVICE_BY_SUFFIX["yaml"])),
    (rb"#! ?/|%!PS", Kind("a program", FROM_CODE)),
)
"""The beginnings of other formats, without blanks. No text to translate begins so."""


def suffix_of(name: str) -> str:
    """A file's suffix in its own case, without the dot and any compression suffix."""
    suffix = PurePath(without_compression(name)).suffix[1:]
    # In "Notes of Mr. Smith", the dot begins no suffix.
    return "" if " " in suffix else suffix


def is_name_of_text(suffix: str) -> bool:
    """Whether a suffix stands for lines of text, whatever the model."""
    small = suffix.lower()
    if small in ADVICE_BY_SUFFIX and not ALSO_CODE.fullmatch(small):
        return False
    return not suffix or bool(CORPUS_WORD.fullmatch(small)) or is_language(suffix)


def may_be_code(suffix: str) -> bool:
    """Whether only the content decides if a file with this suffix is source code."""
    return bool(suffix) and (
        bool(ALSO_CODE.fullmatch(suffix.lower())) or not is_name_of_text(suffix)
    )


def kind_of_content(head: bytes, may_be_code: bool) -> Kind | None:
    """The kind of a file that begins with these bytes; None for text to translate line by line."""
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for pattern, kind in CONTENTS:
        if re.match(pattern, start):
            return kind
    lines = [line for line in start.splitlines()[:200] if line.strip()]
    if may_be_code and 2 * sum(bool(CODE.search(line)) for line in lines) > len(lines):
        return Kind("source code", FROM_CODE)
    return None


def advice_for(suffix: str) -> str:
    """How to convert files with a suffix (without its dot) that nmt does not read; empty if unknown."""
    return ADVICE_BY_SUFFIX.get(suffix.lower(), "")


def refusal(name: str, what: str, kind: Kind) -> NMTError:
    """The error for an input that is not text."""
    formats = documents()
    # What is a document format needs no conversion.
    advice = f"pass format={kind.format}" if kind.format in formats else kind.advice
    reads = f"nmt translates lines of text (.txt, .en) and documents ({', '.join(formats)})"
    more = "a plugin can add formats (docs/guides/plugins.md)"
    return NMTError(f"{name}: {what}; {advice}; {reads}; {more}")


def check_content(name: str, head: bytes, suffix: str = "") -> None:
    """Raise NMTError if an input that begins with `head` is not text to translate line by line."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        head = head.decode("utf-16", "replace").encode()
    kind = kind_of_content(head, may_be_code(suffix))
    if kind:
        what = f"its content is {kind.name}, which line-by-line translation would damage"
        raise refusal(name, what, kind)
    problem = problem_of(head)
    if problem:
        raise NMTError(f"{name}: {problem}")


def languages_of_model(config: TranslateConfig) -> tuple[str | None, str | None]:
    about = read_description(find_model_directory(config.translator.run[0]))
    return about.source, about.target


def check_lines(config: TranslateConfig) -> None:
    """Raise NMTError if a file to be translated line by line is in another format."""
    if not config.is_guess or config.input == "-":
        return
    name, suffix = config.input, suffix_of(config.input)
    if not Path(name).exists():
        raise NMTError(f"{name}: No such file or directory")
    advice = ADVICE_BY_SUFFIX.get(suffix.lower())
    is_text = is_name_of_text(suffix)
    if not is_text and advice:
        raise refusal(name, f"nmt cannot read .{suffix} files", Kind(suffix, advice))
    # What a pipe contains cannot be read twice; `open_source` checks it.
    if Path(name).is_file():
        with open_text(name) as file, reading(name):
            check_content(name, file.read(HEAD_BYTES), suffix)
    if not is_text and suffix not in languages_of_model(config):
        advice = "if each line is text to translate, pass format=text"
        raise refusal(name, f"nmt cannot read .{suffix} files", Kind(suffix, advice))
