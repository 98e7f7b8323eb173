"""Scores against sacreBLEU and its command, against a multi-bleu in plain Python, and against sums done by hand."""

import json
import math
import random
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import given, strategies
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from nmt.config import BLEU_TOKENIZERS
from nmt.errors import NMTError
from nmt.evaluation import Score, bleu_tokenizer, score, scores, signature_tokenizer
from nmt.evaluation.scores import moses, split_compounds

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
SACREBLEU = ("bleu", "chrf", "chrf++", "ter")
METRICS = (*SACREBLEU, "tokenised", "split")


def one(hypotheses: list[str], references: list[str], metric: str, **settings) -> Score:
    [found] = score(hypotheses, references, [metric], **{"language": "de"} | settings)
    return found


def noisy(lines: list[str], seed: int) -> list[str]:
    """The lines with words dropped, repeated, exchanged and set in upper case."""
    draw = random.Random(seed)
    pool = " ".join(lines).split()
    changes = [lambda w: [], lambda w: [w, w], lambda w: [draw.choice(pool)], lambda w: [w.upper()]]
    return [
        " ".join(word for w in line.split() for word in (draw.choice(changes)(w) if draw.random() < 0.3 else [w]))
        for line in lines
    ]


def moses_tokens(line: str, language: str) -> str:
    """What the authors' script makes of a line: replace-unicode-punctuation.perl, then tokenizer.perl without -a."""
    replaced = MosesPunctNormalizer().replace_unicode_punct(line)
    words = MosesTokenizer(lang=language).tokenize(replaced)
    # tokenizer.perl: the last word that ends in a full stop loses it to a token of its own, whatever it is.
    if words and words[-1].endswith(".") and words[-1].strip("."):
        words[-1:] = [words[-1][:-1], "."]
    return " ".join(words)


def split_by_hand(tokenised: str) -> str:
    """Perl's s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g, character by character: what has matched is not looked at again."""
    result, place = "", 0
    while place < len(tokenised):
        three = tokenised[place : place + 3]
        if len(three) == 3 and three[1] == "-" and not three[0].isspace() and not three[2].isspace():
            result += f"{three[0]} ##AT##-##AT## {three[2]}"
            place += 3
        else:
            result += tokenised[place]
            place += 1
    return result


def multi_bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. (2002) as in multi-bleu.perl: n-grams to 4, clipped in each sentence; no smoothing."""
    matched, total, lengths = Counter(), Counter(), [0, 0]
    for hypothesis, reference in zip((h.split() for h in hypotheses), (r.split() for r in references), strict=True):
        lengths = [lengths[0] + len(hypothesis), lengths[1] + len(reference)]
        for n in range(1, 5):
            grams, allowed = (
                Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (hypothesis, reference)
            )
            total[n] += sum(grams.values())
            matched[n] += sum(min(count, allowed[gram]) for gram, count in grams.items())
    if not all(matched[n] for n in range(1, 5)):
        return 0.0
    precision = math.exp(sum(math.log(matched[n] / total[n]) for n in range(1, 5)) / 4)
    brevity = 1.0 if lengths[0] >= lengths[1] else math.exp(1 - lengths[1] / lengths[0])
    return 100 * brevity * precision


def sacrebleu_command(folder: Path, hypotheses: list[str], references: list[str], *options: str) -> list[tuple]:
    """Name, value and signature of each metric, as the sacrebleu command prints them."""
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-w", "6", *options]
    found = json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)
    return [(m["name"], m["score"], m["signature"]) for m in (found if isinstance(found, list) else [found])]


def test_name_value_and_signature_are_those_of_the_sacrebleu_command(tmp_path):
    printed = sacrebleu_command(tmp_path, HYPOTHESES, REFERENCES, "-m", "bleu", "chrf", "ter")
    plus = sacrebleu_command(tmp_path, HYPOTHESES, REFERENCES, "-m", "chrf", "--chrf-word-order", "2")
    scores = [one(HYPOTHESES, REFERENCES, metric) for metric in ("bleu", "chrf", "ter", "chrf++")]
    assert [(s.name, round(s.value, 6), s.signature) for s in scores] == [*printed, *plus]


JAPANESE = ["今日は天気がよいですね。", "私は東京に住んでいます。", "猫がマットの上で寝ている。"]
CHINESE = ["今天天气很好。", "我住在北京。", "猫在垫子上睡觉。"]
KOREAN = ["오늘은 날씨가 좋네요.", "저는 서울에 살고 있습니다.", "고양이가 매트 위에서 자고 있다."]
THAI = ["วันนี้อากาศดีมาก", "ฉันอาศัยอยู่ในกรุงเทพ", "แมวนอนหลับอยู่บนเสื่อ"]


@pytest.fixture
def installed(monkeypatch) -> set[str]:
    """The tokenizers that are installed, as far as bleu_tokenizer can tell."""
    names = set[str]()
    monkeypatch.setattr(scores, "command_for", lambda tokenize: "" if tokenize in names else f"install {tokenize}")
    scores.note_fallback.cache_clear()
    return names


@pytest.mark.parametrize(
    ("language", "lines", "expected"),
    [
        *(("ja", JAPANESE, "ja-mecab"), ("jpn_Jpan", JAPANESE, "ja-mecab"), ("zh", CHINESE, "zh")),
        *(("zh-Hant", CHINESE, "zh"), ("yue", CHINESE, "zh"), ("ko", KOREAN, "ko-mecab"), ("th", THAI, "flores200")),
        *(("km", ["x"], "flores200"), ("lo", ["x"], "flores200"), ("my", ["x"], "flores200")),
        *(("de", REFERENCES, "13a"), (None, REFERENCES, "13a"), ("xx", ["123"], "13a"), ("ja", ["123"], "ja-mecab")),
        # An unknown or wrong language: the text decides.
        *((None, JAPANESE, "ja-mecab"), ("mul", CHINESE, "zh"), ("de", THAI, "flores200"), ("", KOREAN, "ko-mecab")),
        (None, [*REFERENCES, "東"], "13a"),
    ],
)
def test_bleu_splits_words_as_sacrebleu_recommends_for_the_language(language, lines, expected, installed, capsys):
    installed |= {"zh", "ja-mecab", "ko-mecab", "flores200"}
    assert bleu_tokenizer(None, language, lines) == expected
    installed -= {"ja-mecab", "ko-mecab", "flores200"}
    needs = expected not in ("13a", "zh")
    for _ in range(2):
        assert bleu_tokenizer(None, language, lines) == ("char" if needs else expected)
    notice = f"tokenizer, {expected}, is not installed; run `install {expected}`"
    assert capsys.readouterr().err.count(notice) == needs


def test_a_tokenizer_that_is_asked_for_is_never_replaced(installed):
    installed.add("13a")
    assert bleu_tokenizer("13a", "ja", JAPANESE) == "13a"
    with pytest.raises(NMTError, match="tokenize=ja-mecab: not installed; run `install ja-mecab`"):
        bleu_tokenizer("ja-mecab", "ja", JAPANESE)


@pytest.mark.parametrize(("lines", "tokenize"), [(CHINESE, None), (THAI, None), (REFERENCES, "char")])
def test_bleu_is_that_of_the_sacrebleu_command_with_the_tokenizer_of_the_signature(lines, tokenize, tmp_path):
    hypotheses = [line.replace(line[3], line[4]) for line in lines]
    [result] = score(hypotheses, lines, ["bleu"], tokenize=tokenize)
    named = signature_tokenizer(result.signature)
    assert tokenize in (None, named)
    printed = sacrebleu_command(tmp_path, hypotheses, lines, "-m", "bleu", "--tokenize", named)
    assert [(result.name, round(result.value, 6), result.signature)] == printed
    assert result.value > 0


@pytest.mark.parametrize(("language", "seed"), [("de", 0), ("fr", 1), ("en", 2)])
def test_the_tokenised_bleus_are_multi_bleu_on_moses_tokens(language, seed):
    hypotheses = noisy(REFERENCES, seed) if seed else HYPOTHESES
    tokens = [[moses_tokens(line, language) for line in lines] for lines in (hypotheses, REFERENCES)]
    tokenised, split = score(hypotheses, REFERENCES, ["tokenised", "split"], language)
    assert tokenised.value == pytest.approx(multi_bleu(*tokens), abs=1e-9)
    assert split.value == pytest.approx(
        multi_bleu(*[[split_by_hand(line) for line in lines] for lines in tokens]), abs=1e-9
    )
    assert tokenised.value != pytest.approx(split.value, abs=0.01)
    assert tokenised.value > 0


@pytest.mark.parametrize(
    ("hypothesis", "reference", "metric", "settings", "expected"),
    [
        ("a b c d", "a b c d e", "tokenised", {}, 100 * math.exp(1 - 5 / 4)),
        ("a b c d x", "a b c d e", "tokenised", {}, 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25),
        ("a a a a b c d", "a b c d e f g", "tokenised", {}, 100 * (4 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25),
        ("a b c", "a b c", "tokenised", {}, 0.0),
        ("A b c d", "a b c d", "tokenised", {"lowercase": True}, 100.0),
        ("ein Foto-Album ist neu", "ein Bilder-Album ist neu", "tokenised", {}, 0.0),
        ("ein Foto-Album ist neu", "ein Bilder-Album ist neu", "split", {}, 100 * (5 / 6 * 3 / 5 / 2 / 3) ** 0.25),
        ("A b c d", "a b c d", "bleu", {"lowercase": True}, 100.0),
        ("a b c x", "a b c d", "ter", {}, 25.0),
    ],
)
def test_scores_by_hand(hypothesis, reference, metric, settings, expected):
    assert one([hypothesis], [reference], metric, **settings).value == pytest.approx(expected, abs=1e-9)


def test_corpus_scores_by_hand():
    """Counts are summed over the corpus before the geometric mean: 7/8, 5/6, 3/4 and 1/2; and so are lengths."""
    for hypotheses, references, expected in (
        (["a b c d", "e f g x"], ["a b c d", "e f g h"], 100 * (7 / 8 * 5 / 6 * 3 / 4 * 1 / 2) ** 0.25),
        (["a b c d e f", "a b c d"], ["a b c d e f", "a b c d e"], 100 * math.exp(1 - 11 / 10)),
        (["", "a b c d"], ["x", "a b c d"], 100 * math.exp(1 - 5 / 4)),
    ):
        assert one(hypotheses, references, "tokenised").value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("tokenised", "expected"),
    [
        ("a-b", "a ##AT##-##AT## b"),
        ("state-of-the-art", "state ##AT##-##AT## of ##AT##-##AT## the ##AT##-##AT## art"),
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("---", "- ##AT##-##AT## -"),
        ("a--b", "a ##AT##-##AT## -b"),
    ],
)
def test_compounds_are_split_as_the_authors_perl_splits_them(tokenised, expected):
    assert split_compounds(tokenised) == expected
    assert split_by_hand(tokenised) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x-y", "x-y"),
        ("state-of-the-art.", "state-of-the-art ."),
        ("Peter's", "Peter &apos;s"),
        ("A & B | [c]", "A &amp; B &#124; &#91; c &#93;"),
        ("kostet 3.000,50 Mio. z.B. heute", "kostet 3.000,50 Mio. z.B. heute"),
        ("“ja”", "&quot; ja &quot;"),
        ("\uff08ja\uff09…", "( ja ) ..."),
    ],
)
def test_moses_escapes_and_leaves_hyphens_alone(line, expected):
    assert moses("en" if "Peter" in line else "de")(line) == expected


PREFIX_DE = {"Dr", "Nr", "bzw", "usw", "Art"}
WORDS = ["Er", "kam", "24", "Dr", "bzw", "Nr", "Art", "z.B", "U.S", "FoxNews.com", "3.5"]


def perl_words(words: list[str]) -> list[str]:
    """The loop of tokenizer.perl over words without other marks, for the German prefixes above."""
    done = []
    for place, word in enumerate(words):
        before, last = word[:-1], place == len(words) - 1
        stays = not last and (
            ("." in before and any(c.isalpha() for c in before))
            or before in PREFIX_DE
            or words[place + 1][0].islower()
            or (before.isdigit() and int(before) < 99)  # ordinals stand in the German list one by one
        )
        done += [before, "."] if word.endswith(".") and not stays else [word]
    return done


@given(
    words=strategies.lists(strategies.tuples(strategies.sampled_from(WORDS), strategies.booleans()), max_size=6),
    blanks=strategies.sampled_from(["", " ", "\t "]),
)
def test_full_stops_are_split_by_the_loop_of_the_moses_script(words, blanks):
    line = [word + "." * stop for word, stop in words]
    assert moses("de")(" ".join(line) + blanks).split() == perl_words(line)


@pytest.mark.parametrize("metric", METRICS)
def test_a_signature_tells_whether_case_counts(metric):
    lines = [line.replace("ß", "ss") for line in REFERENCES]
    for lowercase in (False, True):
        upper = one([line.upper() for line in lines], lines, metric, lowercase=lowercase)
        exact = upper.value == pytest.approx(0 if metric == "ter" else 100)
        assert exact == ("case:lc" in upper.signature) != ("case:mixed" in upper.signature)


def test_scores_come_in_the_order_that_was_asked_for_each_with_its_signature():
    order = ["split", "ter", "bleu", "tokenised", "chrf"]
    results = score(HYPOTHESES, REFERENCES, order, "de")
    assert [result.metric for result in results] == order
    assert all(str(result).endswith(f" = {result.value:.2f}  {result.signature}") for result in results)
    assert (
        f"tok:moses-de|ends:moses|split:hyphen|smooth:none|sacremoses:{version('sacremoses')}" in results[0].signature
    )
    assert {*BLEU_TOKENIZERS, "spm"} == set(sacrebleu.BLEU.TOKENIZERS)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(NMTError, match="hypothesis has 12 lines but the reference has 1"):
        score(["a"] * 12, ["a"], ["bleu"])
    with pytest.raises(NMTError, match=r"metrics=split: .* pass language=CODE"):
        score(["a"], ["a"], ["split"])
