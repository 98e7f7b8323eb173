"""Lines that are in another script than the source language of the model."""

import pytest

from nmt.translation.foreign import is_in_other_script, is_left_as_it_is


@pytest.mark.parametrize(
    ("line", "source", "is_foreign"),
    [
        ("ファイルを開きます。", "en", True),
        ("ファイルを開きます。", "ja", False),
        ("ファイルを開きます。", "jpn_Jpan", False),
        ("打开文件。", "ja", False),
        ("Откройте файл.", "uk", False),
        ("Откройте файл.", "el", True),
        ("เปิดไฟล์", "en-US", True),
        ("فایل را باز کنید", "hi", True),
        ("Open ファイル", "en", False),
        ("Open the file.", "th", True),
        ("π = 3,14", "en", False),
        ("123 !?", "en", False),
        ("", "en", False),
        ("ファイル", "xx", False),
        ("ファイル", None, False),
    ],
)
def test_lines_in_another_script(line, source, is_foreign):
    assert is_in_other_script(line, source) == is_foreign
    assert is_left_as_it_is(line, line, source) == is_foreign
    assert not is_left_as_it_is(line, "abc", source)
