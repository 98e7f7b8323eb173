"""What is protected arrives once, or the line is flagged, whatever an engine does."""

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st
from test_segments import Echo

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.plugins.protection.items import Finder, Items
from nmt.plugins.protection.protection import HeldLine, Masked, Protection
from nmt.search import Hypothesis
from nmt.text import train_tokenizer
from nmt.translation import Details, Limits, Line, Translation, Translator

WORDS = ["the", "old", "house", "stands", "on", "a", "hill", "and", "waits"]
ITEMS = ["{name}", "%(n)d", "%s", "https://a.org/x?y", "me@a.org", "/etc/hosts", "`a b`", "5 km", "{{ x }}", "ﬁle.txt"]
TOKENIZER = train_tokenizer(
    [" ".join(WORDS), *ITEMS, "[1] A1 X1 0 2 3"], TokenizerConfig(kind="bpe", vocabulary_size=400), tags=["<2de>"]
)


class Fake(Echo):
    """An engine that changes the words of a line; word i of each translation is aligned to word i."""

    def __init__(self, change: Callable[[list[str]], list[str]], n_best: int = 1) -> None:
        self.change, self.config, self.searched = change, DecodeConfig(n_best=n_best), []

    def search(self, sentences, prefixes, constraints=None):
        lines = [TOKENIZER.decode(ids) for ids in sentences]
        self.searched += lines
        changed = TOKENIZER.encode([" ".join(self.change(line.split())) for line in lines])
        return [
            [Hypothesis([*prefix, *ids], -1.0 - n, -1.0 - n) for n in range(self.config.n_best)]
            for prefix, ids in zip(prefixes, changed, strict=True)
        ]


def drop(words: list[str]) -> list[str]:
    return [word for word in words if word.isalpha() and word.isascii()]


def double(words: list[str]) -> list[str]:
    return [each for word in words for each in [word] * (1 if word in WORDS else 2)]


def garble(words: list[str]) -> list[str]:
    return [word if word in WORDS else word[:-1] + "?" for word in words]


def reverse(words: list[str]) -> list[str]:
    return words[::-1]


def at_random(words: list[str]) -> list[str]:
    draw = random.Random(" ".join(words))
    return draw.choice([drop, double, garble, reverse, list])(words)


CHANGES = [list, drop, double, garble, reverse, lambda words: [*words, *ITEMS], at_random]


def protecting(change: Callable[[list[str]], list[str]], n_best: int = 1, known: bool = False, **keys) -> Translator:
    limits = Limits(characters=frozenset("".join([*WORDS, *ITEMS, "[]0123456789AX "]))) if known else Limits()
    stages = (Protection(Finder(["usual"]), limits.characters),)
    return Translator(Fake(change, n_best), TOKENIZER, limits, stages=stages, **keys)


def protection(translation: Translation) -> str:
    return Protection(Finder([]), None).report("", translation).get("protection", "")


lines = st.lists(st.lists(st.sampled_from([*WORDS, *ITEMS, "(%s)", "“{name}”,", "[1]"]), max_size=8).map(" ".join))


@settings(max_examples=40, deadline=None)
@given(
    lines, st.sampled_from(CHANGES), st.integers(1, 2), st.booleans(), st.booleans(), st.sampled_from(["", "<2de> "])
)
def test_each_item_arrives_once_or_the_line_is_flagged(given_lines, change, n_best, known, details, tag):
    translator = protecting(change, n_best, known, details=details)
    found = translator.translate([tag + line for line in given_lines])
    assert len(found) == len(given_lines)
    for line, row in zip(given_lines, found, strict=True):
        stretches = Finder(["usual"]).stretches(line)
        items = Items(line, stretches)
        for each in row:
            assert protection(each) in ("", "cut", "protected")
            assert ("protected" in each.flags) == (protection(each) == "protected")
            assert protection(each) == "protected" or not stretches or items.arrive(each.text)
            assert not re.search("[\U0010f000-\U0010ffff]", each.text)
            assert bool(each.details) == details
            if each.details:
                assert len(each.details.word_log_probabilities) == len(each.text.split())
                words = len(line.split()), len(each.text.split())
                assert all(s < words[0] and t < words[1] for s, t in each.details.alignment)


@pytest.mark.parametrize("change", [list, drop, double, garble, reverse, at_random])
def test_no_item_is_lost_where_the_engine_invents_none(change):
    found = protecting(change).translate([f"the {item} waits and the hill" for item in ITEMS])
    for item, [each] in zip(ITEMS, found, strict=True):
        assert each.text.count(item) == 1
        assert not each.flags


def test_other_lines_are_translated_as_without_protection():
    plain, translator = Translator(Fake(reverse), TOKENIZER), protecting(reverse)
    texts = ["the old house", "", "a hill", "%s waits"]
    assert translator.translate(texts) == plain.translate(texts)
    assert translator.engine.searched == plain.engine.searched


def test_an_item_is_put_where_its_name_is_aligned_to():
    translator = protecting(lambda words: [word if word in WORDS else "hill" for word in words])
    [[found]] = translator.translate(["the old {name} stands"])
    assert (found.text, protection(found)) == ("the old {name} stands", "")


def test_what_is_left_of_a_garbled_name_does_not_stay():
    def split(words: list[str]) -> list[str]:
        text = " ".join(words)
        named = text.replace("A1", "hill A1o").replace("[1]", "hill [1o")
        return named.split() if named != text else drop(words)

    [[found]] = protecting(split).translate(["the old {name} stands"])
    assert (found.text, protection(found)) == ("the old {name} stands", "cut")


def test_a_line_is_cut_where_nothing_else_helps_and_keeps_its_tag_and_prefix():
    translator = protecting(drop, target_prefix="and")
    # The alignment of a line that lost its words has no word left for the item.
    [[found]] = translator.translate(["<2de> the house (%s) waits"])
    assert (found.text, protection(found), found.flags) == ("and the house (%s) waits", "cut", [])
    assert "the house" in translator.engine.searched


def test_equal_items_keep_the_order_of_their_names():
    [[found]] = protecting(lambda words: reverse(words) if "A1" in words else drop(words)).translate(["%s on %s hill"])
    assert found.text == "%s on %s hill"
    assert protection(found) == "cut"


def test_a_name_put_behind_a_word_is_a_word_of_the_details():
    line = "the old {name} stands"
    mask = Masked(HeldLine(Line(line), Finder(["usual"]).stretches(line)), ["A1"])
    details = Details(["Das", "steht"], [-0.1, -0.2, -0.3], [(0, 0), (2, 1), (3, 1)], [-0.1, -0.2])
    found = mask.aligned(Translation("Das steht", -1.0, -1.0, details))
    assert found.text == "Das steht A1"
    assert found.details.alignment == [(0, 0), (2, 1), (2, 2), (3, 1)]
    assert found.details.word_log_probabilities == [-0.1, -0.2, None]
