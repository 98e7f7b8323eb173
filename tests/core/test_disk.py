"""Files are whole, or as they were before; those of strangers are read with care, and their text stays text."""

import fcntl
import html
import os
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from nmt import files
from nmt.config import ModelConfig, NMTError
from nmt.files.disk import block, cell, code, plain


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole_or_stays(tmp_path):
    (tmp_path / "other").write_text("precious")
    (tmp_path / "a").symlink_to("other")
    files.write_file(tmp_path / "a", "one")  # a link is replaced, not written through
    files.write_file(tmp_path / "a", b"two")

    def write_half() -> None:
        with files.whole_file(tmp_path / "a") as temporary:
            temporary.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(NMTError, match=r"cannot write .*No space"):
        write_half()
    assert [(tmp_path / name).read_text() for name in names(tmp_path)] == ["two", "precious"]


def test_the_cache_is_where_the_user_says_or_in_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/a")
    for cache, folder in (("/tmp/b", "/tmp/b/nmt"), ("", "/home/a/.cache/nmt")):
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        assert files.cache_folder() == Path(folder)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_umask_is_respected(tmp_path, umask):
    before = os.umask(umask)
    try:
        files.write_file(tmp_path / "a", "")
        with files.whole_folder(tmp_path / "b") as folder:
            (folder / "c").touch(0o600)
    finally:
        os.umask(before)
    for name, mode in (("a", 0o666), ("b", 0o777), ("b/c", 0o666)):
        assert (tmp_path / name).stat().st_mode & 0o777 == mode & ~umask


def test_all_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    """The order that survives a power cut: content, name, and the folder that holds the name."""
    calls, fsync, replace = [], os.fsync, Path.replace

    def recorded_fsync(descriptor):
        calls.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def recorded_replace(self, target):
        calls.append(("rename", str(self)))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    files.write_file(tmp_path / "a", "content")
    (_, temporary) = calls[0]
    assert calls == [("sync", temporary), ("rename", temporary), ("sync", str(tmp_path))]


def test_a_folder_is_replaced_whole_and_nothing_but_a_folder(tmp_path):
    for content in ("one", "two"):
        with files.whole_folder(tmp_path / "a") as folder:
            (folder / content).write_text(content)
    assert (names(tmp_path), names(tmp_path / "a")) == (["a"], ["two"])
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a")
    for name, words in (("pipe", "not a folder"), ("link", "a link")):
        with pytest.raises(NMTError, match=f"is {words}"), files.whole_folder(tmp_path / name):
            pytest.fail("the work began")


def test_leftovers_are_known_by_name_and_links_are_not_followed(tmp_path, monkeypatch):
    (tmp_path / ".b.0123abcd.nmt-tmp").mkdir()
    (tmp_path / ".b.0123abcd.nmt-tmp" / "file").touch()
    (tmp_path / ".a.0123abcd.nmt-tmp").touch()
    (tmp_path / ".a.0123abce.nmt-tmp").symlink_to("a")
    others = [".c.0123abcd.nmt-tmp", ".a.tmp", "a", ".a.0123abcd.nmt-tmp.bak"]
    for name in others:
        (tmp_path / name).touch()
    files.remove_leftovers(tmp_path, "a|b")
    assert names(tmp_path) == sorted([*others, ".a.0123abce.nmt-tmp"])
    (tmp_path / ".b.0123abcd.nmt-tmp").mkdir()
    monkeypatch.setattr(os, "rmdir", lambda *arguments, **named: tmp_path.readlink())  # an OSError
    files.remove_leftovers(tmp_path, "b")  # a folder that cannot be removed does not matter
    assert names(tmp_path) == sorted([*others, ".a.0123abce.nmt-tmp", ".b.0123abcd.nmt-tmp"])
    monkeypatch.setattr(
        Path, "iterdir", lambda folder: [folder / ".b.0123abcf.nmt-tmp"]
    )  # removed meanwhile
    files.remove_leftovers(tmp_path)


def test_one_process_works_in_a_folder_and_an_empty_one_goes_with_its_lock(tmp_path):
    with files.only_process(tmp_path / "run", "run"):
        with pytest.raises(
            NMTError, match="another nmt is using it; wait until it exits, or pass run=OTHER"
        ):
            files.only_process(tmp_path / "run", "run").__enter__()
        assert names(tmp_path / "run") == [".lock"]
    assert names(tmp_path) == []
    with files.only_process(tmp_path / "data", "prepared", replaced=True):
        assert names(tmp_path) == [".data.lock"]


def test_a_file_has_many_readers_or_one_that_replaces_it(tmp_path):
    file = tmp_path / "a"
    file.touch()
    shared = files.locked_file(file, False, "x"), files.locked_file(file, False, "x")
    with shared[0], shared[1], pytest.raises(NMTError, match=r"^refused$"):
        files.locked_file(file, True, "refused").__enter__()
    with (
        files.locked_file(file, True, "refused"),
        file.open("rb") as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with files.locked_file(tmp_path / "missing", True, "refused"):
        pass


BOMB = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]"


@pytest.mark.parametrize(
    ("parse", "content"),
    [
        *(
            (files.parse_json, text)
            for text in ("[" * 100_000, "[" * 100 + "]" * 100, "1" * 5000, "1e999", "NaN")
        ),
        *((files.parse_json, text) for text in ("[-Infinity]", str(2**63), "", "{", '{"a"}')),
        *(
            (files.parse_yaml, text)
            for text in (BOMB, "!!python/object/apply:os.system [true]", "[" * 2000, "a: [")
        ),
        (files.parse_yaml, "- " * 60 + "1"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_what_no_program_of_ours_wrote_is_refused(parse, content):
    assert parse('{"a": 1, "b": [1.5, null, "x"]}') == {"a": 1, "b": [1.5, None, "x"]}
    with pytest.raises(ValueError):  # noqa: PT011
        parse(content)


def test_what_is_no_mapping_is_refused(tmp_path):
    for content in ("[1]", "1: 2", "null"):
        (tmp_path / "a").write_text(content)
        with pytest.raises(NMTError, match="not a mapping"):
            files.read_mapping(tmp_path / "a", files.parse_yaml)


def test_links_devices_and_large_files_are_not_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert files.read_bytes(tmp_path / "file", 5) == b"12345"
    refusals = {
        "folder": "regular",
        "file": "larger",
        "link": "link",
        "pipe": "regular",
        "none": "No such file",
    }
    for name, words in refusals.items():
        with pytest.raises(NMTError, match=words):
            files.read_bytes(tmp_path / name, 4)


HOSTILE = [
    *(
        "<script>alert(1)</script>",
        "a\n# b",
        "a | b",
        "`a` ``b``",
        "[x](javascript:y) ![](z)",
        "**a** ~~b~~",
    ),
    *("&lt;b&gt; &#60;", r"a\|b \<i> \\", "quickstart_en_de & Co. (x) 日本 #1"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_shown_as_it_is_on_one_line(text):
    escaped = plain(text)
    # As CommonMark reads it: what is not escaped is no markup, and escapes are the characters themselves.
    assert not re.search(r"[`*\[\]<>|~]|&#?\w+;", re.sub(r"\\[!-/:-@\[-`{-~]", "", escaped))
    shown = html.unescape(
        re.sub(r"\\([!-/:-@\[-`{-~])", lambda match: f"&#{ord(match[1])};", escaped)
    )
    assert shown == " ".join(text.split())
    assert plain("a\0b\x1b[31m\u202ec\x7f") == "a\ufffdb\ufffd\\[31m\ufffdc\ufffd"


@pytest.mark.parametrize("text", [*HOSTILE, "`", "``` ````", ""])
def test_code_ends_where_it_should(text):
    quoted = text.replace("`", "'")
    assert code(text) == f"`{' '.join(quoted.split())}`"
    assert block(text) == f"```\n{quoted}\n```"
    assert cell(code("nrefs:1|case:mixed")) == r"`nrefs:1\|case:mixed`"


def test_names_stay_words_in_a_model_card():
    name = "<script>a|b`c\n# d"
    score = {
        "metric": name,
        "name": name,
        "value": 1.0,
        "sentences": 4,
        "signature": "nrefs:1|case:mixed",
    }
    config = {"data": {"name": name, "kind": name}, "tokenizer": {"kind": name}, "seed": name}
    training = {
        "updates": 3,
        "averaged": [1, 3],
        "tokens": 7000,
        "seconds": 60.0,
        "devices": name,
        "config": config,
    }
    training |= {"versions": {"nmt": name}, "score": score, "corpus": name}
    model = asdict(
        ModelConfig(name="m", encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2)
    )
    text = files.model_card(
        files.ModelDescription(model, 300, name, name, name, training), parameters=12_345
    )
    assert re.findall(r"^#.*", text.split("```")[0], flags=re.M) == [text.splitlines()[0]]
    assert not re.search(
        r"(?<!\\)[<`]", re.sub(r"(?<!\\)(`+)[^`].*?\1", "", text.split("\n```\n")[0])
    )
    for line in text.splitlines():
        assert not line.startswith("|") or len(re.findall(r"(?<!\\)\|", line)) == 3, line
    facts = (
        "7,000 target tokens",
        "60 seconds on",
        "updates 1, 3",
        "1.00 on 4 sentences, `nrefs:1",
        "12,345",
    )
    assert all(words in text for words in facts)
    del training["score"]
    description = files.ModelDescription(model, 300, "a", "b", "", training)
    assert "| Quality | not measured |" in files.model_card(description, 1)
