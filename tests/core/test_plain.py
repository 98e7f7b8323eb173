"""Words that are composed without Hydra give what Hydra gives."""

import pytest
from hypothesis import given, settings, strategies as st

from nmt.commands import COMMANDS
from nmt.compose import compose
from nmt.compose.groups import command_groups, key_help
from nmt.compose.plain import NAME, NotPlain, plain
from nmt.compose.tree import by_hydra
from nmt.errors import NMTError

TREES = [name for name in COMMANDS if COMMANDS[name].tree != "train"]
TRANSLATE = COMMANDS["translate"]
LONG_DIGITS = "9" * 5000
VALUES = st.one_of(
    st.from_regex(NAME, fullmatch=True),
    st.sampled_from(
        ["true", "false", "True", "null", "nan", "-inf", "yes", "paper", "greedy", "text", "jsonl", "never"]
    ),
    st.sampled_from(["0", "1", "4", "007", "1_000", "0.5", "1.", ".5", "1e3", "-1", "0x1", LONG_DIGITS, "", " ", "-"]),
    st.sampled_from(["[a,b]", "[]", "{a:1}", "a,b", "${input}", "\\", "'a'", '"a"', "a:b", "a=b", "a b ", "runs/../x"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)


def outcome(function, command, words):
    try:
        return repr(function(command, words))
    except NMTError as error:
        return str(error)


@st.composite
def overrides(draw):
    name = draw(st.sampled_from(TREES))
    keys = [*key_help(COMMANDS[name].config), *command_groups(COMMANDS[name])]
    return name, [f"{key}={draw(VALUES)}" for key in draw(st.lists(st.sampled_from(keys), max_size=3))]


@settings(max_examples=50, deadline=None)
@given(overrides())
def test_plain_words_give_what_hydra_gives(named):
    name, words = named
    try:
        made = repr(plain(COMMANDS[name], words))
    except (NotPlain, NMTError, OSError):
        return
    assert made == repr(by_hydra(COMMANDS[name], words))


@pytest.mark.parametrize(
    "text", ["Hello, world.", "  a\tb ", "it's [fine", "x=${y}", "\\", "null", "'quoted'", "~a", "[a,"]
)
def test_a_text_is_taken_as_hydra_takes_it(text):
    assert outcome(compose, TRANSLATE, [f"text={text}"]) == outcome(by_hydra, TRANSLATE, [f"text={text}"])


@pytest.mark.parametrize(
    "words",
    [
        ["run=runs/mine", "engine=ctranslate2", "precision=int8", "threads=2", "input=a.en", "output=b.de"],
        ["Hello, world."],
        ["text=Hello, world.", "decode=greedy", "decode.batch_tokens=100", "decode.length_penalty=1"],
        ["decode=greedy", "decode.beam_size=2", "format=jsonl", "split=never", "target=de"],
        ["devices=2", "device=cpu", "buffer=10", "decode.do_sample=true", "decode.temperature=0.7"],
    ],
)
def test_what_people_type_is_plain(words):
    assert repr(plain(TRANSLATE, words)) == repr(by_hydra(TRANSLATE, words))


@pytest.mark.parametrize(
    "name", [name for name in TREES if name not in ("score", "verify", "cite", "attention", "import")]
)
def test_the_tree_of_a_command_is_plain(name):
    command = COMMANDS[name]
    assert repr(plain(command, [])) == repr(by_hydra(command, []))


@pytest.mark.parametrize(
    "words", [["decode.beam_size=0"], ["engin=torch"], ["decode=grredy"], ["input=a", "input=b"], ["x y", "text=z"]]
)
def test_a_mistake_is_explained_as_before(words):
    assert outcome(compose, TRANSLATE, words) == outcome(by_hydra, TRANSLATE, words)
