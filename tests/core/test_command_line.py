"""The command line as its users meet it: help, configuration, and one clear line for each mistake."""

import bz2
import gzip
import subprocess

import pytest

from tests.helpers.preloaded import python


def shell(*words, folder, stdin=None):
    command = [python(), "-m", "nmt", *words]
    return subprocess.run(command, cwd=folder, stdin=stdin, capture_output=True, text=True)


@pytest.mark.slow
def test_nmt_alone_names_every_command(tmp_path):
    alone = shell(folder=tmp_path)
    assert (alone.returncode, alone.stderr) == (0, "")
    for command in ("preprocess", "train", "translate", "score"):
        assert f"\n  {command} " in alone.stdout
    assert shell("--help", folder=tmp_path).stdout == alone.stdout
    assert shell("--version", folder=tmp_path).stdout.startswith("nmt ")


def test_help_of_a_command_is_a_page_or_the_keys_of_a_group(nmt):
    page = nmt("train", "--help")
    assert page.code == 0
    assert "\n  nmt train data/corpus experiment=laptop " in page.out
    assert nmt("train", "-h").out == page.out
    group = nmt("train", "--help", "optim").out
    assert "optim.warmup=4000 " in group
    assert "model." not in group
    nmt("train", "--help", "optm").refused("did you mean optim?")


def test_cfg_prints_the_tree_and_does_nothing(nmt, tmp_path):
    tree = nmt("train", "model=big", "trainer.devices=8", "--cfg").out
    assert "d_model: 1024" in tree
    assert "devices: 8" in tree
    assert list(tmp_path.iterdir()) == []


def test_config_dir_adds_groups(nmt, tmp_path):
    (tmp_path / "mine/model").mkdir(parents=True)
    (tmp_path / "mine/model/wide.yaml").write_text("name: wide\nd_ff: 9000\n")
    assert "d_ff: 9000" in nmt("train", "model=wide", "--config-dir", "mine", "--cfg").out
    assert "wide" in nmt("train", "--help", "--config-dir", "mine").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trian"], "did you mean train?"),
        (["--cfg"], "unknown command --cfg; choose from preprocess, train"),
        (["train", "big"], "KEY=VALUE"),
        (["translate", "--swap"], "--swap: no such option"),
        (["train", "model=big", "trainer.devices=8"], "run `nmt preprocess`"),
        (["translate", "decode.n_best=2"], "format=tsv or jsonl"),
        (["translate", "input=."], "input=.: a folder of files (not a model); name a folder"),
        (["score", "hypothesis=.", "reference=."], ".: is a folder"),
        (["translate", "output=."], "output=.: is a folder; name a file"),
        (["score", "hypothesis=/dev/null"], "`nmt score HYPOTHESIS REFERENCE`"),
        (
            ["score", "hypothesis=/dev/null", "reference=nowhere"],
            "nowhere: No such file or directory",
        ),
    ],
)
def test_a_mistake_is_answered_in_one_line_that_helps(words, expected, nmt):
    nmt(*words).refused(expected)


@pytest.mark.parametrize("words", ["translate loop", "score loop loop", "train loop"])
def test_a_loop_of_links_is_a_missing_file(nmt, tmp_path, words):
    (tmp_path / "loop").symlink_to("loop")
    nmt(*words.split()).refused("loop")


SCORE = ["score", "reference=ref.gz", "metrics=[chrf]"]


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "ref.gz"
    path.write_bytes(gzip.compress(b"eins\nzwei\n"))
    return path


def test_score_reads_compressed_files(nmt, tmp_path, reference):
    content = "\ufeffeins\r\nzwei".encode()
    (tmp_path / "hyp").write_bytes(bz2.compress(content))
    assert nmt(*SCORE, "hypothesis=hyp").out.startswith("chrF2 = 100")


@pytest.mark.slow
def test_score_reads_compressed_standard_input(tmp_path, reference):
    with reference.open("rb") as file:
        outcome = shell(*SCORE, folder=tmp_path, stdin=file)
    assert outcome.stdout.startswith("chrF2 = 100")


def test_score_refuses_files_with_different_line_counts(tmp_path, reference):
    (tmp_path / "one").write_text("eins\n")
    with (tmp_path / "one").open("rb") as file:
        outcome = shell(*SCORE, folder=tmp_path, stdin=file)
    message = "standard input has 1 line but ref.gz has 2: they are not parallel"
    assert message in outcome.stderr


def test_score_refuses_other_encodings_and_folders(nmt, tmp_path, reference):
    (tmp_path / "hyp").write_text("eins\nzwei\n", encoding="utf-16-le")
    nmt(*SCORE, "hypothesis=hyp").refused("hyp, line 1: UTF-16 ")
    nmt(*SCORE, "hypothesis=.").refused(".: is a folder")


def test_preprocess_reports_dropped_pairs_and_pairs_that_valid_shares_with_train(nmt, tmp_path):
    pairs = []
    for n in range(200):
        words = "a b" if n % 2 else "a b c d e f g"
        pairs.append(f"{words} {chr(97 + n % 26)}{chr(97 + n // 26)}\tx y")
    shared = pairs[1:6:2]
    (tmp_path / "a.tsv").write_text("\n".join(pairs) + "\n")
    (tmp_path / "valid, 1.tsv").write_text("\n".join([*shared, "new\tneu"]) + "\n")
    done = nmt(
        "preprocess",
        "data=files",
        "data.name=toy",
        "data.train=a.tsv",
        "data.valid=valid, 1.tsv",
        "data.test_size=0",
        "data.filters.max_ratio=2",
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=300",
        "workers=1",
    )
    assert done.code == 0
    assert done.out == ""
    assert "train: 100 of 200 pairs kept (dropped: 100 length ratio)" in done.err
    assert "notice: pairs of valid also in train: 3," in done.err


def test_windows_is_refused(nmt, monkeypatch):
    monkeypatch.setattr("nmt.cli.sys.platform", "win32")
    nmt("--version").refused("on Windows, run it in WSL")
