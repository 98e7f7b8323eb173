"""XLIFF 2: segments, states and inline elements."""

from xml.etree import ElementTree

import pytest

from nmt.errors import NMTError
from nmt.items import COPY
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, same

NAMESPACE = 'xmlns="urn:oasis:names:tc:xliff:document:2.0"'
BEFORE = f'<xliff {NAMESPACE} version="2.1" srcLang="en" trgLang="de"><file id="f">'
AFTER = "</file></xliff>"


def translated(inside: str, by=capitals, before: str = BEFORE) -> tuple[list[str], str, str]:
    """The lines of a file, its content with their translations, and the notice."""
    document = read_document("xliff", f"{before}{inside}{AFTER}".encode(), "de", "en")
    result = document.join(by(document.lines)).decode()
    ElementTree.fromstring(result)
    # Translated again, the file stays as it is.
    again = read_document("xliff", result.encode(), "de", "en")
    assert again.join(by(again.lines)).decode() == result
    return document.lines, result.removeprefix(before).removesuffix(AFTER), document.notice


def segment(source: str, target: str = "", attributes: str = "") -> str:
    return f"<segment{attributes}><source>{source}</source>{target}</segment>"


def unit(*content: str) -> str:
    return f'<unit id="u">{"".join(content)}</unit>'


def reversed_words(lines: list[str]) -> list[Translated]:
    translations = []
    for line in lines:
        words = line.split()
        pairs = [(number, len(words) - 1 - number) for number in range(len(words))]
        translations.append(Translated(" ".join(words[::-1]), pairs))
    return translations


def test_each_segment_gets_its_target():
    space = "<ignorable><source> </source></ignorable>"
    lines, result, notice = translated(unit(segment("One &amp; only."), space, segment("Two")))
    assert (lines, notice) == (["One & only.", "Two"], "")
    new = ' state="translated"'
    one = segment("One &amp; only.", "<target>ONE &amp; ONLY.</target>", new)
    two = segment("Two", "<target>TWO</target>", new)
    assert result == unit(one, space, two)


STATES = """
| <target>x</target> | kept
 state="translated" | <target>x</target> | kept
 state="reviewed" | <target>x</target> | kept
 state="final" | <target>x</target> | kept
 state="initial" | <target>x</target> | <target>ONE</target>
| <target/> | <target>ONE</target>
 state="final" | <target> </target> | <target>ONE</target>
| <target xml:lang="de" order="2" /> | <target xml:lang="de" order="2">ONE</target>
 state='initial' subState='my:new' id="s" | | <target>ONE</target>
""".strip().splitlines()


@pytest.mark.parametrize("row", STATES)
def test_segments_with_a_translation_stay(row):
    attributes, target, expected = (cell.strip() for cell in row.split("|"))
    if attributes:
        attributes = f" {attributes}"
    content = unit(segment("One", target, attributes))
    lines, result, _ = translated(content)
    if expected == "kept":
        assert (lines, result) == ([], content)
        return
    assert lines == ["One"]
    assert expected in result
    element = ElementTree.fromstring(result)[0]
    assert element.get("state") == "translated"
    assert "subState" not in element.attrib


def test_translate_is_inherited():
    def text(name: str) -> str:
        return segment(name)

    groups = (
        '<group id="g" translate="no">'
        f'<unit id="a">{text("One")}</unit>'
        f'<unit id="b" translate="yes">{text("two")}</unit>'
        f'<group id="h"><unit id="c">{text("three")}</unit></group>'
        "</group>"
        f'<unit id="d" translate="no">{text("four")}</unit><unit id="e">{text("five")}</unit>'
    )
    assert translated(groups)[0] == ["two", "five"]
    no = BEFORE.replace('id="f"', 'id="f" translate="no"')
    assert translated(unit(text("One")), before=no)[0] == []


def test_modules_are_not_translated():
    match = "<m:match xmlns:m='m'><source>A</source><target>B</target></m:match>"
    notes = (
        "<notes><note>A note</note></notes><originalData><data id='d'>text</data></originalData>"
    )
    content = unit(match, notes, segment("One"))
    lines, result, _ = translated(content)
    assert lines == ["One"]
    assert result.startswith(unit(match, notes).removesuffix("</unit>"))


CODES = """
Hi <pc id="1">big world</pc> here | Hi big world here | here <pc id="1">world big</pc> Hi
Hi <mrk id="1" type="term">big world</mrk> | Hi big world | <mrk id="1" type="term">world big</mrk> Hi
Hi <sc id="1"/>big world<ec startRef="1"/> | Hi big world | <sc id="1"/>world big<ec startRef="1"/> Hi
Hi <sm id="1"/>big<em startRef="1"/> | Hi big | <sm id="1"/>big<em startRef="1"/> Hi
Hi <ph id="1" disp="{{x}}"/> you | Hi _ you | you <ph id="1" disp="{{x}}"/> Hi
Hi <ph id="1" dataRef="d1"/> you | Hi _ you | you <ph id="1" dataRef="d1"/> Hi
Hi <ph id="1" equiv="INTERPOLATION_2"/> you | Hi _ you | you <ph id="1" equiv="INTERPOLATION_2"/> Hi
Hi<ph id="1" dataRef="d2"/>you | Hi you | you<ph id="1" dataRef="d2"/>Hi
Hi<ph id="1" subType="xlf:lb"/>you | Hi you | you<ph id="1" subType="xlf:lb"/>Hi
Hi <mrk id="1" translate="no">big man</mrk> you | Hi _ you | you <mrk id="1" translate="no">big man</mrk> Hi
Hi <sm id="1" translate="no"/>big<em startRef="1"/> you | Hi _ you | you <sm id="1" translate="no"/>big<em startRef="1"/> Hi
""".strip().splitlines()
DATA = "<originalData><data id='d1'>%s</data><data id='d2'>&lt;br/></data></originalData>"


@pytest.mark.parametrize("row", CODES)
def test_inline_elements_stay_with_their_words(row):
    source, line, expected = (cell.strip() for cell in row.split("|"))
    lines, result, notice = translated(unit(DATA, segment(source)), by=reversed_words)
    assert ([COPY.sub("_", text) for text in lines], notice) == ([line], "")
    assert f"</source><target>{expected}</target>" in result


@pytest.mark.parametrize("code", ['<ph id="1"/>', '<cp hex="0007"/>', '<pc id="1"/>'])
def test_codes_between_words(code):
    lines, result, notice = translated(unit(segment(f"Hi {code} you")))
    assert (lines, notice) == (["Hi you"], "")
    assert f"<target>HI {code} YOU</target>" in result


def test_codes_that_must_keep_their_order():
    source = 'a <ph id="1" canReorder="firstNo"/> b <ph id="2" canReorder="no"/> c'
    _, result, notice = translated(unit(segment(source)), by=reversed_words)
    assert f"<target>{source}</target>" in result
    assert notice == "units left untranslated because their codes must keep their order: 1"
    _, result, notice = translated(unit(segment(source)), by=capitals)
    assert ("<target>A <ph" in result, notice) == (True, "")


def test_white_space_is_declared_as_in_the_source():
    source = '<segment><source xml:space="preserve"> One  </source></segment>'
    _, result, _ = translated(unit(source))
    assert '<target xml:space="preserve"> ONE  </target>' in result


def test_messages_are_translated_branch_by_branch():
    source = '{N, plural, =1 {one file} other {<ph id="0" equiv="INTERPOLATION"/> files}}'
    lines, result, _ = translated(unit(segment(source)))
    assert lines == ["one file", "files"]
    expected = source.replace("one file", "ONE FILE").replace(" files", " FILES")
    assert f"<target>{expected}</target>" in result


def test_a_missing_target_language_is_declared():
    before = BEFORE.replace(' trgLang="de"', "")
    document = read_document("xliff", f"{before}{AFTER}".encode(), "de", "en")
    assert document.join([]).decode() == f"{BEFORE}{AFTER}"


@pytest.mark.parametrize(
    ("languages", "problem"),
    [
        ('srcLang="en" trgLang="fr"', 'line 1: declares trgLang="fr", but the model has German'),
        ('srcLang="fr"', 'line 1: declares srcLang="fr", but the model has English'),
    ],
)
def test_other_languages_are_refused(languages, problem):
    with pytest.raises(NMTError) as error:
        read_document("xliff", f'<xliff version="2.0" {languages}/>'.encode(), "de", "en")
    assert str(error.value).startswith(problem)


def test_prefixes_of_elements():
    before = '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">'
    source = "<x:segment><x:source>One</x:source></x:segment>"
    content = f"{before}<x:file id='f'><x:unit id='u'>{source}</x:unit></x:file></x:xliff>"
    document = read_document("xliff", content.encode())
    result = document.join(capitals(document.lines)).decode()
    assert "</x:source><x:target>ONE</x:target></x:segment>" in result


def test_text_without_words_gets_no_target():
    content = unit(segment("12 <ph id='1'/>"), segment("{0}"))
    assert translated(content, by=same) == ([], content, "")
