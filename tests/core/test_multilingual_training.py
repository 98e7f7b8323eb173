"""Imported multilingual models train on several directions, exactly as other models do."""

from pathlib import Path

import pytest
import torch

from nmt.config import MULTIPLE
from nmt.files import ModelDescription, direction_in_words, input_of
from tests.conftest import TOY, write_toy_text

DIRECTIONS = (("en", "de"), ("de", "en"), ("en", "fr"))
OPTIONS = (
    "trainer.max_steps=12",
    "validation.every_steps=6",
    "checkpoints.every_steps=6",
    "validation.bleu_sentences=3",
    "batching.micro_batches=4",
    "trainer.precision=bf16-mixed",
    "optim.warmup=3",
    "data.temperature=5",
)
OF_TRAINING = ("model.dropout", "optim", "batching", "decode", "validation", "trainer", "check")
"""The beginnings of those of TOY that an imported model may train with."""


@pytest.fixture(scope="module")
def many(nllb_model, tmp_path_factory) -> list[str]:
    """The words of a command that trains NLLB on three directions of a prepared corpus."""
    from nmt.commands import compose
    from nmt.commands.preprocess import directions_in_words
    from nmt.preparation import preprocess

    folder = tmp_path_factory.mktemp("many")
    sources = []
    for seed, (source, target) in enumerate(DIRECTIONS):
        text = folder / f"{source}-{target}"
        text.mkdir()
        write_toy_text(text, seed)
        languages = f"source: {source}, target: {target}"
        files = ", ".join(
            f'{split}: "{text}/{split}.en:{text}/{split}.de"' for split in ("train", "valid")
        )
        sources.append(f"- {{name: {text.name}, {languages}, {files}}}\n")
    (folder / "data").mkdir()
    (folder / "data/many.yaml").write_text(
        "defaults: [files]\nname: many\nvalid_size: 0\ntest_size: 0\nsources:\n" + "".join(sources)
    )
    prepared = folder / "prepared"
    words = ["data=many", f"init={nllb_model}", f"prepared={prepared}", "workers=1"]
    config = compose("preprocess", words, folder)
    assert directions_in_words(config) == "en to de, de to en, en to fr"
    preprocess(config, lambda text: None)
    of_training = [word for word in TOY if word.startswith(OF_TRAINING)]
    return [str(prepared), f"init={nllb_model}", *of_training, *OPTIONS]


@pytest.mark.slow
def test_a_run_resumes_with_the_same_bits(many, nmt, here, training_state):
    assert nmt("train", *many, "run=whole").code == 0
    assert nmt("train", *many, "trainer.max_steps=5", "run=parts").code == 0
    assert nmt("train", *many, "run=parts").code == 0
    expected = training_state(Path("whole"))
    torch.testing.assert_close(training_state(Path("parts")), expected, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.plugins
def test_a_model_of_several_directions_says_how_to_name_them(many, nmt, here):
    words = ("trainer.max_steps=2", "optim.warmup=1", "validation.every_steps=2", "run=short")
    assert nmt("train", *many, *words).code == 0
    overview = nmt("runs", "short").out
    assert "between many languages" in overview
    assert "short source=eng_Latn target=deu_Latn < input.eng_Latn" in overview


@pytest.mark.parametrize(
    ("languages", "words", "options"),
    [
        (("en", "de"), "from en to de", "< input.en"),
        (("en", MULTIPLE), "from en to many languages", "target=de < input.en"),
        ((MULTIPLE, "de"), "from many languages to de", "source=en < input.en"),
    ],
)
def test_languages_are_named_only_where_there_are_several(languages, words, options):
    description = ModelDescription({}, 9, *languages, "", {})
    assert direction_in_words(description) == words
    assert input_of(description) == options


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_train_the_same_bits_as_one(many, nmt, here, train_on, training_state, processes):
    assert nmt("train", *many, "run=one").code == 0
    train_on(processes, *many, f"run=on-{processes}")
    actual = training_state(Path(f"on-{processes}"))
    torch.testing.assert_close(actual, training_state(Path("one")), rtol=0, atol=0)
