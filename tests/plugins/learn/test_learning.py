"""Learn from corrections of a model of made-up words."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.files import sha256
from nmt.plugins.learn.store import Store
from tests.conftest import TOY, WORDS, write_toy_text

DOMAIN = "tu tu tu"
"""The beginning of all sources of the corrections."""
STYLE = "va va"
"""The beginning of all corrections."""
QUICK = ("engine=torch", "threads=1", "passes=150", "share=0.5", "learning_rate=0.01")
CODES = {"en": "xaa", "de": "xbb"}
"""Languages that nobody can identify: made-up words could be in any."""


def corrections_of(count: int, seed: int = 3) -> list[tuple[str, str]]:
    generator = random.Random(seed)
    pairs = {}
    for _ in range(count):
        words = generator.choices(WORDS, k=6)
        source = " ".join([DOMAIN, *words])
        pairs[source] = " ".join([STYLE, *reversed(source.split())])
    return [*pairs.items()]


def write_corrections(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return path


@pytest.fixture(scope="module")
def general(tmp_path_factory: pytest.TempPathFactory, trained: Callable[..., Path]) -> Path:
    """A run on the toy corpus that has learned to reverse lines."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    folder = tmp_path_factory.mktemp("general")
    write_toy_text(folder, seed=1)
    for path in folder.iterdir():
        path.rename(path.with_suffix(f".{CODES[path.suffix[1:]]}"))
    options = [
        *TOY,
        f"prepared={folder / 'prepared'}",
        "data.source=xaa",
        "data.target=xbb",
        *(f"data.{split}={folder / split}" for split in ("train", "valid", "test")),
        "model.d_model=32",
        "model.d_ff=64",
        "trainer.max_steps=600",
        "validation.every_steps=300",
    ]
    preprocess(compose("preprocess", options), lambda words: None)
    return trained(*options)


@pytest.fixture
def run(general: Path, here: Path) -> Path:
    return shutil.copytree(general, here / "run")


def weights_of(run: Path) -> str:
    return sha256(run / "model" / "model.safetensors")


def test_a_run_with_only_nonsense_changes_nothing(checkpoint, finished, here, nmt):
    run = shutil.copytree(finished, here / "run")
    before = {path: path.read_bytes() for path in (run / "model").iterdir()}
    pairs = [(f"{source}", "") for source, _ in corrections_of(60)]
    pairs += [(f"so {source}", f"http://spam.example/{source}") for source, _ in pairs]
    write_corrections(here / "a.tsv", pairs)
    refused = nmt("learn", "run", "a.tsv", "engine=torch")
    assert refused.code == 2
    assert "0 usable corrections, but 20 are needed: nothing changed" in refused.err
    assert {path: path.read_bytes() for path in (run / "model").iterdir()} == before
    rows = (run / "learned" / "rejected.tsv").read_text().splitlines()
    assert len(rows) == 1 + len(pairs)
    assert rows[1].startswith("empty\ta.tsv\tline 1\t")


@pytest.mark.slow
def test_learning_undo_and_learning_again(run, here, nmt):
    before = weights_of(run)
    # "va va va va" would be rejected as a repetition, until a model has learned to write it.
    pairs = [pair for pair in corrections_of(200) if not pair[0].endswith("va")]
    write_corrections(here / "a.tsv", pairs)
    assert nmt("learn", "run", "a.tsv", *QUICK).code == 0
    learned = weights_of(run)
    assert learned != before
    record = Store("run").latest()
    assert record is not None
    scores = record.tests["held_out"]
    assert scores["after"] > scores["before"]
    card = Path("run/model/README.md").read_text()
    assert f"| {scores['before']:.2f} | {scores['after']:.2f} |" in card
    assert "from None" not in card
    assert f"weights `{record.parent[:16]}`" in card
    parts = [
        set((run / "learned" / "1" / name).read_text().splitlines())
        for name in ("training.tsv", "tuning.tsv", "held-out.tsv")
    ]
    assert not parts[0] & parts[2]
    assert sum(map(len, parts)) == len(pairs)
    assert "learned from all of them" in nmt("learn", "run", "a.tsv", *QUICK).err
    assert nmt("learn", "run", "undo=true").code == 0
    assert weights_of(run) == before
    nmt("learn", "run", "undo=true").refused("nothing to undo")
    # The same command delivers the same weights, here without training again.
    assert nmt("learn", "run", "a.tsv", *QUICK).code == 0
    assert weights_of(run) == learned
    assert "in use\t" in nmt("learn", "run", "list=true").out


def calibrate(run: Path, nmt: Callable[..., Any]) -> None:
    """Calibrate on lines; every second reference is the model's own translation."""
    sources = [source for source, _ in corrections_of(120, seed=7)]
    lines = [line.removeprefix(DOMAIN).strip() for line in sources]
    Path("valid.xaa").write_text("".join(f"{line}\n" for line in lines))
    references = nmt("translate", "valid.xaa", str(run), "engine=torch").out.splitlines()
    references[::2] = ["wwwww"] * len(references[::2])
    Path("valid.xbb").write_text("".join(f"{line}\n" for line in references))
    words = ["source=valid.xaa", "reference=valid.xbb", "engine=torch", "threads=1"]
    assert nmt("calibrate", str(run), *words).code == 0


@pytest.mark.slow
def test_a_calibrated_model_stays_calibrated(run, here, nmt):
    record = pytest.importorskip("nmt.plugins.quality.record")
    calibrate(run, nmt)
    model = run / "model"
    before = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    write_corrections(here / "a.tsv", corrections_of(200))
    outcome = nmt("learn", "run", "a.tsv", *QUICK)
    assert outcome.code == 0
    assert outcome.err.splitlines()[-1].startswith("delivered: ")
    assert "calibrated the new model" in outcome.err
    # Notices of the steps inside.
    for words in ("vocabulary lacks", "bergamot", "pairs kept"):
        assert words not in outcome.err
    assert record.read_record(model, "run").lines == 120
    assert (model / "quality.svg").is_file()
    assert nmt("learn", "run", "undo=true").code == 0
    after = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.slow
def test_identical_commands_give_the_same_weights(general, here, nmt):
    write_corrections(here / "a.tsv", corrections_of(100))
    weights = []
    for name in ("one", "two"):
        shutil.copytree(general, here / name)
        nmt("learn", name, "a.tsv", *QUICK)
        weights.append(weights_of(Path(name, "learned", "1", "run")))
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_shuffled_corrections_are_not_delivered(run, here, nmt):
    before = weights_of(run)
    pairs = corrections_of(200)
    targets = [target for _, target in pairs]
    random.Random(5).shuffle(targets)
    shuffled = [(source, target) for (source, _), target in zip(pairs, targets, strict=True)]
    write_corrections(here / "a.tsv", shuffled)
    result: Any = nmt("learn", "run", "a.tsv", *QUICK)
    if result.code == 0:
        # The style alone, which all corrections share, is an improvement.
        assert weights_of(run) != before
    else:
        assert weights_of(run) == before


@pytest.mark.slow
def test_suggestions_on_the_page_become_a_better_model(run, here, nmt, monkeypatch):
    serving = pytest.importorskip("tests.plugins.serve.serving")
    # On a busy machine, the server takes longer to load the new model.
    monkeypatch.setattr(serving, "PATIENCE", 600.0)
    pairs = corrections_of(200)
    path = here / "suggestions.tsv"
    options = (f"suggestions={path}", "limits.requests_per_minute=null", "engine=torch")
    with serving.serving(run, *options) as server:
        languages = {"source": "xaa", "target": "xbb"}
        for source, target in pairs:
            status, _ = server.ask("/suggest", {"q": source, "s": target, **languages})
            assert status == 200
        [unseen] = corrections_of(1, seed=9)
        _, before = server.ask("/translate", {"q": unseen[0], **languages})
        assert not before["translatedText"].startswith(STYLE)
        assert nmt("learn", "run", str(path), *QUICK).code == 0
        server.logged("serving the new model")
        _, after = server.ask("/translate", {"q": unseen[0], **languages})
        assert after["translatedText"].startswith(STYLE)
