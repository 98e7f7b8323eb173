"""Atomic writes, locks, readers of untrusted files, and escapes for Markdown."""

import fcntl
import html
import os
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from nmt import files
from nmt.config import ModelConfig, NMTError
from nmt.files.markdown import block, cell, code, plain


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_or_kept(tmp_path):
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


def test_cache_folder(monkeypatch):
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


def test_a_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    """The order that survives a power cut: content, name, and the folder that holds the name."""
    calls = []
    fsync = os.fsync
    replace = Path.replace

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


def test_a_folder_is_replaced_but_nothing_else(tmp_path):
    for content in ("one", "two"):
        with files.whole_folder(tmp_path / "a") as folder:
            (folder / content).write_text(content)
    assert (names(tmp_path), names(tmp_path / "a")) == (["a"], ["two"])
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a")
    for name, words in (("pipe", "not a folder"), ("link", "a link")):
        with pytest.raises(NMTError, match=f"is {words}"), files.whole_folder(tmp_path / name):
            pytest.fail("the work began")


def test_remove_leftovers(tmp_path):
    (tmp_path / ".b.0123abcd.nmt-tmp").mkdir()
    (tmp_path / ".b.0123abcd.nmt-tmp" / "file").touch()
    (tmp_path / ".a.0123abcd.nmt-tmp").touch()
    (tmp_path / ".a.0123abce.nmt-tmp").symlink_to("a")
    others = [".c.0123abcd.nmt-tmp", ".a.tmp", "a", ".a.0123abcd.nmt-tmp.bak"]
    for name in others:
        (tmp_path / name).touch()
    files.remove_leftovers(tmp_path, "a|b")
    assert names(tmp_path) == sorted([*others, ".a.0123abce.nmt-tmp"])


def test_leftovers_that_cannot_be_removed_are_kept(tmp_path, monkeypatch):
    leftover = ".b.0123abcd.nmt-tmp"
    (tmp_path / leftover).mkdir()

    def fail(*arguments, **named):
        raise OSError

    monkeypatch.setattr(os, "rmdir", fail)
    files.remove_leftovers(tmp_path, "b")
    assert names(tmp_path) == [leftover]


def test_leftovers_may_be_removed_by_another_process(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "iterdir", lambda folder: [folder / ".b.0123abcf.nmt-tmp"])
    files.remove_leftovers(tmp_path)


@pytest.mark.slow
def test_a_second_process_cannot_use_a_folder(tmp_path):
    message = "another nmt is using it; wait until it exits, or pass run=OTHER"
    with files.only_process(tmp_path / "run", "run"):
        with pytest.raises(NMTError, match=message):
            files.only_process(tmp_path / "run", "run").__enter__()
        assert names(tmp_path / "run") == [".lock"]


def test_an_empty_folder_is_removed_with_its_lock(tmp_path):
    with files.only_process(tmp_path / "run", "run"):
        assert names(tmp_path) == ["run"]
    assert names(tmp_path) == []


def test_the_lock_of_a_replaced_folder_is_beside_it(tmp_path):
    with files.only_process(tmp_path / "data", "prepared", replaced=True):
        assert names(tmp_path) == [".data.lock"]


@pytest.mark.slow
def test_a_file_has_many_readers_or_one_writer(tmp_path):
    file = tmp_path / "a"
    file.touch()
    one = files.locked_file(file, False, "x")
    other = files.locked_file(file, False, "x")
    with one, other, pytest.raises(NMTError, match=r"^refused$"):
        files.locked_file(file, True, "refused").__enter__()
    with (
        files.locked_file(file, True, "refused"),
        file.open("rb") as reader,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(reader, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with files.locked_file(tmp_path / "missing", True, "refused"):
        pass


BOMB = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]"


@pytest.mark.parametrize("parse", [files.parse_json, files.parse_yaml])
def test_plain_trees_are_parsed(parse):
    assert parse('{"a": 1, "b": [1.5, null, "x"]}') == {"a": 1, "b": [1.5, None, "x"]}


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "[" * 100 + "]" * 100,
        "1" * 5000,
        "1e999",
        "NaN",
        "[-Infinity]",
        str(2**63),
        "",
        "{",
        '{"a"}',
    ],
    ids=lambda content: content[:12],
)
def test_malformed_and_hostile_json_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011
        files.parse_json(content)


@pytest.mark.parametrize(
    "content",
    [BOMB, "!!python/object/apply:os.system [true]", "[" * 2000, "a: [", "- " * 60 + "1"],
    ids=lambda content: content[:12],
)
def test_malformed_and_hostile_yaml_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011
        files.parse_yaml(content)


def test_trees_that_are_not_mappings_are_refused(tmp_path):
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
    "<script>alert(1)</script>",
    "a\n# b",
    "a | b",
    "`a` ``b``",
    "[x](javascript:y) ![](z)",
    "**a** ~~b~~",
    "&lt;b&gt; &#60;",
    r"a\|b \<i> \\",
    "quickstart_en_de & Co. (x) 日本 #1",
]

ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
"""An escaped character in CommonMark."""


@pytest.mark.parametrize("text", HOSTILE)
def test_plain_text_is_shown_unchanged_on_one_line(text):
    """As CommonMark reads it: only what is not escaped is markup."""
    escaped = plain(text)
    unescaped = ESCAPE.sub("", escaped)
    assert not re.search(r"[`*\[\]<>|~]|&#?\w+;", unescaped)
    shown = html.unescape(ESCAPE.sub(lambda match: f"&#{ord(match[1])};", escaped))
    assert shown == " ".join(text.split())


def test_control_characters_are_replaced():
    assert plain("a\0b\x1b[31m\u202ec\x7f") == "a\ufffdb\ufffd\\[31m\ufffdc\ufffd"


@pytest.mark.parametrize("text", [*HOSTILE, "`", "``` ````", ""])
def test_code_and_blocks_contain_the_whole_text(text):
    quoted = text.replace("`", "'")
    assert code(text) == f"`{' '.join(quoted.split())}`"
    assert block(text) == f"```\n{quoted}\n```"
    assert cell(code("nrefs:1|case:mixed")) == r"`nrefs:1\|case:mixed`"


def test_names_create_no_markup_in_a_model_card():
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
        "versions": {"nmt": name},
        "score": score,
        "corpus": name,
    }
    model = asdict(
        ModelConfig(name="m", encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2)
    )
    description = files.ModelDescription(model, 300, name, name, name, training)
    card = files.model_card(description, parameters=12_345)
    opening, front_matter, text = card.split("---\n", 2)
    assert not opening
    scores = yaml.safe_load(front_matter)["model-index"][0]["results"][0]
    on_one_line = name.replace("\n", " ")
    assert scores["dataset"]["name"] == scores["metrics"][0]["name"] == on_one_line
    text = text.lstrip("\n")
    before_usage = text.split("\n```\n")[0]
    assert re.findall(r"^#.*", text.split("```")[0], flags=re.M) == [text.splitlines()[0]]
    without_code = re.sub(r"(?<!\\)(`+)[^`].*?\1", "", before_usage)
    assert not re.search(r"(?<!\\)[<`]", without_code)
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
