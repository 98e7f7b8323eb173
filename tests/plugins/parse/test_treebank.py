"""Treebanks as corpora: files and folders, broken trees, and what is prepared of them."""

from collections import Counter
from pathlib import Path

import pytest

from nmt.config import DataConfig, ExperimentConfig, build
from nmt.data import open_corpus
from nmt.errors import NMTError
from nmt.plugins.parse.treebank import Treebank, read_trees, tree_files
from nmt.plugins.parse.trees import parse
from nmt.preparation import corpus_for, preprocess
from nmt.text import load_tokenizer

ONE = "( (S (NP-SBJ (DT the) (NN end)) (VP (VBZ is) (ADJP-PRD (JJ near)))) )"


def config(**keys: object) -> DataConfig:
    return build(DataConfig, {"name": "x", "kind": "treebank", "source": "words", "target": "trees", **keys})


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


@pytest.mark.parametrize("begin", ["(ROOT\n (S", "(TOP\n (S", "(\n (S", "( \n(S", "( (S", "(S1 (S"])
def test_a_tree_that_was_cut_takes_no_others_with_it(tmp_path: Path, begin: str) -> None:
    """Whatever a layout writes in the line in which a tree begins."""
    path = tmp_path / "cut.mrg"
    whole = f"{begin} (NP (DT w))\n  (VP (VB go))))\n"
    path.write_text(f"{begin}\n (NP (DT The)\n" + 5 * whole)
    counts = Counter[str]()
    assert words(path, "skip", counts) == 5 * ["w go"]
    assert counts == {"broken tree": 1}
