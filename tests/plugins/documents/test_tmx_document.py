"""TMX as a document: units get a variant in the target language."""

import codecs
from xml.etree import ElementTree

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, same

BEFORE = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
BEFORE += '<header srclang="{}"/>\n<body>\n'
AFTER = "\n</body>\n</tmx>\n"


def translated(
    unit: str, srclang: str = "en", target: str = "de", source: str = "en", by=capitals
) -> tuple[list[str], str, str]:
    """The lines of a memory, its unit with their translations, and the notice."""
    before = BEFORE.format(srclang)
    document = read_document("tmx", f"{before}{unit}{AFTER}".encode(), target, source)
    result = document.join(by(document.lines)).decode()
    ElementTree.fromstring(result)
    again = read_document("tmx", result.encode(), target, source)
    assert again.lines == []
    assert again.join([]).decode() == result
    return document.lines, result.removeprefix(before).removesuffix(AFTER), document.notice


def variant(language: str, text: str, name: str = "xml:lang") -> str:
    return f'<tuv {name}="{language}"><seg>{text}</seg></tuv>'


def test_a_variant_follows_that_of_the_source():
    note = "<tu tuid='1'>\n  <note>A note</note>\n  "
    source = '<tuv xml:lang="en-US" creationid="me">\n    <prop type="x">y</prop>\n    <seg>One</seg>\n  </tuv>'
    french = variant("fr", "Un")
    lines, result, notice = translated(f"{note}{source}\n  {french}\n</tu>")
    assert (lines, notice) == (["One"], "")
    new = variant("de", "ONE")
    assert result == f"{note}{source}\n  {new}\n  {french}\n</tu>"


@pytest.mark.parametrize(
    ("unit", "target"),
    [
        (variant("en", "One") + variant("DE-at", "Eins"), "de"),
        (variant("en", "One") + variant("pt-BR", "Um"), "pt_BR"),
        (variant("EN", "One", "lang") + variant("DE", "Eins", "lang"), "deu_Latn"),
    ],
)
def test_existing_variants_stay(unit, target):
    content = f"<tu>{unit}</tu>"
    assert translated(content, target=target) == ([], content, "")


@pytest.mark.parametrize("empty", ["<seg/>", "<seg></seg>", "<seg> </seg>"])
def test_empty_variants_are_filled(empty):
    source = variant("en", "One")
    lines, result, _ = translated(f'<tu>{source}<tuv xml:lang="de">{empty}</tuv></tu>')
    assert lines == ["One"]
    assert result == f"<tu>{source}{variant('de', 'ONE')}</tu>"


def test_languages():
    both = f"<tu>{variant('fr', 'Un')}{variant('en', 'One')}</tu>"
    for srclang in ("*all*", "fr", "en"):
        assert translated(both, srclang)[0] == ["One"]
    # If the model names no source language, that of the file counts.
    assert translated(both, "fr", source="")[0] == ["Un"]
    assert translated(both, "en", source="")[0] == ["One"]
    other = "<tu srclang='en'>"
    assert translated(both.replace("<tu>", other), "fr", source="")[0] == ["One"]
    # The attribute of the new variant is that of the others.
    old = f"<tu>{variant('EN', 'One', 'lang')}</tu>"
    assert variant("zh-CN", "ONE", "lang") in translated(old, target="zh_CN")[1]


def test_units_without_text_in_the_source_language_are_counted():
    unit = f"<tu>{variant('fr', 'Un')}</tu>"
    notice = "units left untranslated because they have no text in the source language: 1"
    assert translated(unit) == ([], unit, notice)


CODES = """
<bpt i="1" x="1">&lt;b></bpt>{}<ept i="1">&lt;/b></ept>
<bpt i="2">&lt;b></bpt><bpt i="1">&lt;i></bpt>{}<ept i="2">&lt;/b></ept><ept i="1">&lt;/i></ept>
<hi type="x">{}</hi>
""".strip().splitlines()


@pytest.mark.parametrize("code", CODES)
def test_codes_stay_with_their_words(code):
    def turned(lines: list[str]) -> list[Translated]:
        assert lines == ["Two big cats"]
        return [Translated("cats groß zwei", [(0, 2), (1, 1), (2, 0)])]

    source = f"Two {code.format('big')} cats"
    _, result, _ = translated(f"<tu>{variant('en', source)}</tu>", by=turned)
    assert variant("de", f"cats {code.format('groß')} zwei") in result


@pytest.mark.parametrize("code", ["<ph x='1'>{{n}}</ph>", "<it pos='begin'>x</it>", "<ut>x</ut>"])
def test_single_codes(code):
    source = f"Two {code} cats"
    _, result, notice = translated(f"<tu>{variant('en', source)}</tu>", by=capitals)
    assert (variant("de", f"TWO {code} CATS") in result, notice) == (True, "")


def test_utf_16():
    text = f"{BEFORE.format('en')}<tu>{variant('en', 'One')}</tu>{AFTER}"
    content = codecs.BOM_UTF16_LE + text.replace('"1.0"', '"1.0" encoding="UTF-16"').encode(
        "utf-16-le"
    )
    document = read_document("tmx", content, "de", "en")
    result = document.join([Translated("Größe")])
    assert variant("de", "Größe") in result.decode("utf-16")


def test_text_that_does_not_change_keeps_its_bytes():
    source = "A &#38; B&#x22;<ph/>"
    _, result, _ = translated(f"<tu>{variant('en', source)}</tu>", by=same)
    assert result == f"<tu>{variant('en', source)}{variant('de', source)}</tu>"


def test_another_kind_of_xml_is_refused():
    with pytest.raises(NMTError, match="not a translation memory"):
        read_document("tmx", b"<a/>", "de", "en")
