"""Technical strings, such as names of classes, colors and patterns of dates."""

import json

import pytest

from nmt.plugins.documents import is_technical
from nmt.translation import read_document
from tests.helpers.pseudo import capitals

TECHNICAL = [
    "org.example.Main",
    "text/html",
    "application/vnd.ms-excel",
    "strings.xml",
    "/etc/hosts",
    "assets/v2/icons",
    "#FF00FF",
    "#fff",
    "0xFF00FF00",
    "rgba(0, 0, 0, .5)",
    "yyyy-MM-dd HH:mm",
    "HH:mm:ss",
    "h:mm a",
    "EEE, d MMM yyyy",
    "d 'de' MMMM 'de' y",
    "yyyyMMdd",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "YYYY-MM-DDTHH:mm",
    "yyyy年M月d日",
    "%Y-%m-%d",
    "%a, %d %b %Y %H:%M:%S %z",
]
TEXTS = [
    "Open",
    "<img alt='a ball'>",
    "hmm",
    "Mac",
    "MMM",
    "a.m.",
    "M.D.",
    "Q & A",
    "A/B",
    "audio/video",
    "his/her/their",
    "#hashtag",
    "50% off",
    "%s of %s",
    "Hmm, add",
    "你好.世界",
]
FORMATS = {
    "json": "{{{0}: {0}}}",
    "arb": "{{{0}: {0}}}",
    "i18next": "{{{0}: {0}}}",
    "chrome": '{{"a": {{"message": {0}}}}}',
    "xcstrings": '{{"sourceLanguage": "en", "strings": {{{0}: {{}}}}}}',
    "strings": "{0} = {0};",
    "yaml": "a: {0}",
}
"""Each format, with a place for a string in quotes."""
IN_XML = {
    "android": '<resources><string name="a">{}</string></resources>',
    "stringsdict": "<plist><dict><key>a</key><string>{}</string></dict></plist>",
    "resx": '<root><data name="a"><value>{}</value></data></root>',
}


def files_with(text: str) -> list[tuple[str, str]]:
    quoted = json.dumps(text, ensure_ascii=False)
    escaped = text.replace("&", "&amp;")
    files = [(format, template.format(quoted)) for format, template in FORMATS.items()]
    # An apostrophe needs an escape in Android.
    in_xml = [(format, template.format(escaped)) for format, template in IN_XML.items()]
    return [*files, *in_xml]


@pytest.mark.parametrize("text", TECHNICAL)
def test_technical_strings_stay_in_all_catalogs(text):
    for format, file in files_with(text):
        document = read_document(format, file.encode(), "de", "en")
        assert document.lines == [], format
        assert document.join(capitals(document.lines)).decode() == file


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_translated(text):
    assert not is_technical(text)


@pytest.mark.parametrize(
    "text",
    ["yyyy-" * 200, "'" * 999, "dM" * 499, "a/" * 499, "yyyyMM" * 160 + "X", "%Y" * 499 + "x"],
)
def test_long_strings_take_little_time(text):
    is_technical(text)
