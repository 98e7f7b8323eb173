"""Treebanks as corpora: files and folders, broken trees, and what is prepared of them."""

import gzip
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.config import DataConfig, ExperimentConfig
from nmt.data import open_corpus
from nmt.errors import NMTError
from nmt.plugins.parse.treebank import Treebank, read_trees, tree_files
from nmt.plugins.parse.trees import parse
from nmt.preparation import corpus_for, preprocess
from nmt.text import load_tokenizer

ONE = "( (S (NP-SBJ (DT the) (NN end)) (VP (VBZ is) (ADJP-PRD (JJ near)))) )"


def config(**keys: object) -> DataConfig:
    return DataConfig(name="x", kind="treebank", source="words", target="trees", **keys)  # type: ignore[arg-type]


def words(path: Path, errors: str = "strict", counts: Counter[str] | None = None) -> list[str]:
    return [" ".join(tree.words) for tree in read_trees(path, errors, Counter() if counts is None else counts)]


@pytest.fixture
def wsj(tmp_path: Path) -> Path:
    """A folder of sections, in each of which one sentence says its number."""
    for section in range(25):
        folder = tmp_path / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        (folder / f"wsj_{section:02}00.mrg").write_text(f"\n( (S \n    (NP-SBJ (CD {section}) )\n    (. .) ))\n")
    (tmp_path / "wsj" / "02" / "README").write_text("no tree")
    return tmp_path / "wsj"


def model_pair(pair: tuple[str, str], leaves: str) -> tuple[str, str]:
    return Treebank(config(leaves=leaves)).as_read(pair, str)


def test_sections_of_a_folder(wsj: Path) -> None:
    pairs = list(Treebank(config()).pairs([f"{wsj}/02-21"], Counter()))
    assert [source for source, _ in pairs] == [f"{section} ." for section in range(2, 22)]
    assert pairs[0][1] == "(TOP (S (NP (CD 2)) (. .)))"
    assert [source for source, _ in Treebank(config()).pairs([f"{wsj}/23"], Counter())] == ["23 ."]


def test_the_paper_s_sections_are_those_of_data_wsj(wsj: Path, tmp_path: Path) -> None:
    from nmt.commands import compose

    (tmp_path / "parsed.trees").write_text("(S (X parsed))")
    extra = f"data.extra={tmp_path}/parsed.trees"
    data = compose("preprocess", ["data=wsj", f"data.path={wsj}", extra]).data
    found = {
        split: [source for source, _ in corpus_for(data).read(split, Counter()) or ()]
        for split in ("train", "valid", "test")
    }
    train = [*(f"{section} ." for section in range(2, 22)), "parsed"]
    assert found == {"train": train, "valid": ["22 ."], "test": ["23 ."]}
    assert [Path(name).name for name in corpus_for(data).digests()][-2:] == ["wsj_2200.mrg", "wsj_2300.mrg"]
    with pytest.raises(NMTError, match=r"no section 02, 03, 04 and more .*; check data\.path"):
        corpus_for(compose("preprocess", ["data=wsj"]).data).digests()


def test_a_folder_is_searched_in_the_order_of_names_and_plain_files_count_whatever_they_are_called(
    tmp_path: Path,
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.tree").write_text("(S (X b1))")
    (tmp_path / "a.parse").write_text("(S (X a))")
    (tmp_path / "c.mrg.gz").write_bytes(gzip.compress(b"(S (X c))"))
    (tmp_path / "notes.txt").write_text("(S (X notes))")
    assert [words(path)[0] for path in tree_files(str(tmp_path))] == ["a", "b1", "c"]
    assert tree_files(str(tmp_path / "notes.txt")) == [tmp_path / "notes.txt"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("nowhere", "no such file or folder"),
        ("empty", "no file there whose name ends"),
        ("empty/02-03", "no section 02, 03"),
        ("empty/02-99999999999", "no section 02, 03, 04 and more"),
        ("empty/02-" + "9" * 100, "no such file or folder"),
        ("empty/03-02", "no section"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, entry: str, problem: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NMTError, match=problem):
        tree_files(str(tmp_path / entry))


def test_trees_over_several_lines_and_several_trees_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbf(S\n(X a)\r\n(X b))\n\n(S (X c)) (S (X d))\n(TOP\n  (S (X e)))")
    assert words(tmp_path / "t") == ["a b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("text", "line", "kept"),
    [
        (f"{ONE}\n(S (X a)))\n{ONE}", 2, 3),
        (f"{ONE}\n\n( (S (NP (X a)\n    (X b)\n{ONE}\n", 3, 2),
        ("(S (X a))\n(S (X b)\n(S (X c))\n(S (X d))\n", 2, 3),
        (f"{ONE}\n( (S\n  (NP (X a b))))\n{ONE}", 3, 2),
        (f"{ONE}\n(S (X a)", 2, 1),
        (f"word\n{ONE}", 1, 1),
        (f"{ONE}\n( (S\n (X \udcff)))\n{ONE}", 3, 2),
    ],
)
def test_a_broken_tree_is_named_by_file_and_line_or_counted(tmp_path: Path, text: str, line: int, kept: int) -> None:
    path = tmp_path / "broken.mrg"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(NMTError, match=rf"broken\.mrg, line {line}: .*data\.errors=skip"):
        words(path)
    counts = Counter[str]()
    assert len(words(path, "skip", counts)) == kept
    assert counts.total() == 1


def test_the_model_sees_no_bracket_that_is_not_a_tree_s() -> None:
    pair = "f[ﾊ] \uff08x\uff09 mat", "(TOP (S (NN f[ﾊ]) (NN \uff08x\uff09) (NP (NN mat))))"
    source, target = model_pair(pair, "words")
    assert source == "f[ハ] -LRB-x-RRB- mat"
    assert target == "(S (NN) f[ハ] (NN) -LRB-x-RRB- (NP (NN) mat )NP )S"
    assert model_pair(pair, "tags")[1] == "(S (NN) (NN) (NP (NN) )NP )S"
    assert model_pair(pair, "XX")[1] == "(S (XX) (XX) (NP (XX) )NP )S"


def prepare(folder: Path, *options: str) -> ExperimentConfig:
    from nmt.commands import compose

    keys = ["data=treebank", "tokenizer.kind=bpe", "tokenizer.vocabulary_size=400", "workers=1"]
    prepared = compose("preprocess", [*keys, f"prepared={folder / 'prepared'}", *options])
    preprocess(prepared, lambda said: None)
    assert isinstance(prepared, ExperimentConfig)
    return prepared


def write_trees(path: Path, count: int) -> None:
    nouns = ["cat", "dog", "man", "NN", "TOP", "S"]
    lines = [
        f"( (S (NP-SBJ (DT the) (NN {nouns[i % 6]}) (CD {i})) (VP (VBZ sits) (PP (IN on) (NP (NN m{i % 4})))) (. .)) )"
        for i in range(count)
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_every_bracket_is_one_entry_of_the_vocabulary(tmp_path: Path, kind: str) -> None:
    write_trees(tmp_path / "train.tree", 80)
    write_trees(tmp_path / "valid.tree", 5)
    options = [f"data.{split}={tmp_path}/{split}.tree" for split in ("train", "valid")]
    prepare(tmp_path, *options, f"data.test={tmp_path}/valid.tree", f"tokenizer.kind={kind}", "data.leaves=tags")
    corpus = open_corpus(tmp_path / "prepared")
    tokenizer = load_tokenizer(corpus.tokenizer_file)
    linear = "(S (NP (DT) (NN) (CD) )NP (VP (VBZ) (PP (IN) (NP (NN) )NP )PP )VP (.) )S"
    [ids] = tokenizer.encode([linear])
    assert len(ids) == len(linear.split())
    assert tokenizer.decode(ids) == linear
    assert corpus.split("valid").target_lengths.tolist() == [len(ids) + 1] * 5
    # Words that are called as labels are, are not taken for these.
    assert not set(ids) & set(tokenizer.encode(["the NN TOP S DT m1 ."])[0])
    source, target = corpus.text("test")
    assert source[0] == "the cat 0 sits on m0 ."
    assert next(parse(target[0])).words == source[0].split()


def test_what_is_drawn_for_validation_keeps_its_tags_and_trees_alike_stay_in_training(tmp_path: Path) -> None:
    write_trees(tmp_path / "all.tree", 100)
    sizes = ["data.valid_size=3", "data.test_size=2", "data.leaves=XX"]
    prepare(tmp_path, f"data.train={tmp_path}/all.tree", *sizes, "data.filters.deduplicate=false")
    corpus = open_corpus(tmp_path / "prepared")
    sources, trees = corpus.text("valid")
    assert len(trees) == 3
    assert all(next(parse(tree)).words == source.split() for source, tree in zip(sources, trees, strict=True))
    assert "(DT the)" in trees[0]
    held_out = {"".join(filter(str.isalpha, line)) for split in ("valid", "test") for line in corpus.text(split)[0]}
    train = corpus.split("train")
    assert len(train) == sum(100 // 6 + (kind < 100 % 6) for kind in range(6)) - sum(
        len([i for i in range(100) if f"the{['cat', 'dog', 'man', 'NN', 'TOP', 'S'][i % 6]}sitsonm" == line])
        for line in held_out
    )
    assert np.unique(train.target_lengths).tolist() == [18]  # of the tree, and its end symbol


def test_extra_trees_join_training_alone(tmp_path: Path) -> None:
    write_trees(tmp_path / "train.tree", 30)
    (tmp_path / "extra.trees").write_text("(S (NP (NN silver)))\n" * 2)
    options = [f"data.{split}={tmp_path}/train.tree" for split in ("train", "valid", "test")]
    prepare(tmp_path, *options, f"data.extra={tmp_path}/extra.trees")
    counts = open_corpus(tmp_path / "prepared").manifest.counts
    assert counts["train"]["read"] == 32
    assert counts["train"]["dropped"] == {"duplicates": 1}
    with pytest.raises(NMTError, match=r"data\.extra with data\.kind=files"):
        DataConfig(name="x", kind="files", extra="more")


def test_word_pieces_have_no_room_for_brackets(tmp_path: Path) -> None:
    with pytest.raises(NMTError, match=r"tokenizer\.kind=wordpiece with data\.kind=treebank"):
        prepare(tmp_path, "data.train=x", "tokenizer.kind=wordpiece", "tokenizer.vocabulary_size=700")


@pytest.mark.parametrize("begin", ["(ROOT\n (S", "(TOP\n (S", "(\n (S", "( \n(S", "( (S", "(S1 (S"])
def test_a_tree_that_was_cut_takes_no_others_with_it(tmp_path: Path, begin: str) -> None:
    """Whatever a layout writes in the line in which a tree begins."""
    path = tmp_path / "cut.mrg"
    whole = f"{begin} (NP (DT w))\n  (VP (VB go))))\n"
    path.write_text(f"{begin}\n (NP (DT The)\n" + 5 * whole)
    counts = Counter[str]()
    assert words(path, "skip", counts) == 5 * ["w go"]
    assert counts == {"broken tree": 1}


def test_the_recipe_takes_its_articles_from_a_clone(tmp_path):
    """80 to train with and 7 others; the rest of the corpus is left alone."""
    recipe = Path(__file__).parents[3] / "recipes" / "treebank"
    train, valid = ((recipe / f"{part}.txt").read_text().split() for part in ("train", "valid"))
    penn = tmp_path / "CRAFT" / "structural-annotation" / "treebank" / "penn"
    penn.mkdir(parents=True)
    for article in [*train, *valid, "11319941"]:
        (penn / f"{article}.tree").write_text(f"(S (CD {article}))")
    subprocess.run([recipe / "split.sh", tmp_path / "CRAFT", tmp_path / "trees"], check=True)
    assert len(set(train)) == 80
    assert len({*train, *valid}) == 87
    for part, articles in (("train", train), ("valid", valid)):
        copied = sorted((tmp_path / "trees" / part).iterdir())
        assert [words(file) for file in copied] == [[article] for article in sorted(articles)]


def test_a_tree_may_be_deep_and_one_that_never_closes_ends(tmp_path: Path) -> None:
    deep = 100_000
    (tmp_path / "deep.tree").write_text("(S " * deep + "(X a)" + ")" * deep + "\n")
    [tree] = read_trees(tmp_path / "deep.tree", "strict", Counter())
    assert len(tree.constituents) == deep
    assert next(parse(tree.bracketed())) == tree
    assert len(model_pair(("a", tree.bracketed()), "words")[1].split()) == 2 * deep + 2
    (tmp_path / "open.tree").write_text(("(S (X a)" + " " * 1000 + "\n") + ("(X a)" + " " * 1000 + "\n") * 5000)
    with pytest.raises(NMTError, match=r"open\.tree, line 1: a tree does not close"):
        words(tmp_path / "open.tree")
