"""Output files appear once they are complete, and killed commands resume."""

import json
import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.commands.translate import run as translate
from nmt.config import DecodeConfig, NMTError, TranslateConfig
from nmt.text import read_texts
from nmt.translation.output import open_output
from tests.helpers.options import translate_config
from tests.helpers.preloaded import python

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
IDENTITY = "1"
GREEDY = DecodeConfig(beam_size=1, max_extra_length=3)


def random_lines(count: int) -> bytes:
    draw = random.Random(1)
    lines = []
    for _ in range(count):
        words = draw.choices(WORDS, k=draw.randint(0, 7))
        lines.append(" ".join(words) + "\n")
    return "".join(lines).encode()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def break_off(path: Path, identity: str | dict[str, Any], lines: list[str]) -> None:
    """Write some lines, and stop as Ctrl-C does."""

    def write() -> None:
        with open_output(str(path), identity) as output:
            for number, line in enumerate(lines, output.notes.lines + 1):
                output.write(line, number)
                output.notes.counts["split"] += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()


def test_a_file_appears_once_it_is_complete(tmp_path):
    path = tmp_path / "out"
    break_off(path, IDENTITY, ["a\n", "b\n"])
    assert not path.exists()
    with open_output(str(path), IDENTITY) as output:
        assert output.notes.lines == 2
        assert output.notes.counts["split"] == 2
        output.write("c\n", 3)
        assert not path.exists()
    assert path.read_text() == "a\nb\nc\n"
    assert names_in(tmp_path) == ["out"]


def test_overwriting_replaces_a_file_once_it_is_complete(tmp_path):
    path = tmp_path / "out"
    path.write_text("before")
    with open_output(str(path), IDENTITY, overwrite=True) as output:
        output.write("c\n", 1)
        assert path.read_text() == "before"
    assert path.read_text() == "c\n"
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("identity", "damage"),
    [
        (IDENTITY, None),
        ("2", None),
        ("", None),
        (IDENTITY, "{"),
        (IDENTITY, {"bytes": 99}),
        (IDENTITY, {"bytes": 3}),
        (IDENTITY, {"lines": "2"}),
        (IDENTITY, {"more": 7}),
    ],
    ids=str,
)
def test_overwriting_starts_again(tmp_path, identity, damage):
    path = tmp_path / "out"
    break_off(path, IDENTITY, ["a\n", "b\n"])
    notes = tmp_path / ".out.nmt-partial.json"
    if damage == "{":
        notes.write_text(damage)
    elif damage:
        notes.write_text(json.dumps(json.loads(notes.read_text()) | damage))
    with open_output(str(path), identity, overwrite=True) as output:
        assert output.notes.lines == 0
        output.write("c\n", 1)
    assert path.read_text() == "c\n"
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("identity", "names"),
    [
        ({"input": "a", "model": ["c"]}, "another model;"),
        ({"input": "b", "model": ["c"], "split": "never"}, "another input, model, split;"),
        ("", "another input, model or option;"),
    ],
)
def test_the_partial_output_of_another_command_is_kept(tmp_path, identity, names):
    before = {"input": "a", "model": ["b"]}
    path = tmp_path / "out"
    break_off(path, before, ["a\n", "b\n"])
    with pytest.raises(NMTError, match=f"2 lines with {names} .*overwrite=true"):
        open_output(str(path), identity).__enter__()
    with open_output(str(path), before) as output:
        assert output.notes.lines == 2
        output.write("c\n", 3)
    assert path.read_text() == "a\nb\nc\n"


@pytest.mark.parametrize(("lines", "count"), [(["a\n"], "1 line"), (["a\n", "b\n"], "2 lines")])
def test_the_lines_of_a_stopped_command_are_counted(tmp_path, lines, count):
    path = tmp_path / "out"
    break_off(path, IDENTITY, lines)
    with (
        pytest.raises(NMTError, match=f"has written {count} with another"),
        open_output(str(path), {"split": "never"}),
    ):
        pass


def test_a_command_that_cannot_resume_leaves_no_files(tmp_path):
    break_off(tmp_path / "out", "", ["a\n"])
    break_off(tmp_path / "out", IDENTITY, [])
    assert names_in(tmp_path) == []


def test_a_second_command_cannot_write_the_same_file(tmp_path):
    with (
        open_output(str(tmp_path / "out"), IDENTITY),
        pytest.raises(NMTError, match="another nmt process is writing it"),
        open_output(str(tmp_path / "out"), IDENTITY),
    ):
        pass


def test_a_file_that_another_program_has_written_meanwhile_is_kept(tmp_path):
    path = tmp_path / "out"

    def write() -> None:
        with open_output(str(path), IDENTITY) as output:
            output.write("ours\n", 1)
            path.write_text("theirs\n")

    with pytest.raises(NMTError, match=r"another program has written it since.*move it away"):
        write()
    assert path.read_text() == "theirs\n"
    path.rename(tmp_path / "moved")
    with open_output(str(path), IDENTITY) as output:
        assert output.notes.lines == 1
    assert path.read_text() == "ours\n"


def test_a_link_with_the_name_of_the_partial_file_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".out.nmt-partial").symlink_to(tmp_path / "precious")
    with pytest.raises(NMTError, match="out: "), open_output(str(tmp_path / "out"), IDENTITY):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_an_output_that_is_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").touch()
    (tmp_path / "out").symlink_to("target")
    with open_output(str(tmp_path / "out"), IDENTITY) as output:
        output.write("a\n", 1)
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "target").read_text() == "a\n"


COMPRESSIONS = {
    ".gz": ["gzip", "-dc"],
    ".bz2": ["bzip2", "-dc"],
    ".xz": ["xz", "-dc"],
    ".zst": ["zstd", "-dc"],
}
"""Programs that decompress files, by suffix."""
INSTALLED = [suffix for suffix, (program, _) in COMPRESSIONS.items() if shutil.which(program)]


def unpacked(path: Path) -> bytes:
    command = [*COMPRESSIONS[path.suffix], path]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("suffix", INSTALLED)
@pytest.mark.parametrize("lines", [[], ["a\n"], ["a\n", "\n", "ß\n"] * 100_000])
def test_the_suffix_decides_the_compression(tmp_path, suffix, lines):
    path = tmp_path / f"out{suffix}"
    with open_output(str(path), IDENTITY) as output:
        output.write("".join(lines), len(lines))
    assert unpacked(path) == "".join(lines).encode()
    assert list(read_texts(path)) == [line.removesuffix("\n") for line in lines]
    assert names_in(tmp_path) == [f"out{suffix}"]


@pytest.mark.parametrize("suffix", INSTALLED)
@pytest.mark.parametrize("text", ["", "a\n", "a\n\nß\n" * 100_000])
def test_a_compressed_file_contains_neither_its_name_nor_the_time(tmp_path, suffix, text):
    contents = set()
    for name in ("one", "two"):
        path = tmp_path / f"{name}{suffix}"
        with open_output(str(path), IDENTITY) as output:
            output.write(text, text.count("\n"))
        contents.add(path.read_bytes())
    assert len(contents) == 1
    assert names_in(tmp_path) == [f"one{suffix}", f"two{suffix}"]


def test_a_compressed_output_resumes_after_its_last_line(tmp_path):
    path = tmp_path / "out.gz"
    break_off(path, IDENTITY, ["a\n", "b\n"])
    assert (tmp_path / ".out.gz.nmt-partial").read_bytes() == b"a\nb\n"
    with open_output(str(path), IDENTITY) as output:
        assert output.notes.lines == 2
        output.write("c\n", 3)
        assert not path.exists()
    assert unpacked(path) == b"a\nb\nc\n"
    assert names_in(tmp_path) == ["out.gz"]


def test_the_target_of_a_link_decides_the_compression(tmp_path):
    (tmp_path / "out").symlink_to("target.xz")
    with open_output(str(tmp_path / "out"), IDENTITY) as output:
        output.write("a\n", 1)
    assert unpacked(tmp_path / "target.xz") == b"a\n"


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_job_resumes_after_the_disk_was_full_during_compression(tmp_path, suffix):
    """A limit on the size of files, less than that of the compressed lines, simulates a full disk."""
    path = tmp_path / f"out{suffix}"
    line = f"{random.Random(1).randbytes(20_000).hex()}\n"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write() -> None:
        with open_output(str(path), IDENTITY) as output:
            output.write(line, 1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))

    try:
        with pytest.raises(NMTError, match=r"cannot write .* \(File too large\): is the disk full"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    partial = f".out{suffix}.nmt-partial"
    assert names_in(tmp_path) == [partial, f"{partial}.json"]
    with open_output(str(path), IDENTITY) as output:
        assert output.notes.lines == 1
    assert list(read_texts(path)) == [line.strip()]
    assert names_in(tmp_path) == [f"out{suffix}"]


def config(checkpoint: str, folder: Path, **settings: Any) -> TranslateConfig:
    options = {
        "input": str(folder / "in"),
        "output": str(folder / "out"),
        "format": "tsv",
        "device": "cpu",
        "decode": GREEDY,
    }
    options.update(settings)
    return translate_config(checkpoint, **options)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)


def kill_in_the_middle(model: str, folder: Path, end: signal.Signals = signal.SIGKILL) -> int:
    """Start to translate `in` to `out`, and end the program with a signal.

    Returns the number of translated lines.
    """
    options = [
        f"run={model}",
        "engine=torch",
        "decode=greedy",
        "decode.max_extra_length=3",
        "format=tsv",
        "buffer=1",
        f"input={folder}/in",
        f"output={folder}/out",
    ]
    command = [python(), "-m", "nmt", "translate", *options]
    notes = folder / ".out.nmt-partial.json"
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        wait_for(notes, process)
        process.send_signal(end)
        # Until the program has ended, it keeps its lock on the file.
        process.communicate(timeout=20)
    assert not (folder / "out").exists()
    lines = json.loads(notes.read_text())["lines"]
    assert 0 < lines < 400
    return lines


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_translation_resumes_with_the_same_result(checkpoint, tmp_path, capsys, end):
    expected = tmp_path / "expected"
    (tmp_path / "in").write_bytes(random_lines(400))
    translate(config(checkpoint, tmp_path, output=str(expected)))
    lines = kill_in_the_middle(checkpoint, tmp_path, end)
    other_batches = DecodeConfig(beam_size=1, max_extra_length=3, batch_tokens=8000)
    translate(config(checkpoint, tmp_path, decode=other_batches))
    assert f"after {lines:,} of 400 lines" in capsys.readouterr().err
    assert (tmp_path / "out").read_bytes() == expected.read_bytes()
    assert names_in(tmp_path) == ["expected", "in", "out"]


@pytest.mark.slow
def test_a_killed_translation_does_not_resume_with_another_model_description(
    checkpoint, tmp_path, capsys
):
    model = Path(shutil.copytree(checkpoint, tmp_path / "model"))
    (tmp_path / "in").write_bytes(random_lines(400))
    kill_in_the_middle(str(model), tmp_path)
    path = model / "config.json"
    description = json.loads(path.read_text())
    description["model"]["activation"] = "gelu"
    path.write_text(json.dumps(description))
    with pytest.raises(NMTError, match=r"lines? with another config\.json;"):
        translate(config(str(model), tmp_path))
    translate(config(str(model), tmp_path, overwrite=True))
    assert "resuming" not in capsys.readouterr().err
    expected = tmp_path / "expected"
    translate(config(str(model), tmp_path, output=str(expected)))
    assert (tmp_path / "out").read_bytes() == expected.read_bytes()
