"""`nmt preprocess`: what is kept, what is held out, and what a second run does."""

import json
import random
import subprocess
import unicodedata
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import datasets
import pytest
import sentencepiece
from preloaded import python

from nmt.config import DataConfig, ExperimentConfig, NMTError, TokenizerConfig
from nmt.data import open_corpus, read_manifest
from nmt.preparation import preprocess
from nmt.preparation.arrow_files import text_block
from nmt.preparation.characters import lacking_characters
from nmt.preparation.encoding import usual_and_longest
from nmt.text import Pair, load_tokenizer

SPLITS = ("train", "valid", "test")


def sentences(count: int, seed: int = 0) -> list[Pair]:
    """Pairs of three to six made-up words, different on both sides."""
    random_ = random.Random(seed)
    words = [
        "".join(random_.choices("abcdefgimnorstu", k=random_.randrange(2, 6))) for _ in range(120)
    ]
    sources: dict[str, None] = {}
    while len(sources) < count:
        sources[" ".join(random_.choices(words, k=random_.randrange(3, 7)))] = None
    return [(source, " ".join(word[::-1] + "en" for word in source.split())) for source in sources]


def write(path: Path, pairs: list[Pair]) -> list[str]:
    for side, code in enumerate(("en", "de")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        Path(f"{path}.{code}").write_text(
            text, encoding="utf-8", errors="surrogateescape", newline="\n"
        )
    return [str(path)]


def configuration(folder: Path, **changes: Any) -> ExperimentConfig:
    """A toy corpus to prepare in folder/out/toy; `changes` go to the first part that has a key of that name."""
    data = DataConfig(
        name="toy", kind="files", train=[str(folder / "train")], valid_size=20, test_size=30
    )
    config = ExperimentConfig(data=data, tokenizer=TokenizerConfig("bpe", 400), workers=1)
    config.prepared = str(folder / "out" / "toy")
    for key, value in changes.items():
        parts = (config, config.tokenizer, data, data.filters)
        setattr(next(part for part in parts if key in part.__dataclass_fields__), key, value)
    return config


def prepare(folder: Path, **changes: Any) -> dict[str, Any]:
    manifest, done = preprocess(configuration(folder, **changes), lambda words: None)
    assert done
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


def letters_of(pairs: list[Pair], side: int) -> set[str]:
    return {
        "".join(c for c in pair[side].lower() if unicodedata.category(c)[0] == "L")
        for pair in pairs
    }


def variants(pairs: list[Pair]) -> list[Pair]:
    """Each pair again with another digit, case, or punctuation, and each side again beside another line."""
    near = [(f"{source.upper()}!", f"{target} {i}.") for i, (source, target) in enumerate(pairs)]
    recombined = [
        (source, other[1]) for (source, _), other in zip(pairs, [*pairs[1:], pairs[0]], strict=True)
    ]
    return [*pairs, *near, *recombined[::3]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "train", sentences(300))
    return tmp_path


def test_no_line_held_out_of_any_source_occurs_in_train_not_even_with_other_digits_case_or_punctuation(
    tmp_path,
):
    pairs, common, given = sentences(600), sentences(200, seed=1), sentences(100, seed=2)
    numbers = [(f"{n} %", f"{n} Prozent") for n in range(100)]
    write(tmp_path / "train", [*pairs[:300], *variants(common), *numbers])
    write(
        tmp_path / "other",
        [*pairs[300:], *variants(common), *given[:30], (given[30][0], "another")],
    )
    write(tmp_path / "valid", [(f" {source}  ", target) for source, target in given])
    valid, train = (f"{tmp_path}/{name}.en:{tmp_path}/{name}.de" for name in ("valid", "other"))
    counts = prepare(
        tmp_path, sources=[{"name": "one", "valid": valid}, {"name": "two", "train": train}]
    )
    border, lines = (
        counts["valid"]["sources"]["one"],
        {split: prepared_pairs(tmp_path, split) for split in SPLITS},
    )
    drawn = [*lines["valid"][border:], *lines["test"]]
    assert (border, len(drawn), counts["valid"]["in_train"]) == (100, 80, 30)
    for side in (0, 1):
        assert not letters_of(lines["train"], side) & letters_of(drawn, side)
        valid, test = (
            letters_of(pairs, side) for pairs in (lines["valid"][border:], lines["test"][30:])
        )
        assert (len(valid), len(test), len(valid | test)) == (20, 30, 50)
    assert counts["train"]["dropped"]["like a held-out line"] >= 50
    assert counts["train"]["kept"] > 1000
    write(tmp_path / "empty", [])
    with pytest.raises(NMTError, match=r"data.sources, two: no training pairs are left of 0"):
        prepare(
            tmp_path,
            sources=[{"name": "one"}, {"name": "two", "train": f"{tmp_path}/empty"}],
            overwrite=True,
        )


def test_the_seed_decides_what_is_held_out(folder):
    drawn = []
    for seed in (1, 1, 2):
        prepare(folder, seed=seed, overwrite=True)
        drawn.append([prepared_pairs(folder, split) for split in SPLITS])
        assert [sentences(300)[line - 1] for line in rows_of(folder, "train")["line"]] == drawn[-1][
            0
        ]
    assert drawn[0] == drawn[1]
    assert sorted(pair for pairs in drawn[0] for pair in pairs) == sorted(sentences(300))
    assert all(set(one) != set(other) for one, other in zip(drawn[0], drawn[2], strict=True))


HELD_OUT = [
    ("  two  blanks ", "\u00a0und  drei "),
    ("", ""),
    ("", "left is empty"),
    *[("the same", "the same")] * 2,
]
HELD_OUT += [
    ("\ufb01ne \uff21", "e\u0301\u2028\u0085x\ty"),
    ("w " * 400, "long"),
    ("one", "w " * 30),
]
HELD_OUT += [("\u2581 \ue000 <s>", "\U0001f468\u200d\U0001f469"), sentences(1)[0]]


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_given_held_out_set_is_not_filtered_and_its_raw_text_is_written(folder, split):
    strict = {
        "min_words": 2,
        "max_words": 5,
        "max_ratio": 2.0,
        "max_tokens": 9,
        "drop_identical": True,
    }
    counts = prepare(folder, deduplicate=True, **strict, **{split: write(folder / split, HELD_OUT)})
    corpus = open_corpus(folder / "out" / "toy")
    assert (counts[split]["read"], counts[split]["kept"], dict(counts[split]["dropped"])) == (
        10,
        10,
        {},
    )
    assert sorted(counts[name]["kept"] for name in ("valid", "test")) == [
        10,
        30 if split == "valid" else 20,
    ]
    assert list(zip(*corpus.text(split), strict=True)) == HELD_OUT
    for side, code in enumerate(("en", "de")):
        raw = (corpus.folder / f"{split}.{code}").read_bytes()
        assert raw == "".join(pair[side] + "\n" for pair in HELD_OUT).encode()
    clean = [
        tuple(" ".join(unicodedata.normalize("NFKC", side).split()) for side in pair)
        for pair in HELD_OUT
    ]
    assert prepared_pairs(folder, split) == clean


def test_the_raw_text_of_a_held_out_set_has_a_line_for_each_pair(folder):
    lines = [
        json.dumps({"en": text, "de": text})
        for text in ("one\nline", "two", "\r", "three\r\nlines\n")
    ]
    (folder / "valid.jsonl").write_text("\n".join(lines) + "\n")
    prepare(folder, valid=[str(folder / "valid.jsonl")])
    corpus = open_corpus(folder / "out" / "toy")
    assert [len(corpus.split("valid")), *map(len, corpus.text("valid"))] == [4, 4, 4]


def test_every_pair_read_is_kept_or_counted_under_its_reason(tmp_path):
    good = [*sentences(100), ("a  b c", "d\te f")]
    good += [
        ("a b", "c d e f g h"),
        ("w " * 11 + "w", "v v v v"),
        ("same here", "Same here"),
    ]  # just within the rules
    dropped = {
        "empty side": [("", "Leer."), ("\u2028 \t", "Leer."), ("Empty.", "")],
        "too short": [("one", "eins zwei")],
        "too long (words)": [("w " * 13, "v v v v v"), ("w w w w w", "v " * 13)],
        "length ratio": [("a b", "c d e f g h i")],
        "identical sides": [("same here", "same here"), ("same  \ufb01ne", "same fine ")],
        "duplicates": [good[0], good[0], ("a b  c", "d e f")],
        "too long (tokens)": [("a " + "".join(map(chr, range(0x1208, 0x1248))), "b c")],
    }
    bad, more = [pair for pairs in dropped.values() for pair in pairs], tmp_path / "more.tsv"
    more.write_bytes(b"no tab\nbroken\t\xff\nx y z\tu v w\nno tab either\n")
    train = [*write(tmp_path / "train", good + bad), str(more)]
    held_out = dict.fromkeys(("valid", "test"), write(tmp_path / "held_out", sentences(3, seed=9)))
    rules = {
        "min_words": 2,
        "max_words": 12,
        "max_ratio": 3,
        "max_tokens": 60,
        "drop_identical": True,
    }
    counts = prepare(tmp_path, train=train, **held_out, errors="skip", deduplicate=True, **rules)[
        "train"
    ]
    expected = {reason: len(pairs) for reason, pairs in dropped.items()} | {
        "malformed": 2,
        "invalid UTF-8": 1,
    }
    assert dict(counts["dropped"]) == expected
    assert (counts["read"], counts["kept"]) == (len(good) + len(bad) + 4, len(good) + 1)
    clean = [(" ".join(source.split()), " ".join(target.split())) for source, target in good]
    assert prepared_pairs(tmp_path, "train") == [*clean, ("x y z", "u v w")]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_ids_spell_the_corpus_and_lengths_count_the_end_symbol(tmp_path, kind):
    pairs = [("Größe\u00a0\ufb01ne", "\u65e5\u672c \U0001f600 ##<s>"), *sentences(200)]
    write(tmp_path / "train", pairs)
    held_out = dict.fromkeys(("valid", "test"), write(tmp_path / "held_out", pairs[:5]))
    counts = prepare(tmp_path, kind=kind, vocabulary_size=600, **held_out)
    assert prepared_pairs(tmp_path, "train") == [
        ("Größe fine", "\u65e5\u672c \U0001f600 ##<s>"),
        *pairs[1:],
    ]
    vocabulary = load_tokenizer(tmp_path / "out" / "toy" / "tokenizer.model").vocabulary_size
    for split in SPLITS:
        rows = list(rows_of(tmp_path, split))
        for side in ("source", "target"):
            assert all(3 < i < vocabulary for row in rows for i in row[side])
            assert [row[f"{side}_length"] for row in rows] == [len(row[side]) + 1 for row in rows]
            assert counts[split]["tokens"][side] == sum(row[f"{side}_length"] for row in rows)


def test_vocabulary_and_recorded_characters_are_of_the_training_pairs_alone(tmp_path, monkeypatch):
    write(tmp_path / "train", [("ab", "d e"), ("b c", "f")])
    changes = dict.fromkeys(
        ("valid", "test"), write(tmp_path / "held_out", [("\u0436\u0436 xyz", "uvw")] * 50)
    )
    few = {"source": " abc", "rare": "", "target": " def"}
    for most, characters in ((4, few), (3, None)):
        monkeypatch.setattr("nmt.preparation.characters.RECORDED_CHARACTERS", most)
        prepare(tmp_path, **changes, overwrite=True)
        assert read_manifest(tmp_path / "out" / "toy").characters == characters
    model = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "out" / "toy" / "tokenizer.model")
    )
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


def test_preparing_again_does_nothing_and_changed_keys_are_refused_by_their_names(folder):
    prepare(folder)
    before = content(folder / "out")
    manifest, done = preprocess(configuration(folder, workers=2), lambda words: None)
    assert (done, manifest) == (False, read_manifest(folder / "out" / "toy"))
    texts = [folder / "train.en", folder / "train.de"]
    assert manifest.content["sources"] == {
        str(text): sha256(text.read_bytes()).hexdigest() for text in texts
    }
    changes = {"seed": 2, "max_ratio": 4.0}
    with pytest.raises(
        NMTError, match=r"data.filters.max_ratio: None -> 4.0, seed: 1 -> 2.*overwrite=true"
    ):
        preprocess(configuration(folder, **changes), lambda words: None)
    assert content(folder / "out") == before
    prepare(folder, overwrite=True, **changes)
    assert preprocess(configuration(folder, **changes), lambda words: None)[1] is False


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
def test_a_failed_preparation_is_one_line_leaves_nothing_behind_and_the_old_one_in_place(
    folder, pairs, changes, words
):
    other = write(folder / "bad", pairs)
    for overwrite in (False, True):
        before = content(folder / "out")
        with pytest.raises(NMTError, match=words) as error:
            prepare(folder, **{"train": other, "overwrite": overwrite, **changes})
        assert "\n" not in str(error.value)
        assert {
            name: files for name, files in content(folder / "out").items() if ".lock" not in name
        } == before
        assert left_in(folder) == (["toy"] if overwrite else [])
        if not overwrite:
            prepare(folder)
            (folder / "out" / ".toy.lock").unlink()


@pytest.mark.parametrize("change", ["train/thesis.tex", "a link", "manifest.json"])
def test_overwrite_replaces_nothing_but_a_prepared_corpus_and_says_so_before_any_work(
    folder, change
):
    prepare(folder)
    corpus = folder / "out" / "toy"
    if change == "a link":
        (corpus / "train").rename(folder / "elsewhere")
        (corpus / "train").symlink_to(folder / "elsewhere")
    else:
        (corpus / change).write_text("{}")
    before = content(corpus)
    with pytest.raises(
        NMTError, match=r"train.* does not belong to the prepared corpus|not a prepared"
    ) as error:
        preprocess(configuration(folder, overwrite=True, seed=2), pytest.fail)
    assert "\n" not in str(error.value)
    assert content(corpus) == before


SLEEPING = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}, {tests!r} + "/.."]
from pathlib import Path
from test_preprocess import configuration
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


@pytest.mark.parametrize("stage", ["read", "deduplicating", "learning", "encoded"])
def test_two_at_once_are_refused_and_after_sigkill_the_workers_end_and_what_is_left_is_removed(
    folder, stage
):
    prepare(folder)
    old = content(folder / "out" / "toy")
    tests = Path(__file__).parent
    script = SLEEPING.format(
        root=str(tests.parents[1]), tests=str(tests), folder=str(folder), stage=stage
    )
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
    assert preprocess(configuration(folder), lambda words: None)[1] is False
    assert sorted(left_in(folder)) == [other.name, "toy"]
    prepare(folder, overwrite=True, deduplicate=True, seed=2)


def test_99_of_100_lines_are_no_longer_than_usual():
    for lengths, usual in (
        ([], 0),
        ([7], 7),
        ([1] * 99 + [50], 1),
        ([1] * 98 + [9, 50], 9),
        ([3, 5], 5),
    ):
        assert usual_and_longest(Counter(lengths)) == {"p99": usual, "max": max(lengths, default=0)}


def test_characters_that_the_initial_vocabulary_lacks_are_listed(tmp_path):
    pairs = sentences(200)
    write(tmp_path / "train", pairs)
    prepare(tmp_path)
    tokenizer = load_tokenizer(tmp_path / "out" / "toy" / "tokenizer.model")
    pairs[2] = (pairs[2][0] + " ŋŋŋ 涨", pairs[2][1])
    pairs[8] = (pairs[8][0] + " 涨价", pairs[8][1])
    pairs[4] = (pairs[4][0], pairs[4][1] + "".join(map(chr, range(0x3B1, 0x3B1 + 25))))
    counts = [Counter("".join(pair[side] for pair in pairs)) for side in (0, 1)]
    block = text_block(list(enumerate(pairs, start=1)))
    source, target = (lacking_characters(tokenizer, counts[side], side, [block]) for side in (0, 1))
    assert "lacks 3 characters of the sources" in source
    first, second, third = source.partition("init): ")[2].split("), ")
    assert first == "'ŋ' (U+014B LATIN SMALL LETTER ENG, 3 times, first in pair 3"
    assert second == "'涨' (U+6DA8 CJK UNIFIED IDEOGRAPH-6DA8, 2 times, first in pair 3"
    assert third == "'价' (U+4EF7 CJK UNIFIED IDEOGRAPH-4EF7, once, first in pair 9)"
    assert "lacks 25 characters of the targets" in target
    assert target.count("U+") == 20
    assert target.endswith("and 5 more")
    known = [Counter("".join(pair[side] for pair in sentences(200))) for side in (0, 1)]
    assert [lacking_characters(tokenizer, known[side], side, []) for side in (0, 1)] == ["", ""]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_notice_about_the_corpus_is_printed_once(nmt, here, workers):
    pairs = sentences(300)
    rows = [
        f"{number}\t{source} &amp; co\t{target}\n" for number, (source, target) in enumerate(pairs)
    ]
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
