"""`nmt translate`: lines and formats; as a process: pipes that close, terminals, Ctrl-C, full disks, endless input."""

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
    """What `translate` writes for a file of this content."""
    (folder / "input").write_bytes(content)
    files = {
        "input": str(folder / "input"),
        "output": str(folder / "output"),
        "overwrite": True,
        "device": "cpu",
    }
    decode = DecodeConfig(beam_size=2, max_extra_length=3)
    translate(translate_config(**{"run": checkpoint, **files, "decode": decode, **settings}))
    return (folder / "output").read_bytes()


def test_only_lf_and_crlf_separate_lines(capsys):
    lines = [
        "\ufeffa",
        "",
        "b\rc",
        "Ä\u2028b\x85c\x0bd\x0ce\x1cf\u2029g",
        "\ufeffend",
    ]  # the first mark is the file's
    for content, expected in (
        (b"", []),
        (b"\n", [""]),
        (BOM + "\r\n".join(lines[:3]).encode(), lines[:3]),
    ):
        assert list(input_lines(io.BytesIO(content))) == expected
    assert list(input_lines(io.BytesIO(BOM + "\n".join(lines).encode()))) == lines
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
    said = capsys.readouterr()
    assert said.out == ""
    for warning, line in zip(warnings, said.err.splitlines(), strict=True):
        assert warning in line


def test_a_line_for_each_translation_in_tsv_and_an_object_for_each_line_in_jsonl():
    assert render(7, "zwei", TWO, "tsv", {}) == "7\t-0.1235\tGrüße\n7\t-2.0000\tzwei Wörter\n"
    line = render(7, "zwei", TWO, "jsonl", {"more": 1})
    assert line.index("Grüße") < line.index("\n") == len(line) - 1
    first = {"text": "Grüße", "score": -0.123456, "log_probability": -0.5, "flags": ["number"]}
    second = {"text": "zwei Wörter", "score": -2.0, "log_probability": -3.0, "flags": []}
    assert json.loads(line) == {
        "line": 7,
        "source": "zwei",
        "translations": [first, second],
        "more": 1,
    }


def test_a_refusal_leaves_an_earlier_output_as_it_was(checkpoint, tmp_path):
    before = written(checkpoint, tmp_path, b"ka\nlo\n")
    refusals = {
        "run": "missing",
        "device": "abacus",
        "input": str(tmp_path / "missing"),
        "overwrite": False,
    }
    for settings in ({key: value} for key, value in refusals.items()):
        with pytest.raises(NMTError):
            written(checkpoint, tmp_path, b"mi\n", **settings)
    assert (tmp_path / "output").read_bytes() == before


def test_the_first_line_of_a_kind_is_named_shortly_and_lines_are_counted(capsys):
    counts = Counter[str]()
    for number in range(1, 13):
        best = Translation(
            "", 0.0, 0.0, copied=["[" * 100_000], notes={"is": "cut"} if number > 10 else {}
        )
        report((), "", best, f"line {number}", counts)
    summarize(counts)
    said = capsys.readouterr().err.splitlines()
    assert [words.split(":")[1] for words in said[:2]] == [" line 1", " line 11"]
    assert len(said[0]) < 200
    assert [words.partition(" lines: ")[0] for words in said[2:]] == ["nmt: 12", "nmt: 2"]


def test_in_bfloat16_torch_finds_nearly_what_float32_finds(word_model):
    lines = (FIXTURES / "test.src").read_text().splitlines()
    found = {}
    for precision in ("float32", "bfloat16"):
        decode = DecodeConfig(beam_size=4)
        options = translator_options(
            str(word_model), "tokens", device="cpu", precision=precision, decode=decode
        )
        translator = load_translator(options, lambda words: None)
        weights = {parameter.dtype for parameter in translator.engine.models[0].parameters()}
        assert weights == {getattr(torch, precision)}
        found[precision] = [best[0] for best in translator.translate(lines)]
    same = [pair for pair in zip(*found.values(), strict=True) if pair[0].text == pair[1].text]
    assert len(same) >= 0.9 * len(lines)
    searched = [pair for pair in same if not pair[0].copied]
    assert searched
    for exact, low in searched:
        assert exact.details
        # Eight bits of a logit of 10 are off by 0.04 at most.
        assert abs(low.log_probability - exact.log_probability) < 0.04 * len(exact.details.tokens)
        assert low.log_probability != exact.log_probability
        assert low.details


SHORT = ["engine=torch", "decode.max_length=3", "decode.beam_size=2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A model directory with a tiny random model of 12 learned positions."""
    folder = tmp_path_factory.mktemp("model") / "model"
    write_random_model(folder, positions="learned", max_positions=12)
    return str(folder)


def command(model: str, *words: str) -> list[str]:
    return [python(), "-m", "nmt", "translate", f"run={model}", *SHORT, *words]


def run(
    model: str, *words: str, content: bytes = b"", **settings
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(model, *words), input=content, capture_output=True, timeout=300, **settings
    )


@contextmanager
def started(words: list[str], **settings) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(words, **{"stderr": subprocess.PIPE, **settings}) as process:
        try:
            yield process
        finally:
            process.kill()


def refused(process: subprocess.CompletedProcess[bytes], *words: str) -> None:
    """Assert that it ended with a last line that holds `words`, and exit code 2."""
    assert b"Exception ignored" not in process.stderr
    Outcome(process.returncode, "", process.stderr.decode()).refused(*words)


def test_a_reader_that_has_enough_ends_it_quietly(model):
    """As `nmt translate | head -1` does, while there is more to read."""
    with started(
        command(model, "buffer=5"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        os.set_blocking(process.stdin.fileno(), False)
        process.stdin.raw.write(b"ka lo\n" * 500)
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        process.wait(timeout=60)
        assert process.stderr.read() == b""
        assert process.returncode != 2


def test_ctrl_c_leaves_no_file_that_is_not_whole(model, tmp_path):
    """It comes while lines are translated that take long; standard input does not come again, so nothing is kept."""
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
        deadline, partial = time.monotonic() + 120, tmp_path / ".out.nmt-partial"
        while not partial.exists() or partial.read_bytes().count(b"\n") < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read() in (b"", b"\n", b"Aborted.\n", b"Aborted!\n")
    assert list(tmp_path.iterdir()) == []


def read_until(terminal: int, wanted: bytes, seconds: float) -> bytes:
    """What a terminal shows until it shows `wanted`."""
    shown, deadline = b"", time.monotonic() + seconds
    while wanted not in shown:
        ready = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))[0]
        assert ready, f"waited for {wanted!r} and saw {shown!r}"
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other side has closed it
            return shown
    return shown


def test_a_terminal_at_every_end_shows_answers_and_no_progress(model):
    ours, theirs = pty.openpty()
    words = command(model)
    with started(
        words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
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


def test_a_line_without_positions_is_named_and_those_before_it_are_written(model):
    content = b"ka lo\n\nmi\n" + b"ka " * 12 + b"\nnu\n"
    process = run(model, "split=never", content=content)
    refused(process, "line 4: ", "model.max_positions=12", "split=auto")
    assert process.stdout.count(b"\n") == 3


def test_long_lines_are_noticed_once_and_counted(model):
    process = run(model, "buffer=1", content=b"ka lo\n" + (b"Ka lo mi " * 9 + b"\n") * 3)
    assert process.returncode == 0
    assert process.stdout.count(b"\n") == 4
    first, last = process.stderr.decode().splitlines()
    assert first.startswith("nmt: line 2: too long ")
    assert first.endswith("45 tokens (limit: 11)")
    assert last.startswith("nmt: 3 lines: too long ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("to_file", [True, False])
def test_a_full_disk_is_one_line(model, to_file):
    if to_file:
        refused(
            run(model, "output=/dev/full", content=b"ka\nlo\n"),
            "cannot write /dev/full (No space left",
            "disk",
        )
        return
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            command(model), input=b"ka\nlo\n", stdout=full, stderr=subprocess.PIPE, timeout=300
        )
    refused(process, "cannot write standard output (No space left")


@pytest.mark.parametrize(("closed", "key"), [("<&-", "input=FILE"), (">&-", "output=FILE")])
def test_a_closed_stream_is_one_line_that_names_the_key(model, closed, key):
    words = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, *command(model)[1:]]
    refused(subprocess.run(words, input=b"ka\n", capture_output=True, timeout=300), key)


def test_an_output_that_is_standard_input_is_refused_and_keeps_its_lines(model, tmp_path):
    (tmp_path / "text").write_bytes(b"ka\nlo\n")
    with (tmp_path / "text").open("rb") as file:
        words = command(model, f"output={tmp_path / 'text'}")
        process = subprocess.run(words, stdin=file, capture_output=True, timeout=300)
    refused(process, "would overwrite the input")
    assert (tmp_path / "text").read_bytes() == b"ka\nlo\n"


def test_models_of_different_vocabularies_are_no_ensemble(nmt, model, finished):
    nmt("translate", f"run=[{model},{finished}]").refused("different vocabularies")
