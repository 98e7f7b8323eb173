"""`nmt translate FOLDER`: which files are translated, and what a later command repeats."""

import json
import os
from pathlib import Path

import pytest

import nmt as api
from nmt.commands import COMMANDS
from nmt.commands.translate import run as translate
from nmt.config import FolderOptions, NMTError, compose
from nmt.translation import Direction, count_folder, read_folder, translated_name
from nmt.translation.folder_record import RECORD

GERMAN = Direction("en", "de")
PAGE = "# va so\n\ntu *pe* mika.\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with documents, other files, a hidden folder and a link."""
    folder = tmp_path / "site"
    for name, text in {
        "index.md": PAGE,
        "sub/strings.json": '{"key": "va so"}',
        "sub/notes.txt": "va so\ntu pe\n",
        "logo.png": "no image",
        ".git/HEAD.md": PAGE,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "link.md").symlink_to("/etc/hostname")
    return folder


def job(site: Path, model: Path, *words: str):
    output = site.with_name("out")
    keys = [f"run={model}", f"output={output}", "device=cpu", "engine=torch"]
    return compose(COMMANDS["translate"], [str(site), *keys, *words])


def run(site: Path, model: Path, *words: str) -> Path:
    translate(job(site, model, *words))
    return site.with_name("out")


def statuses(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """File -> status, from the table that a command has printed."""
    rows = dict[str, str]()
    header, *lines = capsys.readouterr().out.splitlines()
    at = header.find("status")
    # The last line counts the files.
    for line in lines[:-1]:
        rows[line.split()[0]] = line[at:].split("  ")[0].strip()
    return rows


def test_documents_and_text_are_translated_and_the_rest_is_counted(word_model, site, capsys):
    output = run(site, word_model)
    printed = capsys.readouterr().out
    files = sorted(path.name for path in output.rglob("*") if path.is_file())
    assert files == [".nmt-translations.jsonl", "index.md", "notes.txt", "strings.json"]
    assert (output / "index.md").read_text().startswith("# ")
    assert (output / "index.md").read_text() != PAGE
    assert list(json.loads((output / "sub/strings.json").read_text())) == ["key"]
    assert len((output / "sub/notes.txt").read_text().splitlines()) == 2
    assert "translated: 3" in printed
    assert "other files left out: 1" in printed
    assert "links left out: 1" in printed


def test_a_folder_gives_the_same_bytes_as_its_files_alone(word_model, site, tmp_path):
    output = run(site, word_model)
    alone = tmp_path / "alone.md"
    config = compose(
        COMMANDS["translate"],
        [str(site / "index.md"), f"run={word_model}", f"output={alone}", "engine=torch"],
    )
    translate(config)
    assert alone.read_bytes() == (output / "index.md").read_bytes()


def test_only_what_has_changed_is_translated_again(word_model, site, capsys):
    output = run(site, word_model)
    capsys.readouterr()
    before = (output / "sub/notes.txt").stat().st_mtime_ns
    (site / "index.md").write_text(PAGE + "\nnu\n")
    run(site, word_model)
    assert statuses(capsys) == {"index.md": "translated"}
    assert (output / "sub/notes.txt").stat().st_mtime_ns == before
    run(site, word_model)
    assert statuses(capsys) == {}


def test_other_options_translate_all_files_again(word_model, site, capsys):
    run(site, word_model)
    capsys.readouterr()
    run(site, word_model, "decode.beam_size=1")
    assert set(statuses(capsys).values()) == {"translated"}


def test_what_a_person_has_edited_or_written_is_kept(word_model, site, capsys):
    output = run(site, word_model)
    (output / "index.md").write_text("edited")
    (site / "index.md").write_text("mika pe\n")
    (site / "new.md").write_text("mika pe\n")
    (output / "new.md").write_text("written")
    capsys.readouterr()
    run(site, word_model)
    assert statuses(capsys) == {"index.md": "kept, edited", "new.md": "kept, exists"}
    assert (output / "index.md").read_text() == "edited"
    assert (output / "new.md").read_text() == "written"
    run(site, word_model, "overwrite=true")
    assert (output / "index.md").read_text() != "edited"
    assert (output / "new.md").read_text() != "written"


def test_a_command_that_was_killed_before_it_wrote_a_file_continues(word_model, site, capsys):
    output = run(site, word_model)
    expected = (output / "index.md").read_text()
    # The record is written before the file.
    (output / "index.md").unlink()
    run(site, word_model)
    assert (output / "index.md").read_text() == expected
    (site / "index.md").write_text("mika pe\n")
    run(site, word_model)
    (output / "index.md").write_text(expected)
    capsys.readouterr()
    run(site, word_model)
    assert statuses(capsys) == {"index.md": "translated"}
    assert (output / "index.md").read_text() != expected


def test_a_damaged_file_fails_alone(word_model, site, capsys):
    (site / "bad.json").write_text("{")
    (site / "latin.md").write_bytes(b"\xe9t\xe9")
    with pytest.raises(NMTError, match="2 of 5 files failed"):
        run(site, word_model)
    rows = statuses(capsys)
    assert rows.pop("bad.json") == rows.pop("latin.md") == "failed"
    assert set(rows.values()) == {"translated"}
    assert not site.with_name("out").joinpath("bad.json").exists()


def test_a_line_that_cannot_be_translated_fails_its_file_alone(tagged_model, site, capsys):
    """A model with tags refuses a line with the tag of an unknown language."""
    for path in site.rglob("*.*"):
        if path.is_file() and not path.is_symlink():
            path.unlink()
    names = [f"{number}.txt" for number in range(5)]
    for name in names:
        (site / name).write_text("a\nb\n")
    (site / "2.txt").write_text("a\n>>xx<< b\n")
    with pytest.raises(NMTError, match="1 of 5 files failed"):
        run(site, tagged_model, "target=fr")
    rows = statuses(capsys)
    assert rows.pop("2.txt") == "failed"
    assert set(rows.values()) == {"translated"}
    assert sorted(rows) == ["0.txt", "1.txt", "3.txt", "4.txt"]


def test_counting_translates_nothing(word_model, site, capsys):
    translate(job(site, word_model, "dry_run=true"))
    printed = capsys.readouterr().out
    assert "to translate: 3; words: 11" in printed
    assert not site.with_name("out").exists()
    report = count_folder(job(site, Path("no-such-model"), "dry_run=true"))
    assert [item.words for item in report.files] == [5, 4, 2]


def test_other_files_are_copied_on_request(word_model, site):
    output = run(site, word_model, "folder.copy=true")
    assert (output / "logo.png").read_text() == "no image"
    assert not (output / "link.md").exists()


def test_the_output_may_be_inside_of_the_input(word_model, site, capsys):
    words = [str(site), f"run={word_model}", f"output={site}/de", "engine=torch"]
    for _ in range(2):
        translate(compose(COMMANDS["translate"], words))
    assert not (site / "de/de").exists()
    assert "unchanged: 3" in capsys.readouterr().out


def test_the_current_folder_is_a_folder_like_any_other(word_model, site, monkeypatch):
    monkeypatch.chdir(site)
    words = [".", f"run={word_model}", "output=../out", "engine=torch"]
    translate(compose(COMMANDS["translate"], words))
    assert (site.with_name("out") / "index.md").exists()


def test_a_source_is_never_overwritten(word_model, site, capsys):
    words = [str(site), f"run={word_model}", f"output={site}", "engine=torch", "overwrite=true"]
    translate(compose(COMMANDS["translate"], words))
    assert (site / "index.md").read_text() == PAGE
    assert set(statuses(capsys).values()) == {"kept, same name"}


def test_another_process_that_writes_the_folder_is_reported(word_model, site):
    import fcntl

    output = site.with_name("out")
    output.mkdir()
    descriptor = os.open(output, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(NMTError, match="another nmt process is writing it"):
        run(site, word_model)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("record", "problem"),
    [("[]", "line 1"), ('{"file": "a", "x": "y"}', "not a record of nmt"), ("\n{", "line 1")],
)
def test_a_damaged_record_is_reported(word_model, site, record, problem):
    output = site.with_name("out")
    output.mkdir()
    (output / ".nmt-translations.jsonl").write_text(record)
    with pytest.raises(NMTError, match=f"nmt-translations.json.*{problem}"):
        run(site, word_model)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["folder.names=/etc/{stem}"], "must stay inside"),
        (["folder.names=../{stem}"], "must stay inside"),
        (["folder.names={name}"], "unknown field {name}"),
        (["folder.names={stem"], "not a template"),
        (["format=tsv"], "is a folder"),
        (["folder.names=a.md"], "would both become a.md"),
        (["folder.include=[*.png]"], "cannot tell its format"),
        (["folder.include=[*.rst]"], "no file to translate"),
        (["output="], "name a folder for the translations"),
    ],
)
def test_mistakes(word_model, site, words, problem):
    with pytest.raises(NMTError, match=problem):
        run(site, word_model, *words)


@pytest.mark.parametrize(
    ("name", "translation"),
    [
        ("en.yml", "de.yml"),
        ("app_en.arb", "app_de.arb"),
        ("app_en-US.arb", "app_de.arb"),
        ("messages_en_GB.properties", "messages_de.properties"),
        ("en.lproj/Localizable.strings", "de.lproj/Localizable.strings"),
        ("docs/en/index.en.md", "docs/de/index.de.md"),
        ("EN/a.md", "de/a.md"),
        ("open.md", "open.md"),
        ("end/en-page.md", "end/en-page.md"),
        ("men.md", "men.md"),
    ],
)
def test_a_language_in_a_name_becomes_the_target_language(name, translation):
    assert translated_name(name, None, *GERMAN) == translation


@pytest.mark.parametrize(
    ("names", "translations"),
    [
        (
            "res/values/a.xml res/values-fr/a.xml res/values-pt-rBR/a.xml res/values-night/a.xml",
            [1, 2],
        ),
        ("en.yml de.yml fr.yml pt-BR.yml other.yml", [1, 2, 3]),
        ("de.yml fr.yml", []),
        ("messages.properties messages_de.properties messages_de_AT.properties", [1, 2]),
        ("en.lproj/a.strings de.lproj/a.strings", [1]),
        ("Base.lproj/a.strings zh-Hans.lproj/a.strings", [1]),
        ("docs/en/a.md docs/de/a.md docs/it/b.md", [1, 2]),
        ("it/a.md other/a.md", []),
        ("index.md index.fr.md", [1]),
        ("how.md how_to.md sign.md sign-in.md", []),
        ("en/a.json en-GB/b.json", []),
    ],
)
def test_translations_into_other_languages_are_left_out(tmp_path, names, translations):
    paths = names.split()
    for name in paths:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("<resources>\n<string name='a'>b</string></resources>")
    content = read_folder(tmp_path, None, FolderOptions(include=["*"]), GERMAN, format="text")
    assert sorted(content.translations) == sorted(paths[index] for index in translations)
    assert len(content.files) == len(paths) - len(translations)


def test_a_translation_that_is_there_is_kept(word_model, site, capsys):
    (site / "sub/strings.json").unlink()
    for name in ("en.json", "de.json"):
        (site / "sub" / name).write_text('{"key": "va so"}')
    words = [str(site), f"run={word_model}", f"output={site}", "engine=torch", "source=en"]
    translate(compose(COMMANDS["translate"], [*words, "folder.include=[*.json]"]))
    printed = capsys.readouterr().out
    assert "left out: 1" in printed


@pytest.mark.slow
def test_the_format_of_an_earlier_command_is_kept(word_model, site, capsys):
    run(site, word_model, "format=wrapped", "folder.include=[*.txt]")
    before = (site.with_name("out") / "sub/notes.txt").read_text()
    capsys.readouterr()
    run(site, word_model)
    assert "sub/notes.txt" not in statuses(capsys)
    (site / "sub/notes.txt").write_text("va so\ntu pe\n\nmika\n")
    output = run(site, word_model)
    assert (output / "sub/notes.txt").read_text().startswith(before)
    formats = [json.loads(line)["format"] for line in (output / RECORD).read_text().splitlines()]
    assert sorted(formats) == ["json", "markdown", "wrapped"]
    assert "without a source" not in capsys.readouterr().out
    (site / "sub/notes.txt").unlink()
    run(site, word_model)
    assert "translations without a source: 1" in capsys.readouterr().out


def test_a_template_names_translations():
    template = "{folder}{stem}.{target}{suffix}"
    assert translated_name("a/b.md", template, *GERMAN) == "a/b.de.md"
    assert translated_name("b.md", "{source}-{target}/{stem}{suffix}", *GERMAN) == "en-de/b.md"


@pytest.mark.slow
@pytest.mark.parametrize("names", [None, "{folder}{stem}.{target}{suffix}"])
def test_translations_in_the_same_folder_are_no_sources(word_model, site, capsys, names):
    (site / "index.md").rename(site / "page.en.md")
    words = [str(site), f"run={word_model}", f"output={site}", "engine=torch"]
    words += ["folder.include=[*.md]"]
    if names:
        words.append(f"folder.names={names}")
    translate(compose(COMMANDS["translate"], words))
    files = sorted(path.name for path in site.iterdir())
    capsys.readouterr()
    translate(compose(COMMANDS["translate"], words))
    assert sorted(path.name for path in site.iterdir()) == files
    assert "unchanged: 1" in capsys.readouterr().out


def test_the_output_of_another_command_is_no_source(word_model, site, capsys):
    for language in ("de", "fr"):
        words = [str(site), f"run={word_model}", f"output={site / language}", "engine=torch"]
        translate(compose(COMMANDS["translate"], words))
    assert not (site / "fr/de").exists()


def test_configuration_and_licenses_stay_out_unless_a_pattern_names_them(word_model, site, capsys):
    for name in ("package.json", "requirements-dev.txt", "LICENSE.txt"):
        (site / name).write_text('{"a": "va so"}')
    output = run(site, word_model)
    assert "other files left out: 4" in capsys.readouterr().out
    run(site, word_model, "folder.include=[package.json]")
    assert (output / "package.json").exists()


def test_names_that_are_not_unicode_or_too_long_fail_alone(word_model, site, capsys):
    (site / "l\udce9.md").write_text("va so\n")
    (site / f"{'x' * 250}.md").write_text("va so\n")
    with pytest.raises(NMTError, match="1 of 5 files failed"):
        run(site, word_model)
    assert "its name is too long" in capsys.readouterr().err
    assert (site.with_name("out") / "l\udce9.md").exists()


def test_copies_follow_their_sources_unless_a_person_has_edited_them(word_model, site, capsys):
    output = run(site, word_model, "folder.copy=true")
    (site / "logo.png").write_text("another image")
    run(site, word_model, "folder.copy=true")
    assert (output / "logo.png").read_text() == "another image"
    (output / "logo.png").write_text("edited")
    (site / "logo.png").write_text("a third image")
    run(site, word_model, "folder.copy=true")
    assert (output / "logo.png").read_text() == "edited"


def test_a_count_without_a_model_knows_what_is_unchanged(word_model, site, capsys):
    run(site, word_model)
    (site / "index.md").write_text("va so mika\n")
    report = count_folder(job(site, Path("no-such-model"), "dry_run=true"))
    assert report.count("to translate") == 1
    assert sum(item.words for item in report.files) == 3


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.md", ["a.md", "x/a.md", "x/y/b.md"]),
        ("x/*.md", ["x/a.md"]),
        ("**/*.md", ["a.md", "x/a.md", "x/y/b.md"]),
        ("x/**", ["x/a.md", "x/b.txt", "x/y/b.md"]),
        ("**/b.*", ["x/b.txt", "x/y/b.md"]),
        ("?.md", ["a.md", "x/a.md", "x/y/b.md"]),
        ("x", ["x/a.md", "x/b.txt", "x/y/b.md"]),
        ("./x/", ["x/a.md", "x/b.txt", "x/y/b.md"]),
        ("/x/y/**", ["x/y/b.md"]),
        ("[a].md", []),
    ],
)
def test_patterns(tmp_path, pattern, names):
    for name in ("a.md", "x/a.md", "x/b.txt", "x/y/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a")
    included = read_folder(tmp_path, None, FolderOptions(include=[pattern]), GERMAN)
    assert [file.name for file in included.files] == names
    assert included.unused_patterns == ([] if names else [pattern])
    excluded = read_folder(tmp_path, None, FolderOptions(exclude=[pattern]), GERMAN)
    assert [file.name for file in excluded.others] == names


def test_a_model_in_python_translates_a_folder(word_model, site):
    model = api.load(str(word_model), engine="torch", device="cpu")
    report = model.translate_folder(site, site.with_name("out"), exclude=["*.txt"])
    assert report.count("translated") == 2
    assert report.left == 2
    again = model.translate_folder(site, site.with_name("out"), exclude=["*.txt"])
    assert again.count("unchanged") == 2
    with pytest.raises(NMTError, match="use translate_folder"):
        model.translate_file(site, site.with_name("out"))
