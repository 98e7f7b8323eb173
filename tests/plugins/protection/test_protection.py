"""Protected items appear once in each translation, or the line is flagged."""

import random
import re
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings, strategies as st

from nmt.config import DecodeConfig, NMTError, TokenizerConfig
from nmt.items import finder
from nmt.items.copies import BLANK, COPIES, COPY, copy_of
from nmt.items.finder import Finder
from nmt.items.items import Items, item
from nmt.plugins.protection.masking import MaskedLine, ProtectedLine
from nmt.plugins.protection.plugin import ProtectionConfig
from nmt.plugins.protection.protection import Protection
from nmt.search import Hypothesis
from nmt.text import train_tokenizer
from nmt.translation import Details, Limits, Line, Translation, Translator
from tests.core.test_segments import Echo
from tests.helpers.options import translate_config

USUAL = Finder(["usual"])


def items_in(line: str, finder: Finder = USUAL) -> list[str]:
    return [item(line, stretch) for stretch in finder.stretches(line)]


PIECES = [
    *[
        "a",
        "bc",
        "Ctrl",
        "USD",
        "quant",
        "plural",
        "py",
        "km",
        "x",
        "é",
        "の",
        "中",
        "v1",
        "10",
        "٣",
    ],
    *"+-[]{}#%$€/\\()_.:@!*`<>²½~=',;",
    *["  ", " ", "\t", "\u00a0", "||||", "&amp;", "www.", "http://", "--", "§a", "Ctrl++", "[#,a]"],
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_signs_show_where_to_search_for_items(line: str) -> None:
    """The search from sign to sign finds what a search from each index finds."""
    if finder.SIGN.search(line) is None:
        return
    for at in range(len(line) + 1):
        assert str(finder.next_usual(line, at)) == str(finder.ALL.search(line, at))


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("Hello {}, {name} and {0:.2f}!", ["{}", "{name}", "{0:.2f}"]),
        (
            "{0:{width}} of ${HOME}, $HOME/bin and $USER",
            ["{0:{width}}", "${HOME}", "$HOME/bin", "$USER"],
        ),
        (
            "%s of %(count)d, %1$s, %.2f or %-5d: 100%%",
            ["%s", "%(count)d", "%1$s", "%.2f", "%-5d", "%%"],
        ),
        (
            "{{ user.name }}, {% if x %} a <%= y %> b &#8230;",
            ["{{ user.name }}", "{% if x %}", "<%= y %>", "&#8230;"],
        ),
        (
            "{n, plural, one {# of {x}} other {# of {y}}} left",
            ["{n, plural, one {# of {x}} other {# of {y}}}"],
        ),
        ("Edit /etc/hosts, ~/.bashrc, src/main.py.", ["/etc/hosts", "~/.bashrc", "src/main.py"]),
        ("Run `nmt train`, ``a `b` c``, %zu or %*d", ["`nmt train`", "``a `b` c``", "%zu", "%*d"]),
        (
            "Press <b>File</b>, <br/> or <a href='x y'>this</a>",
            ["<b>", "</b>", "<br/>", "<a href='x y'>", "</a>"],
        ),
        ("4.2.1, v2.0 or 10.0.0.1:80", ["4.2.1", "v2.0", "10.0.0.1:80"]),
        ("10 m² on 2024-05-01", ["10 m²", "2024-05-01"]),
        (
            "Use --force-all, MAX_SIZE, __name__ or open()!",
            ["--force-all", "MAX_SIZE", "__name__", "open()"],
        ),
        (
            "1'000 km, 12 500 km, 1e-5 m, .5 mm and 1 GB/s",
            ["1'000 km", "12 500 km", "1e-5 m", ".5 mm", "1 GB/s"],
        ),
        (
            "See https://a.org/café_(b). Or (www.A.ORG/{id}).",
            ["https://a.org/café_(b)", "www.A.ORG/{id}"],
        ),
        (
            "Mail o'neil@a.org, open re\u0301sume\u0301.pdf",
            ["o'neil@a.org", "re\u0301sume\u0301.pdf"],
        ),
        (
            "-10 °C (+5 dB), 3-4 kPa, \u22122 µs, $10 or 5€",
            ["-10 °C", "+5 dB", "4 kPa", "\u22122 µs", "$10", "5€"],
        ),
        ("%1 of %L2, %n, %(user name)s, %1$,d", ["%1", "%L2", "%n", "%(user name)s", "%1$,d"]),
        (
            'At 12:30: open main.c, FOO.TXT, (*.mp3) or ".env"',
            ["12:30", "main.c", "FOO.TXT", "*.mp3", ".env"],
        ),
        (
            "Press Ctrl++, ctrl+s or Win+R for 1/2 kg of 1.2.3rc1",
            ["Ctrl++", "ctrl+s", "Win+R", "1/2 kg", "1.2.3rc1"],
        ),
        ("Install python3.11-doc and 3.11.2-6+deb12u6.", ["python3.11-doc", "3.11.2-6+deb12u6"]),
        (
            "[[name]], ##ORDER##, :name (%s), uid=%s or `%s'",
            ["[[name]]", "##ORDER##", ":name", "%s", "uid=%s", "`%s'"],
        ),
        (
            r"Install 1.2.3-4ubuntu5 (or x.py-based) in C:\Windows\x",
            ["1.2.3-4ubuntu5", "x.py-based", r"C:\Windows\x"],
        ),
        # No item
        ("An <illegal instruction>: he and/or she paid 5 dollars, 50 percent of them; a < b.", []),
        ("A set { 1, 2 }, the year 1984, version 4.2, _Open file(s), 3:4, a -- b, 1+1 and C++", []),
        ("100 percent. No.It is 24/7 here, e.g. today", []),
    ],
)
def test_items_in_lines(line, items):
    assert items_in(line) == items


def test_patterns_of_the_user_come_first():
    finder = Finder(["usual", "ACME-[0-9]+", "(?i)foo (bar)"])
    assert items_in("ACME-12 at FOO bar {x}", finder) == ["ACME-12", "FOO bar", "{x}"]


def test_slow_patterns_of_the_user_are_refused(monkeypatch):
    monkeypatch.setattr(finder, "SECONDS", 0.2)
    problem = r"^protect=.* takes more than 0\.2 s for a line of 61 characters"
    with pytest.raises(NMTError, match=problem):
        Finder(["(a|aa)+$"]).stretches("a" * 60 + "!")


@pytest.mark.parametrize(
    ("line", "translation", "has_items"),
    [
        ("a {x} b", "c { x } d", False),
        ("a %s b", "%sc", False),
        ("%s of %s", "%s von %s", True),
        ("%s is done", "%s ist zu 100%s fertig", False),
        ("%d of %s", "%s von %d", False),
        ("%2$d of %1$s", "%1$s von %2$d", True),
        ("see www.a.org/b", "siehe www.a.org/b/c", False),
        ("1.5 GB or 40%", "1,5 GB oder 40 %", True),
        ("a,5% and 5%y, or 5%", "5%", True),
    ],
)
def test_whether_a_translation_has_the_items(line, translation, has_items):
    items = Items(line, USUAL.stretches(line))
    assert items.arrive(translation) == has_items


PARTS = [
    *"{}%$(`/.@:,x5 -<\\#sé⟦⟧\t",
    "https://",
    "{n, plural,",
    "km",
    ".py",
    "{{",
    "%(a)s",
    "ACME-1",
    "[[",
    "]",
    "!a",
    "²",
    "½",
    "₂",
    "§a",
    "||||",
    "<?",
    "<!--",
    "$t(",
    "{ $a",
    "{/a}",
    ":a:",
    "@a.",
    "[a=",
    "%[1]",
]


@pytest.mark.slow
@pytest.mark.parametrize("part", [*PARTS, "{{a%d}} ", "%d km ", "a", "a_", "a@", "<a ", "{a}"])
def test_time_is_proportional_to_the_length_of_a_line(part):
    """Also if a line has thousands of different items."""
    repetitions = 24_000 // len(part)
    line = "".join(part.replace("%d", str(number)) for number in range(repetitions))
    begin = time.process_time()
    Items(line, USUAL.stretches(line)).arrive(line)
    assert time.process_time() - begin < 6


# Derandomized, because one in 25,000 of these lines has items that contain parts of other items,
# and is flagged.
@settings(derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
@example("{n, plural,5%{5%")
@example("5%y 5%")
@example("$x$x")
@example("12:30 :12:30 x--a --a")
def test_items_are_in_order_and_a_line_has_its_own_items(line):
    stretches = USUAL.stretches(line)
    assert all(first[1] < second[0] for first, second in pairwise(stretches))
    if stretches:
        assert Items(line, stretches).arrive(" ".join(line.split()))


@pytest.mark.parametrize(
    "value", ["[", "a*", "usal", True, ["usual", "none"], "x" * 9 + "(" * 20_000]
)
def test_invalid_values_of_protect_are_refused(value):
    with pytest.raises(NMTError, match=r"^protect="):
        translate_config("run", protect=value)


@pytest.mark.parametrize(
    ("value", "patterns"), [("usual", ["usual"]), ("none", []), ("a+", ["a+"])]
)
def test_values_of_protect(value, patterns):
    assert ProtectionConfig([value]).protect == patterns


@settings(max_examples=300)
@given(st.text("aAx1 .:/\\{}%$#@`()_-wshtp~<>|°KB\u0663,+[]!²½⁻₂§n", max_size=15))
def test_every_item_has_a_sign(line):
    """Lines without a sign are not searched for items."""
    has_item = any(match[0] for match in finder.ALL.finditer(line))
    assert finder.SIGN.search(line) or not has_item


WORDS = ["the", "old", "house", "stands", "on", "a", "hill", "and", "waits"]
ITEMS = [
    "{name}",
    "%(n)d",
    "%s",
    "https://a.org/x?y",
    "me@a.org",
    "/etc/hosts",
    "`a b`",
    "5 km",
    "{{ x }}",
    "ﬁle.txt",
]
TOKENIZER = train_tokenizer(
    [" ".join(WORDS), *ITEMS, "[1] A1 X1 0 2 3"],
    TokenizerConfig(kind="bpe", vocabulary_size=400),
    tags=["<2de>"],
)


class Fake(Echo):
    """An engine that changes the words of a line, and aligns words at the same place."""

    def __init__(self, change: Callable[[list[str]], list[str]], n_best: int = 1) -> None:
        self.change = change
        self.config = DecodeConfig(n_best=n_best)
        self.searched = []

    def search(self, sentences, prefixes, constraints=None):
        results = []
        for sentence, prefix in zip(sentences, prefixes, strict=True):
            line = TOKENIZER.decode(sentence)
            self.searched.append(line)
            [ids] = TOKENIZER.encode([" ".join(self.change(line.split()))])
            hypotheses = []
            for rank in range(self.config.n_best):
                score = -1.0 - rank
                hypotheses.append(Hypothesis([*prefix, *ids], score, score))
            results.append(hypotheses)
        return results


def drop(words: list[str]) -> list[str]:
    return [word for word in words if word.isalpha() and word.isascii()]


def double(words: list[str]) -> list[str]:
    doubled = []
    for word in words:
        doubled += [word] if word in WORDS else [word, word]
    return doubled


def garble(words: list[str]) -> list[str]:
    return [word if word in WORDS else word[:-1] + "?" for word in words]


def translate_names(words: list[str]) -> list[str]:
    return [word if word in WORDS else "hill" for word in words]


def reverse(words: list[str]) -> list[str]:
    return words[::-1]


def at_random(words: list[str]) -> list[str]:
    draw = random.Random(" ".join(words))
    return draw.choice([drop, double, garble, reverse, list])(words)


CHANGES = [list, drop, double, garble, reverse, lambda words: [*words, *ITEMS], at_random]


def protecting(
    change: Callable[[list[str]], list[str]], n_best: int = 1, known: bool = False, **keys
) -> Translator:
    """A translator whose engine changes the words.

    Its model knows all characters, or with `known`, only those of the words and items.
    """
    limits = Limits()
    if known:
        characters = "".join([*WORDS, *ITEMS, "[]0123456789AX "])
        limits = Limits(characters=frozenset(characters))
    stages = (Protection(USUAL, limits.characters),)
    return Translator(Fake(change, n_best), TOKENIZER, limits, stages=stages, **keys)


def protection(translation: Translation) -> str:
    return Protection(Finder([]), None).report("", translation).get("protection", "")


lines = st.lists(
    st.lists(st.sampled_from([*WORDS, *ITEMS, "(%s)", "“{name}”,", "[1]"]), max_size=8).map(
        " ".join
    )
)
TAG = st.sampled_from(["", "<2de> "])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(lines, st.sampled_from(CHANGES), st.integers(1, 2), st.booleans(), st.booleans(), TAG)
def test_items_appear_once_or_the_line_is_flagged(given_lines, change, n_best, known, details, tag):
    translator = protecting(change, n_best, known, details=details)
    rows = translator.translate([tag + line for line in given_lines])
    assert len(rows) == len(given_lines)
    for line, row in zip(given_lines, rows, strict=True):
        for translation in row:
            check_items(line, translation)
            assert bool(translation.details) == details
            if translation.details:
                check_details(line, translation)


def check_items(line: str, translation: Translation) -> None:
    verdict = protection(translation)
    assert verdict in ("", "cut", "protected")
    assert ("protected" in translation.flags) == (verdict == "protected")
    stretches = USUAL.stretches(line)
    if stretches and verdict != "protected":
        assert Items(line, stretches).arrive(translation.text)
    assert not re.search("[\U0010f000-\U0010ffff]", translation.text)  # marks to cut at


def check_details(line: str, translation: Translation) -> None:
    source_words = len(line.split())
    target_words = len(translation.text.split())
    assert len(translation.details.word_log_probabilities) == target_words
    for source, target in translation.details.alignment:
        assert source < source_words
        assert target < target_words


@pytest.mark.parametrize("change", [list, drop, double, garble, reverse, at_random])
def test_no_item_is_lost_if_the_engine_invents_none(change):
    rows = protecting(change).translate([f"the {text} waits and the hill" for text in ITEMS])
    for text, [best] in zip(ITEMS, rows, strict=True):
        assert best.text.count(text) == 1
        assert best.flags == []


def test_lines_without_items_are_translated_as_without_protection():
    plain = Translator(Fake(reverse), TOKENIZER)
    translator = protecting(reverse)
    texts = ["the old house", "", "a hill", "%s waits"]
    assert translator.translate(texts) == plain.translate(texts)
    assert translator.engine.searched == plain.engine.searched


def split_names(words: list[str]) -> list[str]:
    """Leave only part of a stand-in, as in A1o; drop the items of other lines."""
    named = re.sub(r"(\[|[AX])1\b\]?", r"hill \g<1>1o", " ".join(words)).split()
    return drop(words) if named == words else named


def reverse_stand_ins(words: list[str]) -> list[str]:
    """Reverse a line with stand-ins; drop the items of other lines."""
    has_stand_ins = "A1" in words or "X1" in words
    return reverse(words) if has_stand_ins else drop(words)


COPIED = [
    copy_of(COPIES[0], "house"),
    copy_of(COPIES[1], "old hill x"),
    COPIES[2],
    f"({copy_of(COPIES[3], 'the')}),",
]
MARKS = re.compile(f"[{COPIES[0]}-{BLANK}]")
marked_lines = st.lists(st.sampled_from([*WORDS, *COPIED, *ITEMS[:3]]), max_size=8)


def copies_in(text: str) -> list[str]:
    return sorted(copy[0] for copy in COPY.finditer(text))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(marked_lines.map(" ".join)),
    st.sampled_from(CHANGES),
    st.booleans(),
    st.sampled_from([USUAL, Finder([]), Finder(["hill .*"])]),
)
@example(
    [" ".join(f"{word}{mark}s" for word, mark in zip(WORDS * 300, COPIES, strict=False)) + COPIES],
    drop,
    True,
    USUAL,
)
def test_copies_of_documents_appear_once_and_are_hidden_from_the_model(
    given_lines, change, known, finder
):
    """Also without other protection, and if a line has more marks than there are names."""
    translator = protecting(change, known=known)
    [stage] = translator.stages
    stage.finder = finder
    for line, [best] in zip(given_lines, translator.translate(given_lines), strict=True):
        assert copies_in(best.text) == copies_in(line)
        shown_to_users = [*best.copied, *best.notes, *best.notes.values()]
        assert not MARKS.search("".join(shown_to_users))
    assert not MARKS.search("".join(translator.engine.searched))


@pytest.mark.parametrize(
    ("change", "translation", "searched"),
    [
        # The model sees a copy as text, and keeps it or does not.
        (list, "the {} waits", ["the old house waits"]),
        (reverse, "waits {} the", ["the old house waits", "the A1 waits"]),
        # The translation repeats words of the copy.
        (
            lambda words: [*words, "hill", "old"],
            "the {} waits hill old",
            ["the old house waits", "the A1 waits"],
        ),
    ],
)
def test_a_model_sees_a_copy_but_does_not_translate_it(change, translation, searched):
    copy = copy_of(COPIES[0], "old house")
    translator = protecting(change, details=True)
    [[best]] = translator.translate([f"the {copy} waits"])
    assert best.text == translation.format(copy)
    assert translator.engine.searched == searched
    assert len(best.details.word_log_probabilities) == len(best.text.split())
    target = best.text.split().index(copy)
    assert {source for source, word in best.details.alignment if word == target} <= {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "line", "prefix", "text", "verdict"),
    [
        # A lost item is put where its name is aligned to.
        (translate_names, "the old {name} stands", "", "the old {name} stands", ""),
        # No part of a garbled name stays.
        (split_names, "the old {name} stands", "", "the old {name} stands", "cut"),
        # Equal items keep the order of their names.
        (reverse_stand_ins, "%s on %s hill", "", "%s on %s hill", "cut"),
        # The alignment of a line that lost its words has no word left for the item.
        (drop, "<2de> the house waits (%s)", "and", "and the house waits (%s)", "cut"),
    ],
)
def test_where_lost_items_are_put(change, line, prefix, text, verdict):
    [[best]] = protecting(change, target_prefix=prefix).translate([line])
    assert (best.text, protection(best), best.flags) == (text, verdict, [])


def test_a_name_put_behind_a_word_is_a_word_of_the_details():
    line = "the old {name} stands"
    mask = MaskedLine(ProtectedLine(Line(line), USUAL.stretches(line)), ["A1"])
    alignment = [(0, 0), (2, 1), (3, 1)]
    details = Details(["Das", "steht"], [-0.1, -0.2, -0.3], alignment, [-0.1, -0.2])
    translation = mask.aligned(Translation("Das steht", -1.0, -1.0, details))
    assert translation.text == "Das steht A1"
    assert translation.details.alignment == [(0, 0), (2, 1), (2, 2), (3, 1)]
    assert translation.details.word_log_probabilities == [-0.1, -0.2, None]
