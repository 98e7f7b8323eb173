"""`nmt preprocess`: what is kept, what is held out, and what a second run does."""

import io
import json
import random
import subprocess
import unicodedata
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets
import pytest
import sentencepiece
from rich.console import Console

from nmt.commands.preprocess import Log
from nmt.config import UNK, DataConfig, ExperimentConfig, NMTError, TokenizerConfig
from nmt.data import open_corpus, read_manifest
from nmt.preparation import preprocess
from nmt.preparation.arrow_files import text_block
from nmt.preparation.characters import lacking_characters
from nmt.preparation.encoding import usual_and_longest
from nmt.text import Pair, Tokenizer, load_tokenizer
from tests.helpers.preloaded import python

SPLITS = ("train", "valid", "test")


def sentences(count: int, seed: int = 0) -> list[Pair]:
    """Pairs of three to six made-up words, different on both sides."""
    random_ = random.Random(seed)
    words = []
    for _ in range(120):
        words.append("".join(random_.choices("abcdefgimnorstu", k=random_.randrange(2, 6))))
    sources: dict[str, None] = {}
    while len(sources) < count:
        sources[" ".join(random_.choices(words, k=random_.randrange(3, 7)))] = None
    return [(source, translation_of(source)) for source in sources]


def translation_of(source: str) -> str:
    """Each word backwards, with a suffix."""
    return " ".join(word[::-1] + "en" for word in source.split())


def side_of(pairs: list[Pair], side: int) -> list[str]:
    return [pair[side] for pair in pairs]


def write(path: Path, pairs: list[Pair]) -> list[str]:
    """Write PATH.en and PATH.de, and return a value of data.train."""
    for side, code in enumerate(("en", "de")):
        text = "".join(f"{line}\n" for line in side_of(pairs, side))
        file = Path(f"{path}.{code}")
        file.write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")
    return [str(path)]


def configuration(folder: Path, **changes: Any) -> ExperimentConfig:
    """A toy corpus to prepare in folder/out/toy.

    Each of the `changes` goes to the first part of the configuration that has a key of its name.
    """
    data = DataConfig(
        name="toy",
        kind="files",
        train=[str(folder / "train")],
        valid_size=20,
        test_size=30,
    )
    config = ExperimentConfig(data=data, tokenizer=TokenizerConfig("bpe", 400), workers=1)
    config.prepared = str(folder / "out" / "toy")
    for key, value in changes.items():
        for part in (config, config.tokenizer, data, data.filters):
            if key in part.__dataclass_fields__:
                setattr(part, key, value)
                break
        else:
            raise KeyError(key)
    return config


def silent(words: str) -> None:
    """Ignore progress."""


def prepare(folder: Path, **changes: Any) -> dict[str, Any]:
    """Prepare the toy corpus and return its counts."""
    manifest, is_new = preprocess(configuration(folder, **changes), silent)
    assert is_new
    return manifest.counts


def rows_of(folder: Path, split: str) -> datasets.Dataset:
    return datasets.Dataset.from_file(str(folder / "out" / "toy" / split / "pairs.arrow"))


def prepared_pairs(folder: Path, split: str) -> list[Pair]:
    tokenizer = load_tokenizer(folder / "out" / "toy" / "tokenizer.model")
    return [
        (tokenizer.decode(row["source"]), tokenizer.decode(row["target"]))
        for row in rows_of(folder, split)
    ]


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Modification time and bytes of each file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in files
    }


def left_in(folder: Path) -> list[str]:
    return [path.name for path in (folder / "out").iterdir() if path.name != ".toy.lock"]


def letters_of(lines: list[str]) -> set[str]:
    """The letters of each line, in lower case."""
    letters = set()
    for line in lines:
        letters.add("".join(c for c in line.lower() if unicodedata.category(c)[0] == "L"))
    return letters


def variants(pairs: list[Pair]) -> list[Pair]:
    """The pairs, near copies of them, and a third of the sources beside another target."""
    variants = list(pairs)
    for number, (source, target) in enumerate(pairs):
        variants.append((f"{source.upper()}!", f"{target} {number}."))
    following = [*pairs[1:], pairs[0]]
    recombined = []
    for (source, _), (_, other_target) in zip(pairs, following, strict=True):
        recombined.append((source, other_target))
    return [*variants, *recombined[::3]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "train", sentences(300))
    return tmp_path


@dataclass
class Prepared:
    folder: Path
    counts: dict[str, Any]


@pytest.fixture(scope="module")
def two_sources(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A corpus of two sources with near copies of each other's lines.

    The first source has a given validation set, of which 30 pairs are in train.
    """
    folder = tmp_path_factory.mktemp("two_sources")
    pairs = sentences(600)
    common = sentences(200, seed=1)
    given = sentences(100, seed=2)
    numbers = [(f"{n} %", f"{n} Prozent") for n in range(100)]
    same_source = (given[30][0], "another")
    write(folder / "train", [*pairs[:300], *variants(common), *numbers])
    write(folder / "other", [*pairs[300:], *variants(common), *given[:30], same_source])
    write(folder / "valid", [(f" {source}  ", target) for source, target in given])
    one = {"name": "one", "valid": f"{folder}/valid.en:{folder}/valid.de"}
    two = {"name": "two", "train": f"{folder}/other.en:{folder}/other.de"}
    return Prepared(folder, prepare(folder, sources=[one, two]))


def test_given_pairs_that_are_also_in_train_are_counted(two_sources):
    assert two_sources.counts["valid"]["sources"]["one"] == 100
    assert two_sources.counts["valid"]["in_train"] == 30


@pytest.mark.parametrize("side", [0, 1])
def test_train_has_no_line_with_the_letters_of_a_drawn_line(two_sources, side):
    border = two_sources.counts["valid"]["sources"]["one"]  # before it, pairs are given, not drawn
    valid = prepared_pairs(two_sources.folder, "valid")[border:]
    test = prepared_pairs(two_sources.folder, "test")
    assert len(valid) + len(test) == 80
    drawn = letters_of(side_of([*valid, *test], side))
    assert not letters_of(side_of(prepared_pairs(two_sources.folder, "train"), side)) & drawn
    # The second source draws both of its sets.
    valid_letters = letters_of(side_of(valid, side))
    test_letters = letters_of(side_of(test[30:], side))
    assert len(valid_letters) == 20
    assert len(test_letters) == 30
    assert not valid_letters & test_letters


def test_pairs_like_a_held_out_line_are_counted_and_the_others_kept(two_sources):
    assert two_sources.counts["train"]["dropped"]["like a held-out line"] >= 50
    assert two_sources.counts["train"]["kept"] > 1000


def test_an_error_names_the_source(folder):
    write(folder / "empty", [])
    sources = [{"name": "one"}, {"name": "two", "train": f"{folder}/empty"}]
    with pytest.raises(NMTError, match=r"data.sources, two: no training pairs are left of 0"):
        prepare(folder, sources=sources)


def prepared_splits(folder: Path, seed: int) -> list[list[Pair]]:
    prepare(folder, seed=seed, overwrite=True)
    return [prepared_pairs(folder, split) for split in SPLITS]


def test_each_pair_is_in_one_split(folder):
    train, valid, test = prepared_splits(folder, seed=1)
    assert sorted([*train, *valid, *test]) == sorted(sentences(300))


def test_line_numbers_are_those_of_the_corpus(folder):
    prepare(folder)
    pairs = sentences(300)
    lines = rows_of(folder, "train")["line"]
    assert [pairs[line - 1] for line in lines] == prepared_pairs(folder, "train")


@pytest.mark.slow
def test_the_seed_decides_what_is_held_out(folder):
    first = prepared_splits(folder, seed=1)
    assert prepared_splits(folder, seed=1) == first
    other = prepared_splits(folder, seed=2)
    for of_first, of_other in zip(first, other, strict=True):
        assert set(of_first) != set(of_other)


HELD_OUT = [
    ("  two  blanks ", "\u00a0und  drei "),
    ("", ""),
    ("", "left is empty"),
    ("the same", "the same"),
    ("the same", "the same"),
    ("\ufb01ne \uff21", "e\u0301\u2028\u0085x\ty"),
    ("w " * 400, "long"),
    ("one", "w " * 30),
    ("\u2581 \ue000 <s>", "\U0001f468\u200d\U0001f469"),
    sentences(1)[0],
]
"""Pairs that the filters would drop, or that normalization changes."""
STRICT = {
    "min_words": 2,
    "max_words": 5,
    "max_ratio": 2.0,
    "max_tokens": 9,
    "drop_identical": True,
    "deduplicate": True,
}


def normalized(line: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", line).split())


@pytest.mark.parametrize(("split", "kept"), [("valid", [10, 30]), ("test", [20, 10])])
def test_a_given_held_out_set_is_not_filtered(folder, split, kept):
    given = {split: write(folder / split, HELD_OUT)}
    counts = prepare(folder, **STRICT, **given)
    assert counts[split]["read"] == 10
    assert not counts[split]["dropped"]
    assert [counts["valid"]["kept"], counts["test"]["kept"]] == kept
    expected = [(normalized(source), normalized(target)) for source, target in HELD_OUT]
    assert prepared_pairs(folder, split) == expected


@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_raw_text_of_a_held_out_set_is_written(folder, split):
    given = {split: write(folder / split, HELD_OUT)}
    prepare(folder, **STRICT, **given)
    corpus = open_corpus(folder / "out" / "toy")
    assert list(zip(*corpus.text(split), strict=True)) == HELD_OUT
    for side, code in enumerate(("en", "de")):
        raw = "".join(f"{line}\n" for line in side_of(HELD_OUT, side))
        assert (corpus.folder / f"{split}.{code}").read_bytes() == raw.encode()


def test_the_raw_text_of_a_held_out_set_has_a_line_for_each_pair(folder):
    texts = ("one\nline", "two", "\r", "three\r\nlines\n")
    lines = [json.dumps({"en": text, "de": text}) for text in texts]
    (folder / "valid.jsonl").write_text("\n".join(lines) + "\n")
    prepare(folder, valid=[str(folder / "valid.jsonl")])
    corpus = open_corpus(folder / "out" / "toy")
    sources, targets = corpus.text("valid")
    assert len(corpus.split("valid")) == len(sources) == len(targets) == 4


JUST_WITHIN_THE_RULES = [
    ("a b", "c d e f g h"),
    ("w " * 11 + "w", "v v v v"),
    ("same here", "Same here"),
]
GOOD = [*sentences(100), ("a  b c", "d\te f"), *JUST_WITHIN_THE_RULES]
DROPPED = {
    "empty side": [("", "Leer."), ("\u2028 \t", "Leer."), ("Empty.", "")],
    "too short": [("one", "eins zwei")],
    "too long (words)": [("w " * 13, "v v v v v"), ("w w w w w", "v " * 13)],
    "length ratio": [("a b", "c d e f g h i")],
    "identical sides": [("same here", "same here"), ("same  \ufb01ne", "same fine ")],
    "duplicates": [GOOD[0], GOOD[0], ("a b  c", "d e f")],
    "too long (tokens)": [("a " + "".join(map(chr, range(0x1208, 0x1248))), "b c")],
}
MALFORMED = b"no tab\nbroken\t\xff\nx y z\tu v w\nno tab either\n"
"""A table with one good line."""


def test_every_pair_is_kept_or_counted_under_the_reason_for_dropping_it(tmp_path):
    bad = []
    for pairs in DROPPED.values():
        bad += pairs
    (tmp_path / "more.tsv").write_bytes(MALFORMED)
    held_out = write(tmp_path / "held_out", sentences(3, seed=9))
    counts = prepare(
        tmp_path,
        train=[*write(tmp_path / "train", GOOD + bad), str(tmp_path / "more.tsv")],
        valid=held_out,
        test=held_out,
        errors="skip",
        deduplicate=True,
        min_words=2,
        max_words=12,
        max_ratio=3,
        max_tokens=60,
        drop_identical=True,
    )
    expected = {reason: len(pairs) for reason, pairs in DROPPED.items()}
    expected |= {"malformed": 2, "invalid UTF-8": 1}
    assert dict(counts["train"]["dropped"]) == expected
    assert counts["train"]["read"] == len(GOOD) + len(bad) + 4
    assert counts["train"]["kept"] == len(GOOD) + 1
    kept = [(" ".join(source.split()), " ".join(target.split())) for source, target in GOOD]
    assert prepared_pairs(tmp_path, "train") == [*kept, ("x y z", "u v w")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_ids_spell_the_corpus_and_lengths_count_the_end_symbol(tmp_path, kind):
    pairs = [("Größe\u00a0\ufb01ne", "\u65e5\u672c \U0001f600 ##<s>"), *sentences(200)]
    write(tmp_path / "train", pairs)
    held_out = write(tmp_path / "held_out", pairs[:5])
    counts = prepare(tmp_path, kind=kind, vocabulary_size=600, valid=held_out, test=held_out)
    first = ("Größe fine", "\u65e5\u672c \U0001f600 ##<s>")
    assert prepared_pairs(tmp_path, "train") == [first, *pairs[1:]]
    vocabulary = load_tokenizer(tmp_path / "out" / "toy" / "tokenizer.model").vocabulary_size
    for split in SPLITS:
        rows = rows_of(tmp_path, split)
        for side in ("source", "target"):
            for ids, length in zip(rows[side], rows[f"{side}_length"], strict=True):
                assert length == len(ids) + 1
                assert all(UNK < id < vocabulary for id in ids)
            assert counts[split]["tokens"][side] == sum(rows[f"{side}_length"])


@pytest.mark.parametrize(
    ("most", "characters"),
    [
        (4, {"source": " abc", "rare": "", "target": " def"}),
        (3, None),
    ],
)
def test_characters_of_train_are_recorded_unless_they_are_too_many(
    tmp_path, monkeypatch, most, characters
):
    monkeypatch.setattr("nmt.preparation.characters.RECORDED_CHARACTERS", most)
    write(tmp_path / "train", [("ab", "d e"), ("b c", "f")])
    held_out = write(tmp_path / "held_out", [("\u0436\u0436 xyz", "uvw")] * 50)
    prepare(tmp_path, valid=held_out, test=held_out)
    assert read_manifest(tmp_path / "out" / "toy").characters == characters


def test_the_vocabulary_is_learned_from_train_alone(tmp_path):
    write(tmp_path / "train", [("ab", "d e"), ("b c", "f")])
    held_out = write(tmp_path / "held_out", [("\u0436\u0436 xyz", "uvw")] * 50)
    prepare(tmp_path, valid=held_out, test=held_out)
    file = str(tmp_path / "out" / "toy" / "tokenizer.model")
    model = sentencepiece.SentencePieceProcessor(model_file=file)
    assert not any("\u0436" in model.id_to_piece(i) for i in range(model.vocab_size()))


def test_letters_that_are_too_rare_to_learn_are_recorded_apart(tmp_path):
    # A vocabulary of 99.99% of all characters has no entry for these, which it spells in bytes.
    rare = [("Ж", "x"), ("舌", "x"), ("ก\u0e34", "x"), ("☺", "x")]
    write(tmp_path / "train", [*sentences(3_000), *rare])
    prepare(tmp_path)
    recorded = read_manifest(tmp_path / "out" / "toy").characters
    assert recorded["rare"] == "Жก\u0e34舌"
    assert not set(recorded["source"]) & {*"Жก\u0e34舌☺"}


def test_the_number_of_workers_does_not_change_anything(tmp_path):
    write(tmp_path / "train", sentences(11_000))  # three blocks
    prepared = []
    for workers in (1, 3):
        counts = prepare(tmp_path, workers=workers, overwrite=True)
        files = {name: bytes_ for name, (_, bytes_) in content(tmp_path / "out" / "toy").items()}
        prepared.append((counts, files))
    assert prepared[0] == prepared[1]
    assert len(files) == 9


def test_preparing_again_does_nothing(folder):
    prepare(folder)
    before = content(folder / "out")
    manifest, is_new = preprocess(configuration(folder, workers=2), silent)
    assert not is_new
    assert manifest == read_manifest(folder / "out" / "toy")
    assert content(folder / "out") == before


def test_the_manifest_has_the_digests_of_the_files(folder):
    prepare(folder)
    digests = {}
    for text in (folder / "train.en", folder / "train.de"):
        digests[str(text)] = sha256(text.read_bytes()).hexdigest()
    assert read_manifest(folder / "out" / "toy").content["sources"] == digests


def test_changed_keys_are_refused_by_name_unless_overwrite_is_set(folder):
    prepare(folder)
    before = content(folder / "out")
    changes = {"seed": 2, "max_ratio": 4.0}
    message = r"data.filters.max_ratio: None -> 4.0, seed: 1 -> 2.*overwrite=true"
    with pytest.raises(NMTError, match=message):
        preprocess(configuration(folder, **changes), silent)
    assert content(folder / "out") == before
    prepare(folder, overwrite=True, **changes)
    _, is_new = preprocess(configuration(folder, **changes), silent)
    assert not is_new


@pytest.mark.parametrize(
    ("pairs", "changes", "words"),
    [
        ([], {}, "no training pairs are left of 0"),
        (
            sentences(300),
            {"valid_size": 150, "test_size": 151},
            "data.valid_size=150 and data.test_size=151",
        ),
        ([("fine", "gut")] * 9 + [("broken", "\udcff")], {}, r"bad\.de, line 10\b"),
    ],
)
@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_failure_is_one_line_and_changes_nothing(folder, pairs, changes, words, is_prepared):
    if is_prepared:
        prepare(folder)
        (folder / "out" / ".toy.lock").unlink()
    before = content(folder / "out")
    keys = {"train": write(folder / "bad", pairs), "overwrite": is_prepared, **changes}
    with pytest.raises(NMTError, match=words) as error:
        prepare(folder, **keys)
    assert "\n" not in str(error.value)
    after = content(folder / "out")
    assert {name: file for name, file in after.items() if ".lock" not in name} == before
    assert left_in(folder) == (["toy"] if is_prepared else [])


@pytest.mark.slow
@pytest.mark.parametrize("change", ["train/thesis.tex", "a link", "manifest.json"])
def test_overwrite_replaces_nothing_but_a_prepared_corpus(folder, change):
    """It is refused before any work: no progress is reported."""
    prepare(folder)
    corpus = folder / "out" / "toy"
    if change == "a link":
        (corpus / "train").rename(folder / "elsewhere")
        (corpus / "train").symlink_to(folder / "elsewhere")
    else:
        (corpus / change).write_text("{}")
    before = content(corpus)
    message = r"train.* does not belong to the prepared corpus|not a prepared"
    with pytest.raises(NMTError, match=message) as error:
        preprocess(configuration(folder, overwrite=True, seed=2), pytest.fail)
    assert "\n" not in str(error.value)
    assert content(corpus) == before


SLEEPING = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.core.test_preprocess import configuration
from nmt.preparation import preparation, preprocess, reading

def say(words):
    print(words, flush=True)
    if words.startswith({stage!r}):
        time.sleep(600)

def busy(*arguments, **options):
    say("busy")
    sum(range(10**12))  # like a long call of a library, holds the interpreter's lock

if {stage!r} == "deduplicating":
    reading.repeated_rows = busy
if {stage!r} == "learning":
    preparation.learn_vocabulary = busy
config = configuration(Path({folder!r}), workers=3, overwrite=True, deduplicate=True, seed=2)
preprocess(config, say)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["read", "deduplicating", "learning", "encoded"])
def test_after_sigkill_the_next_command_removes_what_is_left(folder, stage):
    """Until then, other commands are refused, and workers end with the command."""
    prepare(folder)
    old = content(folder / "out" / "toy")
    root = Path(__file__).parents[2]
    script = SLEEPING.format(root=str(root), folder=str(folder), stage=stage)
    begins = (stage, "busy")
    with subprocess.Popen([python(), "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert any(line.startswith(begins) for line in process.stdout)
        with pytest.raises(NMTError, match=r"toy: another nmt is using it"):
            prepare(folder, overwrite=True)
        process.kill()
        process.communicate(timeout=10)  # returns when the last worker has closed the pipe
    assert content(folder / "out" / "toy") == old
    [left] = [name for name in left_in(folder) if name != "toy"]
    assert left.startswith(".toy.")
    other = folder / "out" / ".toys.00000000.nmt-tmp"
    other.mkdir()
    # The corpus of the first command is complete, so this does nothing else.
    _, is_new = preprocess(configuration(folder), silent)
    assert not is_new
    assert sorted(left_in(folder)) == [other.name, "toy"]
    prepare(folder, overwrite=True, deduplicate=True, seed=2)


@pytest.mark.parametrize(
    ("lengths", "usual", "longest"),
    [
        ([], 0, 0),
        ([7], 7, 7),
        ([1] * 99 + [50], 1, 50),
        ([1] * 98 + [9, 50], 9, 50),
        ([3, 5], 5, 5),
    ],
)
def test_99_percent_of_lines_are_no_longer_than_usual(lengths, usual, longest):
    assert usual_and_longest(Counter(lengths)) == {"p99": usual, "max": longest}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    write(tmp_path / "train", sentences(200))
    prepare(tmp_path)
    return load_tokenizer(tmp_path / "out" / "toy" / "tokenizer.model")


def lacking(tokenizer: Tokenizer, pairs: list[Pair], side: int) -> str:
    counts = Counter("".join(side_of(pairs, side)))
    block = text_block(list(enumerate(pairs, start=1)))
    return lacking_characters(tokenizer, counts, side, [""], [block])


def test_characters_that_the_initial_vocabulary_lacks_are_listed(tokenizer):
    pairs = sentences(200)
    pairs[2] = (f"{pairs[2][0]} ŋŋŋ 涨", pairs[2][1])
    pairs[8] = (f"{pairs[8][0]} 涨价", pairs[8][1])
    notice = lacking(tokenizer, pairs, side=0)
    assert "lacks 3 characters of the sources" in notice
    first, second, third = notice.partition("extend`): ")[2].split("), ")
    assert first == "'ŋ' (U+014B LATIN SMALL LETTER ENG, 3 times, first in pair 3"
    assert second == "'涨' (U+6DA8 CJK UNIFIED IDEOGRAPH-6DA8, 2 times, first in pair 3"
    assert third == "'价' (U+4EF7 CJK UNIFIED IDEOGRAPH-4EF7, once, first in pair 9)"


def test_at_most_20_lacking_characters_are_listed(tokenizer):
    pairs = sentences(200)
    greek = "".join(map(chr, range(0x3B1, 0x3B1 + 25)))
    pairs[4] = (pairs[4][0], pairs[4][1] + greek)
    notice = lacking(tokenizer, pairs, side=1)
    assert "lacks 25 characters of the targets" in notice
    assert notice.count("U+") == 20
    assert notice.endswith("and 5 more")


@pytest.mark.parametrize("side", [0, 1])
def test_there_is_no_notice_if_the_vocabulary_has_all_characters(tokenizer, side):
    assert lacking(tokenizer, sentences(200), side) == ""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_notice_about_the_corpus_is_printed_once(nmt, here, workers):
    pairs = sentences(300)
    rows = []
    for number, (source, target) in enumerate(pairs):
        rows.append(f"{number}\t{source} &amp; co\t{target}\n")
    Path("toy.tsv").write_text("".join(rows))
    outcome = nmt(
        "preprocess",
        "toy.tsv",
        "data.source=en",
        "data.target=de",
        "data.valid_size=5",
        "data.test_size=5",
        "tokenizer.vocabulary_size=400",
        f"workers={workers}",
    )
    assert outcome.code == 0
    assert outcome.out == ""
    notices = [line for line in outcome.err.splitlines() if line.startswith("notice: ")]
    columns = [line for line in notices if "columns 2 and 3 of 3 are the texts" in line]
    entities = [line for line in notices if "300 of 300 sources contain HTML entities" in line]
    assert len(columns) == len(entities) == 1
    assert "data.train (toy.tsv)" in entities[0]


def test_a_log_has_a_line_per_minute():
    times = iter([0.0, 30.0, 61.0, 61.0, 90.0])
    stream = io.StringIO()
    log = Log(Console(file=stream), clock=lambda: next(times))
    for pairs in (1, 2, 3):
        log(f"read {pairs} pairs")
    assert stream.getvalue() == "read 2 pairs\n"
