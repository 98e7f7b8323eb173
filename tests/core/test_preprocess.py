"""`nmt preprocess`: what is kept, what is held out, and what a second run does."""

import json
import random
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import sentencepiece

from nmt.config import DataConfig, ExperimentConfig, FilterConfig, TokenizerConfig
from nmt.data import open_corpus, read_manifest
from nmt.errors import NMTError
from nmt.preparation import preprocess
from nmt.preparation.preparation import usual_and_longest
from nmt.text import Pair, load_tokenizer

SPLITS = ("train", "valid", "test")


def sentences(count: int, seed: int = 0) -> list[Pair]:
    """Different pairs, on either side, of three to six made-up words."""
    random_ = random.Random(seed)
    words = ["".join(random_.choices("abcdefgimnorstu", k=random_.randrange(2, 6))) for _ in range(120)]
    sources: dict[str, None] = {}
    while len(sources) < count:
        sources[" ".join(random_.choices(words, k=random_.randrange(3, 7)))] = None
    return [(source, " ".join(word[::-1] + "en" for word in source.split())) for source in sources]


def write(path: Path, pairs: list[Pair]) -> str:
    """The pairs as PREFIX.en and PREFIX.de; gives the prefix."""
    for side, code in enumerate(("en", "de")):
        text = "".join(pair[side] + "\n" for pair in pairs)
        Path(f"{path}.{code}").write_text(text, encoding="utf-8", newline="\n")
    return str(path)


def configuration(folder: Path, **changes: Any) -> ExperimentConfig:
    """A toy corpus to be prepared in folder/out/toy; `changes` go to the first part that has a key of that name."""
    values: dict[type, dict[str, Any]] = {
        ExperimentConfig: {"prepared": str(folder / "out" / "toy"), "workers": 1},
        TokenizerConfig: {"kind": "bpe", "vocabulary_size": 400},
        DataConfig: {"name": "toy", "kind": "files", "train": str(folder / "train"), "valid_size": 20, "test_size": 30},
        FilterConfig: {},
    }
    for key, value in changes.items():
        owner = next(part for part in values if key in part.__dataclass_fields__)
        values[owner][key] = value
    data = DataConfig(**values[DataConfig], filters=FilterConfig(**values[FilterConfig]))
    tokenizer = TokenizerConfig(**values[TokenizerConfig])
    return ExperimentConfig(**values[ExperimentConfig], data=data, tokenizer=tokenizer)


def prepare(folder: Path, **changes: Any) -> dict[str, Any]:
    """Preprocess, and give the counts."""
    manifest, done = preprocess(configuration(folder, **changes), lambda words: None)
    assert done
    return manifest.counts


def rows_of(folder: Path, split: str) -> datasets.Dataset:
    return datasets.Dataset.from_file(str(folder / "out" / "toy" / split / "pairs.arrow"))


def prepared_pairs(folder: Path, split: str) -> list[Pair]:
    """The pairs of a split, spelt from its ids."""
    tokenizer = load_tokenizer(folder / "out" / "toy" / "tokenizer.model")
    rows = rows_of(folder, split)
    return [(tokenizer.decode(row["source"]), tokenizer.decode(row["target"])) for row in rows]


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time of change and bytes of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def left_in(folder: Path) -> list[str]:
    """What lies beside the prepared corpus but for the lock, which is of no size and stays."""
    return [path.name for path in (folder / "out").iterdir() if path.name != ".toy.lock"]


def letters_only(line: str) -> str:
    return "".join(c for c in line.lower() if unicodedata.category(c)[0] == "L")


def variants(pairs: list[Pair]) -> list[Pair]:
    """Each pair again with another digit, case, or punctuation, and each side again beside another line."""
    near = [(f"{source.upper()}!", f"{target} {i}.") for i, (source, target) in enumerate(pairs)]
    recombined = [(source, other[1]) for (source, _), other in zip(pairs, [*pairs[1:], pairs[0]], strict=True)]
    return [*pairs, *near, *recombined[::3]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with training files of 300 different pairs."""
    write(tmp_path / "train", sentences(300))
    return tmp_path


def test_no_held_out_line_occurs_in_train_not_even_with_other_digits_case_or_punctuation(tmp_path: Path) -> None:
    numbers = [(f"{n} %", f"{n} Prozent") for n in range(100)]
    write(tmp_path / "train", [*numbers, *variants(sentences(400))])
    counts = prepare(tmp_path, seed=2)
    lines = {
        split: [{letters_only(pair[side]) for pair in prepared_pairs(tmp_path, split)} for side in (0, 1)]
        for split in SPLITS
    }
    assert [counts[split]["kept"] for split in ("valid", "test")] == [20, 30]
    assert [len(side) for split in ("valid", "test") for side in lines[split]] == [20, 20, 30, 30]
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        for side in (0, 1):
            assert not lines[one][side] & lines[other][side]
    assert counts["train"]["dropped"]["like a held-out line"] >= 50
    assert counts["train"]["kept"] > 500


def test_no_line_held_out_of_one_source_occurs_in_train_of_another(tmp_path: Path) -> None:
    own, common = sentences(600), sentences(200, seed=1)
    given = sentences(100, seed=2)
    write(tmp_path / "train", [*own[:300], *variants(common)])
    write(tmp_path / "other", [*own[300:], *variants(common), *given[:30]])
    write(tmp_path / "valid", given)
    files = f"{tmp_path}/other.en:{tmp_path}/other.de"
    entries = [{"name": "one", "valid": f"{tmp_path}/valid.en:{tmp_path}/valid.de"}, {"name": "two", "train": files}]
    counts = prepare(tmp_path, sources=entries)
    border = counts["valid"]["sources"]["one"]
    lines = {split: prepared_pairs(tmp_path, split) for split in SPLITS}
    drawn = [*lines["valid"][border:], *lines["test"]]
    assert (border, len(drawn)) == (100, 80)
    for side in (0, 1):
        of_train = {letters_only(pair[side]) for pair in lines["train"]}
        assert not of_train & {letters_only(pair[side]) for pair in drawn}
    assert counts["valid"]["in_train"] == 30


def test_the_seed_decides_what_is_held_out(folder: Path) -> None:
    drawn = []
    for number, seed in enumerate((1, 1, 2)):
        own = folder / str(number)
        own.mkdir()
        prepare(own, seed=seed, train=str(folder / "train"))
        drawn.append([prepared_pairs(own, split) for split in SPLITS])
    assert drawn[0] == drawn[1]
    assert sorted(pair for pairs in drawn[0] for pair in pairs) == sorted(sentences(300))
    assert drawn[0][0] == [pair for pair in sentences(300) if pair in set(drawn[0][0])]
    assert all(set(one) != set(other) for one, other in zip(drawn[0], drawn[2], strict=True))


@pytest.mark.parametrize("given", ["valid", "test"])
def test_a_set_that_is_given_is_not_drawn(folder: Path, given: str) -> None:
    counts = prepare(folder, **{given: write(folder / "given", sentences(7, seed=5))})
    drawn = {"valid": 20, "test": 30} | {given: 7}
    assert {split: counts[split]["kept"] for split in ("valid", "test")} == drawn
    assert prepared_pairs(folder, given) == sentences(7, seed=5)


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


def test_given_held_out_sets_are_not_filtered_and_their_raw_text_is_written(folder: Path) -> None:
    strict = {"min_words": 2, "max_words": 5, "max_ratio": 2.0, "max_tokens": 9, "drop_identical": True}
    given = {split: write(folder / split, HELD_OUT) for split in ("valid", "test")}
    counts = prepare(folder, deduplicate=True, **strict, **given)
    corpus = open_corpus(folder / "out" / "toy")
    for split in given:
        assert (counts[split]["read"], counts[split]["kept"], dict(counts[split]["dropped"])) == (10, 10, {})
        assert list(zip(*corpus.text(split), strict=True)) == HELD_OUT
        for side, code in enumerate(("en", "de")):
            raw = (folder / "out" / "toy" / f"{split}.{code}").read_bytes()
            assert raw == "".join(pair[side] + "\n" for pair in HELD_OUT).encode()
        assert prepared_pairs(folder, split) == [
            tuple(" ".join(unicodedata.normalize("NFKC", side).split()) for side in pair) for pair in HELD_OUT
        ]


def test_the_raw_text_of_a_held_out_set_has_a_line_for_each_pair(folder: Path) -> None:
    texts = ["one\nline", "two", "\r", "three\r\nlines\n"]
    lines = [json.dumps({"en": text, "de": text}) for text in texts]
    (folder / "valid.jsonl").write_text("\n".join(lines) + "\n")
    prepare(folder, valid=str(folder / "valid.jsonl"))
    corpus = open_corpus(folder / "out" / "toy")
    assert [len(side) for side in corpus.text("valid")] == [4, 4]
    assert len(corpus.split("valid")) == 4


def test_every_pair_read_is_kept_or_counted_under_its_reason(tmp_path: Path) -> None:
    good = [*sentences(100), ("a  b c", "d\te f")]
    dropped = {
        "empty side": [("", "Leer."), ("\u2028 \t", "Leer."), ("Empty.", "")],
        "too short": [("one", "eins zwei")],
        "too long (words)": [("w " * 13, "v v v v v"), ("w w w w w", "v " * 13)],
        "length ratio": [("a b", "c d e f g h i")],
        "identical sides": [("same here", "same here"), ("same  \ufb01ne", "same fine ")],
        "duplicates": [good[0], good[0], ("a b  c", "d e f")],
        "too long (tokens)": [("a " + "".join(map(chr, range(0x1208, 0x1248))), "b c")],
    }
    bad = [pair for pairs in dropped.values() for pair in pairs]
    held_out = write(tmp_path / "held_out", sentences(3, seed=9))
    write(tmp_path / "train", good + bad)
    with (tmp_path / "more.tsv").open("wb") as file:
        file.write(b"no tab\nbroken\t\xff\nx y z\tu v w\nno tab either\n")
    rules = {"min_words": 2, "max_words": 12, "max_ratio": 3, "max_tokens": 60}
    counts = prepare(
        tmp_path,
        train=[str(tmp_path / "train"), str(tmp_path / "more.tsv")],
        valid=held_out,
        test=held_out,
        errors="skip",
        drop_identical=True,
        deduplicate=True,
        **rules,
    )["train"]
    assert dict(counts["dropped"]) == {reason: len(pairs) for reason, pairs in dropped.items()} | {
        "malformed": 2,
        "invalid UTF-8": 1,
    }
    assert counts["kept"] == len(good) + 1
    assert counts["read"] == len(good) + len(bad) + 4
    expected = [(" ".join(source.split()), " ".join(target.split())) for source, target in good]
    assert prepared_pairs(tmp_path, "train") == [*expected, ("x y z", "u v w")]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_ids_spell_the_corpus_and_lengths_count_the_end_symbol(tmp_path: Path, kind: str) -> None:
    pairs = [("Größe\u00a0\ufb01ne", "\u65e5\u672c \U0001f600 ##<s>"), *sentences(200)]
    write(tmp_path / "train", pairs)
    held_out = write(tmp_path / "held_out", pairs[:5])
    counts = prepare(tmp_path, kind=kind, vocabulary_size=600, valid=held_out, test=held_out)
    assert prepared_pairs(tmp_path, "train") == [("Größe fine", "\u65e5\u672c \U0001f600 ##<s>"), *pairs[1:]]
    vocabulary = load_tokenizer(tmp_path / "out" / "toy" / "tokenizer.model").vocabulary_size
    for split in SPLITS:
        rows = list(rows_of(tmp_path, split))
        for side in ("source", "target"):
            assert all(3 < i < vocabulary for row in rows for i in row[side])
            assert [row[f"{side}_length"] for row in rows] == [len(row[side]) + 1 for row in rows]
            assert counts[split]["tokens"][side] == sum(row[f"{side}_length"] for row in rows)


def test_each_pair_knows_its_line(tmp_path: Path) -> None:
    """Filters, duplicates and held-out sets leave gaps; the numbers are those of an editor."""
    pairs = sentences(300)
    pairs[3], pairs[10], pairs[250] = ("", "x"), pairs[9], ("long " * 20, "short")
    write(tmp_path / "train", pairs)
    prepare(tmp_path, deduplicate=True, max_ratio=4)
    corpus = open_corpus(tmp_path / "out" / "toy")
    split, tokenizer = corpus.split("train"), load_tokenizer(corpus.tokenizer_file)
    lines = split.lines(np.arange(len(split)))
    assert len(split) == 300 - 3 - 50
    for ids, line in zip(split.table[:]["source"].to_pylist(), lines, strict=True):
        assert tokenizer.decode(ids) == pairs[line - 1][0]


def test_the_vocabulary_is_learnt_from_training_pairs_alone(folder: Path) -> None:
    held_out = write(folder / "held_out", [("\u0436\u0436\u0436 aa", "\u0436\u0436\u0436 bb")] * 50)
    prepare(folder, valid=held_out, test=held_out)
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "out" / "toy" / "tokenizer.model"))
    assert not any("\u0436" in model.id_to_piece(i) for i in range(model.vocab_size()))


def test_the_number_of_workers_does_not_change_anything(tmp_path: Path) -> None:
    """More pairs than go into two blocks, so that three workers do share them."""
    write(tmp_path / "train", sentences(11_000))
    prepared = []
    for workers in (1, 3):
        counts = prepare(tmp_path, workers=workers, overwrite=True)
        folder = tmp_path / "out" / "toy"
        tables = [rows_of(tmp_path, split).data.table.combine_chunks() for split in SPLITS]
        texts = [path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".model", ".en", ".de")]
        prepared.append((counts, tables, texts))
    assert prepared[0] == prepared[1]
    assert len(prepared[0][2]) == 5


def test_preparing_again_does_nothing(folder: Path) -> None:
    prepare(folder)
    before = content(folder / "out")
    manifest, done = preprocess(configuration(folder, workers=2), lambda words: None)
    assert not done
    assert manifest == read_manifest(folder / "out" / "toy")
    assert content(folder / "out") == before


@pytest.mark.parametrize(
    ("changes", "words"), [({"seed": 2}, "seed: 1 -> 2"), ({"max_ratio": 4.0}, "data.filters.max_ratio: None -> 4.0")]
)
def test_a_changed_configuration_is_refused_by_the_name_of_its_key(
    folder: Path, changes: dict[str, Any], words: str
) -> None:
    prepare(folder)
    before = content(folder / "out")
    with pytest.raises(NMTError, match="overwrite=true") as error:
        preprocess(configuration(folder, **changes), lambda words: None)
    assert words in str(error.value)
    assert content(folder / "out") == before
    prepare(folder, overwrite=True, **changes)
    assert preprocess(configuration(folder, **changes), lambda words: None)[1] is False


def test_a_failed_preparation_leaves_nothing_behind_and_the_old_one_in_place(folder: Path) -> None:
    (folder / "broken.tsv").write_bytes(b"fine\tgut\n" * 9 + b"broken\t\xff\n")
    changes = {"train": [str(folder / "train"), str(folder / "broken.tsv")]}
    with pytest.raises(NMTError, match=r"broken\.tsv, line 10\b"):
        prepare(folder, **changes)
    assert left_in(folder) == []
    prepare(folder)
    before = content(folder / "out")
    with pytest.raises(NMTError, match=r"broken\.tsv, line 10\b"):
        prepare(folder, overwrite=True, **changes)
    assert content(folder / "out") == before


@pytest.mark.parametrize(
    ("pairs", "changes", "words"),
    [
        ([], {}, "pair"),
        (sentences(60), {"min_words": 50}, "pair"),
        (sentences(60), {"max_tokens": 1}, "pair"),
        (sentences(300), {"valid_size": 150, "test_size": 151}, "data.valid_size=150 and data.test_size=151"),
    ],
    ids=["empty files", "too short", "too many tokens", "too much held out"],
)
def test_a_corpus_of_which_nothing_is_left_is_a_clear_error(
    tmp_path: Path, pairs: list[Pair], changes: dict[str, Any], words: str
) -> None:
    write(tmp_path / "train", pairs)
    with pytest.raises(NMTError, match=words) as error:
        prepare(tmp_path, **changes)
    assert "\n" not in str(error.value)
    assert left_in(tmp_path) == []


def add_file(folder: Path) -> str:
    (folder / "train" / "thesis.tex").write_text("mine")
    return "toy/train/thesis.tex is not of the prepared corpus"


def link_split(folder: Path) -> str:
    elsewhere = folder.parent.parent / "elsewhere"
    (folder / "train").rename(elsewhere)
    (folder / "train").symlink_to(elsewhere)
    return "toy/train is not of the prepared corpus"


def damage_manifest(folder: Path) -> str:
    (folder / "manifest.json").write_text("{}")
    return "no prepared corpus"


@pytest.mark.parametrize("change", [add_file, link_split, damage_manifest])
def test_overwrite_replaces_nothing_but_a_prepared_corpus_and_says_so_before_any_work(
    folder: Path, change: Callable[[Path], str]
) -> None:
    prepare(folder)
    words = change(folder / "out" / "toy")
    before = content(folder / "out" / "toy")
    with pytest.raises(NMTError, match=words) as error:
        preprocess(configuration(folder, overwrite=True, seed=2), lambda said: pytest.fail(said))
    assert "\n" not in str(error.value)
    assert content(folder / "out" / "toy") == before


SLEEPING = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}]
from pathlib import Path
from test_preprocess import configuration
from nmt.preparation.preprocess import preprocess

def say(words):
    print(words, flush=True)
    if words.startswith({stage!r}):
        time.sleep(600)

preprocess(configuration(Path({folder!r}), workers=3), say)
"""


@contextmanager
def sleeping(folder: Path, stage: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A preparation that sleeps at a stage, and the ids of its workers."""
    tests = Path(__file__).parent
    script = SLEEPING.format(root=str(tests.parents[1]), tests=str(tests), folder=str(folder), stage=stage)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith(stage) for line in process.stdout)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield process, list(map(int, children))
        finally:
            process.kill()


def ended(process: int) -> bool:
    """Whether a process is no more, or nothing but an entry that nobody waits for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


linux_only = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="/proc tells which processes there are")


@linux_only
def test_after_sigkill_the_workers_end_and_the_next_preparation_removes_the_folder(folder: Path) -> None:
    with sleeping(folder, "encoded") as (process, workers):
        process.kill()
        process.wait(10)
        wait_until(lambda: all(map(ended, workers)))
    [left] = left_in(folder)
    assert left.startswith(".toy.")
    other = folder / "out" / ".toys.00000000.nmt-tmp"
    other.mkdir()
    prepare(folder)
    assert sorted(left_in(folder)) == [other.name, "toy"]


@linux_only
def test_two_at_once_are_refused_in_one_line(folder: Path) -> None:
    with sleeping(folder, "read"):
        [temporary] = left_in(folder)
        with pytest.raises(NMTError, match=r"toy: another nmt is at work there"):
            prepare(folder)
        assert left_in(folder) == [temporary]
    prepare(folder)


def test_a_given_set_that_occurs_in_train_is_counted(folder: Path) -> None:
    pairs = sentences(300)
    spaced = [(f" {source}  ", target) for source, target in pairs[3:7]]
    halves = [(pairs[10][0], "another")]
    given = write(folder / "given", [*spaced, *halves, *sentences(5, seed=7)])
    counts = prepare(folder, valid=given, test=write(folder / "new", sentences(5, seed=8)))
    assert (counts["valid"]["in_train"], counts["test"]["in_train"]) == (4, 0)
    assert counts["train"]["kept"] == 300
    counts = prepare(folder, valid=given, deduplicate=True, overwrite=True)
    assert counts["valid"]["in_train"] == 4
    assert "in_train" not in counts["test"]


@pytest.mark.parametrize(
    ("lengths", "usual"), [([], 0), ([7], 7), ([1] * 99 + [50], 1), ([1] * 98 + [9, 50], 9), ([3, 5], 5)]
)
def test_99_of_100_lines_are_no_longer_than_usual(lengths: list[int], usual: int) -> None:
    assert usual_and_longest(Counter(lengths)) == {"p99": usual, "max": max(lengths, default=0)}


def test_the_characters_of_training_are_recorded_unless_they_are_very_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "train", [("ab", "d e"), ("b c", "f")])
    held_out = write(tmp_path / "held_out", [("xyz", "uvw")])
    changes = {"valid": held_out, "test": held_out, "overwrite": True}
    for most, characters in ((4, {"source": " abc", "target": " def"}), (3, None)):
        monkeypatch.setattr("nmt.preparation.preparation.RECORDED_CHARACTERS", most)
        prepare(tmp_path, **changes)
        assert read_manifest(tmp_path / "out" / "toy").characters == characters
