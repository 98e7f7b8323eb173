"""Treebanks as corpora: files and folders, broken trees, and prepared pairs."""

from collections import Counter
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.config import DataConfig, NMTError, build
from nmt.data import open_corpus
from nmt.plugins.parse.treebank import Treebank, read_trees, tree_files
from nmt.plugins.parse.trees import parse
from nmt.preparation import corpus_for, preprocess
from nmt.text import load_tokenizer

SPLITS = (("train", "train"), ("valid", "valid"), ("test", "valid"))
ONE = "( (S (NP-SBJ (DT the) (NN end)) (VP (VBZ is) (ADJP-PRD (JJ near)))) )"


def words(path: Path, errors: str = "strict", counts: Counter[str] | None = None) -> list[str]:
    """The words of each tree in a file."""
    if counts is None:
        counts = Counter()
    return [" ".join(tree.words) for tree in read_trees(path, errors, counts)]


def test_data_wsj_splits_sections_as_the_paper(tmp_path: Path) -> None:
    for section in range(25):
        folder = tmp_path / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        (folder / f"wsj_{section:02}00.mrg").write_text(
            f"\n( (S \n    (NP-SBJ (CD {section}) )\n    (. .) ))\n"
        )
    (tmp_path / "wsj" / "02" / "README").write_text("no tree")
    (tmp_path / "wsj" / "parsed").mkdir()
    (tmp_path / "wsj" / "parsed" / "a.trees").write_text("(S (X parsed))")
    options = [f"data.path={tmp_path}/wsj"]
    for first, train in (("data=wsj", []), ("experiment=table4/wsj_semi", ["parsed"])):
        corpus = corpus_for(compose("preprocess", [first, *options]).data)
        sources = {}
        for split in ("train", "valid", "test"):
            pairs = corpus.read(split, Counter())
            sources[split] = [source for source, _ in pairs or ()]
        assert sources == {
            "train": [*(f"{section} ." for section in range(2, 22)), *train],
            "valid": ["22 ."],
            "test": ["23 ."],
        }
        names = [Path(name).name for name in corpus.digests()]
        assert names[-2:] == ["wsj_2200.mrg", "wsj_2300.mrg"]


@pytest.mark.parametrize("entry", ["nowhere/a", "empty", "empty/[0-9]", "empty/["])
def test_tree_files_names_missing_files(tmp_path: Path, entry: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NMTError, match=r"no such file or folder|contains no file that ends"):
        tree_files(str(tmp_path / entry))


@pytest.mark.parametrize(
    ("text", "line", "kept"),
    [
        (f"{ONE}\n(S (X a)))\n{ONE}", 2, 3),
        (f"{ONE}\n\n( (S (NP (X a)\n    (X b)\n{ONE}\n", 3, 2),
        ("(S (X a))\n(S (X b)\n(S (X c))\n(S (X d))\n", 2, 3),
        (f"{ONE}\n(S (X a)", 2, 1),
        (f"word\n{ONE}", 1, 1),
        (f"{ONE}\n( (S\n (X \udcff)))\n{ONE}", 2, 2),
    ],
)
def test_broken_tree_is_reported_with_its_line_or_counted(
    tmp_path: Path, text: str, line: int, kept: int
) -> None:
    path = tmp_path / "broken.mrg"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(NMTError, match=rf"broken\.mrg, line {line}: .*data\.errors=skip"):
        words(path)
    counts = Counter[str]()
    assert len(words(path, "skip", counts)) == kept
    assert counts.total() == 1


@pytest.mark.parametrize("begin", ["(ROOT\n (S", "(TOP\n (S", "(\n (S", "( \n(S", "( (S", "(S1 (S"])
def test_truncated_tree_does_not_affect_later_trees(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "cut.mrg"
    whole = f"{begin} (NP (DT w))\n  (VP (VB go))))\n"
    path.write_text(f"{begin}\n (NP (DT The)\n" + 5 * whole)
    counts = Counter[str]()
    assert words(path, "skip", counts) == 5 * ["w go"]
    assert counts == {"broken tree": 1}


def test_brackets_in_words_are_escaped_for_the_model() -> None:
    values = {"name": "x", "kind": "treebank", "source": "words", "target": "trees"}
    treebank = Treebank(build(DataConfig, values))
    pair = "f[ﾊ] \uff08x\uff09 mat", "(TOP (S (NN f[ﾊ]) (NN \uff08x\uff09) (NP (NN mat))))"
    assert treebank.as_read(pair, str) == (
        "f[ハ] -LRB-x-RRB- mat",
        "(S (NN) f[ハ] (NN) -LRB-x-RRB- (NP (NN) mat )NP )S",
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_each_bracket_is_one_vocabulary_entry(tmp_path: Path, kind: str) -> None:
    nouns = ["cat", "dog", "man", "NN", "TOP", "S"]
    for name, count in (("train", 80), ("valid", 5)):
        lines = []
        for i in range(count):
            subject = f"(NP-SBJ (DT the) (NN {nouns[i % 6]}) (CD {i}))"
            predicate = f"(VP (VBZ sits) (PP (IN on) (NP (NN m{i % 4}))))"
            lines.append(f"( (S {subject} {predicate} (. .)) )\n")
        (tmp_path / f"{name}.tree").write_text("".join(lines))
    files = [f"data.{split}={tmp_path}/{name}.tree" for split, name in SPLITS]
    keys = ["data=treebank", f"tokenizer.kind={kind}", "tokenizer.vocabulary_size=400", "workers=1"]
    config = compose("preprocess", [*keys, *files, f"prepared={tmp_path / 'prepared'}"])
    preprocess(config, lambda notice: None)
    corpus = open_corpus(tmp_path / "prepared")
    tokenizer = load_tokenizer(corpus.tokenizer_file)
    linear = "(S (NP (DT) (NN) (CD) )NP (VP (VBZ) (PP (IN) (NP (NN) )NP )PP )VP (.) )S"
    [ids] = tokenizer.encode([linear])
    assert len(ids) == len(linear.split())
    assert tokenizer.decode(ids) == linear
    # Words that equal labels are encoded as words.
    assert not set(ids) & set(tokenizer.encode(["the NN TOP S DT m1 ."])[0])
    source, target = corpus.text("test")
    assert source[0] == "the cat 0 sits on m0 ."
    assert next(parse(target[0])).words == source[0].split()
