"""The paper's BLEUs against a multi-bleu in plain Python, on tokens of Moses' Perl scripts, and by hand."""

import math
from collections import Counter
from importlib.metadata import version

import pytest

from nmt.errors import NMTError
from nmt.evaluation import score
from nmt.plugins.paper_bleu.paper_bleu import moses, split_compounds

REFERENCES = [
    "„Das E-Mail-Konto“, sagte er, „ist voll“ \u2013 seit 2014!",
    "Peter's state-of-the-art Kamera kostet 3.000,50 € (z.B. bei A & B).",
    "Die französisch-deutsche Grenze ist offen ... oder?",
]
HYPOTHESES = [
    "“Das E-Mail-Fach“, sagt er, „ist voll“ - seit 2014!",
    "Peters state-of-the-art Kamera kostet 3.000,50 € (z. B. bei A & B).",
    "Die deutsch-französische Grenze ist offen… oder?",
]


def multi_bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. (2002) as in multi-bleu.perl: n-grams to 4, clipped in each sentence; no smoothing."""
    matched, total, lengths = Counter(), Counter(), [0, 0]
    for hypothesis, reference in zip(
        (h.split() for h in hypotheses), (r.split() for r in references), strict=True
    ):
        lengths = [lengths[0] + len(hypothesis), lengths[1] + len(reference)]
        for n in range(1, 5):
            grams, allowed = (
                Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
                for words in (hypothesis, reference)
            )
            total[n] += sum(grams.values())
            matched[n] += sum(min(count, allowed[gram]) for gram, count in grams.items())
    if not all(matched[n] for n in range(1, 5)):
        return 0.0
    precision = math.exp(sum(math.log(matched[n] / total[n]) for n in range(1, 5)) / 4)
    brevity = 1.0 if lengths[0] >= lengths[1] else math.exp(1 - lengths[1] / lengths[0])
    return 100 * brevity * precision


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        (HYPOTHESES, REFERENCES),
        (["a a a a b c d"], ["a b c d e f g"]),
        (["a b c"], ["a b c"]),
        (["a b c d e f", "a b c d"], ["a b c d e f", "a b c d e"]),
        (["", "a b c d"], ["x", "a b c d"]),
    ],
)
def test_scores_equal_multi_bleu_in_plain_python(hypotheses, references):
    tokens = [list(map(moses("de"), lines)) for lines in (hypotheses, references)]
    splits = [list(map(split_compounds, lines)) for lines in tokens]
    tokenized, split = score(hypotheses, references, ["tokenized", "split"], "de")
    assert tokenized.value == pytest.approx(multi_bleu(*tokens), abs=1e-9)
    assert split.value == pytest.approx(multi_bleu(*splits), abs=1e-9)
    assert (tokenized.value != pytest.approx(split.value, abs=0.01)) == (tokens != splits)


def test_split_compounds():
    splits = {
        "a-b": "a @ b",
        "state-of-the": "state @ of @ the",
        "a-b-c": "a @ b-c",
        "---": "- @ -",
    }
    for tokens, expected in splits.items():
        assert split_compounds(tokens) == expected.replace("@", "##AT##-##AT##")


def test_moses_escapes_and_leaves_hyphens_alone():
    tokens = {
        "state-of-the-art.": "state-of-the-art .",
        "A & B | [c]": "A &amp; B &#124; &#91; c &#93;",
        "3.000,50 Mio. z.B. heute": "3.000,50 Mio. z.B. heute",
        "“ja”": "&quot; ja &quot;",
        "\uff08ja\uff09…": "( ja ) ...",
        # tokenizer.perl always splits a line's last full stop off, and no other after an abbreviation or an ordinal.
        "Er kam bzw. 24. Dr.": "Er kam bzw. 24. Dr .",
        "U.S. z.B. ": "U.S. z.B .",
        "Nr. 3.5.\t": "Nr. 3.5 .",
        "FoxNews.com.": "FoxNews.com .",
        "Er kam. Dr": "Er kam . Dr",
    }
    assert [moses("de")(line) for line in tokens] == [*tokens.values()]
    assert moses("en")("Peter's") == "Peter &apos;s"


@pytest.mark.parametrize("metric", ["tokenized", "split"])
def test_signature(metric):
    lines = [line.replace("ß", "ss") for line in REFERENCES]
    for lowercase, case in ((False, "mixed"), (True, "lc")):
        [result] = score(
            [line.upper() for line in lines], lines, [metric], "de", lowercase=lowercase
        )
        assert (result.value == pytest.approx(100)) == lowercase
        tokens = (
            f"|tok:moses-de|ends:moses|split:{'hyphen' if metric == 'split' else 'no'}|smooth:none"
        )
        parts = f"|case:{case}|", f"{tokens}|sacremoses:{version('sacremoses')}|"
        assert all(part in result.signature for part in parts)
    with pytest.raises(NMTError, match=rf"metrics={metric}: .* pass language=CODE"):
        score(["a"], ["a"], [metric])
