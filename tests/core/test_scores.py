"""Scores against the sacrebleu command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from nmt.config import BLEU_TOKENIZERS, NMTError
from nmt.evaluation import Score, bleu_tokenizer, note_fallback, score

REFERENCES = [
    "Die Katze saß auf der Matte und schlief.",
    "„Das E-Mail-Konto“, sagte er, „ist voll“ \u2013 seit 2014!",
    "Peter's state-of-the-art Kamera kostet 3.000,50 € (z.B. bei A & B).",
    "Es regnet.",
    "Die französisch-deutsche Grenze ist offen ... oder?",
]
HYPOTHESES = [
    "Die katze saß auf der Matte und schlief fest.",
    "“Das E-Mail-Fach“, sagt er, „ist voll“ - seit 2014!",
    "Peters state-of-the-art Kamera kostet 3.000,50 € (z. B. bei A & B).",
    "Es regnete.",
    "Die deutsch-französische Grenze ist offen… oder?",
]


def one(hypotheses: list[str], references: list[str], metric: str, **settings) -> Score:
    settings.setdefault("language", "de")
    return score(hypotheses, references, [metric], **settings)[0]


def sacrebleu_command(
    folder: Path, hypotheses: list[str], references: list[str], *options: str
) -> list[tuple]:
    """Name, value and signature of each metric, as the sacrebleu command prints them."""
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-w", "6", *options]
    outcome = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    printed = json.loads(outcome.stdout)
    metrics = printed if isinstance(printed, list) else [printed]
    return [(metric["name"], metric["score"], metric["signature"]) for metric in metrics]


def test_scores_are_those_of_the_sacrebleu_command_in_the_order_of_the_metrics(tmp_path):
    options = ["-m", "bleu", "chrf", "ter"]
    printed = sacrebleu_command(tmp_path, HYPOTHESES, REFERENCES, *options)
    options = ["-m", "chrf", "--chrf-word-order", "2"]
    printed += sacrebleu_command(tmp_path, HYPOTHESES, REFERENCES, *options)
    scores = score(HYPOTHESES, REFERENCES, ["bleu", "chrf", "ter", "chrf++"], "de")
    assert [(s.name, round(s.value, 6), s.signature) for s in scores] == printed
    assert [s.metric for s in scores] == ["bleu", "chrf", "ter", "chrf++"]


def test_a_score_is_printed_with_its_signature():
    printed = str(Score("chrf", "chrF2", 56.789, "nrefs:1|case:mixed"))
    assert printed == "chrF2 = 56.79  nrefs:1|case:mixed"


def test_all_tokenizers_of_sacrebleu_are_offered_but_the_deprecated_one():
    assert {*BLEU_TOKENIZERS, "spm"} == set(sacrebleu.BLEU.TOKENIZERS)


JAPANESE = ["今日は天気がよいですね。", "私は東京に住んでいます。", "猫がマットの上で寝ている。"]
CHINESE = ["今天天气很好。", "我住在北京。", "猫在垫子上睡觉。"]
KOREAN = ["오늘은 날씨가 좋네요.", "저는 서울에 살고 있습니다.", "고양이가 매트 위에서 자고 있다."]
THAI = ["วันนี้อากาศดีมาก", "ฉันอาศัยอยู่ในกรุงเทพ", "แมวนอนหลับอยู่บนเสื่อ"]


@pytest.fixture
def installed(monkeypatch) -> set[str]:
    """The tokenizers that are installed, as far as bleu_tokenizer can tell."""
    names = set[str]()
    monkeypatch.setattr(
        "nmt.evaluation.command_for",
        lambda tokenize: "" if tokenize in names else f"install {tokenize}",
    )
    note_fallback.cache_clear()
    return names


RECOMMENDED = [
    ("ja", JAPANESE, "ja-mecab"),
    ("jpn_Jpan", JAPANESE, "ja-mecab"),
    ("zh", CHINESE, "zh"),
    ("zh-Hant", CHINESE, "zh"),
    ("yue", CHINESE, "zh"),
    ("ko", KOREAN, "ko-mecab"),
    ("th", THAI, "flores200"),
    ("km", ["x"], "flores200"),
    ("lo", ["x"], "flores200"),
    ("my", ["x"], "flores200"),
    ("de", REFERENCES, "13a"),
    (None, REFERENCES, "13a"),
    ("xx", ["123"], "13a"),
    ("ja", ["123"], "ja-mecab"),
    # An unknown or wrong language: the text decides.
    (None, JAPANESE, "ja-mecab"),
    ("mul", CHINESE, "zh"),
    ("de", THAI, "flores200"),
    ("", KOREAN, "ko-mecab"),
    (None, [*REFERENCES, "東"], "13a"),
]


@pytest.mark.parametrize(("language", "lines", "expected"), RECOMMENDED)
def test_bleu_uses_the_tokenizer_that_sacrebleu_recommends(language, lines, expected, installed):
    installed |= {"zh", "ja-mecab", "ko-mecab", "flores200"}
    assert bleu_tokenizer(None, language, lines) == expected


@pytest.mark.parametrize(("language", "lines", "expected"), RECOMMENDED)
def test_bleu_counts_characters_if_the_recommended_tokenizer_is_not_installed(
    language, lines, expected, installed, capsys
):
    is_replaced = expected != "13a"
    for _ in range(2):
        tokenizer = bleu_tokenizer(None, language, lines)
        assert tokenizer == ("char" if is_replaced else expected)
    # Reported only the first time.
    notice = f"tokenizer, {expected}, is not installed; run `install {expected}`"
    assert capsys.readouterr().err.count(notice) == is_replaced


def test_a_requested_tokenizer_is_never_replaced(installed):
    installed.add("13a")
    assert bleu_tokenizer("13a", "ja", JAPANESE) == "13a"
    with pytest.raises(NMTError, match="tokenize=ja-mecab: not installed; run `install ja-mecab`"):
        bleu_tokenizer("ja-mecab", "ja", JAPANESE)


@pytest.mark.parametrize(
    ("lines", "tokenize"), [(CHINESE, None), (THAI, None), (REFERENCES, "char")]
)
def test_bleu_is_that_of_the_sacrebleu_command_with_the_tokenizer_of_the_signature(
    lines, tokenize, tmp_path
):
    hypotheses = [line.replace(line[3], line[4]) for line in lines]
    [result] = score(hypotheses, lines, ["bleu"], tokenize=tokenize)
    named = result.signature.split("|tok:")[1].split("|")[0]
    assert tokenize in (None, named)
    printed = sacrebleu_command(tmp_path, hypotheses, lines, "-m", "bleu", "--tokenize", named)
    assert [(result.name, round(result.value, 6), result.signature)] == printed
    assert result.value > 0


@pytest.mark.parametrize(
    ("language", "lines", "options"),
    [
        ("zh", CHINESE, ["--ter-asian-support", "--ter-normalized"]),
        ("ja", JAPANESE, ["--ter-asian-support", "--ter-normalized"]),
        (None, CHINESE, ["--ter-asian-support", "--ter-normalized"]),
        ("ko", KOREAN, []),
        ("de", REFERENCES, []),
    ],
)
def test_ter_splits_text_without_spaces_as_sacrebleu_can(language, lines, options, tmp_path):
    hypotheses = [line.replace(line[3], "") for line in lines]
    [result] = score(hypotheses, lines, ["ter"], language)
    printed = sacrebleu_command(tmp_path, hypotheses, lines, "-m", "ter", *options)
    assert [(result.name, round(result.value, 6), result.signature)] == printed
    assert result.value < 70


def test_ter_is_left_out_for_scripts_whose_words_it_cannot_find(capsys):
    scores = score(THAI, THAI, ["chrf", "ter"], "th")
    assert [row.metric for row in scores] == ["chrf"]
    assert "TER is left out: it counts words, and Thai script" in capsys.readouterr().err
    with pytest.raises(NMTError, match=r"metrics=\[ter\]: it counts words"):
        score(THAI, THAI, ["ter"])


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "ter"])
def test_the_signature_says_whether_case_counts(metric):
    lines = [line.replace("ß", "ss") for line in REFERENCES]
    for lowercase in (False, True):
        upper = one([line.upper() for line in lines], lines, metric, lowercase=lowercase)
        exact = upper.value == pytest.approx(0 if metric == "ter" else 100)
        assert exact == ("case:lc" in upper.signature) != ("case:mixed" in upper.signature)


def test_sides_of_different_length_are_refused():
    with pytest.raises(NMTError, match=r"hypothesis.* 12 .*reference.* 1"):
        score(["a"] * 12, ["a"], ["bleu"])
