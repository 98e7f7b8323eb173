"""The command line as its users meet it: help, configuration, and one clear line for each mistake."""

import bz2
import gzip
import json
import subprocess

import pytest
from preloaded import python


def nmt(*words, folder, stdin=""):
    command = [python(), "-m", "nmt", *words]
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True)


def complaint(*words, folder, stdin=""):
    """The one line that a mistake is answered with."""
    result = nmt(*words, folder=folder, stdin=stdin)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("nmt: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def test_help_names_every_command(tmp_path):
    result = nmt("--help", folder=tmp_path)
    assert result.returncode == 0
    for command in (
        "preprocess",
        "train",
        "translate",
        "score",
        "average",
        "export",
        "report",
        "attention",
    ):
        assert f"\n  {command} " in result.stdout


def test_help_of_a_command_is_a_page_or_the_keys_of_a_group(tmp_path):
    page = nmt("train", "--help", folder=tmp_path)
    assert page.returncode == 0
    assert "As in: nmt train data/mine experiment=laptop" in page.stdout
    assert len(page.stdout.splitlines()) <= 40
    assert nmt("train", "-h", folder=tmp_path).stdout == page.stdout
    assert "optim.warmup=4000 " in nmt("train", "--help", "optim", folder=tmp_path).stdout
    assert "did you mean optim?" in complaint("train", "--help", "optm", folder=tmp_path)


def test_cfg_prints_the_tree_after_the_overrides_and_does_nothing(tmp_path):
    result = nmt("train", "model=big", "trainer.devices=8", "--cfg", folder=tmp_path)
    assert result.returncode == 0
    assert "d_model: 1024" in result.stdout
    assert "devices: 8" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_config_dir_adds_groups_of_ones_own(tmp_path):
    (tmp_path / "mine/model").mkdir(parents=True)
    (tmp_path / "mine/model/wide.yaml").write_text("name: wide\nd_ff: 9000\n")
    result = nmt("train", "model=wide", "--config-dir", "mine", "--cfg", folder=tmp_path)
    assert "d_ff: 9000" in result.stdout
    assert "wide" in nmt("train", "--help", "--config-dir", "mine", folder=tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trian"], "did you mean train?"),
        (["train", "model.heads=many"], "model.heads=many"),
        (["train", "--devices=8"], "--devices: how many devices train is trainer.devices, as trainer.devices=2"),
        (["train", "big"], "KEY=VALUE"),
        (["train", "seed=1,2"], "--sweep trains with each value in turn"),
        (["train", "--sweep", "seed=1,2", "--devices=8"], "as trainer.devices=2"),
        (["train", "--sweep", "seed=1,2"], "nmt preprocess"),
        (["train", "--sweep", "seed=1,2", "--cfg"], "leave --sweep out"),
        (["train", "--dry-run"], "--sweep"),
        (["translate", "--sweep"], "--sweep: no such option or key"),
        (["train", "--config-dir", "nowhere"], "nowhere: no such folder"),
        (["train", "data=files"], "nmt preprocess"),
        (["preprocess", "data=files"], "data.train"),
        (["preprocess", "data=files", "data.train=nowhere"], "nowhere.en: no such file"),
        (["translate"], "`nmt train`"),
        (["translate", "run=nowhere"], "run=nowhere: no such folder"),
        (["translate", "decode.n_best=2"], "format=tsv or jsonl"),
        (["score"], "`nmt score HYPOTHESIS REFERENCE`"),
        (["score", "reference=nowhere"], "nowhere: No such file or directory"),
        (["score", "run=runs/x"], "source=VALUE"),
        (["score", "run=runs/x", "source=s", "reference=r"], "leave reference"),
        (["score", "run=runs/x", "source=-"], "name the other"),
        (["average"], "no checkpoints"),
    ],
)
def test_a_mistake_is_answered_in_one_line_that_helps(words, expected, tmp_path):
    assert expected in complaint(*words, folder=tmp_path)


def test_the_commands_of_the_paper_say_what_is_missing(tmp_path):
    """With nothing prepared, the README's line for the paper's big model stops at once, and says what to do."""
    assert "run `nmt preprocess`" in complaint("train", "model=big", "trainer.devices=8", folder=tmp_path)


def test_score_tells_machines_what_it_tells_people(tmp_path):
    (tmp_path / "ref").write_text("Ein Hund läuft über die Wiese.\nZwei Männer sitzen im Park.\n")
    (tmp_path / "hyp").write_text("Ein Hund rennt über die Wiese.\nZwei Männer sitzen im Park.\n")
    words = ["score", "hypothesis=hyp", "reference=ref", "metrics=[bleu,chrf,ter,tokenised,split]", "language=de"]
    people = nmt(*words, folder=tmp_path).stdout.splitlines()
    machines = json.loads(nmt(*words, "--json", folder=tmp_path).stdout)
    assert [f"{m['name']} = {m['value']:.2f}  {m['signature']}" for m in machines] == people
    assert len(machines) == 5


def test_score_reads_standard_input_and_refuses_other_line_counts(tmp_path):
    (tmp_path / "ref").write_text("eins\nzwei\n")
    assert nmt("score", "reference=ref", "metrics=[chrf]", folder=tmp_path, stdin="eins\nzwei\n").stdout.startswith(
        "chrF2 = 100"
    )
    assert "standard input has 1 lines but ref has 2" in complaint(
        "score", "reference=ref", folder=tmp_path, stdin="eins\n"
    )


def test_score_reads_compressed_files_and_standard_input(tmp_path):
    (tmp_path / "ref.gz").write_bytes(gzip.compress(b"eins\nzwei\n"))
    (tmp_path / "hyp").write_bytes(bz2.compress("\ufeffeins\r\nzwei".encode()))
    words = ["score", "reference=ref.gz", "metrics=[chrf]"]
    assert nmt(*words, "hypothesis=hyp", folder=tmp_path).stdout.startswith("chrF2 = 100")
    command = [python(), "-m", "nmt", *words]
    with (tmp_path / "ref.gz").open("rb") as file:
        done = subprocess.run(command, cwd=tmp_path, stdin=file, capture_output=True)
    assert done.stdout.startswith(b"chrF2 = 100")
    (tmp_path / "hyp").write_text("eins\nzwei\n", encoding="utf-16-le")
    assert "hyp, line 1: UTF-16 " in complaint(*words, "hypothesis=hyp", folder=tmp_path)
    assert "nowhere: No such file" in complaint(*words, "hypothesis=nowhere", folder=tmp_path)
    assert ".: Is a directory" in complaint(*words, "hypothesis=.", folder=tmp_path)


def test_preprocess_says_loudly_what_it_dropped_and_what_valid_shares_with_train(tmp_path):
    pairs = [f"{'a b' if n % 2 else 'a b c d e f g'} {chr(97 + n % 26)}{chr(97 + n // 26)}\tx y" for n in range(200)]
    (tmp_path / "a.tsv").write_text("\n".join(pairs) + "\n")
    (tmp_path / "valid, 1.tsv").write_text("\n".join([*pairs[1:6:2], "new\tneu"]) + "\n")
    words = ["preprocess", "data=files", "data.train=a.tsv", "data.valid=valid, 1.tsv", "data.test_size=0"]
    words += ["tokenizer.kind=bpe", "tokenizer.vocabulary_size=300", "data.filters.max_ratio=2"]
    done = nmt(*words, "data.name=toy", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "notice: 100 of 200 training pairs were dropped as 'length ratio', by data.filters.max_ratio" in done.stderr
    assert "notice: 3 pairs of valid are in train too" in done.stderr
    assert done.stdout == ""


def test_nmt_alone_is_help(tmp_path):
    alone = nmt(folder=tmp_path)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert nmt("--help", folder=tmp_path).stdout == alone.stdout
    assert "as nmt train --help all" in complaint("help", "train", folder=tmp_path)
