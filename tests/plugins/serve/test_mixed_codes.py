"""Models that name the same languages in different ways."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.plugins.serve.translation import Service


@pytest.fixture
def service(word_model: Path, tmp_path: Path) -> Service:
    """A service with a model from English to Persian, and one from eng_Latn to arb_Arab."""
    for name, source, target in (("one", "en", "fa"), ("two", "eng_Latn", "arb_Arab")):
        folder = tmp_path / name
        shutil.copytree(word_model, folder)
        path = next(folder.rglob("config.json"))
        description = json.loads(path.read_text())
        path.write_text(json.dumps({**description, "source": source, "target": target}))
    return Service(compose("serve", [str(tmp_path / "one"), str(tmp_path / "two")]))


@pytest.mark.parametrize(
    ("source", "target", "model"),
    [("en", "fa", 0), ("en", "ar", 1), ("eng_Latn", "fas", 0), ("eng", "arb_Arab", 1)],
)
def test_each_pair_meets_its_model(service: Service, source: str, target: str, model: int) -> None:
    route = service.route_to(source, target)
    assert route.model is service.models[model]
    assert route.model.tag_of(route.target) == ""


def test_a_language_is_listed_once(service: Service) -> None:
    assert service.languages == ["en", "fa", "arb_Arab"]
    assert service.sources_of("arb_Arab") == ["en"]


def test_a_detected_language_meets_its_model(service: Service) -> None:
    route = service.detected_route("The house is old.", "ar")
    assert (route.model, route.source) == (service.models[1], "en")
