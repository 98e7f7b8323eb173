"""XLIFF 1.2: what becomes of segments, codes and messages."""

from html import unescape
from xml.etree import ElementTree

import pytest
from pseudo import capitals

from nmt.plugins.documents import Translated, read_document
from nmt.plugins.protection.copies import COPY

STATE = ' state="needs-review-translation"'


def translated(unit: str, by=capitals, target: str = "") -> tuple[list[str], str, str]:
    """The lines of a unit, the unit with its translation, and the notice."""
    before, after = "<xliff version='1.2'><body><trans-unit id='1'>", "</trans-unit></body></xliff>"
    document = read_document("xliff", f"{before}{unit}{after}".encode(), target)
    result = document.join(by(document.lines)).decode()
    ElementTree.fromstring(result)
    return document.lines, result.removeprefix(before).removesuffix(after), document.notice


def seg(mid: int, text: str) -> str:
    return f'<mrk mtype="seg" mid="{mid}">{text}</mrk>'


A, B = 'One <g id="1">red</g> ball.', "A bird &amp; x!"
NEW_A, NEW_B = 'ONE <g id="1">RED</g> BALL.', "A BIRD &amp; X!"
SOURCE = f"<source>{A} {B}</source>"
SEGMENTS = f"<seg-source>{seg(0, A)} {seg(1, B)}</seg-source>"
NEW = f"<target{STATE}>{seg(0, NEW_A)} {seg(1, NEW_B)}</target>"


@pytest.mark.parametrize(
    "target", ["", f"<target>{seg(0, '')} {seg(1, ' ')}</target>", '<target state="new">x</target>']
)
def test_a_target_gets_the_segments_of_its_source(target):
    lines, result, notice = translated(f"{SOURCE}{SEGMENTS}{target}")
    assert lines == ["One red ball.", "A bird & x!"]
    assert (result, notice) == (f"{SOURCE}{SEGMENTS}{NEW}", "")


def test_segments_inside_of_elements_and_what_is_between_them():
    two = seg(3, '<x id="4"/>Two!')
    inside = f"  <g id='9'>{seg(1, 'One.')} - {seg(2, '12')}</g><ph id='3'>and</ph>\n{two} "
    lines, result, notice = translated(
        f"<source>One. 12 Two!</source><seg-source>{inside}</seg-source>"
    )
    expected = inside.replace("One", "ONE").replace("Two", "TWO")
    assert (lines, notice) == (["One.", "Two!"], "")
    assert result.endswith(f"<target{STATE}>{expected}</target>")
    between = f"<seg-source>{seg(1, 'One')} and {seg(2, 'two')}</seg-source>"
    assert translated(f"<source>x</source>{between}")[2].startswith(
        "units with text between segments"
    )


@pytest.mark.parametrize(
    "empty", ['<mrk mtype="seg" mid="1"></mrk>', '<mrk mtype="seg" mid="1" />', seg(1, " ")]
)
def test_empty_segments_of_a_target_are_filled(empty):
    done = seg(0, "Ein Ball.")
    lines, result, notice = translated(
        f"{SOURCE}{SEGMENTS}<target state='translated'>{done} {empty}</target>"
    )
    assert (lines, notice) == (["A bird & x!"], "")
    target = ElementTree.fromstring(result.partition("</seg-source>")[2])
    assert ["".join(segment.itertext()) for segment in target] == ["Ein Ball.", "A BIRD & X!"]
    unit = f"{SOURCE}{SEGMENTS}<target>{done}</target>"
    assert translated(unit) == (
        [],
        unit,
        "segments left untranslated because their target lacks them: 1",
    )
    unit = f"{SOURCE}{SEGMENTS}<target>{done} {seg(1, 'b')}</target>"
    assert translated(unit) == ([], unit, "")


CODES = """
<x id="2" ctype="lb"/>|apart
<x id="2" ctype="x-html-BR"/>|apart
<x id="2" ctype="x-p" equiv-text="&lt;p&gt;"/>|apart
<x id="2" equiv-text="&lt;br/&gt;"/>|apart
<x id="2"/>|together
<x id="INTERPOLATION" equiv-text="{{n}}"/>|together
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
def test_codes_that_break_a_line_separate_words(row):
    code, expected = row.split("|")
    lines, result, _ = translated(f"<source>One{code}two</source>")
    words = ["One", "x", "two"] if code.startswith("<g") else ["One", "two"]
    assert lines == [(" " if expected == "apart" else "").join(words)]
    assert result.count(code.partition(">")[0]) == 2


MESSAGE = '{N, plural, =0 {now} =1 {one minute} other {<x id="1"/> minutes &amp; more}}'


def test_messages_are_translated_branch_by_branch():
    lines, result, notice = translated(f"<source>{MESSAGE}</source>", target="de")
    assert (lines, notice) == (["now", "one minute", "minutes & more"], "")
    texts = ("now", "one minute", "minutes", "more")
    expected = MESSAGE
    for text in texts:
        expected = expected.replace(text, text.upper())
    assert result.endswith(f"<target{STATE}>{expected}</target>")
    paired = "<source>{N, plural, other {<g id='1'>a</g> b}}</source>"
    assert translated(paired) == (
        [],
        paired,
        "units left untranslated because nmt cannot parse their ICU syntax: 1",
    )
    kept = "<source>{N, plural, other {# {a} b}}</source>"
    lost = translated(kept, by=lambda lines: [Translated("x")])
    assert lost[1:] == (
        kept + f"<target{STATE}>{kept[8:-9]}</target>",
        "units left untranslated because the model lost their placeholders: 1",
    )


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


def test_scripts_of_words_are_text():
    ordinal = 'the 1<g id="1" ctype="x-sup">st</g> one'
    assert translated(f"<source>{ordinal}</source>")[0] == ["the 1st one"]
    note = "the call<ph id='1'>&lt;sup></ph>1<ph id='2'>&lt;/sup></ph> ends"
    lines, result, _ = translated(f"<source>{note}</source>")
    assert lines == ["the call ends"]
    expected = note.replace("the call", "THE CALL").replace("ends", "ENDS")
    assert result.endswith(f"{expected}</target>")
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
