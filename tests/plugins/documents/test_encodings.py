"""Declared encodings are read as browsers read them, with more characters than their names say.

In XML, they are written as XML parsers read them.
"""

from xml.etree import ElementTree

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document

ENCODED = [
    ("euc-kr KS_C_5601-1987 windows-949 korean", "cp949", "똠방각하"),
    ("big5 big5-hkscs cn-big5 x-x-big5", "big5hkscs", "啲嘢喺邊度"),
    ("big5", "cp950", "中文\u2550碁銹"),
    ("shift_jis x-sjis windows-31j sjis MS_Kanji", "cp932", "①髙島屋㈱"),
    ("gb2312 gbk x-gbk gb_2312-80 chinese windows-936", "gb18030", "朱镕基㐀"),
    ("windows-874 tis-620 iso-8859-11 dos-874", "cp874", "“ภาษาไทย”…"),
    ("iso-8859-8-i iso-8859-8 iso-8859-8-e logical hebrew", "iso8859-8", "שלום"),
    ("windows-1256 x-cp1256", "cp1256", "پارسا"),
    ("windows-1255", "cp1255", "שָׁלוֹם"),
    ("windows-1251 x-cp1251", "cp1251", "Україна"),
    ("koi8-r koi", "koi8-r", "привет"),
    ("koi8-u koi8-ru", "koi8-u", "Україна"),
    ("x-mac-cyrillic", "mac-cyrillic", "привет"),
    ("euc-jp x-euc-jp", "euc_jp", "日本語"),
    ("euc-jp", "euc_jis_2004", "①日本"),
    ("iso-8859-9 latin5", "cp1254", "“İstanbul”"),
    ("us-ascii iso-8859-1", "cp1252", "“é”"),
]
"""Labels, an encoding of Python that has all characters of the text, and a text."""
ROWS = []
for labels, encoding, text in ENCODED:
    ROWS += [(label, encoding, text) for label in labels.split()]


@pytest.mark.parametrize(("label", "encoding", "text"), ROWS)
@pytest.mark.parametrize("format", ["html", "xliff"])
def test_declared_encodings_are_those_of_browsers(format, label, encoding, text):
    if format == "html":
        source = f"<meta charset={label}><p>{text}</p>"
    else:
        unit = f"<trans-unit id='1'><source>{text}</source></trans-unit>"
        source = f"<?xml version='1.0' encoding='{label}'?>"
        source += f"<xliff><file><body>{unit}</body></file></xliff>"
    document = read_document(format, source.encode(encoding))
    assert document.lines == [text]
    assert text[::-1] in document.join([Translated(text[::-1])]).decode(encoding)
    if format == "html":
        assert document.join([Translated(text)]) == source.encode(encoding)


def test_characters_with_several_codes_are_read():
    content = b"<meta charset=shift_jis><p>" + b"\x87\x90\x81\xe0\xed\x40"
    document = read_document("html", content)
    assert document.lines == ["\u2252\u2252\u7e8a"]


@pytest.mark.parametrize(
    ("label", "content", "problem"),
    [
        ("euc-kr", b"\xff\xfe\xfd", "neither UTF-8 nor euc-kr"),
        ("big5", b"a\x80\xff", "neither UTF-8 nor big5"),
        ("klingon", b"a", "cannot read its encoding 'klingon'"),
        ("zip", b"a", "cannot read its encoding 'zip'"),
        ("utf-8", b"\xe9", "not UTF-8 at byte"),
    ],
)
def test_damaged_text_and_unknown_encodings_are_refused(label, content, problem):
    with pytest.raises(NMTError, match=problem):
        read_document("html", f"<meta charset={label}><p>".encode() + content)


ALPHABETS = [
    ("us-ascii", ""),
    ("iso-8859-1", "é"),
    ("iso-8859-9", "ş"),
    ("iso-8859-11", "ก"),
    ("tis-620", "ก"),
    ("macintosh", "é"),
    ("gb2312", "中"),
    ("gbk", "中"),
    ("big5", "中"),
    ("shift_jis", "日"),
    ("euc-kr", "한"),
    ("euc-jp", "日"),
]
"""Encodings of XML, and a letter of each."""
NEW = "Ö„“”—•€¥Ω朱镕똠①"
XML_FILES = {
    "android": "<resources><string name='a'>Open it</string><!--LETTER--></resources>",
    "docbook": "<article><para>Open it</para><para>- <!--LETTER--></para></article>",
    "html": "<html><body><p>Open it</p><!--LETTER--></body></html>",
    "qt": (
        "<TS><message><source>Open it</source><translation type='unfinished'/>"
        "<comment>LETTER</comment></message></TS>"
    ),
    "resx": "<root><data name='a'><value>Open it</value></data><!--LETTER--></root>",
    "stringsdict": "<plist><dict><key>LETTER</key><string>Open it</string></dict></plist>",
    "ttml": "<tt><body><div><p>Open it</p><p>-<!--LETTER--></p></div></body></tt>",
    "xliff": (
        "<xliff version='1.2'><file original='LETTER'><body><trans-unit id='1'>"
        "<source>Open it</source></trans-unit></body></file></xliff>"
    ),
}


@pytest.mark.parametrize(("label", "letter"), ALPHABETS)
@pytest.mark.parametrize("format", XML_FILES)
def test_xml_has_references_for_characters_that_its_encoding_lacks(format, label, letter):
    text = XML_FILES[format].replace("LETTER", letter)
    source = f"<?xml version='1.0' encoding='{label}'?>\n{text}".encode(label)
    document = read_document(format, source)
    line = document.lines.index("Open it")
    translated = [Translated(text) for text in document.lines]
    assert document.join(translated).decode(label).count(letter) >= 1
    translated[line] = Translated(NEW)
    written = document.join(translated)
    # Python's own codecs are strict. The parser of XML would not read all of them.
    text = written.decode(label).partition("?>")[2]
    assert NEW in "".join(ElementTree.fromstring(text).itertext())
    assert letter in text
    again = read_document(format, written)
    assert again.join([Translated(line) for line in again.lines]) == written


def test_characters_that_programs_read_in_different_ways_are_references():
    source = "<?xml version='1.0' encoding='macintosh'?><tt><p>Open ∆ é</p></tt>"
    document = read_document("ttml", source.encode("mac-roman"))
    written = document.join([Translated("∆ €é")])
    assert "<p>∆ &#8364;é</p>".encode("mac-roman") in written
    source = "<?xml version='1.0' encoding='big5'?><tt><p>Open 中</p></tt>"
    document = read_document("ttml", source.encode("big5"))
    assert b"&#9312;&#8226;" in document.join([Translated("①•")])


def test_references_are_outside_of_cdata():
    text = "<resources><string name='a'><![CDATA[Open é]]></string></resources>"
    source = f"<?xml version='1.0' encoding='iso-8859-1'?>{text}"
    document = read_document("android", source.encode("iso-8859-1"))
    written = document.join([Translated("„é“")])
    assert "".join(ElementTree.fromstring(written).itertext()) == "„é“"


def test_xml_in_a_larger_encoding_than_it_declares_keeps_it():
    source = "<?xml version='1.0' encoding='iso-8859-1'?><tt><p>“Open”</p></tt>"
    document = read_document("ttml", source.encode("cp1252"))
    assert document.lines == ["“Open”"]
    assert "„é“".encode("cp1252") in document.join([Translated("„é“")])
