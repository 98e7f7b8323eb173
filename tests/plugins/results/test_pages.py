"""Pages: escaping, numbers and marked differences."""

import math

import pytest

from nmt.plugins.results import pages
from nmt.plugins.results.pages import devices_in_words, differences, number, render, with_code


def test_unprintable_characters_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "TEMPLATES", tmp_path)
    (tmp_path / "x.html").write_text("{{ text }}")
    assert (
        render("x.html", text="<b>\0\x07\x7f\ud800\uffff\u202e")
        == f"&lt;b&gt;{5 * chr(0xFFFD)}\u202e"
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("run `nmt average` before <b>", "run <code>nmt average</code> before &lt;b&gt;"),
        ("`a` & `<b>`", "<code>a</code> &amp; <code>&lt;b&gt;</code>"),
        ("an odd ` sign", "an odd ` sign"),
    ],
)
def test_commands_in_messages_become_code(message, shown):
    assert with_code(message) == shown


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("1 x cpu (1 threads)", "CPU, 1 thread"),
        ("1 x cpu (16 threads)", "CPU, 16 threads"),
        ("2 x cpu (1 threads)", "2 x CPU, 1 thread each"),
        ("1 x NVIDIA H100 80GB", "NVIDIA H100 80GB"),
        ("8 x NVIDIA H100 80GB", "8 x NVIDIA H100 80GB"),
        ("1 x abacus", "abacus"),
    ],
)
def test_devices_in_words(recorded, shown):
    assert devices_in_words(recorded) == shown


def test_number_format():
    for value, text in (
        (0, "0"),
        (math.nan, "nan"),
        (3.14159, "3.142"),
        (-0.5, "-0.5"),
        (12345.6, "12,346"),
        (0.0700, "0.07"),
        (3.3e18, "3.3e+18"),
        (9999.9, "10,000"),
        (1_896_000_001, "1,896,000,001"),
        (65_123_456.0, "65,123,456"),
    ):
        assert number(value) == text


def test_differences_cover_both_texts():
    reference, hypothesis = "Der rote Hund läuft.", "Der blaue Hund läuft schnell!"
    missed, wrong = differences(reference, hypothesis)
    assert "".join(text for text, _ in missed) == reference
    assert "".join(text for text, _ in wrong) == hypothesis
    assert [text for text, differs in missed if differs] == ["rote", "."]
    assert [text for text, differs in wrong if differs] == ["blaue", "schnell", "!"]
    assert not any(differs for side in differences("Ja, gut.", "Ja, gut.") for _, differs in side)
    assert differences("Ja", "") == ([("Ja", True)], [])


@pytest.mark.parametrize(
    ("reference", "hypothesis", "missed", "wrong"),
    [
        ("設定を開く。", "設定を閉じる。", ["開", "く"], ["閉", "じ", "る"]),
        ("设置文件已更新。", "设置文件已经更新。", [], ["经"]),
        ("เปิดแฟ้ม", "ปิดแฟ้ม", ["เ"], []),
        ("उसका नाम", "उसकी नाम", ["उसका"], ["उसकी"]),
        ("파일을 엽니다.", "파일이 엽니다.", ["파일을"], ["파일이"]),
        ("Я иду.", "Я бегу.", ["иду"], ["бегу"]),
        ("كِتَاب جديد", "كِتَاب قديم", ["جديد"], ["قديم"]),
        ("Debian 12の設定", "Debian 13の設定", ["12"], ["13"]),
    ],
)
def test_parts_are_words_or_characters_by_script(reference, hypothesis, missed, wrong):
    sides = differences(reference, hypothesis)
    assert ["".join(text for text, _ in side) for side in sides] == [reference, hypothesis]
    assert [[text for text, differs in side if differs] for side in sides] == [missed, wrong]
