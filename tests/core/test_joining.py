"""Blanks between the translations of a line's segments."""

import pytest

from nmt.config import TokenizerConfig
from nmt.search import Hypothesis
from nmt.text import TARGET, Tokenizer, train_tokenizer
from nmt.translation import Limits, Segment, Translator
from nmt.translation.joining import join
from tests.core.test_segments import Echo

SIGNS = "Open the new file. Debian 12 新しいファイルを開きます。古文件连 ไฟล์ใหม่ 파일을 엽니다."


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([SIGNS] * 9, TokenizerConfig("bpe", 400))


def joined(tokenizer: Tokenizer, rows: list[tuple[str, str | None, bool]], prefix: str = "") -> str:
    """Join translations; a row has a source, its translation or None for a copy, and `glued`."""
    before = tokenizer.encode([prefix], TARGET)[0]
    segments = list[Segment]()
    parts = list[Hypothesis]()
    for source, translation, glued in rows:
        segments.append(Segment([], source, copied=translation is None, glued=glued))
        tokens = [*before, *tokenizer.encode([translation or ""], TARGET)[0]]
        parts.append(Hypothesis([] if translation is None else tokens, -1.0, -1.0))
    result = join(tokenizer, segments, parts, before)
    assert len(result.spans) == len(result.tokens) == len(rows)
    for (begin, end), (source, translation, _) in zip(result.spans[1:], rows[1:], strict=True):
        expected = source if translation is None else translation
        assert result.text[begin:end] == expected
    return result.text


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("A.", "開く。", False), ("B.", "古い。", False)], "開く。古い。"),
        ([("A.", "開く。", False), ("B.", "Debian。", False)], "開く。Debian。"),
        ([("A.", "ไฟล์", False), ("B.", "ใหม่", False)], "ไฟล์ ใหม่"),
        ([("A.", "파일.", False), ("B.", "엽니다.", False)], "파일. 엽니다."),
        ([("開く。", "Open.", False), ("古い。", "Old.", False)], "Open. Old."),
        # Copies keep the blanks of the source, but not beside the letters of the other script.
        ([("Use", "開く", False), ("Łódź", None, False)], "開く Łódź"),
        ([("Use", "開く", False), ("☃", None, True), ("x", "古", True)], "開く☃古"),
        ([("漢", None, False), ("を使う", "Open it.", True)], "漢 Open it."),
        ([("開く", "Open", False), ("漢", None, True)], "Open 漢"),
        ([("開く", "文件", False), ("Debian", None, True)], "文件Debian"),
        ([("開く", "文件", False), ("漢", None, True)], "文件漢"),
        ([("file", "Datei", False), ("漢", None, True)], "Datei漢"),
        # The blank before an empty translation is not lost.
        ([("A", "Open", False), ("B", "", False), ("C", "the", True)], "Open the"),
        ([("A", "開", False), ("B", "", False), ("C", "古", True)], "開古"),
        ([("A", "", False), ("B", "the", False)], "the"),
    ],
)
def test_blanks_between_segments(tokenizer, rows, text):
    assert joined(tokenizer, rows) == text


@pytest.mark.parametrize("prefix", ["Open", "新しい"])
def test_the_prefix_is_written_once_before_a_copy(tokenizer, prefix):
    rows = [("☃", None, False), ("a", "古文件", False)]
    text = joined(tokenizer, rows, prefix)
    assert text.startswith(f"{prefix} ☃")
    assert text.count(prefix) == 1


def test_chinese_sentences_are_joined_without_blanks(tokenizer):
    limits = Limits(split=True, language="zh")
    for blank in ("", " "):
        line = f"古文件。{blank}新文件。"
        [[best]] = Translator(Echo(), tokenizer, limits, details=True).translate([line])
        assert best.text == "古文件。新文件。"
        sentences = {(source < 3, target < 3) for source, target in best.details.alignment}
        assert sentences == {(True, True), (False, False)}
