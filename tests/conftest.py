"""Fixtures: a small generated corpus, runs and models on it, and the command line."""

import gc
import itertools
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.helpers.preloaded import python

if TYPE_CHECKING:
    from nmt.model import Transformer
    from nmt.text import Tokenizer

# No deadline, because the machine may be busy. The same examples in each run, so that a test fails
# because of a change and not by chance. `--hypothesis-profile=search` looks for new examples.
hypothesis.settings.register_profile("nmt", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None, max_examples=3000)
hypothesis.settings.load_profile("nmt")
WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
LINES = [
    f"ka {first} lo {second} mi {first}{second}"
    for first, second in itertools.product(("nu", "pe", "ri"), ("so", "tu", "va", "we"))
]
"""The text from which tokenizers of random models are trained."""
TOY = [
    "data=files",
    "data.name=toy",
    "tokenizer.kind=bpe",
    "tokenizer.vocabulary_size=300",
    "workers=1",
    "model=tiny",
    "model.d_model=16",
    "model.d_ff=32",
    "model.heads=2",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "optim.warmup=20",
    "batching.tokens_per_update=240",
    "batching.micro_batches=2",
    "decode=greedy",
    "decode.max_extra_length=5",
    "validation.every_steps=20",
    "validation.bleu_sentences=4",
    "trainer.log_every_n_steps=5",
    "trainer.max_steps=60",
    "trainer.accelerator=cpu",
    "trainer.devices=1",
    "checkpoints.average=all",
    "trainer.precision=32-true",
]
"""Options that train a tiny model in seconds."""


def write_toy_text(folder: Path, seed: int) -> None:
    """Write sentences of two to nine syllables. Each translation is its source in reverse order."""
    generator = random.Random(seed)
    sizes = {"train": 600, "valid": 40, "test": 20}
    for split, size in sizes.items():
        sources = []
        targets = []
        for _ in range(size):
            words = generator.choices(WORDS, k=generator.randint(2, 9))
            sources.append(" ".join(words) + "\n")
            targets.append(" ".join(reversed(words)) + "\n")
        (folder / f"{split}.en").write_text("".join(sources))
        (folder / f"{split}.de").write_text("".join(targets))


def toy_options(folder: Path) -> list[str]:
    """The options for the toy corpus in a folder."""
    files = [f"data.{split}={folder / split}" for split in ("train", "valid", "test")]
    return [*TOY, *files]


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Let Ctrl-C work in the tests and their child processes.

    A shell that starts the tests in the background makes them ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module", autouse=True)
def collect_no_imports() -> None:
    """Exempt objects of earlier test modules from garbage collection, which training often calls."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def torch_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `engine=auto` choose torch, as on a machine with a GPU.

    Otherwise, most tests would convert a model for CTranslate2 first.
    """
    from nmt.translation import load

    engines = load.automatic_engines
    monkeypatch.setattr(load, "automatic_engines", lambda precision: engines(precision)[-1:])


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that train a tiny model on the toy corpus, which is already prepared."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    folder = tmp_path_factory.mktemp("toy")
    write_toy_text(folder, seed=1)
    options = [*toy_options(folder), f"prepared={folder / 'prepared'}"]
    preprocess(compose("preprocess", options), lambda words: None)
    return options


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the test, which is also its working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def other_text(tmp_path: Path) -> list[str]:
    """The options for another toy corpus in the test's folder, which is not prepared yet."""
    write_toy_text(tmp_path, seed=2)
    return toy_options(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that trains with some options in this process and returns the run's folder."""

    def trained(*options: str) -> Path:
        from rich.console import Console

        from nmt.commands import compose
        from nmt.training import train

        run = tmp_path_factory.mktemp("runs") / "finished"
        assert train(compose("train", [*options, f"run={run}"]), Console(quiet=True)) is None
        return run

    return trained


@pytest.fixture
def train_on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that trains on a number of devices.

    Each device is a process with as many threads as this one.
    """
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))

    def train(devices: int, *options: str) -> None:
        command = [python(), "-m", "nmt", "train", *options, f"trainer.devices={devices}"]
        subprocess.run(command, check=True)

    return train


@pytest.fixture(scope="session")
def finished(toy: list[str], trained: Callable[..., Path]) -> Path:
    """An uninterrupted run of 60 updates, with a checkpoint every 12 updates."""
    return trained(*toy, "checkpoints.every_steps=12")


def save_model(folder: Path, model: "Transformer", tokenizer: "Tokenizer") -> Path:
    """Write a model directory for translation from en to de, and its tokenizer beside it."""
    from nmt.files import ModelDescription, sha256
    from nmt.model import write_model_directory

    file = folder.with_name(f"{folder.name}.spm")
    tokenizer.save(file)
    description = ModelDescription(
        asdict(model.config),
        model.vocabulary_size,
        "en",
        "de",
        sha256(file),
        {},
    )
    write_model_directory(folder, model, file, description, "")
    return folder


def write_random_model(folder: Path, **settings: Any) -> "Transformer":
    """Write a model directory with a random model, which is returned, and its tokenizer."""
    import torch

    from nmt.config import ModelConfig, TokenizerConfig
    from nmt.model import Transformer
    from nmt.text import train_tokenizer

    tokenizer = train_tokenizer(LINES, TokenizerConfig("bpe", 300))
    torch.manual_seed(1)
    smallest = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 16,
        "d_ff": 16,
        "heads": 2,
    }
    smallest.update(settings)
    config = ModelConfig(name="tiny", **smallest)
    model = Transformer(config, tokenizer.vocabulary_size)
    model.eval()
    save_model(folder, model, tokenizer)
    return model


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model directory with a random model."""
    folder = tmp_path_factory.mktemp("translate") / "model"
    write_random_model(folder)
    return str(folder)


@pytest.fixture(scope="session")
def word_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with a tiny model from en to de that Marian trained on made-up words."""
    return import_fixture("tied", tmp_path_factory.mktemp("words") / "model")


@pytest.fixture(scope="session")
def tagged_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model like `word_model` with two target languages, deu and fra, chosen by tags."""
    return import_fixture("tagged", tmp_path_factory.mktemp("tags") / "model")


@pytest.fixture(scope="session")
def nllb_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with a small random model that was imported from NLLB's format."""
    pytest.importorskip("transformers")
    from tests.helpers.multilingual import write_folder

    commands = pytest.importorskip("nmt.plugins.exchange.importing")
    folder = tmp_path_factory.mktemp("nllb")
    write_folder(folder / "hub", "nllb")
    output = folder / "model"
    options = {"path": str(folder / "hub"), "output": str(output), "verify": False}
    commands.run_import(commands.ImportConfig(**options))
    return output


def import_fixture(name: str, output: Path) -> Path:
    """Import one of the models that Marian trained as a model directory."""
    from nmt.commands import compose

    run_import = pytest.importorskip("nmt.plugins.exchange.importing").run_import
    path = Path(__file__).parent / "fixtures" / "marian" / name
    words = [f"path={path}", f"output={output}", "source=en", "target=de"]
    run_import(compose("import", words))
    return output


@dataclass
class Outcome:
    """The exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    def failed(self, *words: str) -> None:
        """Assert that the command ended with an error that users can fix.

        The last line of standard error must contain `words`.
        """
        assert self.code == 2, self.err
        assert "Traceback" not in self.err
        last = self.err.splitlines()[-1]
        assert last.startswith("nmt: "), self.err
        assert all(word in last for word in words), last

    def refused(self, *words: str) -> None:
        """Assert that the command failed in this way and printed a single line."""
        self.failed(*words)
        assert self.err.count("\n") == 1, self.err


@pytest.fixture
def nmt(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], here: Path
) -> Callable[..., Outcome]:
    """The command line in this process, in the test's folder."""
    from nmt.cli import main

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["nmt", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capfd.readouterr()
        return Outcome(int(stopped.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def training_state() -> Callable[[Path], dict[str, Any]]:
    """A function that reads a run's last checkpoint.

    It returns the step, the weights, Adam's moments and the number of target tokens.
    """
    import torch

    def load(run: Path) -> dict[str, Any]:
        content = torch.load(max(run.glob("checkpoints/*.ckpt")), weights_only=True)
        return {
            "step": content["global_step"],
            "weights": content["state_dict"],
            "adam": content["optimizer_states"][0]["state"],
            "tokens": content["nmt"]["tokens"],
        }

    return load


@pytest.fixture(scope="session")
def metrics() -> Callable[[Path], list[dict[str, str]]]:
    """A function that reads a run's metrics.csv, without the columns that depend on time."""
    from nmt.training import read_metrics

    def read(run: Path) -> list[dict[str, str]]:
        rows = read_metrics(run)
        for row in rows:
            for column in ("seconds", "tokens_per_second", "mfu", "cost"):
                row.pop(column, None)
        return rows

    return read
