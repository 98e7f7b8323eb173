"""The notice about vocabularies that single characters fill."""

import random
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.commands.preprocess import run


@pytest.mark.parametrize(
    ("first", "count", "is_told"),
    [
        (0x4E00, 250, True),  # Chinese
        (0xAC00, 250, True),  # Korean
        (0x4E00, 100, False),
        (0x1200, 250, False),  # Ethiopic, which has words between blanks
    ],
)
def test_too_many_single_characters(
    first: int,
    count: int,
    is_told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    letters = [chr(first + number) for number in range(count)]
    shuffled = random.Random(1)
    lines = ["".join(shuffled.sample(letters, 20)) + "\n" for _ in range(400)]
    Path("train.xx").write_text("".join(lines), encoding="utf-8")
    words = ["".join(shuffled.sample("abcdefghijklm", 12)) + "\n" for _ in range(400)]
    Path("train.en").write_text("".join(words))
    held_out = ["data.valid_size=50", "data.test_size=50"]
    settings = ["data.filters.max_ratio=null", "tokenizer=bpe4k", "tokenizer.vocabulary_size=700"]
    run(compose("preprocess", ["train.en", "train.xx", *held_out, *settings]))
    notices = " ".join(capsys.readouterr().err.split())
    expected = f"{count} of 700 vocabulary entries are single characters"
    assert (expected in notices) == is_told
    assert ("tokenizer.vocabulary_size=2000" in notices) == is_told
