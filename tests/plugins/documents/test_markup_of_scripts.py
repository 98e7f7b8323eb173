"""Markup in translations to and from scripts without blanks between words."""

import re
from difflib import SequenceMatcher

import pytest

from nmt.text import is_word_border, word_spans
from nmt.translation import Translated, read_document

WORDS = {
    "Open": "開きます",
    "open": "開く",
    "Delete": "削除します",
    "Close": "閉じます",
    "new": "新しい",
    "old": "古い",
    "red": "赤い",
    "file": "ファイル",
    "printer": "プリンター",
    "window": "ウィンドウ",
}


def pairs_of(source: str, target: str, lexicon: dict[str, str]) -> list[tuple[int, int]]:
    """The alignment of words that a lexicon has; other words of the target have no partner."""
    target_words = word_spans(target)
    pairs = list[tuple[int, int]]()
    for source_number, (begin, end) in enumerate(word_spans(source)):
        translation = lexicon.get(source[begin:end].strip(".,"))
        if translation is None or translation not in target:
            continue
        first = target.index(translation)
        last = first + len(translation)
        for target_number, (target_begin, target_end) in enumerate(target_words):
            if target_begin < last and target_end > first:
                pairs.append((source_number, target_number))
    return pairs


def pairs_in(rows: str) -> list[tuple[int, int]]:
    """An alignment written as `2-012 3-3`: word 2 with words 0, 1 and 2, word 3 with word 3."""
    pairs = list[tuple[int, int]]()
    for row in rows.split():
        source, targets = row.split("-")
        pairs += [(int(source), int(target)) for target in targets]
    return pairs


def rendered(format: str, text: str, target: str, pairs: list[tuple[int, int]] | None) -> str:
    document = read_document(format, text.encode(), "ja", "en")
    assert len(document.lines) == 1
    return document.join([Translated(target, pairs)]).decode()


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (
            "<i>Open</i> the new file.",
            "新しいファイルを開きます。",
            "新しいファイルを<i>開きます</i>。",
        ),
        (
            'Delete the <a href="x">old printer</a>.',
            "古いプリンターを削除します。",
            '<a href="x">古いプリンター</a>を削除します。',
        ),
        (
            "Open the <b>new</b> <i>file</i>.",
            "新しいファイルを開きます。",
            "<b>新しい</b><i>ファイル</i>を開きます。",
        ),
        (
            "Open the <b>new file.</b>",
            "新しいファイルを開きます。",
            "<b>新しいファイル</b>を開きます。",
        ),
        (
            "Delete the<br>old printer.",
            "古いプリンターを削除します。",
            "古い<br>プリンターを削除します。",
        ),
        (
            "Delete the old<br>printer.",
            "古いプリンターを削除します。",
            "古い<br>プリンターを削除します。",
        ),
    ],
)
def test_elements_go_around_the_aligned_characters(source, target, expected):
    plain = re.sub("<br>", " ", source)
    plain = re.sub("<[^>]*>", "", plain)
    assert rendered("html", source, target, pairs_of(plain, target, WORDS)) == expected


@pytest.mark.parametrize(
    ("source", "target", "pairs", "expected"),
    [
        # A model's token spells several phrases, of which its source word is only one.
        (
            "<i>Open</i> the new file.",
            "新しいファイルを開く。",
            "2-012 3-3456789",
            "新しいファイルを<i>開く</i>。",
        ),
        (
            "Open the <b>new file</b>.",
            "新しいファイルを開く。",
            "2-012 3-3456789",
            "<b>新しいファイル</b>を開く。",
        ),
        (
            "Vim opens the <b>old</b> file.",
            "Vimは古い窓を開く。",
            "0-0 3-1234567",
            "Vimは<b>古い</b>窓を開く。",
        ),
        (
            "<i>새</i> 파일을 열기",
            "新しいファイルを開く。",
            "0-012 1-3456789",
            "<i>新しい</i>ファイルを開く。",
        ),
        (
            "Run <code>x</code> <b>now</b>",
            "今􎀀x􎀀を動かす",
            "0-023456 1-1",
            "<b>今</b><code>x</code>を動かす",
        ),
        # Alignments that end within katakana, a Thai syllable or a Latin word.
        ("The <b>printer</b> runs", "プリンターが動く", "1-012 2-34567", "<b>プリンター</b>が動く"),
        ("The <b>file</b> runs", "ไฟล์ทำงาน", "1-12 2-34567", "<b>ไฟล์</b>ทำงาน"),
        # Names that stay the same are aligned with themselves, whatever a model says.
        (
            "Use <b>Vim</b> 9 here",
            "ここでVim 9を使う",
            "0-0123 1-67 2-5",
            "ここで<b>Vim</b> 9を使う",
        ),
        ("Use <b>5</b> GB here", "这里用5 GB吧", "0-012 1-5 2-3", "这里用<b>5</b> GB吧"),
        # A unit in the translation only.
        ("a <b>55</b> <i>b</i>", "A 55 B", "0-0 1-1 2-2", "A <b>55</b> <i>B</i>"),
        ("a <b>55</b> <i>b</i>", "B 55 A", "0-2 1-1 2-0", "<i>B</i> <b>55</b> A"),
        ("<b>10</b> <i>км</i> here", "10 km ici", "0-0 1-1 2-2", "<b>10</b> <i>km</i> ici"),
        ("Use <b>Vim</b> here", "Используй Vim здесь", "0-1 1-0", "Используй <b>Vim</b> здесь"),
        # No element is empty.
        (
            "Close the <b>red</b> <i>window</i>.",
            "赤い窓を閉じます。",
            "0-01234567",
            "<b>赤い</b><i>窓</i>を閉じます。",
        ),
        ("<b>Now</b> <i>open</i>", "開く", "1-01", "<b><i>開く</i></b>"),
    ],
)
def test_alignments_of_models_are_refined(source, target, pairs, expected):
    assert rendered("html", source, target, pairs_in(pairs)) == expected


@pytest.mark.parametrize(
    "target",
    [
        "新しいファイルを開きます。",
        "打开新文件。",
        "เปิดไฟล์ใหม่",
        "បើកឯកសារថ្មី",
        "ဖိုင်သတ္တဝါ",
        "👩‍👩‍👧新文👍🏽件",
    ],
)
@pytest.mark.parametrize(
    "source", ["<b>Open</b> the <i>new</i> <a>file</a>.", "Open <b>the</b> new<br>file."]
)
@pytest.mark.parametrize("seed", range(4))
def test_no_element_is_empty_or_splits_a_word_whatever_the_alignment(source, target, seed):
    count = len(word_spans(target))
    alignment = [(number * (seed + 3) % 4, number) for number in range(0, count, seed + 1)]
    result = rendered("html", source, target, alignment or None)
    assert re.sub("<[^>]*>", "", result) == target
    assert not re.search(r"<(\w)>\s*</\1>", result)
    at = 0
    for piece in re.split("(<[^>]*>)", result):
        is_tag = piece.startswith("<")
        if not is_tag:
            at += len(piece)
        assert is_word_border(target, at)


@pytest.mark.parametrize(
    ("format", "text", "lines"),
    [
        (
            "html",
            "<p>設定\n  ファイルを<br>開く。\nDebian\nです 。</p>",
            ["設定ファイルを開く。Debian です 。"],
        ),
        ("html", "<p>파일을\n엽니다</p><p>ตั้งค่า\nไฟล์</p>", ["파일을 엽니다", "ตั้งค่า ไฟล์"]),
        ("html", "<p><a>設定</a><a>説明</a></p>", ["設定 説明"]),
        ("html", "<p><b>「設定」</b><i>を開く</i></p>", ["「設定」を開く"]),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\n设置\n文件。\n", ["设置文件。"]),
        ("srt", "WEBVTT\n\n00:01.000 --> 00:02.000\n「設定」\nを開く\n", ["「設定」を開く"]),
        (
            "markdown",
            "設定ファイルを\n**開く**。\\\n新しい  \nもの\n\nOpen\nit\n",
            ["設定ファイルを開く。新しいもの", "Open it"],
        ),
        ("po", 'msgid "設定\\n開く"\nmsgstr ""\n', ["設定開く"]),
    ],
)
def test_line_breaks_of_a_paragraph_become_blanks_only_where_the_script_has_them(
    format, text, lines
):
    document = read_document(format, text.encode(), "en", "ja")
    assert document.lines == lines
    unchanged = document.join([Translated(line) for line in lines]).decode()
    assert format == "po" or unchanged == text  # catalogs are written anew


def test_a_translated_paragraph_has_no_blank_where_its_lines_were_joined():
    text = "<p>設定\nファイルを<b>開\nく</b>。</p>"
    document = read_document("html", text.encode(), "zh", "ja")
    [line] = document.lines
    target = "打开设置文件。"
    pairs = [(7, 0), (8, 1)]
    for block in SequenceMatcher(None, line, target).get_matching_blocks():
        pairs += [(block.a + n, block.b + n) for n in range(block.size)]
    assert document.join([Translated(target, pairs)]).decode() == "<p><b>打开</b>设置文件。</p>"
