"""XLIFF 1.2 as translation tools write it."""

from xml.etree import ElementTree

import pytest

from nmt.items import COPY
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals

MQ = 'xmlns:mq="MQXliff"'
PHRASE = 'xmlns:m="http://www.memsource.com/mxlf/2.0" m:version="2.4"'
SDL = 'xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0"'
LOCKED = "units or segments left untranslated because a tool locked or confirmed them"


def translated(
    namespace: str, unit: str, by=capitals, header: str = ""
) -> tuple[list[str], str, str]:
    """The lines of a file, its unit with their translations, and the notice."""
    before = f'<xliff {namespace} version="1.2"><file source-language="en" target-language="de">'
    before += f"<header>{header}</header><body>"
    after = "</body></file></xliff>"
    document = read_document("xliff", f"{before}{unit}{after}".encode(), "de", "en")
    result = document.join(by(document.lines)).decode()
    ElementTree.fromstring(result)
    return document.lines, result.removeprefix(before).removesuffix(after), document.notice


def turned(lines: list[str]) -> list[Translated]:
    """The words in reverse order."""
    translations = []
    for line in lines:
        words = line.split()
        pairs = [(number, len(words) - 1 - number) for number in range(len(words))]
        translations.append(Translated(" ".join(words[::-1]), pairs))
    return translations


def test_memoq():
    unit = (
        '<trans-unit id="1" mq:status="{}"><source xml:space="preserve" mq:segpart="1">Red cat'
        '</source><target xml:space="preserve">{}</target></trans-unit>'
    )
    lines, result, notice = translated(MQ, unit.format("NotStarted", ""))
    assert (lines, notice) == (["Red cat"], "")
    assert result == unit.format("MachineTranslated", "RED CAT")
    done = unit.format("ManuallyConfirmed", "Rote Katze")
    assert translated(MQ, done) == ([], done, "")


def test_pairs_of_memoq_overlap():
    source = (
        'At <bpt id="1" ctype="underlined">{}</bpt><bpt id="2" rid="1">&lt;a></bpt>big house'
        '<ept id="1">{}</ept><ept id="5" rid="1">&lt;/a></ept> now'
    )
    _, result, _ = translated(
        "", f"<trans-unit id='1'><source>{source}</source></trans-unit>", turned
    )
    begin = source.index("<bpt")
    end = source.index(" now")
    pair = source[begin:end].replace("big house", "house big")
    assert f">now {pair} At</target>" in result


def test_phrase():
    unit = (
        '<trans-unit id="1" m:trans-origin="{}" m:confirmed="0" m:locked="false">'
        "<source>Read {{1}} in {{b&gt;red ink&lt;b}}</source><target{}</trans-unit>"
    )
    lines, result, notice = translated(PHRASE, unit.format("null", "/>"), turned)
    assert ([COPY.sub("_", line) for line in lines], notice) == (["Read _ in red ink"], "")
    assert result == unit.format("mt", ">{b&gt;ink red&lt;b} in {1} Read</target>")


@pytest.mark.parametrize(
    ("namespace", "attribute"),
    [(MQ, 'mq:locked="locked"'), (PHRASE, 'm:locked="true"'), (PHRASE, 'm:confirmed="1"')],
)
def test_locked_units_stay(namespace, attribute):
    unit = f'<trans-unit id="1" {attribute}><source>One</source><target/></trans-unit>'
    assert translated(namespace, unit) == ([], unit, f"{LOCKED}: 1")


def seg(mid: int, text: str) -> str:
    return f'<mrk mtype="seg" mid="{mid}">{text}</mrk>'


def sdl_unit(target: str, *definitions: str) -> str:
    return (
        '<trans-unit id="1"><source>One. Two. Three.</source>'
        f"<seg-source>{seg(1, 'One.')} {seg(2, 'Two.')} {seg(3, 'Three.')}</seg-source>"
        f"<target>{target}</target>"
        f"<sdl:seg-defs>{''.join(definitions)}</sdl:seg-defs></trans-unit>"
    )


def test_trados_studio():
    done = '<sdl:seg id="2" conf="Translated" origin="interactive"/>'
    locked = '<sdl:seg id="3" locked="true"/>'
    empty = '<mrk mtype="seg" mid="{}"/>'
    target = f"{empty.format(1)} {seg(2, 'Zwei.')} {empty.format(3)}"
    before = sdl_unit(
        target, '<sdl:seg id="1" origin="source"><sdl:value/></sdl:seg>', done, locked
    )
    lines, result, notice = translated(SDL, before)
    assert (lines, notice) == (["One."], f"{LOCKED}: 1")
    new = '<sdl:seg id="1" origin="mt" conf="Draft"><sdl:value/></sdl:seg>'
    target = f"{seg(1, 'ONE.')} {seg(2, 'Zwei.')} {empty.format(3)}"
    assert result == sdl_unit(target, new, done, locked)


def test_a_new_target_for_trados_studio_has_no_state():
    before = sdl_unit("", '<sdl:seg id="1"/>', '<sdl:seg id="2"/>', '<sdl:seg id="3"/>')
    _, result, _ = translated(SDL, before.replace("<target></target>", ""))
    expected = [f'<sdl:seg id="{mid}" conf="Draft" origin="mt"/>' for mid in (1, 2, 3)]
    target = f"{seg(1, 'ONE.')} {seg(2, 'TWO.')} {seg(3, 'THREE.')}"
    assert result == sdl_unit(target, *expected)


def test_the_header_defines_tags_of_trados_studio():
    tags = (
        '<tag id="4"><bpt name="p">&lt;p></bpt></tag><tag id="5"><ph name="n">{{n}}</ph></tag>'
        '<tag id="6"><bpt name="b">&lt;b></bpt></tag>'
    )
    header = f"<tag-defs>{tags}</tag-defs>"
    source = 'One<g id="4">two</g><g id="6">s</g> <x id="5"/> cats'
    unit = f"<trans-unit id='1'><source>{source}</source></trans-unit>"
    [line], _, _ = translated(SDL, unit, header=header)
    assert COPY.sub("_", line) == "One two s _ cats"


ANGULAR = """
Hi <x id="INTERPOLATION" equiv-text="{{name}}"/> there
Hi <x id="INTERPOLATION_1"/> there
Hi <x id="ICU" equiv-text="{n, plural, other {a}}"/> there
Hi <x id="INTERPOLATION" equiv-text="{{ name | uppercase }}"/> there
""".strip().splitlines()


@pytest.mark.parametrize("source", ANGULAR)
def test_placeholders_of_angular(source):
    unit = f"<trans-unit id='1'><source>{source}</source></trans-unit>"
    [line], result, _ = translated("", unit, turned)
    assert COPY.sub("_", line) == "Hi _ there"
    code = source.removeprefix("Hi ").removesuffix(" there")
    assert f">there {code} Hi</target>" in result


def test_a_unit_that_would_lose_a_placeholder_stays():
    source = "<source>Open %@ now</source>"
    unit = f"<trans-unit id='1'>{source}</trans-unit>"
    _, result, notice = translated("", unit, lambda lines: [Translated("Jetzt!")])
    assert ">Open %@ now</target>" in result
    assert notice == "units left untranslated because the translation lost their placeholders: 1"


def test_texts_inside_of_codes_are_counted():
    source = '<ph id="1">&lt;img alt="<sub>A cat</sub>"></ph> Look'
    unit = f"<trans-unit id='1'><source>{source}</source></trans-unit>"
    _, result, notice = translated("", unit)
    assert result.count("<sub>A cat</sub>") == 2
    assert notice == "texts inside of codes (<sub>), which are left untranslated: 1"


def test_a_prefixed_version_is_not_that_of_the_format():
    unit = "<trans-unit id='1'><source>One</source></trans-unit>"
    assert translated('xmlns:a="b" a:version="2.0"', unit)[0] == ["One"]
