"""SubStation Alpha: only the shown text of dialogue changes."""

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo

HEAD = """[Script Info]
; a comment
Title: A title
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Fonts]
fontname: my_0.ttf
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,no text

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,a note
"""
EVENT = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,"


def reverse(lines):
    """The words in reverse order, each of them backwards."""
    translations = []
    for line in lines:
        words = line.split()
        text = " ".join(word[::-1] for word in reversed(words))
        alignment = [(index, len(words) - 1 - index) for index in range(len(words))]
        translations.append(Translated(text, alignment))
    return translations


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (r"One, two\Nthree", ["One, two three"], r"eerht\Nowt ,enO"),
        (r"One\htwo", ["One two"], r"owt\henO"),
        (r"{\an8}One {\i1}two{\i0} three", ["One two three"], r"{\an8}eerht {\i1}owt{\i0} enO"),
        (r"{\c&HFF&}One {\c&HAA&}two", ["One two"], r"{\c&HAA&}owt {\c&HFF&}enO"),
        (r"{\b1}One {\i1}two{\r} three", ["One two three"], r"eerht {\b1}{\i1}owt enO{\r}"),
        (r"- One two\N{\i1}- three", ["One two", "three"], r"- owt enO\N{\i1}- eerht"),
        (r"{\p1}m 0 0 l 9 9{\p0}One two", ["One two"], r"{\p1}m 0 0 l 9 9{\p0}owt enO"),
        (r"{\p1}m 0 0 l 9 9 is no text", [], r"{\p1}m 0 0 l 9 9 is no text"),
        (r"{a remark}One", ["One"], r"{a remark}enO"),
        (r"One {two", ["One {two"], "owt( enO"),
        (r"\{One\} two", ["two"], r"\{One\} owt"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_shown_text_changes(text, lines, expected, end):
    source = f"{HEAD}{EVENT}{text}\n".replace("\n", end)
    read, result, notice = pseudo("ass", source, reverse)
    assert (read, notice) == (lines, "")
    assert result == f"{HEAD}{EVENT}{expected}\n".replace("\n", end)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        (r"{\k20}ki{\k30}ra {\k10}no", "kira no", r"{\k20}{\k30}KIRA {\k10}NO"),
        (r"{\kf5}One {\kt9}{\kf7\i1}two", "One two", r"{\kf5}ONE {\kt9}{\kf7\i1}TWO"),
        (r"{\k}One\N{\K10}two", "One two", r"{\k}ONE\N{\K10}TWO"),
    ],
)
def test_the_model_reads_whole_words_and_syllables_keep_their_times(text, line, expected):
    lines, result, _ = pseudo("ass", f"{HEAD}{EVENT}{text}\n")
    assert (lines, result) == ([line], f"{HEAD}{EVENT}{expected}\n")


def test_the_format_line_names_the_fields():
    events = (
        "[Events]\nFormat: Start, End, Style, Text\nDialogue: 0:00:01.00,0:00:02.00,A,One, two\n"
    )
    assert pseudo("ass", events)[:2] == (["One, two"], events.replace("One, two", "ONE, TWO"))
    # Version 4 has another first field.
    old = "[events]\nDialogue: Marked = 0,0:00:01.00,0:00:02.00,A,,0,0,0,,One\nDialogue: 0,1\n"
    assert pseudo("ass", old)[:2] == (["One"], old.replace("One", "ONE"))


def test_generated_effects_stay_and_are_reported():
    generated = EVENT.replace(",,0,0,0,,", ",,0,0,0,fx,")
    source = f"{HEAD}{generated}ki\n{EVENT}One\n{generated}ra\n"
    lines, _, notice = pseudo("ass", source)
    assert lines == ["One"]
    assert notice == "generated effects (fx) left unchanged: 2 (number 1, 3)"


def test_a_file_without_events_is_refused():
    with pytest.raises(NMTError, match=r"no line \[Events\]"):
        read_document("ass", b"[Script Info]\nTitle: A\n")
