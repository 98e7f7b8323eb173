"""Plugins of other packages that conflict with built-in ones, or that do not work."""

from dataclasses import dataclass, field
from importlib.metadata import PathDistribution
from typing import Any

import pytest

from nmt import registry
from nmt.config import members
from nmt.errors import NMTError
from nmt.extensions import MetricEntry, OptionsEntry

if not registry.built_in_plugins():
    pytest.skip("nmt/plugins is empty", allow_module_level=True)
BUILT_IN = registry.built_in_plugins()[0]
MODULE = """
from nmt.extensions import MetricEntry

class Special(MetricEntry):
    pass

def new(add):
    add(MetricEntry("loudness", "elsewhere:loudness", scores_text=True))

def taken(add):
    add(MetricEntry("bleu", "elsewhere:loudness", scores_text=True))

def text(add):
    add("loudness")

def subclass(add):
    add(Special("loudness", "elsewhere:loudness", scores_text=True))

def fails(add):
    raise ValueError("no\\nmodel")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install packages, each with one plugin, for the registry to find."""
    (tmp_path / "elsewhere.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def install(*plugins):
        points = []
        for package, name, function in plugins:
            metadata = tmp_path / f"{package}-1.0.dist-info"
            metadata.mkdir()
            (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\n")
            entry_point = f"[nmt.plugins]\n{name} = elsewhere:{function}\n"
            (metadata / "entry_points.txt").write_text(entry_point)
            points += PathDistribution(metadata).entry_points
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        return registry.registry.__wrapped__()

    return install


def test_a_plugin_of_another_package_adds_to_the_built_in_ones(install):
    metrics = install(("outside", "loud", "new"))[MetricEntry]
    assert metrics["loudness"].plugin == "loud"
    assert metrics["bleu"].plugin == "core"


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        (
            [("outside", BUILT_IN, "new")],
            f"plugin {BUILT_IN} of outside: nmt has a plugin of the same name; "
            "rename or uninstall it",
        ),
        (
            [("outside", "core", "new")],
            "plugin core of outside: nmt has a plugin of the same name; rename or uninstall it",
        ),
        (
            [("outside", "loud", "new"), ("farther", "loud", "new")],
            "plugin loud of farther: outside has a plugin of the same name; rename or uninstall it",
        ),
        (
            [("outside", "loud", "taken")],
            "plugin loud: core already adds metric bleu; fix or uninstall it",
        ),
        (
            [("outside", "loud", "text")],
            "plugin loud: add takes entries of nmt.extensions, not str; fix or uninstall it",
        ),
        (
            [("outside", "loud", "subclass")],
            "plugin loud: add takes entries of nmt.extensions, not Special; fix or uninstall it",
        ),
        ([("outside", "loud", "fails")], "plugin loud: no model; fix or uninstall it"),
    ],
)
def test_a_conflict_or_a_mistake_names_the_plugin(plugins, message, install):
    with pytest.raises(NMTError) as caught:
        install(*plugins)
    assert str(caught.value) == message


@dataclass
class Filters:
    filters: str = ""
    source: str = ""


@dataclass
class Record:
    plugins: dict[str, Any] = field(default_factory=dict, metadata={"owner": "record"})
    source: str = "en"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [OptionsEntry("record.mine", f"{__name__}:Filters", is_inline=True, plugin="loud")],
            "plugin loud: core already adds the key source; fix or uninstall it",
        ),
        (
            [OptionsEntry("record.source", f"{__name__}:Filters", plugin="loud")],
            "plugin loud: core already adds the key source; fix or uninstall it",
        ),
        (
            [
                OptionsEntry("record.filters", f"{__name__}:Record", plugin="quiet"),
                OptionsEntry("record.mine", f"{__name__}:Filters", is_inline=True, plugin="loud"),
            ],
            "plugin loud: quiet already adds the key filters; fix or uninstall it",
        ),
    ],
)
def test_options_of_a_plugin_do_not_replace_a_key(entries, message, monkeypatch):
    by_name = {entry.name: entry for entry in entries}
    monkeypatch.setattr(members, "entries_of", lambda kind: by_name)
    monkeypatch.setattr(OptionsEntry, "load", lambda entry: globals()[entry.path.split(":")[1]])
    with pytest.raises(NMTError) as caught:
        members.all_members_of(Record)
    assert str(caught.value) == message
