"""Files that are not lines of text, by their suffixes, and how to convert them."""

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of file that cannot be translated line by line."""

    name: str
    advice: str
    format: str = ""
    """The document format of such content, if there is one."""


THROUGH_XLIFF = (
    "extract its text to XLIFF with Okapi's `tikal -x FILE`, and merge the translation with "
    "`tikal -m`"
)
THROUGH_PO = (
    "convert it to PO with translate-toolkit's {0}2po, and the translation back with po2{0}"
)
THROUGH_PO4A = "convert it to PO with po4a-gettextize, and the translation back with po4a-translate"
THROUGH_OFFICE = "run `soffice --convert-to {} FILE`"
FROM_CODE = "extract its messages to a catalog, for example to PO with xgettext"
CONVERT = "convert it to a format that nmt reads"
CATALOGS = {
    "dtd": "dtd",
    "ical": "ical ics",
    "idml": "idml",
    "ini": "ini",
    "mozlang": "lang",
    "rc": "rc",
    "toml": "toml",
    "ts": "ts",
}
"""The suffixes of files that translate-toolkit converts to PO, by the names of its converters."""
ADVICE = {
    "php": f"if its arrays contain the texts, pass format=php; from a program, {FROM_CODE}",
    "yaml yml": "pass format=yaml to translate all its strings",
    "xml": THROUGH_XLIFF,
    "doc docm dot dotm dotx fodt ott rtf sxw wpd wps": THROUGH_OFFICE.format("docx"),
    "fods ots sxc xls xlsb xlsm xlt xltm xltx": THROUGH_OFFICE.format("xlsx"),
    "fodp otp pps ppsm ppsx ppt pptm potm potx sxi": THROUGH_OFFICE.format("pptx"),
    "csv tab tsv": "save it as .xlsx, or extract the column to translate to a .txt file",
    "pdf": "run `pdftotext FILE` to extract its text",
    "shtml xht xhtm": "pass format=html",
    "mdtext mdwn": "pass format=markdown",
    "fb2 mediawiki muse opml org t2t textile typ wiki": "run `pandoc FILE -o OTHER.md`",
    "asc latex man mdoc pod sgml tex texi texinfo": THROUGH_PO4A,
    "geojson har jsonld topojson webmanifest": "pass format=json",
    "json5 jsonc": "remove its comments and save it as .json",
    "jsonl ndjson": "extract the field to translate: `jq -r .text FILE > lines.txt`",
    "sami smi stl usf": "convert it to SRT, for example with Subtitle Edit",
    "txlf txml xlz": "export it as XLIFF 1.2 from your translation tool",
    "tbx": "export the text to translate as XLIFF 1.2; `nmt preprocess` trains on TMX",
    "sgm": "extract its segments to a text file, one per line",
    "gpx kml plist rss svg xsd xsl xslt": THROUGH_XLIFF,
    "asp aspx astro ejs erb haml hbs j2 jinja jsp liquid mustache pug svelte twig vue": FROM_CODE,
    "bash bat c cc cpp css dart go h hpp hs java js jsx kt lua m mjs ps1 py r rb rs scala scss sql"
    " swift tsx vb zsh": FROM_CODE,
    "bak bin cat chm efi ipk ksh lzh mol msa mus ota sam scr sid snd str": CONVERT,
    "ai avi cfg conf db dwg eml env eps exe fm gif graphql hcl indd jpeg jpg mbox mif mkv mp3"
    " mp4 msg npz odg parquet pkl png pq proto"
    " psd pub safetensors sfm sqlite tf tiff ttf usfm vcf vsd vsdx wav webp woff": CONVERT,
    "7z bz2 gz lz4 rar tar tgz xz z zip": "unpack it",
}
"""Suffixes of other files -> advice to the user."""


def advice_by_suffix() -> dict[str, str]:
    """Suffix in lower case -> advice for a file that nmt does not read."""
    by_suffix = dict[str, str]()
    for converter, suffixes in CATALOGS.items():
        advice = THROUGH_PO.format(converter)
        by_suffix |= dict.fromkeys(suffixes.split(), advice)
    for suffixes, advice in ADVICE.items():
        by_suffix |= dict.fromkeys(suffixes.split(), advice)
    return by_suffix


ADVICE_BY_SUFFIX = advice_by_suffix()
