"""XLIFF 1.2: segments, codes and messages."""

from html import unescape
from xml.etree import ElementTree

import pytest

from nmt.items import COPY
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals

STATE = ' state="needs-review-translation"'


def translated(unit: str, by=capitals, target: str = "") -> tuple[list[str], str, str]:
    """The lines of a unit, the unit with its translation, and the notice."""
    before = "<xliff version='1.2'><body><trans-unit id='1'>"
    after = "</trans-unit></body></xliff>"
    document = read_document("xliff", f"{before}{unit}{after}".encode(), target)
    result = document.join(by(document.lines)).decode()
    ElementTree.fromstring(result)
    return document.lines, result.removeprefix(before).removesuffix(after), document.notice


def seg(mid: int, text: str) -> str:
    return f'<mrk mtype="seg" mid="{mid}">{text}</mrk>'


A = 'One <g id="1">red</g> ball.'
B = "A bird &amp; x!"
NEW_A = 'ONE <g id="1">RED</g> BALL.'
NEW_B = "A BIRD &amp; X!"
SOURCE = f"<source>{A} {B}</source>"
SEGMENTS = f"<seg-source>{seg(0, A)} {seg(1, B)}</seg-source>"
DONE = seg(0, "Ein Ball.")
NEW = f"<target{STATE}>{seg(0, NEW_A)} {seg(1, NEW_B)}</target>"


@pytest.mark.parametrize(
    "target", ["", f"<target>{seg(0, '')} {seg(1, ' ')}</target>", '<target state="new">x</target>']
)
def test_a_new_target_has_the_segments_of_its_source(target):
    lines, result, notice = translated(f"{SOURCE}{SEGMENTS}{target}")
    assert lines == ["One red ball.", "A bird & x!"]
    assert (result, notice) == (f"{SOURCE}{SEGMENTS}{NEW}", "")


def test_segments_inside_of_other_elements():
    two = seg(3, '<x id="4"/>Two!')
    inside = f"  <g id='9'>{seg(1, 'One.')} - {seg(2, '12')}</g><ph id='3'>and</ph>\n{two} "
    lines, result, notice = translated(
        f"<source>One. 12 Two!</source><seg-source>{inside}</seg-source>"
    )
    expected = inside.replace("One", "ONE").replace("Two", "TWO")
    assert (lines, notice) == (["One.", "Two!"], "")
    assert result.endswith(f"<target{STATE}>{expected}</target>")


def test_text_between_segments_is_reported():
    segments = f"<seg-source>{seg(1, 'One')} and {seg(2, 'two')}</seg-source>"
    _, _, notice = translated(f"<source>x</source>{segments}")
    assert notice.startswith("units with text between segments")


@pytest.mark.parametrize(
    "empty", ['<mrk mtype="seg" mid="1"></mrk>', '<mrk mtype="seg" mid="1" />', seg(1, " ")]
)
def test_empty_segments_of_a_target_are_filled(empty):
    target = f"<target state='translated'>{DONE} {empty}</target>"
    lines, result, notice = translated(f"{SOURCE}{SEGMENTS}{target}")
    assert (lines, notice) == (["A bird & x!"], "")
    _, _, new_target = result.partition("</seg-source>")
    texts = ["".join(segment.itertext()) for segment in ElementTree.fromstring(new_target)]
    assert texts == ["Ein Ball.", "A BIRD & X!"]


def test_segments_that_a_target_lacks_are_reported():
    unit = f"{SOURCE}{SEGMENTS}<target>{DONE}</target>"
    lines, result, notice = translated(unit)
    assert lines == []
    assert result == unit
    assert notice == "segments left untranslated because their target lacks them: 1"


def test_a_whole_target_stays():
    unit = f"{SOURCE}{SEGMENTS}<target>{DONE} {seg(1, 'b')}</target>"
    assert translated(unit) == ([], unit, "")


CODES = """
<x id="2" ctype="lb"/>|apart
<x id="2" ctype="x-html-BR"/>|apart
<x id="2" ctype="x-p" equiv-text="&lt;p&gt;"/>|apart
<x id="2" equiv-text="&lt;br/&gt;"/>|apart
<x id="2"/>|together
<ph id="2">&lt;br/&gt;</ph>|apart
<ph id="2">&amp;lt;br/&amp;gt;</ph>|apart
<ph id="2">\\n</ph>|apart
<ph id="2"><![CDATA[<BR clear="all">]]></ph>|apart
<ph id="2">&lt;b class="br"&gt;</ph>|together
<it id="2" pos="open">&lt;/p&gt;&lt;p&gt;</it>|apart
<it id="2" pos="open">&lt;i&gt;</it>|together
<bpt id="2">&lt;li&gt;</bpt>|apart
<bpt id="2">&lt;/td&gt;&lt;td&gt;</bpt>|apart
<bpt id="2">&lt;b&gt;</bpt>|together
<ept id="2">&lt;/div&gt;</ept>|apart
<bx id="2" ctype="x-td"/>|apart
<g id="2" ctype="x-html-li">x</g>|apart
<g id="2" ctype="bold">x</g>|together
""".strip().splitlines()


@pytest.mark.parametrize("row", CODES)
def test_only_codes_that_break_a_line_separate_words(row):
    code, expected = row.split("|")
    lines, result, _ = translated(f"<source>One{code}two</source>")
    words = ["One", "x", "two"] if code.startswith("<g") else ["One", "two"]
    blank = " " if expected == "apart" else ""
    assert lines == [blank.join(words)]
    assert result.count(code.partition(">")[0]) == 2


MESSAGE = '{N, plural, =0 {now} =1 {one minute} other {<x id="1"/> minutes &amp; more}}'


def test_messages_are_translated_branch_by_branch():
    lines, result, notice = translated(f"<source>{MESSAGE}</source>", target="de")
    assert (lines, notice) == (["now", "one minute", "minutes & more"], "")
    expected = MESSAGE
    for text in ("now", "one minute", "minutes", "more"):
        expected = expected.replace(text, text.upper())
    assert result.endswith(f"<target{STATE}>{expected}</target>")


def test_messages_with_pairs_of_tags_stay():
    unit = "<source>{N, plural, other {<g id='1'>a</g> b}}</source>"
    lines, result, notice = translated(unit)
    assert lines == []
    assert result == unit
    assert notice == "units left untranslated because nmt cannot parse their ICU syntax: 1"


def test_a_message_that_would_lose_an_argument_is_copied():
    message = "{N, plural, other {# {a} b}}"
    source = f"<source>{message}</source>"
    _, result, notice = translated(source, by=lambda lines: [Translated("x")])
    assert result == f"{source}<target{STATE}>{message}</target>"
    assert notice == "units left untranslated because the translation lost their placeholders: 1"


SCRIPTS = """
10<g id="1" ctype="x-html-sup">6</g>
10<g id="1" ctype="x-sup">6</g>
CO<g id="1" ctype="x-html-SUB">2</g>
10<ph id="1">&lt;sup&gt;</ph>6<ph id="2">&lt;/sup&gt;</ph>
10<ph id="1">&amp;lt;sup&amp;gt;</ph>6<ph id="2">&amp;lt;/sup&amp;gt;</ph>
10<ph id="1"><![CDATA[<sup class="a">]]></ph>6<ph id="2"><![CDATA[</sup>]]></ph>
10<bpt id="1">&lt;sup&gt;</bpt>6<ept id="1">&lt;/sup&gt;</ept>
10<bpt id="1" ctype="superscript">x</bpt>6<ept id="1"/>
10<bx id="1" ctype="x-sup"/>6<ex id="2" rid="1"/>
10<x id="1" ctype="x-sup"/>6<x id="2" ctype="x-sup"/>
10<x id="START" equiv-text="&lt;sup>"/>6<x id="CLOSE" ctype="x-sup" equiv-text="&lt;/sup>"/>
10<it id="1" pos="open">&lt;sup&gt;</it>6<it id="2" pos="close">&lt;/sup&gt;</it>
""".strip().splitlines()


@pytest.mark.parametrize("power", SCRIPTS)
def test_powers_are_single_items(power):
    def moved(lines: list[str]) -> list[Translated]:
        [item] = [copy[0] for copy in COPY.finditer(lines[0])]
        return [Translated(f"Neu {item} hier")]

    lines, result, _ = translated(f"<source>There are {power} now</source>", by=moved)
    assert [COPY.sub("_", line) for line in lines] == ["There are _ now"]
    assert result.endswith(f"<target{STATE}>Neu {power} hier</target>")


def test_an_ordinal_is_text():
    ordinal = 'the 1<g id="1" ctype="x-sup">st</g> one'
    lines, _, _ = translated(f"<source>{ordinal}</source>")
    assert lines == ["the 1st one"]


def test_the_call_of_a_footnote_is_a_tag():
    note = "the call<ph id='1'>&lt;sup></ph>1<ph id='2'>&lt;/sup></ph> ends"
    lines, result, _ = translated(f"<source>{note}</source>")
    assert lines == ["the call ends"]
    expected = note.replace("the call", "THE CALL").replace("ends", "ENDS")
    assert result.endswith(f"{expected}</target>")


def test_a_message_may_contain_a_power():
    message = "{N, plural, other {10<ph id='1'>&lt;sup></ph>6<ph id='2'>&lt;/sup></ph> cells}}"
    lines, result, notice = translated(f"<source>{message}</source>")
    assert (lines, notice) == (["cells"], "")
    assert result.endswith(message.replace("cells", "CELLS") + "</target>")


@pytest.mark.parametrize(
    "text",
    [
        "One.\n\nTwo.",
        "First line\nsecond line",
        "Name\tsize",
        "One.&#10;Two.",
        "\n   Open the\n   file.\n  ",
    ],
)
def test_line_breaks_and_tabs_keep_their_places(text):
    lines, result, _ = translated(f"<source>{text}</source>")
    assert lines == [" ".join(unescape(text).split())]
    assert f">{text.upper()}</target>" in result
