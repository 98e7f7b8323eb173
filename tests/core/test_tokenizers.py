"""Tokenizers: lossless on any line, word-piece as Wu et al. (2016) define it, files that can be read back."""

import io
import json
import pickle
import random
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex
import sentencepiece

from nmt.config import NMTError, TokenizerConfig
from nmt.text import NORMALIZATIONS, TARGET, Tokenizer, load_tokenizer, train_tokenizer

KINDS = ["bpe", "unigram", "wordpiece"]
SPECIAL = {0, 1, 2, 3}
LINES = [f"The cat number {n} didn't sit on the {n * 7}th mat." for n in range(40)]
LINES += [f"##Die Katze {n} saß auf <s> Nr. {n * 7}: a##größer!" for n in range(40)]


def trained(kind: str) -> Tokenizer:
    return train_tokenizer(iter(LINES), TokenizerConfig(kind=kind, vocabulary_size=600))


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return trained(request.param)


def check_lossless(tokenizer: Tokenizer, lines: list[str]) -> None:
    for line, ids in zip(lines, tokenizer.encode(lines), strict=True):
        assert not SPECIAL & set(ids), ascii(line)
        assert tokenizer.decode(ids) == line, ascii(line)


NASTY = [
    *(
        "",
        " ",
        "   ",
        "\t",
        "   a",
        "a   ",
        "a  b   c",
        "a\tb",
        "a\rb",
        "\0",
        "a\0b",
        "\ue000\ue000",
        "\ufdd0\uffff",
    ),
    *(
        "\u2581",
        "\u2581a \u2581 \u2581\u2581b\u2581",
        "\ue0000\ue0001\ue000\u2581",
        "##",
        "a##b ## ##c",
    ),
    *(
        "\u0120a\u010a",
        "a<s>b</s> <pad><unk>",
        "<0x41>",
        "<0xE2><0x96><0x81>",
        "\u2047 \ufffd",
        "a\ufeffb\ufeff",
    ),
    *("\u25b8a \u25b8\u25b8", "e\u0301\u0327 \ufb01 \u2126 \u3300 \uff21", "a\u2028b\x85c\u3000d"),
]


def test_every_assigned_character_of_unicode_and_some_others_come_back(
    tokenizer: Tokenizer,
) -> None:
    random_ = random.Random(1)
    every = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF and c != 0x0A]
    assigned = [c for c in every if unicodedata.category(c) not in ("Cn", "Co")]
    characters = random_.sample(assigned, len(assigned)) + random_.sample(every, 10_000)
    check_lossless(
        tokenizer, ["".join(characters[i : i + 20]) for i in range(0, len(characters), 20)]
    )


def sentencepiece_model(**options: Any) -> bytes:
    """What sentencepiece itself learns."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        minloglevel=2,
        hard_vocab_limit=False,
        **options,
    )
    return model.getvalue()


def test_special_symbols_decode_to_nothing_and_any_ids_to_text(tokenizer: Tokenizer) -> None:
    ids, random_ = tokenizer.encode(["The cat sat on größer 日本."])[0], random.Random(3)
    surrounded = [i for id_ in ids for i in (*SPECIAL, id_)] + [2, 0, 0]
    assert tokenizer.decode(sorted(SPECIAL)) == ""
    assert tokenizer.decode(surrounded) == tokenizer.decode(ids)
    for _ in range(500):
        tokenizer.decode(random_.choices(range(tokenizer.vocabulary_size), k=12)).encode()


def test_a_saved_tokenizer_is_the_same_when_loaded_and_pickled(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = tmp_path / "one.model"
    tokenizer.save(path)
    loaded, again = load_tokenizer(path), trained(tokenizer.kind)
    assert path.read_bytes() == loaded.content == again.content
    lines = [*LINES, *NASTY]
    for copy in (loaded, pickle.loads(pickle.dumps(tokenizer)), pickle.loads(pickle.dumps(loaded))):
        assert copy.vocabulary_size == tokenizer.vocabulary_size
        assert copy.encode(lines) == [tokenizer.encode([line])[0] for line in lines]
        check_lossless(copy, lines)


@pytest.mark.parametrize(("kind", "size"), [("bpe", 300), ("unigram", 800), ("wordpiece", 600)])
def test_a_vocabulary_is_never_larger_than_asked_for(kind: str, size: int) -> None:
    random_ = random.Random(4)
    lines = [
        " ".join("".join(random_.choices("abcdefghijklmno", k=5)) for _ in range(8))
        for _ in range(200)
    ]
    assert (
        train_tokenizer(lines, TokenizerConfig(kind=kind, vocabulary_size=size)).vocabulary_size
        <= size
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_more_characters_than_entries_are_an_error_that_names_the_key(kind: str) -> None:
    lines = ["".join(map(chr, range(start, start + 20))) for start in range(0x4E00, 0x5600, 20)]
    with pytest.raises(NMTError, match=r"tokenizer\.vocabulary_size"):
        train_tokenizer(lines, TokenizerConfig(kind=kind, vocabulary_size=1000))


def byte_characters() -> dict[int, str]:
    """GPT-2's table of bytes: printable Latin-1 stands for itself, other bytes for what follows U+00FF, in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(256 + i) for i, byte in enumerate(others)
    }


GPT2_WORDS = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def longest_matches(word: str, vocabulary: dict[str, int], mark: str) -> Iterator[int]:
    """At every place the longest piece there is; behind the word's first, only pieces that continue a word."""
    start = 0
    while start < len(word):
        prefix = mark if start else ""
        end = max(
            end for end in range(start + 1, len(word) + 1) if prefix + word[start:end] in vocabulary
        )
        yield vocabulary[prefix + word[start:end]]
        start = end


def test_wordpiece_takes_the_longest_match_at_every_place() -> None:
    tokenizer = trained("wordpiece")
    model = json.loads(tokenizer.content)["model"]
    table, random_ = byte_characters(), random.Random(5)
    letters = " abcdehimnorstußöThCat.!'é日 0123"
    lines = [*LINES, *("".join(random_.choices(letters, k=30)) for _ in range(300))]
    expected = []
    for line in lines:
        matched = [
            "".join(table[byte] for byte in word.encode()) for word in GPT2_WORDS.findall(line)
        ]
        mark = model["continuing_subword_prefix"]
        expected.append(
            [i for word in matched for i in longest_matches(word, model["vocab"], mark)]
        )
    assert tokenizer.encode(lines) == expected


def test_a_very_long_word_is_encoded_soon(tokenizer: Tokenizer) -> None:
    start = time.process_time()
    check_lossless(tokenizer, ["x" * 10_000, "日本" * 700])
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_a_vocabulary_file_keeps_its_normalization(kind: str, name: str) -> None:
    config = TokenizerConfig(kind, 600, normalization=name)
    tokenizer = train_tokenizer(LINES, config)
    assert pickle.loads(pickle.dumps(tokenizer)).normalization == NORMALIZATIONS[name]
    source, target = ("2\u00bd \ufb01 m\u00b2 \uff1f", "2\u00bd \ufb01 m\u00b2 \uff1f")
    expected = {
        "canonical": ("2\u00bd fi m\u00b2 \uff1f", target),
        "nfkc": ("21\u20442 fi m2 ?", "21\u20442 fi m2 ?"),
        "none": (source, target),
    }
    assert (tokenizer.clean(source), tokenizer.clean(target, TARGET)) == expected[name]


def changed_wordpiece(entries: dict[str, int], **changes: Any) -> bytes:
    tree = json.loads(trained("wordpiece").content)
    tree["model"]["vocab"] |= entries
    return json.dumps(tree | changes).encode()


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "an empty file"),
    "text": (lambda: b"hello\n", ""),
    "JSON": (lambda: b'{"model": 1}', ""),
    "bpe of others": (
        lambda: sentencepiece_model(model_type="bpe", vocab_size=90),
        "first entries are not <pad> <s>",
    ),
    "characters": (
        lambda: sentencepiece_model(model_type="char", vocab_size=90),
        "first entries are not",
    ),
    "no character": (lambda: trained("bpe").content.replace("ö".encode(), b"\xc3\xff"), "invalid"),
    "symbols": (lambda: changed_wordpiece({"<pad>": 1, "<s>": 0}), "first entries are not"),
    "ids": (lambda: changed_wordpiece({"<unk>": 10**9}), "are not 0, 1, 2 and so on"),
    "deep": (lambda: b'{"a":' * 10**5, "nested too deeply"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_tokenizer_of_anyone_is_ours_or_refused(tmp_path: Path, what: str) -> None:
    path, (content, words) = tmp_path / "tokenizer.model", HOSTILE[what]
    path.write_bytes(content())
    with pytest.raises(NMTError, match=rf"tokenizer\.model: not a tokenizer.*{words}") as error:
        load_tokenizer(path)
    assert "\n" not in str(error.value)


def test_a_foreign_word_piece_file_has_no_expression_that_is_run(tmp_path: Path) -> None:
    slow = {
        "type": "Split",
        "pattern": {"Regex": "(a*)*b"},
        "behavior": "Isolated",
        "invert": False,
    }
    (tmp_path / "tokenizer.model").write_bytes(changed_wordpiece({}, pre_tokenizer=slow))
    check_lossless(load_tokenizer(tmp_path / "tokenizer.model"), [*LINES, "a" * 1000])
