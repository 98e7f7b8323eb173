"""The paper's BLEUs against a multi-bleu in plain Python, on tokens of Moses' Perl scripts, and by hand."""

import math
from collections import Counter
from importlib.metadata import version

import pytest
from hypothesis import given, strategies
from sacremoses import MosesPunctNormalizer, MosesTokenizer

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


def moses_tokens(line: str, language: str) -> str:
    """What the authors' script makes of a line: replace-unicode-punctuation.perl, then tokenizer.perl without -a."""
    replaced = MosesPunctNormalizer().replace_unicode_punct(line)
    words = MosesTokenizer(lang=language).tokenize(replaced)
    # tokenizer.perl: the last word that ends in a full stop loses it to a token of its own, whatever it is.
    if words and words[-1].endswith(".") and words[-1].strip("."):
        words[-1:] = [words[-1][:-1], "."]
    return " ".join(words)


def split_by_hand(tokens: str) -> str:
    """Perl's s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g, character by character: what has matched is not looked at again."""
    result, place = "", 0
    while place < len(tokens):
        three = tokens[place : place + 3]
        if len(three) == 3 and three[1] == "-" and not three[0].isspace() and not three[2].isspace():
            result += f"{three[0]} ##AT##-##AT## {three[2]}"
            place += 3
        else:
            result += tokens[place]
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


@pytest.mark.parametrize("language", ["de", "fr", "en"])
def test_the_tokenized_bleus_are_multi_bleu_on_moses_tokens(language):
    tokens = [[moses_tokens(line, language) for line in lines] for lines in (HYPOTHESES, REFERENCES)]
    splits = [[split_by_hand(line) for line in lines] for lines in tokens]
    tokenized, split = score(HYPOTHESES, REFERENCES, ["tokenized", "split"], language)
    assert tokenized.value == pytest.approx(multi_bleu(*tokens), abs=1e-9)
    assert split.value == pytest.approx(multi_bleu(*splits), abs=1e-9)
    assert 0 < tokenized.value != pytest.approx(split.value, abs=0.01)


@pytest.mark.parametrize(
    ("hypotheses", "references", "metric", "expected"),
    [
        (["a a a a b c d"], ["a b c d e f g"], "tokenized", 100 * (4 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25),
        (["a b c"], ["a b c"], "tokenized", 0.0),
        (["ein Foto-Album ist neu"], ["ein Bilder-Album ist neu"], "split", 100 * (5 / 6 * 3 / 5 / 2 / 3) ** 0.25),
        (["a b c d e f", "a b c d"], ["a b c d e f", "a b c d e"], "tokenized", 100 * math.exp(1 - 11 / 10)),
        (["", "a b c d"], ["x", "a b c d"], "tokenized", 100 * math.exp(1 - 5 / 4)),
    ],
)
def test_scores_by_hand(hypotheses, references, metric, expected):
    [result] = score(hypotheses, references, [metric], "de")
    assert result.value == pytest.approx(expected, abs=1e-9)


def test_compounds_are_split_as_the_authors_perl_splits_them():
    splits = {"a-b": "a @ b", "state-of-the": "state @ of @ the", "a-b-c": "a @ b-c", "---": "- @ -"}
    for tokens, expected in splits.items():
        assert split_compounds(tokens) == split_by_hand(tokens) == expected.replace("@", "##AT##-##AT##")


def test_moses_escapes_and_leaves_hyphens_alone():
    tokens = {
        **{"state-of-the-art.": "state-of-the-art .", "A & B | [c]": "A &amp; B &#124; &#91; c &#93;"},
        **{"3.000,50 Mio. z.B. heute": "3.000,50 Mio. z.B. heute", "“ja”": "&quot; ja &quot;"},
        "\uff08ja\uff09…": "( ja ) ...",
    }
    assert [moses("de")(line) for line in tokens] == [*tokens.values()]
    assert moses("en")("Peter's") == "Peter &apos;s"


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


@pytest.mark.parametrize("metric", ["tokenized", "split"])
def test_the_signature_names_how_a_score_was_computed(metric):
    lines = [line.replace("ß", "ss") for line in REFERENCES]
    for lowercase, case in ((False, "mixed"), (True, "lc")):
        [result] = score([line.upper() for line in lines], lines, [metric], "de", lowercase=lowercase)
        assert (result.value == pytest.approx(100)) == lowercase
        tokens = f"|tok:moses-de|ends:moses|split:{'hyphen' if metric == 'split' else 'no'}|smooth:none"
        parts = f"|case:{case}|", f"{tokens}|sacremoses:{version('sacremoses')}|"
        assert all(part in result.signature for part in parts)
    with pytest.raises(NMTError, match=rf"metrics={metric}: .* pass language=CODE"):
        score(["a"], ["a"], [metric])
