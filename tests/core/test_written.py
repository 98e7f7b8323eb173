"""`nmt runs` and `nmt runs delete` recognize exactly the files that commands write."""

import json
import shutil
from pathlib import Path

import pytest

from nmt import files
from nmt.extensions import CommandEntry, ExporterEntry
from nmt.registry import entries_of

EXPORTS = [name for name in ("ctranslate2", "huggingface") if name in entries_of(ExporterEntry)]


@pytest.fixture
def run(finished, here) -> Path:
    """A finished run with its exports, a report, a bundle and an averaged model beside it."""
    return Path(shutil.copytree(finished, "runs/post"))


def listed(nmt) -> dict[str, str]:
    return {row["name"]: row["state"] for row in json.loads(nmt("runs", "--json").out)["folders"]}


@pytest.fixture
def exported(run, nmt, monkeypatch, tmp_path) -> list[Path]:
    """Exports in the run's model, in another folder of the run, and beside the run."""
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outputs = []
    for name in EXPORTS:
        for output in (None, f"runs/post/{name}", f"runs/{name}"):
            words = [f"output={output}"] if output else []
            done = nmt("export", "runs/post", f"format={name}", *words)
            assert done.code == 0, done.err
            outputs.append(Path(done.out.splitlines()[0].partition(":")[0]))
    return outputs


@pytest.mark.plugins
def test_exports_are_listed_and_deleted_with_their_run(exported, run, nmt):
    (run / "model/huggingface/notes.txt").write_text("mine")
    assert listed(nmt) == {
        "runs/post": "finished",
        **{f"runs/{name}": "export" for name in EXPORTS},
    }
    assert [*files.foreign_files(run, "run")] == [run / "model/huggingface/notes.txt"]
    done = nmt("runs", "delete", "post", "--yes")
    assert done.code == 0, done.err
    assert "except for files that nmt did not write: model/huggingface/notes.txt" in done.err
    remaining = [path for path in run.rglob("*") if path.is_file()]
    assert remaining == [run / "model/huggingface/notes.txt"]
    assert nmt("runs", "delete", *(f"runs/{name}" for name in EXPORTS), "--yes").code == 0
    assert not any(Path("runs", name).exists() for name in EXPORTS)


WRITERS = {
    "report": ["report", "runs/post"],
    "attention": ["attention", "ka lo", "runs/post", "output=runs/post/attention.html"],
    "compare": ["compare", "runs/post", "other", "output=runs/post/compare.html"],
    "cite": ["cite", "runs/post"],
    "average": ["average", "runs/post", "output=runs/averaged"],
    "synthesize": [
        "synthesize",
        "text",
        "runs/post",
        "output=data/synthetic",
        "flagged=keep",
        "decode.min_length=2",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", [name for name in WRITERS if name in entries_of(CommandEntry)])
def test_files_of_each_command_are_recognized(command, run, nmt):
    Path("text").write_text("ka lo mi\nnu pe ri so\n")
    Path("data").mkdir()
    shutil.copytree(run / "model", "other")
    done = nmt(*WRITERS[command])
    assert done.code == 0, done.err
    rows = listed(nmt)
    expected = {
        "average": ("runs/averaged", "model"),
        "synthesize": ("data/synthetic", "synthetic"),
    }
    if command in expected:
        name, state = expected[command]
        assert rows.pop(name) == state
        assert nmt("runs", "delete", name, "--yes").code == 0
        assert not Path(name).exists()
    rows.pop("other", None)
    assert rows == {"runs/post": "finished"}
    assert not [*files.foreign_files(run, "run")]
    assert nmt("runs", "delete", "post", "--yes").code == 0
    assert not run.exists()


def test_files_of_the_user_are_never_deleted(run, nmt):
    mine = ("README.md", "model/notes", "checkpoints/step=1.ckpt.old", "sub/config.json")
    for name in mine:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text('{"by": "me"}')
    assert nmt("runs", "delete", "post", "--yes").code == 0
    remaining = [path for path in run.rglob("*") if path.is_file()]
    assert {path.relative_to(run).as_posix() for path in remaining} == {*mine}
    assert nmt("runs", "delete", "post", "--yes").code == 2


def test_models_of_other_programs_are_foreign_and_problems_are_short(run, nmt):
    Path("runs/other").mkdir()
    Path("runs/other/config.json").write_text('{"model_type": "marian"}')
    Path("runs/bad").mkdir()
    Path("runs/bad/config.yaml").write_text("x" * 1000)
    assert listed(nmt) == {"runs/post": "finished", "runs/bad": "damaged", "runs/other": "foreign"}
    assert max(map(len, nmt("runs").out.splitlines())) < 200


@pytest.mark.plugins
def test_readme_of_the_user_is_kept(run, nmt):
    synthetic = Path("data/synthetic")
    synthetic.parent.mkdir()
    Path("text").write_text("ka lo mi\n")
    assert nmt(*WRITERS["synthesize"]).code == 0
    (synthetic / "README.md").write_text("mine")
    assert [*files.foreign_files(synthetic, "synthetic")] == [synthetic / "README.md"]


def test_foreign_latest_link_is_kept(run, nmt):
    Path("releases").mkdir()
    Path("latest").symlink_to("releases")
    Path("runs/latest").symlink_to("elsewhere")
    assert nmt("runs", "delete", "post", "--yes").code == 0
    assert str(Path("latest").readlink()) == "releases"
    assert str(Path("runs/latest").readlink()) == "elsewhere"
