"""Comparisons divide test sets in any script by length and by rare words."""

import pytest

from nmt.plugins.results.buckets import divisions, words_of
from nmt.plugins.results.test_set import TestSet


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("Open the new file.", "1-5"),
        ("Open the new file and close the old window.", "6-10"),
        ("", "1-5"),
        ("新しいファイルを開きます。", "1-5"),
        ("設定画面を開き、保存ボタンをクリックしてから、古いウィンドウを閉じます。", "11-15"),
        ("打开新文件，然后关闭旧窗口，最后重新启动计算机。", "11-15"),
        ("เปิดแฟ้มใหม่แล้วปิดหน้าต่างเก่าจากนั้นเริ่มคอมพิวเตอร์ใหม่", "11-15"),
        ("새 파일을 엽니다.", "1-5"),
        ("Откройте новый файл и закройте старое окно.", "6-10"),
    ],
)
def test_bucket_by_length_in_each_script(source: str, label: str) -> None:
    [(title, labels, buckets)], _ = divisions(TestSet("test", [source], ["x"]))
    assert title == "Words in the source"
    assert [labels[bucket] for bucket in buckets] == [label]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't open 3 files.", ["don", "t", "open", "3", "files"]),
        ("新しいファイルを開く。", ["新", "し", "い", "ファイル", "を", "開", "く"]),
        ("打开文件。", ["打", "开", "文", "件"]),
        ("น้ำดื่ม", ["น้ำ", "ดื่", "ม"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("كِتَاب", ["كِتَاب"]),
        ("파일을 연다", ["파일을", "연다"]),
    ],
)
def test_words_in_each_script(text: str, words: list[str]) -> None:
    assert words_of(text) == words
