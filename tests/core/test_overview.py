"""`nmt runs`: listing and deletion. Completion in a real bash."""

import csv
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

import nmt
from nmt import files
from nmt.commands.overview.listing import place_of
from tests.helpers.preloaded import python

PROGRAM = "import sys\nfrom nmt.cli import main\ntry:\n main()\nfinally:\n print(*sys.modules, file=sys.stderr)"


@pytest.fixture(autouse=True)
def folder(finished: Path, toy: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run, an untrained one, a damaged one, a corpus, links, and a folder that nmt did not write."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, "runs/deep/done")
    shutil.copytree(toy[-1].removeprefix("prepared="), "data/toy")
    new = (finished / "config.yaml").read_text()
    for name, content in (
        ("deep/done", None),
        ("new", new),
        ("bad", "[" * 10**6),
        ("part", "trainer: {max_steps: 1}"),
    ):
        Path("runs", name).mkdir(exist_ok=True)
        Path("runs", name, "config.yaml").write_text(content) if content else None
        os.utime(f"runs/{name}/config.yaml", (2e9 - len(name), 2e9 - len(name)))
    Path("runs/notes/deep").mkdir(parents=True)
    Path("runs/notes/deep/a $`.txt").touch()
    Path("runs/deep/done/citation-test.zip").touch()
    Path("runs/latest").symlink_to("deep/done")
    Path("data/linked").symlink_to("toy")


@pytest.mark.slow
def test_runs_lists_runs_and_corpora_with_facts(nmt):
    os.utime("runs/deep/done/metrics.csv", (2e9, 2e9))
    rows = {row["name"]: row for row in json.loads(nmt("runs", "--json").out)["folders"]}
    states = {name: row["state"] for name, row in rows.items()}
    expected = {
        "runs/deep/done": "finished",
        "runs/new": "untrained",
        "runs/bad": "damaged",
        "data/toy": "prepared",
    }
    assert states == {**expected, "runs/part": "damaged", "runs/notes": "foreign"}
    done, manifest = rows["runs/deep/done"], json.loads(Path("data/toy/manifest.json").read_text())
    reports = csv.DictReader(Path("runs/deep/done/metrics.csv").read_text().splitlines())
    validated = [row for row in reports if row["valid_loss"]][-1]
    assert [done["updates"], done["planned"], done["valid_loss"]] == [
        60,
        60,
        float(validated["valid_loss"]),
    ]
    score = json.loads(Path("runs/deep/done/model/config.json").read_text())["training"]["score"][
        "value"
    ]
    assert done["valid_bleu"] == score != float(validated["valid_bleu"])
    assert done["bytes"] == sum(
        path.stat().st_size for path in Path("runs/deep/done").rglob("*") if path.is_file()
    )
    facts = [manifest["counts"]["train"]["kept"], manifest["vocabulary_size"]]
    assert [rows["data/toy"][key] for key in ("source", "target", "pairs", "vocabulary")] == [
        "en",
        "de",
        *facts,
    ]
    lines = [line.split()[:2] for line in nmt("runs").out.splitlines()]
    assert [line for line in lines if line[0] in rows] == [[*pair] for pair in states.items()]
    for name, row in (
        ("runs/deep", "runs/deep/done"),
        ("deep/done", "runs/deep/done"),
        ("runs/latest", "runs/latest"),
    ):
        assert nmt("runs", name).out.splitlines()[1].split()[:4] == [row, "finished", "60", "60"]
    with FileLock("runs/deep/done/.lock"):
        assert "running" in nmt("runs").out.splitlines()[1]
    shutil.rmtree("runs/deep/done/model")
    Path("runs/deep/done/metrics.csv").unlink()  # as if killed before the first report
    assert nmt("runs", "deep/done").out.splitlines()[1].split()[1:4] == ["stopped", "60", "60"]


def test_details_of_one_run(nmt, toy):
    statement = {"test_set": "test", "scores": [{"name": "BLEU", "value": 12.345}]}
    with zipfile.ZipFile("runs/deep/done/citation-test.zip", "w") as archive:
        archive.writestr("bundle.json", json.dumps(statement))
    Path("runs/deep/done/citation-bad.zip").write_bytes(b"PK")
    Path("runs/deep/done/model/ctranslate2-int8").mkdir()
    out = nmt("runs", "deep/done").out
    details = dict(line.split(maxsplit=1) for line in out.partition("\n\n")[2].splitlines())
    record = json.loads(Path("runs/deep/done/model/config.json").read_text())["training"]
    assert details["languages"] == "en to de"
    pairs = json.loads(Path("data/toy/manifest.json").read_text())["counts"]["train"]["kept"]
    assert details["corpus"] == f"{toy[-1].removeprefix('prepared=')}, {pairs} pairs"
    assert details["validation"].startswith(f"BLEU {record['score']['value']:.2f} on 4 sentences")
    assert details["weights"] == files.weights_in_words(record["averaged"], {})
    assert details["training"].endswith(f"{record['tokens']:,} target tokens")
    assert details["test"] == "BLEU 12.35  runs/deep/done/citation-test.zip"
    assert details["exports"] == "runs/deep/done/model/ctranslate2-int8"
    assert details["command"] == "nmt translate runs/deep/done < input.en"
    assert json.loads(nmt("runs", "deep/done", "--json").out)["details"]["languages"] == "en to de"
    assert nmt("runs", "new").out.partition("\n\n")[2].startswith("languages   en to de\n")
    assert "languages" not in nmt("runs").out


@pytest.mark.slow
def test_listing_does_not_import_torch():
    for number in range(100):
        shutil.copytree(
            "runs/deep/done", f"runs/{number}", ignore=shutil.ignore_patterns("checkpoints")
        )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "runs"], check=True, capture_output=True, text=True
    )
    assert done.stdout.count("finished") == 101
    assert "torch" not in done.stderr.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("..", "no such run"),
        ("runs/..", "no such run"),
        ("/etc", "no such run"),
        ("runs", "no such run"),
        ("runs/deep/../deep/done/", "no such run"),
        ("runs/latest", "no such run"),
        ("data/linked", "no such run"),
        ("notes", "not a run"),
        ("runs/bad", "config.yaml: cannot be read"),
        ("deep/done", "another nmt is using it"),
        ("toy", "another nmt is using it"),
        ("outer", "runs/outer: contains runs/outer/inner; delete that first"),
        ("part", "not a run configuration"),
        ("new", "without a terminal, pass --yes"),
    ],
)
def test_delete_refuses_foreign_broken_and_used_folders(nmt, name, said):
    if name == "outer":
        shutil.copytree("runs/new", "runs/outer/inner")
        shutil.copy("runs/new/config.yaml", "runs/outer")
    before = sorted(Path().rglob("*"))
    with FileLock("runs/deep/done/.lock"), FileLock("data/toy/tokenizer.model"):
        options = [] if "--yes" in said else ["--yes"]
        nmt("runs", "delete", name, *options).failed(said)
    assert sorted(Path().rglob("*"))[: len(before)] == before


@pytest.mark.slow
def test_delete_keeps_foreign_files_and_repairs_latest_link(nmt):
    shutil.copytree("runs/deep/done", "runs/other")
    Path("runs/deep/done/test.de").touch()
    Path("runs/deep/done/notes").symlink_to(Path("runs/notes").resolve())
    done = nmt("runs", "delete", "deep/done", "data/toy", "--yes")
    assert Path("runs/notes/deep").exists()
    assert {*done.err.splitlines()[0].split("did not write: ")[1].split(", ")} == {
        "test.de",
        "notes",
    }
    assert (str(Path("runs/latest").readlink()), Path("data/toy").exists()) == ("other", False)
    # What nmt did not write stays.
    assert {path.name for path in Path("runs/deep/done").iterdir()} == {"test.de", "notes"}
    for answer in (b"n\n", b"y\n"):
        terminal, end = pty.openpty()
        os.write(terminal, answer)
        subprocess.run(
            [python(), "-m", "nmt", "runs", "delete", "other"], stdin=end, capture_output=True
        )
        assert Path("runs/other").exists() == Path("runs/latest").is_symlink() == (answer == b"n\n")


REPLIES = {
    "trans": "translate",
    "--inst": "--install-completion",
    "train optim.l": "optim.learning_rate= optim.label_smoothing=",
    "train optim.schedule = noa": "noam",
    "train model = s": "small student",
    "train experiment = la": "laptop",
    "train model.tied_embeddings =": "true false",
    "train prepared = d": "data/toy",
    "train da": "data/toy",
    "translate run = runs/d": "runs/deep/done",
    "score metrics = '[bleu,'te": "[bleu,ter",
    r"translate runs/notes/deep/a\ ": r"runs/notes/deep/a\ \$\`.txt",
}


@pytest.mark.slow
def test_completion_in_bash(tmp_path, monkeypatch):
    (tmp_path / "nmt").write_text(f'#!/bin/sh\nexec {python()} -m nmt "$@"\n')
    (tmp_path / "nmt").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(nmt.__file__).parents[1]))
    monkeypatch.setenv("HOME", str(tmp_path))
    lines = [
        "nmt --install-completion bash > /dev/null",
        "source ~/.local/share/bash-completion/completions/nmt",
    ]
    tab = "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nmt nmt; echo ${COMPREPLY[@]@Q}"
    lines += [f"COMP_WORDS=(nmt {words}); {tab}" for words in REPLIES]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], check=True, capture_output=True, text=True
    )
    expected = [
        " ".join(f"'{reply}'" for reply in re.split(r"(?<!\\) ", replies))
        for replies in REPLIES.values()
    ]
    assert done.stdout.splitlines() == expected


def test_completion_imports_little_and_install_keeps_foreign_files(nmt, tmp_path, monkeypatch):
    words = ["--complete", "bash", "train", "optim.l"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], check=True, capture_output=True, text=True
    )
    assert not {"hydra", "omegaconf", "torch", "typer", "rich", "yaml", "numpy"} & {
        *done.stderr.split()
    }
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    nmt("--install-completion", "csh").refused("pass yours")
    assert str(tmp_path / "fish/completions/nmt.fish") in nmt("--install-completion", "fish").out
    (tmp_path / "fish/completions/nmt.fish").write_text("complete -c nmt\n")
    nmt("--install-completion", "fish").refused("not written by nmt")


@pytest.mark.slow
def test_runs_are_sorted_by_a_validation_score(nmt):
    """Made-up scores of runs that have not finished: those of their last validation."""
    config = Path("runs/new/config.yaml").read_text()
    scores = {"a": (3.5, 10), "b": (2.5, 5), "c": (3.0, 30)}
    for name, (loss, bleu) in scores.items():
        Path("runs", name).mkdir()
        Path("runs", name, "config.yaml").write_text(config)
        rows = f"step,valid_loss,valid_bleu\n20,{loss},{bleu}\n"
        Path("runs", name, "metrics.csv").write_text(rows)

    def names(order):
        rows = json.loads(nmt("runs", f"sort={order}", "--json").out)["folders"]
        assert [row["kind"] for row in rows] == sorted((row["kind"] for row in rows), key=place_of)
        return [row["name"].removeprefix("runs/") for row in rows if row["kind"] == "run"]

    for order, expected in (("loss", ["b", "c", "a"]), ("bleu", ["c", "a", "b"])):
        sorted_names = names(order)
        assert [name for name in sorted_names if name in scores] == expected
        # Runs without a score are last.
        assert set(sorted_names[-3:]) == {"new", "bad", "part"}
    assert set(names("age")) == set(names("loss"))
    nmt("runs", "sort=best").refused("sort=best: must be one of age, loss, bleu, f1")


def test_order_of_kinds():
    kinds = ["foreign", "synthetic", "export", "memory", "corpus", "run"]
    assert sorted(kinds, key=place_of) == [
        "run",
        "corpus",
        "export",
        "memory",
        "synthetic",
        "foreign",
    ]
