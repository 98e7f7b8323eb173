"""An input translated in parts, which `nmt gather` joins to the output of a single job."""

import fcntl
import gzip
import json
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from nmt.commands.translate import run as translate
from nmt.config import DecodeConfig, NMTError, Part, TranslateConfig, part_of_name
from nmt.translation import gather, output
from nmt.translation.part_states import ranges_in_words
from nmt.translation.parts import slice_of
from tests.helpers.options import translate_config
from tests.helpers.preloaded import python

BOM = b"\xef\xbb\xbf"
CONTENTS = {
    "LF": b"ka lo\nmi nu pe\nri\nso tu va\nwe ka\n",
    "CRLF": b"ka lo\r\nmi nu pe\r\n\r\nso tu va\r\n",
    "no end": b"ka lo\nmi nu pe\nri so",
    "blank lines": b"\n\nka lo\n\n\nmi nu\n\n\n",
    "BOM": BOM + b"ka lo\n" + BOM + b"mi nu\nri\n",
    "only BOM": BOM,
    "empty": b"",
    "one line": b"ka lo mi",
    "unusual ends": "ka\rlo\u2028mi\x85nu\x0bpe\nri\x0cso\x1ctu\n".encode(),
    # At the beginning of a file, these bytes would be another encoding or format.
    "unusual beginnings": b"ka\n\xff\xfe lo\nPK\x03 mi\n%PDF- nu\n\xfe\xffpe\n",
    "invalid UTF-8": b"ka \xff\nlo\nmi \xe4 nu\n",
}
NARROW = DecodeConfig(beam_size=2, max_extra_length=3)
# With one sentence in each batch, the batches of a part are those of the whole input, and so are
# the last bits of probabilities.
ONE_BY_ONE = DecodeConfig(beam_size=2, n_best=2, max_extra_length=3, batch_tokens=1)


def config(model: str, **keys: Any) -> TranslateConfig:
    options = {"input": "mono.en", "output": "mono.de", "device": "cpu", "decode": NARROW}
    options.update(keys)
    return translate_config(model, **options)


def translate_parts(model: str, count: int, **keys: Any) -> None:
    for number in range(1, count + 1):
        translate(config(model, part=f"{number}/{count}", **keys))


def output_path(number: int, count: int) -> Path:
    return Part(number, count).output_in(Path("mono.de.parts"))


def record_path(number: int, count: int) -> Path:
    return Part(number, count).record_in(Path("mono.de.parts"))


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=20),
    ends_line=st.booleans(),
    count=st.integers(1, 40),
)
def test_each_line_is_in_the_part_in_which_it_begins(tmp_path_factory, lines, ends_line, count):
    content = b"\n".join(lines) + (b"\n" if ends_line else b"")
    path = tmp_path_factory.getbasetemp() / "cut"
    path.write_bytes(content)
    parts = [b""] * count
    begin = 0
    for line in content.split(b"\n"):
        whole = content[begin : begin + len(line) + 1]
        if whole:
            # The last part that begins at or before the line.
            number = max(n for n in range(count) if n * len(content) // count <= begin)
            parts[number] += whole
        begin += len(line) + 1
    for number, expected in enumerate(parts, 1):
        cut = slice_of(str(path), Part(number, count))
        assert content[cut.begin : cut.end] == expected
        assert cut.size == len(content)


@pytest.mark.slow
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_joined_parts_of_text_are_the_output_of_one_job(checkpoint, here, content):
    Path("mono.en").write_bytes(content)
    translate(config(checkpoint, output="whole", format="text"))
    for count in (2, 7):
        translate_parts(checkpoint, count, format="text")
        gather("mono.de", overwrite=True)
        assert Path("mono.de").read_bytes() == Path("whole").read_bytes()
        shutil.rmtree("mono.de.parts")


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("format", ["tsv", "jsonl"])
def test_joined_records_are_those_of_one_job(checkpoint, here, format, count):
    Path("mono.en").write_bytes(b"".join(CONTENTS.values()))
    options = {"format": format, "decode": ONE_BY_ONE}
    translate(config(checkpoint, output="whole", **options))
    translate_parts(checkpoint, count, **options)
    gather("mono.de")
    assert Path("mono.de").read_bytes() == Path("whole").read_bytes()


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz", ".bz2"])
def test_a_joined_output_is_compressed_like_that_of_one_job(checkpoint, here, suffix):
    Path("mono.en").write_bytes(CONTENTS["LF"])
    translate(config(checkpoint, output=f"whole{suffix}"))
    translate_parts(checkpoint, 2, output=f"mono.de{suffix}")
    gather(f"mono.de{suffix}")
    joined = Path(f"mono.de{suffix}").read_bytes()
    assert joined == Path(f"whole{suffix}").read_bytes()


def test_messages_about_lines_have_the_numbers_of_the_whole_input(checkpoint, here, capsys):
    Path("mono.en").write_bytes(b"ka lo\n" * 20 + b"mi \xff\n" + b"ka lo\n" * 3)
    translate_parts(checkpoint, 3)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "invalid" in line]
    assert line.startswith("nmt: part 3/3: line 21: invalid UTF-8")
    Path("mono.en").write_bytes(b"ka lo\n" * 20 + b"m" * 2**21)
    with pytest.raises(NMTError, match=r"^part 1/3: mono\.en, line 21: longer than"):
        translate(config(checkpoint, part="1/3", overwrite=True))


@pytest.fixture
def parts(checkpoint: str, here: Path) -> str:
    """The model that has translated an input in three parts."""
    Path("mono.en").write_bytes(b"ka lo\nmi nu pe\nri so\ntu va we\nka\nlo mi\n")
    translate_parts(checkpoint, 3)
    return checkpoint


def test_a_complete_part_is_not_computed_again(parts, nmt):
    before = output_path(2, 3).stat()
    words = [f"run={parts}", "output=mono.de", "part=2/3", "device=cpu", "engine=torch"]
    search = ["decode.beam_size=2", "decode.max_extra_length=3"]
    outcome = nmt("translate", "mono.en", *words, *search)
    message = "nmt: part 2/3 is complete: mono.de.parts/002-of-003\n"
    assert (outcome.code, outcome.out, outcome.err) == (0, "", message)
    after = output_path(2, 3).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    nmt("translate", "mono.en", *words).refused(
        "part=2/3: mono.de.parts/002-of-003 was computed with another decode.",
        "overwrite=true",
    )
    again = nmt("translate", "mono.en", *words, *search, "overwrite=true")
    assert again.err == "nmt: part 2/3 is complete, 2 lines: mono.de.parts/002-of-003\n"
    assert output_path(2, 3).stat().st_ino != before.st_ino


def test_a_part_that_has_been_edited_is_not_complete(parts):
    output_path(1, 3).write_text("edited\n")
    with pytest.raises(NMTError, match=r"001-of-003 has changed since it was written; .*overwrite"):
        translate(config(parts, part="1/3"))
    record_path(1, 3).write_text("{")
    with pytest.raises(NMTError, match=r"001-of-003\.json: .*; pass overwrite=true"):
        translate(config(parts, part="1/3"))
    translate(config(parts, part="1/3", overwrite=True))
    gather("mono.de")


def edit_record(number: int, **values: Any) -> None:
    path = record_path(number, 3)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def truncate(number: int) -> None:
    path = output_path(number, 3)
    path.write_bytes(path.read_bytes()[:-3])


def edit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


def cut_again(model: str) -> None:
    translate(config(model, part="1/2"))


def with_longer_input(model: str) -> None:
    with Path("mono.en").open("a") as file:
        file.write("mi\n")
    translate(config(model, part="3/3", overwrite=True))


def with_another_line(model: str) -> None:
    """A change that keeps the size, after the first part has been computed."""
    Path("mono.en").write_bytes(Path("mono.en").read_bytes().replace(b"ka lo", b"lo ka"))


def with_other_line_ends(model: str) -> None:
    """A change that keeps the size but not the number of lines of the first part."""
    Path("mono.en").write_bytes(Path("mono.en").read_bytes().replace(b"ka lo", b"ka\nlo"))
    for number in (2, 3):
        translate(config(model, part=f"{number}/3", overwrite=True))


def with_another_option(model: str) -> None:
    translate(config(model, part="2/3", overwrite=True, decode=ONE_BY_ONE, format="tsv"))


AGAIN = "compute it again with part="


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda model: output_path(2, 3).unlink(),
            ["unfinished parts: 2 of 3 (complete: 1, 3; missing: 2)", "part=2/3"],
        ),
        (lambda model: record_path(3, 3).unlink(), ["unfinished parts: 3 of 3", "part=3/3"]),
        (lambda model: truncate(2), ["002-of-003: has", "were written", f"{AGAIN}2/3"]),
        (lambda model: edit(output_path(3, 3)), ["003-of-003: has changed", f"{AGAIN}3/3"]),
        (lambda model: record_path(1, 3).write_text("{"), ["001-of-003.json", "part=1/3"]),
        (lambda model: edit_record(2, lines=7), ["003-of-003: was computed from another input"]),
        (lambda model: edit_record(3, end=7), ["003-of-003: does not end with the input"]),
        (lambda model: edit_record(2, identity={}), ["002-of-003: was computed with another"]),
        (cut_again, ["has parts of 2 and 3", "'*-of-002*'"]),
        (with_longer_input, ["003-of-003: was computed from another input", f"{AGAIN}3/3"]),
        (with_another_line, ["001-of-003: ", "mono.en has changed", f"{AGAIN}1/3"]),
        (with_other_line_ends, ["002-of-003: was computed from another input"]),
        (with_another_option, ["002-of-003: was computed with another", "than part 1/3"]),
        (lambda model: Path("mono.en").unlink(), ["mono.en: the input is missing", "input=FILE"]),
        (lambda model: shutil.rmtree("mono.de.parts"), ["no such folder of parts", "part=1/16"]),
        (lambda model: Path("mono.de").write_text("x\n"), ["mono.de exists", "overwrite=true"]),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(parts, nmt, change, words):
    change(parts)
    contents = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    nmt("gather", "mono.de").refused(*words)
    assert contents == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.slow
def test_an_output_that_has_been_joined_before_is_no_error(parts, nmt):
    for name in ("mono.de", "mono.de.gz"):
        if name != "mono.de":
            Path("mono.de.parts").rename(f"{name}.parts")
        assert nmt("gather", name).out == f"{name}: 6 lines of 3 parts\n"
        status = Path(name).stat()
        outcome = nmt("gather", name)
        message = f"{name}: 6 lines of 3 parts, which had been joined before\n"
        assert (outcome.code, outcome.out) == (0, message)
        assert Path(name).stat().st_mtime_ns == status.st_mtime_ns
    joined = gzip.decompress(Path("mono.de.gz").read_bytes())
    others = [gzip.compress(other) for other in (joined[:-1], joined + b"\n", b"x" + joined[1:])]
    damaged = gzip.compress(joined)[:-9]
    for content in (*others, damaged):
        Path("mono.de.gz").write_bytes(content)
        nmt("gather", "mono.de.gz", "remove=true").refused("mono.de.gz exists", "overwrite=true")
    Path("mono.de.gz").write_bytes(gzip.compress(joined, 1))
    assert nmt("gather", "mono.de.gz", "remove=true").code == 0
    assert not Path("mono.de.gz.parts").exists()


class Killed(Exception):
    """What stops a job in a test."""


def test_gather_lists_what_is_complete_partial_and_missing(here, nmt):
    folder = Path("mono.de.parts")
    folder.mkdir()
    nmt("gather", "mono.de").refused("mono.de.parts: has no parts; run commands with part=I/N")
    for number, lines in ((2, 1_200), (5, 7)):
        path = str(output_path(number, 6))
        with suppress(Killed), output.open_output(path, "job") as file:
            file.write("ka\n" * lines, lines)
            raise Killed
    nmt("gather", "mono.de").refused(
        "mono.de.parts: unfinished parts: 1-6 of 6 "
        "(partial, with their lines so far: 2 (1,200), 5 (7); missing: 1, 3-4, 6); wait for them, "
        "or run the command of a part that has stopped again, as with part=1/6"
    )
    # Partial files of another number of parts, which killed jobs have left, do not count.
    output_path(3, 4).touch()
    record_path(3, 4).touch()
    nmt("gather", "mono.de").refused("unfinished parts: 1-2, 4 of 4 (complete: 3; missing: 1-2, 4)")


def test_the_model_must_be_the_same_for_all_parts(parts, nmt):
    model = Path(shutil.copytree(parts, "model"))
    description = json.loads((model / "config.json").read_text())
    description["model"]["activation"] = "gelu"
    (model / "config.json").write_text(json.dumps(description))
    translate(config(str(model), part="2/3", overwrite=True))
    nmt("gather", "mono.de").refused("002-of-003: was computed with another config.json than part")
    translate(config(parts, part="2/3", overwrite=True))
    assert nmt("gather", "mono.de").code == 0


def test_gather_may_remove_the_parts(parts, nmt):
    Path("mono.en").rename("moved")
    nmt("gather", "mono.de").refused("input=FILE")
    Path("mono.de.parts/notes").touch()
    outcome = nmt("gather", "mono.de.parts/", "input=moved", "remove=true")
    assert (outcome.out, outcome.err) == ("mono.de: 6 lines of 3 parts\n", "")
    assert [path.name for path in Path("mono.de.parts").iterdir()] == ["notes"]


def test_the_input_need_not_be_read_again(parts, nmt):
    Path("mono.en").unlink()
    assert nmt("gather", "mono.de", "check_input=false").code == 0
    assert Path("mono.de.parts").is_dir()


def test_gather_does_not_overwrite_the_input(parts, nmt):
    Path("mono.en").rename("mono.de")
    words = ["gather", "mono.de", "input=mono.de", "overwrite=true"]
    nmt(*words).refused("would overwrite the input")
    nmt(*words, "check_input=false").refused("would overwrite the input")


REFUSALS = [
    (["part=0/3"], "part=0/3: must be I/N, such as 3/16"),
    (["part=4/3"], "part=4/3: must be I/N"),
    (["part=3"], "part=3: must be"),
    (["part=/"], "part=/: must be I/N"),  # the variables of SLURM are not set
    (["part=1/1000000"], "part=1/1000000: must be I/N"),
    (["part=1/2", "output=-"], "part=1/2: needs output=FILE"),
    (["part=1/2", "input=-"], "part=1/2: needs an input file; standard input"),
    (["part=1/2", "input=mono.gz"], "mono.gz is compressed", "decompress it first"),
    (["part=1/2", "input=utf16.txt"], "utf16.txt is UTF-16; convert it", "iconv"),
    (["part=1/2", "input=page.md"], "page.md is a document", "omit part"),
    (["part=1/2", "input=site", "output=site-de"], "only a file of lines", "several folders"),
    (["part=1/2", "output=mono.en"], "output=mono.en: would overwrite the input"),
]


@pytest.mark.plugins
@pytest.mark.parametrize(("words", "problems"), [(words, rest) for words, *rest in REFUSALS])
def test_what_cannot_be_cut_is_refused_in_one_line(nmt, checkpoint, words, problems):
    Path("mono.en").write_text("ka\nlo\n")
    Path("mono.gz").write_bytes(gzip.compress(b"ka\n"))
    Path("utf16.txt").write_text("ka\n", encoding="utf-16")
    Path("page.md").write_text("# ka\n")
    Path("site").mkdir()
    Path("site/page.md").write_text("# ka\n")
    defaults = [f"run={checkpoint}", "input=mono.en", "output=mono.de", "engine=torch"]
    given = {word.partition("=")[0] for word in words}
    rest = [word for word in defaults if word.partition("=")[0] not in given]
    nmt("translate", *rest, *words).refused(*problems)
    assert not list(Path().glob("*.parts/*"))


def test_text_cannot_be_cut(nmt, checkpoint):
    words = [f"run={checkpoint}", "output=mono.de", "engine=torch", "part=1/2"]
    nmt("translate", "ka lo mi", *words).refused("part=1/2: needs an input file")


def test_a_dry_run_counts_the_words_of_a_part(nmt):
    Path("mono.txt").write_text("ka lo\n" * 6)
    assert "words: 4" in nmt("translate", "mono.txt", "part=2/3", "--dry-run").out


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([3, 7, 8, 9], "3, 7-9"), ([1], "1"), ([1, 2], "1-2"), ([1, 3, 5], "1, 3, 5")],
)
def test_missing_parts_are_listed_as_ranges(numbers, words):
    assert ranges_in_words(numbers) == words
    assert ranges_in_words(range(1, 40, 2)).endswith("17, 19, ...")


def test_names_of_parts_are_listed_in_order():
    for count in (1, 16, 1000, 99_999):
        names = [Part(number, count).name for number in range(1, count + 1, max(1, count // 50))]
        assert names == sorted(names)
        assert [part_of_name(name).name for name in names] == names
    for name in ("001-of-1000", "004-of-003", "000-of-003", "001-of-003.json", "1-of-3", "x"):
        assert part_of_name(name) is None


@pytest.fixture
def long_input(here: Path) -> None:
    draw = random.Random(1)
    words = [b"ka", b"lo", b"mi", b"nu", b"pe"]
    lines = [b" ".join(draw.choices(words, k=draw.randint(0, 9))) + b"\n" for _ in range(600)]
    Path("mono.en").write_bytes(b"".join(lines))


GREEDY = {"decode": DecodeConfig(beam_size=1, max_extra_length=3), "format": "tsv"}


def kill_in_the_middle(model: str) -> int:
    """Start to translate part 2 of 3 in another process, and kill it.

    Returns the number of translated lines.
    """
    search = ["decode=greedy", "decode.max_extra_length=3", "buffer=1"]
    words = ["input=mono.en", "output=mono.de", "format=tsv", "engine=torch", "part=2/3"]
    command = [python(), "-m", "nmt", "translate", f"run={model}", *search, *words]
    notes = Path("mono.de.parts/.002-of-003.nmt-partial.json")
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not notes.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.kill()
    lines = int(json.loads(notes.read_text())["lines"])
    assert 0 < lines < 200
    return lines


@pytest.mark.slow
@pytest.mark.usefixtures("long_input")
def test_a_part_that_was_killed_resumes_with_the_same_result(checkpoint, capsys):
    translate(config(checkpoint, output="whole", **GREEDY))
    lines = kill_in_the_middle(checkpoint)
    assert not output_path(2, 3).exists()
    with pytest.raises(
        NMTError, match=r"unfinished parts: 1-3 of 3 \(partial, with their lines so far: 2 \("
    ):
        gather("mono.de")
    wait_for_lock(Path("mono.de.parts/.002-of-003.nmt-partial"))
    translate_parts(checkpoint, 3, **GREEDY)
    assert f"resuming after {lines:,} of " in capsys.readouterr().err
    gather("mono.de")
    assert Path("mono.de").read_bytes() == Path("whole").read_bytes()


def wait_for_lock(path: Path) -> None:
    """Wait until the killed process, which may be a moment behind its client, has ended."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_two_processes_do_not_compute_the_same_part(checkpoint, nmt):
    Path("mono.en").write_bytes(CONTENTS["LF"])
    words = ["input=mono.en", "output=mono.de", "part=2/3", "engine=torch"]
    Path("mono.de.parts").mkdir()
    with output.open_output(str(output_path(2, 3)), {"input": ""}):
        refused = nmt("translate", f"run={checkpoint}", *words)
    refused.refused("output=mono.de.parts/002-of-003: another nmt process is writing it; wait")


@pytest.mark.usefixtures("long_input")
def test_a_part_and_a_joined_output_survive_a_full_disk(checkpoint, nmt):
    """A limit on the size of files simulates a full disk."""
    translate(config(checkpoint, output="whole", **GREEDY))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = r"cannot write .* \(File too large\): is the disk full"

    def with_full_disk(size: int, run: Callable[[], object]) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            with pytest.raises(NMTError, match=full):
                run()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    size = Path("whole").stat().st_size
    with_full_disk(size // 8, lambda: translate(config(checkpoint, part="2/3", **GREEDY)))
    assert not output_path(2, 3).exists()
    translate_parts(checkpoint, 3, **GREEDY)
    with_full_disk(size // 2, lambda: gather("mono.de"))
    assert sorted(path.name for path in Path().iterdir()) == ["mono.de.parts", "mono.en", "whole"]
    gather("mono.de")
    assert Path("mono.de").read_bytes() == Path("whole").read_bytes()


def test_a_kill_before_the_output_has_its_name_leaves_a_part_to_resume(
    checkpoint, here, monkeypatch
):
    """The record exists, but the output does not."""
    Path("mono.en").write_bytes(CONTENTS["LF"])
    translate(config(checkpoint, output="whole"))

    def killed(file: output.OutputFile) -> None:
        file.before_renaming(file.partial)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(output.OutputFile, "complete", killed)
        with pytest.raises(KeyboardInterrupt):
            translate(config(checkpoint, part="1/1"))
    assert record_path(1, 1).exists()
    assert not output_path(1, 1).exists()
    with pytest.raises(NMTError, match="unfinished parts: 1 of 1 "):
        gather("mono.de")
    translate(config(checkpoint, part="1/1"))
    gather("mono.de")
    assert Path("mono.de").read_bytes() == Path("whole").read_bytes()


def test_an_output_that_another_process_has_just_completed_is_not_truncated(here):
    """That process renames the file after this one has opened it and before it is locked."""
    partial = Path(".out.nmt-partial")
    partial.write_text("complete\n")
    with partial.open("r+b") as file:
        partial.rename("out")
        with pytest.raises(NMTError, match="output=out: another nmt process is writing it"):
            output.lock(file, partial, "out")
    assert Path("out").read_text() == "complete\n"
