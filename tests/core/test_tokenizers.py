"""Tokenizers: lossless on any line, word-piece as Wu et al. (2016) define it, and their files."""

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
    "\u2581",
    "\u2581a \u2581 \u2581\u2581b\u2581",
    "\ue0000\ue0001\ue000\u2581",
    "##",
    "a##b ## ##c",
    "\u0120a\u010a",
    "a<s>b</s> <pad><unk>",
    "<0x41>",
    "<0xE2><0x96><0x81>",
    "\u2047 \ufffd",
    "a\ufeffb\ufeff",
    "\u25b8a \u25b8\u25b8",
    "e\u0301\u0327 \ufb01 \u2126 \u3300 \uff21",
    "a\u2028b\x85c\u3000d",
]


@pytest.mark.slow
def test_all_of_unicode_is_encoded_without_loss(
    tokenizer: Tokenizer,
) -> None:
    """Every assigned character, and 10,000 others."""
    draw = random.Random(1)
    codes = [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]  # without surrogates
    characters = [chr(code) for code in codes if code != ord("\n")]
    assigned = [sign for sign in characters if unicodedata.category(sign) not in ("Cn", "Co")]
    text = draw.sample(assigned, len(assigned)) + draw.sample(characters, 10_000)
    lines = ["".join(text[start : start + 20]) for start in range(0, len(text), 20)]
    check_lossless(tokenizer, lines)


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


def test_special_symbols_decode_to_nothing(tokenizer: Tokenizer) -> None:
    [ids] = tokenizer.encode(["The cat sat on größer 日本."])
    surrounded = list[int]()
    for id in ids:
        surrounded += [*SPECIAL, id]
    surrounded += [2, 0, 0]
    assert tokenizer.decode(sorted(SPECIAL)) == ""
    assert tokenizer.decode(surrounded) == tokenizer.decode(ids)


def test_any_ids_decode_to_text(tokenizer: Tokenizer) -> None:
    draw = random.Random(3)
    for _ in range(500):
        ids = draw.choices(range(tokenizer.vocabulary_size), k=12)
        tokenizer.decode(ids).encode()


def test_saved_and_pickled_tokenizers_are_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "one.model"
    tokenizer.save(path)
    loaded = load_tokenizer(path)
    trained_again = trained(tokenizer.kind)
    assert path.read_bytes() == loaded.content == trained_again.content
    lines = [*LINES, *NASTY]
    copies = [loaded, pickle.loads(pickle.dumps(tokenizer)), pickle.loads(pickle.dumps(loaded))]
    for copy in copies:
        assert copy.vocabulary_size == tokenizer.vocabulary_size
        assert copy.encode(lines) == [tokenizer.encode([line])[0] for line in lines]
        check_lossless(copy, lines)


@pytest.mark.parametrize(("kind", "size"), [("bpe", 300), ("unigram", 800), ("wordpiece", 600)])
def test_a_vocabulary_has_at_most_the_configured_size(kind: str, size: int) -> None:
    draw = random.Random(4)
    lines = []
    for _ in range(200):
        words = ["".join(draw.choices("abcdefghijklmno", k=5)) for _ in range(8)]
        lines.append(" ".join(words))
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind=kind, vocabulary_size=size))
    assert tokenizer.vocabulary_size <= size


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_smaller_than_the_alphabet_is_refused(kind: str) -> None:
    lines = ["".join(map(chr, range(start, start + 20))) for start in range(0x4E00, 0x5600, 20)]
    with pytest.raises(NMTError, match=r"tokenizer\.vocabulary_size"):
        train_tokenizer(lines, TokenizerConfig(kind=kind, vocabulary_size=1000))


def byte_characters() -> dict[int, str]:
    """GPT-2's table of bytes.

    Printable Latin-1 stands for itself, other bytes for what follows U+00FF, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in printable]
    for index, byte in enumerate(others):
        table[byte] = chr(256 + index)
    return table


GPT2_WORDS = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def longest_matches(word: str, vocabulary: dict[str, int], mark: str) -> Iterator[int]:
    """At every place, the longest piece in the vocabulary; after the first, with the mark."""
    start = 0
    while start < len(word):
        prefix = mark if start else ""
        end = len(word)
        while prefix + word[start:end] not in vocabulary:
            end -= 1
        yield vocabulary[prefix + word[start:end]]
        start = end


def test_wordpiece_takes_the_longest_match_at_every_place() -> None:
    tokenizer = trained("wordpiece")
    model = json.loads(tokenizer.content)["model"]
    mark = model["continuing_subword_prefix"]
    table = byte_characters()
    draw = random.Random(5)
    letters = " abcdehimnorstußöThCat.!'é日 0123"
    lines = [*LINES]
    for _ in range(300):
        lines.append("".join(draw.choices(letters, k=30)))
    expected = []
    for line in lines:
        ids = list[int]()
        for word in GPT2_WORDS.findall(line):
            characters = "".join(table[byte] for byte in word.encode())
            ids += longest_matches(characters, model["vocab"], mark)
        expected.append(ids)
    assert tokenizer.encode(lines) == expected


def test_long_words_take_linear_time(tokenizer: Tokenizer) -> None:
    start = time.process_time()
    check_lossless(tokenizer, ["x" * 10_000, "日本" * 700])
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_a_vocabulary_file_keeps_its_normalization(kind: str, name: str) -> None:
    config = TokenizerConfig(kind, 600, normalization=name)
    tokenizer = train_tokenizer(LINES, config)
    assert pickle.loads(pickle.dumps(tokenizer)).normalization == NORMALIZATIONS[name]
    line = "2\u00bd \ufb01 m\u00b2 \uff1f"
    sources = {
        "canonical": "2\u00bd fi m\u00b2 \uff1f",
        "nfkc": "21\u20442 fi m2 ?",
        "none": line,
    }
    targets = {"canonical": line, "nfkc": "21\u20442 fi m2 ?", "none": line}
    assert tokenizer.clean(line) == sources[name]
    assert tokenizer.clean(line, TARGET) == targets[name]


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
def test_files_of_other_programs_are_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "tokenizer.model"
    content, words = HOSTILE[what]
    path.write_bytes(content())
    with pytest.raises(NMTError, match=rf"tokenizer\.model: not a tokenizer.*{words}") as error:
        load_tokenizer(path)
    assert "\n" not in str(error.value)


def test_regular_expressions_in_a_word_piece_file_are_ignored(tmp_path: Path) -> None:
    slow = {
        "type": "Split",
        "pattern": {"Regex": "(a*)*b"},
        "behavior": "Isolated",
        "invert": False,
    }
    (tmp_path / "tokenizer.model").write_bytes(changed_wordpiece({}, pre_tokenizer=slow))
    check_lossless(load_tokenizer(tmp_path / "tokenizer.model"), [*LINES, "a" * 1000])
