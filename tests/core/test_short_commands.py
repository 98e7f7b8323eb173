"""Arguments without `=`: files, folders, texts and runs are told apart, or refused in one line."""

import gzip
import json
import re
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.config import NMTError, to_tree
from nmt.data import FORMAT_VERSION, read_manifest
from nmt.training import check_corpus


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files and runs that words can mean."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "corpus/train.en",
        "corpus/train.de",
        "hyp.de",
        "ref.de",
        "a b.txt",
        "runs/x=1/config.json",
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("eins\n")
    for name in ("runs/mine", "runs/other"):
        Path(name).mkdir(parents=True)
    return tmp_path


def prepared(folder: str, **changed: object) -> None:
    """The manifest of a prepared corpus."""
    config = compose("preprocess", ["corpus/train.en", "corpus/train.de", "tokenizer=bpe8k"])
    content = {
        "data": to_tree(config.data) | changed,
        "tokenizer": vars(config.tokenizer),
        "seed": 1,
        "sources": {},
    }
    Path(folder).mkdir(parents=True)
    about = {
        "fingerprint": "",
        "counts": {},
        "vocabulary_size": 8000,
        "tokenizer": "",
        "versions": {},
    }
    manifest = {"format_version": FORMAT_VERSION, **about, "content": content}
    (Path(folder) / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "run", "input", "text"),
    [
        ([], ["runs/latest"], "-", None),
        (["runs/x=1"], ["runs/x=1"], "-", None),
        (["a b.txt", "runs/mine"], ["runs/mine"], "a b.txt", None),
        (["-", "runs/mine"], ["runs/mine"], "-", None),
        (["Hello world", "runs/mine"], ["runs/mine"], "-", "Hello world"),
        (["- Hello = ${world}, 'x'"], ["runs/latest"], "-", "- Hello = ${world}, 'x'"),
        (["runs/mine", "x " * 500], ["runs/mine"], "-", "x " * 500),
        (["runs/mine", "runs/other"], ["runs/mine", "runs/other"], "-", None),
        (["Stop!", "runs/mine"], ["runs/mine"], "-", "Stop!"),
        (["Really?"], ["runs/latest"], "-", "Really?"),
        (["(Wait.)"], ["runs/latest"], "-", "(Wait.)"),
        (["¡Hola"], ["runs/latest"], "-", "¡Hola"),
        (
            ["このファイルは端末から使います。", "runs/mine"],
            ["runs/mine"],
            "-",
            "このファイルは端末から使います。",
        ),
        (["変数x=3です。"], ["runs/latest"], "-", "変数x=3です。"),
        (["打开文件"], ["runs/latest"], "-", "打开文件"),
        (["Node.jsを使う"], ["runs/latest"], "-", "Node.jsを使う"),
        (["เปิดไฟล์"], ["runs/latest"], "-", "เปิดไฟล์"),
        (["入力/出力を設定します。"], ["runs/latest"], "-", "入力/出力を設定します。"),
        (["네！"], ["runs/latest"], "-", "네！"),
        (["हाँ।"], ["runs/latest"], "-", "हाँ।"),
        (["نعم؟!"], ["runs/latest"], "-", "نعم؟!"),
        (["أهلاً."], ["runs/latest"], "-", "أهلاً."),
        (["Բարեւ։"], ["runs/latest"], "-", "Բարեւ։"),
        (["ሰላም።"], ["runs/latest"], "-", "ሰላም።"),
        (["「はい。」"], ["runs/latest"], "-", "「はい。」"),
    ],
)
def test_a_file_a_text_and_a_run_are_told_apart(words, run, input, text):
    config = compose("translate", words)
    assert config.translator.run == run
    assert config.input == input
    assert config.text == text


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (
            "translate",
            ["hello"],
            "hello: no such file or folder; "
            "to translate this one word, run `nmt translate text=hello`",
        ),
        (
            "translate",
            ["it's", "runs/mine"],
            "run `nmt translate 'text=it'\"'\"'s' runs/mine`; otherwise, `nmt translate",
        ),
        (
            "translate",
            ["hello.txt"],
            "hello.txt: no such file or folder; `nmt translate [FILE] [RUN]",
        ),
        (
            "translate",
            ["corpus/hello"],
            "corpus/hello: no such file or folder; `nmt translate [FILE] [RUN]",
        ),
        (
            "translate",
            ["日本語.txt"],
            "日本語.txt: no such file or folder; `nmt translate [FILE] [RUN]",
        ),
        (
            "translate",
            ["文書/日本語"],
            "文書/日本語: no such file or folder; `nmt translate [FILE] [RUN]",
        ),
        ("translate", ["हिन्दी"], "to translate this one word, run `nmt translate 'text=हिन्दी'`"),
        ("translate", ["설정"], "to translate this one word, run `nmt translate 'text=설정'`"),
        ("parse", ["hello"], "run `nmt parse text=hello`"),
        ("score", ["日本語", "ref.de"], "日本語: no such file or folder"),
        (
            "translate",
            ["hyp.de", "o.docx"],
            "o.docx: no such file or folder; `nmt translate [FILE] [RUN] [output=o.docx]`",
        ),
        (
            "translate",
            ["hyp.de", "mymodel", "output=o.en", "part=2/2"],
            "mymodel: no such file or folder; `nmt translate [FILE, FOLDER or 'SOME TEXT'] [RUN]...`",
        ),
        ("translate", ["runs/latest"], "train a model first"),
        ("translate", ["hyp.de", "Hello world"], "hyp.de, Hello world: give one file or text"),
        ("translate", ["Hello world", "input=hyp.de"], "omit it"),
        ("translate", ["runs/mine", "run=runs/other"], "takes one run"),
        ("translate", ["text=a\nb"], "one line"),
        ("score", ["hyp.de", "ref.de", "runs/mine"], "files, or runs"),
        ("score", ["hyp.de", "ref.de", "reference=ref.de"], "takes one reference"),
        ("preprocess", ["corpus/train.en", "ref.de"], "differ only in"),
        ("preprocess", ["corpus/train.en", "corpus/train.fr"], "corpus/train.fr: no such file"),
        (
            "train",
            ["data/nowhere"],
            "data/nowhere: no such folder; `nmt train CORPUS KEY=VALUE...`",
        ),
        ("train", ["runs/mine"], "no prepared corpus"),
        (
            "train",
            ["hyp.de"],
            "hyp.de: a file, not a prepared corpus; `nmt preprocess --help` shows how to prepare one",
        ),
        ("train", ["runs/mine", "runs/other"], "give one corpus"),
    ],
)
def test_what_is_ambiguous_or_missing_is_refused_in_one_line(command, words, said):
    with pytest.raises(NMTError) as error:
        compose(command, words)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.plugins
@pytest.mark.parametrize(
    "name",
    ["my files/none.docx", "報告書 2024.docx", "資料 2024/ない.txt", "See my page.HTML"],
)
def test_a_missing_file_with_blanks_in_its_name_may_be_a_text(name):
    message = f"{name}: no such file or folder; to translate this text, run"
    with pytest.raises(NMTError, match=re.escape(message)):
        compose("translate", [name])


@pytest.mark.parametrize("words", [["hyp.de", "ref.de"], ["hyp.de", "reference=ref.de"]])
def test_scores_are_of_two_files(words):
    config = compose("score", words)
    assert config.hypothesis == "hyp.de"
    assert config.reference == "ref.de"


EN_DE = ("data.source=en", "data.target=de")


@pytest.mark.parametrize(
    ("words", "name", "train", "languages"),
    [
        (
            ["corpus/train.en", "corpus/train.de", "data.name=1.10"],
            "1.10",
            ["corpus/train"],
            ("en", "de"),
        ),
        (["zipped.pt_BR.gz", "zipped.en"], "zipped", ["zipped"], ("pt_BR", "en")),
        (["both.tsv", "data.source=it", "data.target=fr"], "both", ["both.tsv"], ("it", "fr")),
        (
            ["both.tsv", "corpus/b.tsv.gz", "data.name=x", *EN_DE],
            "x",
            ["both.tsv", "corpus/b.tsv.gz"],
            ("en", "de"),
        ),
    ],
)
def test_a_corpus_is_two_files_or_tables(words, name, train, languages):
    Path("zipped.pt_BR.gz").write_bytes(gzip.compress(b"um\n"))
    for file in ("zipped.en", "both.tsv", "corpus/b.tsv.gz"):
        Path(file).touch()
    data = compose("preprocess", words).data
    assert data.kind == "files"
    assert data.name == name
    assert data.train == train
    assert (data.source, data.target) == languages


def test_a_table_does_not_name_its_languages():
    Path("both.tsv").touch()
    with pytest.raises(NMTError, match=r"data\.target: a value is needed"):
        compose("preprocess", ["both.tsv", "data.source=en"])
    both = (
        r"^data\.source and data\.target: values are needed; pass data\.source=VALUE data\.target="
    )
    with pytest.raises(NMTError, match=both):
        compose("preprocess", ["both.tsv"])


@pytest.mark.slow
def test_train_takes_the_options_of_a_prepared_corpus_from_its_manifest():
    prepared("data/corpus")
    config = compose("train", ["data/corpus", "model=small"])
    long = [
        "data=files",
        "data.name=corpus",
        "data.train=corpus/train",
        "tokenizer=bpe8k",
        "model=small",
    ]
    assert config == compose("train", long)
    assert config.prepared == "data/corpus"
    assert config.run == "runs/corpus-small"
    assert compose("train", ["data/corpus", *long]) == config
    assert compose("train", ["data/corpus", "experiment=multi30k"]).data == config.data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("data.name=other", "data.name: corpus -> other"),
        ("tokenizer=bpe4k", "tokenizer.vocabulary_size: 8000 -> 4000"),
        ("data.target=fr", "data.target: de -> fr"),
    ],
)
def test_what_contradicts_a_manifest_is_refused_with_the_difference(word, said):
    prepared("data/corpus")
    manifest = read_manifest(Path("data/corpus"))
    config = compose("train", ["data/corpus", word])
    with pytest.raises(NMTError) as error:
        check_corpus(manifest, config)
    assert said in str(error.value)


def test_a_manifest_cannot_name_other_keys_or_read_the_environment():
    text = "${oc.env:HOME} ${seed}"
    prepared("data/corpus", name=text, train=[text])
    data = compose("train", ["data/corpus"]).data
    assert data.name == text
    assert data.train == [text]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [{"filters": "x"}, {"filters": {"max_words": "many"}}, {"unheard_of": 1}],
)
def test_a_broken_manifest_is_refused_in_one_line(changed):
    prepared("data/corpus", **changed)
    with pytest.raises(NMTError, match=r"^[^\n]*$"):
        compose("train", ["data/corpus"])
