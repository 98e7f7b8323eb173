"""The words of the details of changed translations."""

import pytest

from nmt.items.finder import Finder
from nmt.plugins.protection.masking import MaskedLine, ProtectedLine
from nmt.plugins.protection.rewriting import Change, Rewriting
from nmt.text import word_spans
from nmt.translation import Details, Line, Translation


@pytest.mark.parametrize(
    ("text", "changes", "result", "words"),
    [
        ("Open A1 now", [(5, 7, "the file")], "Open the file now", [[0], [1, 2], [3]]),
        ("A1を開く", [(0, 2, "設定")], "設定を開く", [[0, 1], [2], [3], [4]]),
        ("(A1)を", [(1, 3, "設定")], "(設定)を", [[0, 1, 2], [3]]),
        ("設A1定", [(1, 3, "。")], "設。定", [[0], [0], [1]]),
        ("A1ไฟล์", [(0, 2, "55%")], "55%ไฟล์", [[0], [1], [2], [3]]),
        ("ab", [(2, 2, " c")], "ab c", [[0]]),
    ],
)
def test_words_of_a_changed_text(text, changes, result, words):
    rewriting = Rewriting(text, [Change(*change) for change in changes])
    assert rewriting.text == result
    assert [[*row] for row in rewriting.words()] == words


def with_lost_name(
    line: str, text: str, alignment: list[tuple[int, int]], name: str = "A1"
) -> Translation:
    """A translation in which the lost name of the line's item is restored."""
    mask = MaskedLine(ProtectedLine(Line(line), Finder(["usual"]).stretches(line)), [name])
    scores: list[float | None] = [-1.0] * len(word_spans(text))
    details = Details([], [], alignment, scores)
    return mask.aligned(Translation(text, -1.0, -1.0, details))


@pytest.mark.parametrize(
    ("line", "text", "alignment", "result"),
    [
        # The word, or the run of characters, that is aligned with the name only is replaced.
        ("the {name} waits", "das Haus wartet", [(0, 0), (1, 1), (2, 2)], "das A1 wartet"),
        ("the {name} waits", "古家を待つ。", [(1, 0), (1, 1), (2, 3), (2, 4)], "A1を待つ。"),
        ("the {name} waits", "待つ家。", [(2, 0), (2, 1), (1, 2)], "待つA1。"),
        ("the {name} waits", "रुकता कि है", [(0, 0), (1, 1), (2, 2)], "रुकता A1 है"),
        # Otherwise the name follows the word, but never within katakana.
        ("the {name} waits", "das wartet", [(1, 1), (2, 1)], "das wartet A1"),
        ("the {name} waits", "プリンターを待つ。", [(1, 2), (2, 2)], "プリンターA1を待つ。"),
        ("the {name} waits", "รอไฟล์", [(1, 1), (2, 1)], "รอA1 ไฟล์"),
    ],
)
def test_where_a_lost_name_is_put(line, text, alignment, result):
    translation = with_lost_name(line, text, alignment)
    assert translation.text == result
    details = translation.details
    assert details is not None
    assert len(details.word_log_probabilities) == len(word_spans(result))
    words = [result[begin:end] for begin, end in word_spans(result)]
    [word_with_name] = [number for number, word in enumerate(words) if "A1" in word]
    assert (1, word_with_name) in details.alignment
