"""A calibrated model: half of its validation lines have its own translations as references."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import build
from nmt.plugins.quality import features
from nmt.plugins.quality.calibrating import calibrate
from nmt.plugins.quality.command import CalibrateConfig
from nmt.plugins.quality.record import write_record
from nmt.translation import load_translator
from tests.conftest import WORDS
from tests.helpers.options import translator_options

COMPUTE = {"engine": "torch", "threads": 1, "device": "cpu"}


@pytest.fixture(autouse=True)
def without_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests do not need the sentence encoder, which takes a second to load."""
    monkeypatch.setattr(features, "has_encoder", lambda: False)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def random_lines(count: int, seed: int) -> list[str]:
    """Lines that the model knows, with words that it does not know in some of them."""
    draw = random.Random(seed)
    lines = []
    for number in range(count):
        words = draw.choices(WORDS, k=draw.randint(2, 6))
        if number % 2:
            words = ["".join(draw.choices("bcdfghjq", k=5)) for _ in words]
        lines.append(" ".join(words))
    return lines


@pytest.fixture(scope="session")
def validation(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Sources and references; every translation of an unknown word is wrong."""
    folder = tmp_path_factory.mktemp("validation")
    sources = random_lines(120, seed=1)
    translator = load_translator(translator_options(str(word_model), **COMPUTE), print)
    references = []
    for number, row in enumerate(translator.translate(sources)):
        references.append("wwwww" if number % 2 else row[0].text)
    return write(folder / "valid.en", sources), write(folder / "valid.de", references)


@pytest.fixture(scope="session")
def calibrated(
    word_model: Path, validation: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A calibrated model directory."""
    from rich.console import Console

    model = tmp_path_factory.mktemp("calibrated") / "model"
    shutil.copytree(word_model, model)
    source, reference = map(str, validation)
    tree = {"run": str(model), "source": source, "reference": reference, **COMPUTE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "has_encoder", lambda: False)
        folder, record = calibrate(build(CalibrateConfig, tree), Console(quiet=True))
    write_record(folder, record)
    return model


@pytest.fixture
def translated(nmt: Callable, calibrated: Path) -> Callable:
    """A function that runs `nmt translate` with the calibrated model."""

    def run(*words: str):
        outcome = nmt("translate", f"run={calibrated}", "engine=torch", "device=cpu", *words)
        assert outcome.code == 0, outcome.err
        return outcome

    return run
