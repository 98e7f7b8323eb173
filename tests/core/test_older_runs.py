"""A run, a corpus and a half translation of an earlier version can be used, whatever options nmt has got since."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import torch

import nmt as package
from nmt.config import (
    DecodeConfig,
    ExperimentConfig,
    ModelConfig,
    NMTError,
    TokenizerConfig,
    build_stored,
    with_defaults,
)

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "older" / "run.tar.xz"
TRAIN = [
    "corpus",
    "model=tiny",
    "model.d_model=8",
    "model.d_ff=8",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "optim.warmup=4",
    "batching.tokens_per_update=120",
    "batching.micro_batches=2",
    "decode=greedy",
    "validation.every_steps=4",
    "validation.bleu_sentences=4",
    "checkpoints.every_steps=4",
    "checkpoints.keep=2",
    "checkpoints.average=all",
    "trainer.accelerator=cpu",
    "trainer.devices=1",
    "trainer.precision=32-true",
    "logger=csv",
    "run=run",
]
PREPARE = [
    "preprocess",
    "data=files",
    "data.train=train",
    "data.valid=valid",
    "data.test_size=0",
    "data.name=toy",
    "prepared=corpus",
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=300",
    "workers=1",
]
TRANSLATE = [
    "run=run",
    "input=input.en",
    "engine=torch",
    "decode=greedy",
    "decode.min_length=3",
    "decode.max_extra_length=5",
]
COMMANDS = {
    "verify": ["verify", "run"],
    "resume translation": ["translate", *TRANSLATE, "output=output.de"],
    "translate": ["translate", *TRANSLATE, "output=whole.de"],
    "average": ["average", "run", "output=averaged"],
    "prepare": PREPARE,
    # The corpus that it replaces has the same fingerprint, so the run resumes on the new one.
    "prepare again": [*PREPARE, "overwrite=true"],
    "resume": ["train", *TRAIN, "trainer.max_steps=12"],
}
EXTENDED = {
    "config/corpus.py": ["FilterConfig", "DataConfig"],
    "config/sources.py": ["SourceConfig"],
    "config/tokenizer.py": ["TokenizerConfig"],
    "config/model.py": ["ModelConfig"],
    "config/training.py": [
        "ConsistencyConfig",
        "OptimConfig",
        "BatchingConfig",
        "CheckpointConfig",
        "ValidationConfig",
        "TrainerConfig",
        "ExperimentConfig",
    ],
    "config/decoding.py": ["DecodeConfig"],
    "config/translation.py": ["TranslatorOptions", "JobConfig", "TranslateConfig"],
    "plugins/augment/plugin.py": ["NoiseConfig"],
    "plugins/protection/plugin.py": ["ProtectionConfig"],
    "data/manifest.py": ["Manifest", "Counts"],
    "files/description.py": ["ModelDescription"],
    "training/checkpoints.py": ["RunState"],
    "translation/output.py": ["Notes"],
}
"""The records that a later version may give another field."""


@pytest.fixture
def older(here) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(here, filter="data")
    return here


def later_version(folder: Path) -> Path:
    """A copy of nmt in which each record has another field with a default."""
    root = Path(package.__file__).parent
    shutil.copytree(root, folder / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root.parent / "conf", folder / "conf")
    for name, records in EXTENDED.items():
        path = folder / "nmt" / name
        text = path.read_text()
        for record in records:
            start = text.index(f"\nclass {record}")
            first = re.compile(r"\n    (?=\w+: )").search(text, start)
            # Last, because fields without a default come first.
            after = re.compile(r"\n\n    (?=def |@)|\n\n\n").search(
                text, start if first is None else first.start()
            )
            assert after, record
            # Named for the record: two records of a command must not have the same key.
            option = f"added_to_{record.lower()}"
            field = f'\n    {option}: int = 7\n    """An option of a later version."""\n'
            text = f"{text[: after.start()]}{field}{text[after.start() :]}"
        path.write_text(text)
    module = folder / "nmt" / "training" / "trainer.py"
    options = "NOT_FOR_LIGHTNING = ("
    text = module.read_text()
    assert options in text
    module.write_text(text.replace(options, f'{options}"added_to_trainerconfig", '))
    return folder


PROGRAM = """
import contextlib, io, json, sys
from nmt.cli import main

outcomes = {}
for name, command in json.loads(sys.argv[1]).items():
    sys.argv = ["nmt", *command]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    outcomes[name] = (code, out.getvalue(), err.getvalue())
print(json.dumps(outcomes))
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["this", "later"])
def test_an_older_run_is_verified_translated_averaged_and_resumed(older, tmp_path_factory, version):
    place = Path(package.__file__).parents[1]
    if version == "later":
        place = later_version(tmp_path_factory.mktemp("later"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(COMMANDS)],
        env={"PYTHONPATH": str(place), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = json.loads(done.stdout.splitlines()[-1])
    again, model = outcomes["verify"][1].splitlines()
    # On another processor, the last bits differ.
    same = "same                 "
    assert again.startswith(f"{same}update 4 to 8: ") or "another environment: " in again
    mean = "model: the mean of the checkpoints of updates [4,8]; not checked: "
    assert model.startswith(f"{same}{mean}")
    for name in COMMANDS.keys() - {"verify"}:
        assert outcomes[name][0] == 0, outcomes[name]
    assert "corpus is already prepared" in outcomes["prepare"][2]
    assert "resuming after 5 of 12 lines" in outcomes["resume translation"][2]
    assert Path("output.de").read_text() == Path("whole.de").read_text()
    assert Path("averaged/model.safetensors").is_file()
    assert "from update 8 to update 12" in outcomes["resume"][2]
    state = torch.load("run/checkpoints/step=00000012.ckpt", weights_only=True)["nmt"]
    assert ("added_to_modelconfig" in state["config"]["model"]) == (version == "later")


@pytest.mark.parametrize(
    ("cls", "stored", "key", "value"),
    [
        (TokenizerConfig, {"kind": "bpe", "vocabulary_size": 300}, "normalization", "nfkc"),
        (TokenizerConfig, {"kind": "marian", "vocabulary_size": 300}, "normalization", "none"),
        (
            TokenizerConfig,
            {"kind": "bpe", "normalization": "canonical"},
            "normalization",
            "canonical",
        ),
        (ModelConfig, {"name": "a"}, "heads", 8),
        (DecodeConfig, {}, "beam_size", 4),
    ],
)
def test_a_missing_option_has_the_value_from_before(cls, stored, key, value):
    assert with_defaults(cls, stored)[key] == value


def test_options_of_a_run_before_compilation_and_precision_existed():
    trainer = with_defaults(ExperimentConfig, {"trainer": {"max_steps": 5}})["trainer"]
    assert trainer["compile"] is False
    assert trainer["precision"] == "32-true"
    assert trainer["reduction"] == "exact"
    assert trainer["max_steps"] == 5


def test_a_key_of_a_newer_version_is_named():
    message = r"config.json: unknown key model.later: a newer nmt, or a plugin"
    with pytest.raises(NMTError, match=message):
        build_stored(ModelConfig, {"name": "a", "later": 1}, "config.json", "model.")


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("run/config.yaml", "seed: 1", "seed: 1\nlater: 2"),
        ("run/config.yaml", "  d_model: 8", "  d_model: 8\n  later: 2"),
        ("run/model/config.json", '"d_model": 8', '"d_model": 8, "later": 2'),
        ("corpus/manifest.json", '"versions": {', '"later": 2, "versions": {'),
    ],
)
def test_each_file_with_a_key_of_a_newer_version_is_named(nmt, older, path, old, new):
    file = older / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    command = ["train", *TRAIN, "trainer.max_steps=12"]
    if path == "run/model/config.json":
        command = ["translate", "text=ka lo", "run=run"]
    nmt(*command).refused(path, "later", "newer nmt")
