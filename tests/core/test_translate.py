"""`nmt translate`: lines, formats and output files.

As a process: closed pipes, terminals, Ctrl-C, full disks and endless input.
"""

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from nmt.commands.translate import render, run as translate
from nmt.config import DecodeConfig, NMTError
from nmt.translation import Translation, input_lines, load_translator, report, summarize
from tests.conftest import Outcome, write_random_model
from tests.helpers.options import translate_config, translator_options
from tests.helpers.preloaded import python

FIXTURES = Path(__file__).parents[1] / "fixtures" / "marian" / "tied"
BOM = b"\xef\xbb\xbf"
TWO = [
    Translation("Grüße", -0.123456, -0.5, flags=["number"]),
    Translation("zwei Wörter", -2.0, -3.0),
]


def written(checkpoint: str, folder: Path, content: bytes, **settings) -> bytes:
    """The output of `translate` for a file with this content."""
    (folder / "input").write_bytes(content)
    options = {
        "run": checkpoint,
        "input": str(folder / "input"),
        "output": str(folder / "output"),
        "overwrite": True,
        "device": "cpu",
        "decode": DecodeConfig(beam_size=2, max_extra_length=3),
    }
    options.update(settings)
    translate(translate_config(**options))
    return (folder / "output").read_bytes()


UNUSUAL_LINES = [
    "\ufeffa",  # the first byte order mark is the file's
    "",
    "b\rc",
    "Ä\u2028b\x85c\x0bd\x0ce\x1cf\u2029g",
    "\ufeffend",
]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (BOM + "\r\n".join(UNUSUAL_LINES[:3]).encode(), UNUSUAL_LINES[:3]),
        (BOM + "\n".join(UNUSUAL_LINES).encode(), UNUSUAL_LINES),
    ],
)
def test_only_lf_and_crlf_separate_lines(content, lines, capsys):
    assert list(input_lines(io.BytesIO(content))) == lines
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "lines", "warnings"),
    [
        (b"ok\na\xffb\n", ["ok", "a\ufffdb"], ["line 2: invalid UTF-8 at byte 2"]),
        (
            b"\xc3\nok\n\xfe",
            ["\ufffd", "ok", "\ufffd"],
            ["line 1: invalid UTF-8 at byte 1 (if the file is in Latin-1"],
        ),
        (b"a\xed\xa0\x80\n", ["a\ufffd\ufffd\ufffd"], ["line 1: invalid UTF-8 at byte 2"]),
    ],
)
def test_invalid_utf8_is_replaced_with_a_warning_that_names_the_line(
    content, lines, warnings, capsys
):
    assert list(input_lines(io.BytesIO(content))) == lines
    captured = capsys.readouterr()
    assert captured.out == ""
    for warning, line in zip(warnings, captured.err.splitlines(), strict=True):
        assert warning in line


def test_tsv_has_a_line_per_translation():
    text = render(7, "zwei", TWO, "tsv", {})
    assert text == "7\t-0.1235\tGrüße\n7\t-2.0000\tzwei Wörter\n"


def test_jsonl_has_an_object_per_line():
    text = render(7, "zwei", TWO, "jsonl", {"more": 1})
    assert "Grüße" in text
    assert text.index("\n") == len(text) - 1
    assert json.loads(text) == {
        "line": 7,
        "source": "zwei",
        "translations": [
            {
                "text": "Grüße",
                "score": -0.123456,
                "log_probability": -0.5,
                "flags": ["number"],
            },
            {
                "text": "zwei Wörter",
                "score": -2.0,
                "log_probability": -3.0,
                "flags": [],
            },
        ],
        "more": 1,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run", "missing"),
        ("device", "abacus"),
        ("input", "/missing/input"),
        ("overwrite", False),
    ],
)
def test_a_rejected_command_keeps_an_earlier_output(checkpoint, tmp_path, key, value):
    before = b"ka\nlo\n"
    (tmp_path / "output").write_bytes(before)
    with pytest.raises(NMTError):
        written(checkpoint, tmp_path, b"mi\n", **{key: value})
    assert (tmp_path / "output").read_bytes() == before


def test_the_first_line_with_each_notice_is_reported_and_the_lines_are_counted(capsys):
    counts = Counter[str]()
    for number in range(1, 13):
        notes = {"is": "cut"} if number > 10 else {}
        best = Translation("", 0.0, 0.0, copied=["[" * 100_000], notes=notes)
        report((), "", best, f"line {number}", counts)
    summarize(counts)
    copied, cut, *totals = capsys.readouterr().err.splitlines()
    assert copied.split(":")[1] == " line 1"
    assert cut.split(":")[1] == " line 11"
    assert len(copied) < 200
    assert [line.partition(" lines: ")[0] for line in totals] == ["nmt: 12", "nmt: 2"]


def best_translations(model: Path, precision: str, lines: list[str]) -> list[Translation]:
    options = translator_options(
        str(model),
        "tokens",
        device="cpu",
        precision=precision,
        decode=DecodeConfig(beam_size=4),
    )
    translator = load_translator(options, lambda words: None)
    types = {parameter.dtype for parameter in translator.engine.models[0].parameters()}
    assert types == {getattr(torch, precision)}
    return [translations[0] for translations in translator.translate(lines)]


def test_translations_in_bfloat16_are_close_to_those_in_float32(word_model):
    lines = (FIXTURES / "test.src").read_text().splitlines()
    exact_translations = best_translations(word_model, "float32", lines)
    low_translations = best_translations(word_model, "bfloat16", lines)
    same = []
    for exact, low in zip(exact_translations, low_translations, strict=True):
        if exact.text == low.text:
            same.append((exact, low))
    assert len(same) >= 0.9 * len(lines)
    searched = [(exact, low) for exact, low in same if not exact.copied]
    assert searched
    for exact, low in searched:
        assert exact.details
        assert low.details
        # The 8 significant bits of a logit of 10 are off by 0.04 at most.
        assert abs(low.log_probability - exact.log_probability) < 0.04 * len(exact.details.tokens)
        assert low.log_probability != exact.log_probability


SHORT = ["engine=torch", "decode.max_length=3", "decode.beam_size=2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A model directory with a tiny random model of 12 learned positions."""
    folder = tmp_path_factory.mktemp("model") / "model"
    write_random_model(folder, positions="learned", max_positions=12)
    return str(folder)


def command(model: str, *words: str) -> list[str]:
    return [python(), "-m", "nmt", "translate", f"run={model}", *SHORT, *words]


def run(model: str, *words: str, content: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(model, *words), input=content, capture_output=True, timeout=300)


@contextmanager
def started(words: list[str], **streams) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is killed at the end."""
    streams.setdefault("stderr", subprocess.PIPE)
    with subprocess.Popen(words, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def refused(process: subprocess.CompletedProcess[bytes], *words: str) -> None:
    """Assert that a process ended with exit code 2 and one line that contains `words`."""
    assert b"Exception ignored" not in process.stderr
    Outcome(process.returncode, "", process.stderr.decode()).refused(*words)


@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_without_a_message(model):
    """As in `nmt translate | head -1`, with more input to read."""
    words = command(model, "buffer=5")
    with started(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        os.set_blocking(process.stdin.fileno(), False)
        process.stdin.raw.write(b"ka lo\n" * 500)
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        process.wait(timeout=60)
        assert process.stderr.read() == b""
        assert process.returncode != 2


def wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_ctrl_c_leaves_no_partial_file_for_standard_input(model, tmp_path):
    """The command is interrupted while it translates lines that take long.

    It keeps no partial file, because it cannot read standard input again.
    """
    words = command(
        model,
        f"output={tmp_path / 'out'}",
        "buffer=1",
        "decode.max_length=null",
        "decode.min_length=9",
    )
    with started(words, stdin=subprocess.PIPE) as process:
        process.stdin.write(b"ka lo\nmi nu\n" + b"ka lo mi\n" * 3000)
        process.stdin.flush()
        wait_for_lines(tmp_path / ".out.nmt-partial", 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() in (b"", b"\n", b"Aborted.\n", b"Aborted!\n")
    assert list(tmp_path.iterdir()) == []


def read_until(terminal: int, expected: bytes, seconds: float) -> bytes:
    """The output of a terminal until it contains `expected` or the program closes it."""
    shown = b""
    deadline = time.monotonic() + seconds
    while expected not in shown:
        remaining = max(deadline - time.monotonic(), 0)
        readable, _, _ = select.select([terminal], [], [], remaining)
        assert readable, f"waited for {expected!r} and saw {shown!r}"
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other side has closed it
            return shown
    return shown


@pytest.mark.slow
def test_a_terminal_shows_translations_and_no_progress(model):
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with started(command(model), **streams, start_new_session=True) as process:
        os.close(theirs)
        read_until(ours, b"Ctrl-D ends", 120)
        expected = run(model, content=b"ka lo\n").stdout.rstrip()
        os.write(ours, b"ka lo\n")
        shown = read_until(ours, expected, 60)
        assert b"translat" not in shown
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert b"Traceback" not in read_until(ours, b"nothing shows this", 5)
    os.close(ours)


def test_a_line_that_exceeds_the_positions_is_named_and_earlier_lines_are_written(model):
    content = b"ka lo\n\nmi\n" + b"ka " * 12 + b"\nnu\n"
    process = run(model, "split=never", content=content)
    refused(process, "line 4: ", "model.max_positions=12", "split=auto")
    assert process.stdout.count(b"\n") == 3


@pytest.mark.slow
def test_long_lines_are_reported_once_and_counted(model):
    long_line = b"Ka lo mi " * 9 + b"\n"
    process = run(model, "buffer=1", content=b"ka lo\n" + long_line * 3)
    assert process.returncode == 0
    assert process.stdout.count(b"\n") == 4
    first, last = process.stderr.decode().splitlines()
    assert first.startswith("nmt: line 2: too long ")
    assert first.endswith("45 tokens (limit: 11)")
    assert last.startswith("nmt: 3 lines: too long ")


needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


@pytest.mark.slow
@needs_dev_full
def test_a_full_disk_is_one_line_with_an_output_file(model):
    process = run(model, "output=/dev/full", content=b"ka\nlo\n")
    refused(process, "cannot write /dev/full (No space left", "disk")


@pytest.mark.slow
@needs_dev_full
def test_a_full_disk_is_one_line_with_standard_output(model):
    streams = {"input": b"ka\nlo\n", "stderr": subprocess.PIPE}
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(command(model), stdout=full, timeout=300, **streams)
    refused(process, "cannot write standard output (No space left")


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "key"), [("<&-", "input=FILE"), (">&-", "output=FILE")])
def test_a_closed_stream_is_one_line_that_names_the_key(model, closed, key):
    _, *arguments = command(model)
    words = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, *arguments]
    refused(subprocess.run(words, input=b"ka\n", capture_output=True, timeout=300), key)


@pytest.mark.slow
def test_an_output_file_that_is_standard_input_is_rejected_and_kept(model, tmp_path):
    text = tmp_path / "text"
    text.write_bytes(b"ka\nlo\n")
    with text.open("rb") as file:
        words = command(model, f"output={text}")
        process = subprocess.run(words, stdin=file, capture_output=True, timeout=300)
    refused(process, "would overwrite the input")
    assert text.read_bytes() == b"ka\nlo\n"


def test_an_ensemble_of_models_with_different_vocabularies_is_rejected(nmt, model, finished):
    nmt("translate", f"run=[{model},{finished}]").refused("different vocabularies")
