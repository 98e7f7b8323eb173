"""A corpus of some hundred generated pairs, prepared once; runs on it; the command line in this process."""

import gc
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
from preloaded import python

if TYPE_CHECKING:
    from nmt.model import Transformer
    from nmt.text import Tokenizer

# A busy machine is no error, and a change meets the examples that the tree before it has met.
# `--hypothesis-profile=search` looks for new examples.
hypothesis.settings.register_profile("nmt", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None, max_examples=3000)
hypothesis.settings.load_profile("nmt")
WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
TOY = [
    *(
        "data=files",
        "data.name=toy",
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=300",
        "workers=1",
    ),
    *("model=tiny", "model.d_model=16", "model.d_ff=32", "model.heads=2"),
    *("model.encoder_layers=1", "model.decoder_layers=1", "optim.warmup=20"),
    *(
        "batching.tokens_per_update=240",
        "batching.micro_batches=2",
        "decode=greedy",
        "decode.max_extra_length=5",
    ),
    *("validation.every_steps=20", "validation.bleu_sentences=4", "trainer.log_every_n_steps=5"),
    *(
        "trainer.max_steps=60",
        "trainer.accelerator=cpu",
        "trainer.devices=1",
        "checkpoints.average=all",
    ),
    "trainer.precision=32-true",
]


def write_toy_text(folder: Path, seed: int) -> None:
    """Sentences of two to nine syllables; their translations are the same backwards."""
    generator = random.Random(seed)
    for split, size in (("train", 600), ("valid", 40), ("test", 20)):
        sentences = [generator.choices(WORDS, k=generator.randint(2, 9)) for _ in range(size)]
        for language, step in (("en", 1), ("de", -1)):
            lines = "".join(" ".join(sentence[::step]) + "\n" for sentence in sentences)
            (folder / f"{split}.{language}").write_text(lines)


def toy_options(folder: Path) -> list[str]:
    return [*TOY, *(f"data.{split}={folder / split}" for split in ("train", "valid", "test"))]


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module", autouse=True)
def collect_no_imports() -> None:
    """Garbage collection, which every training calls, need not visit what the modules before have left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def torch_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """`engine=auto` takes torch, as on a machine with a GPU: no test converts a model without asking for it."""
    from nmt.translation import load

    engines = load.automatic_engines
    monkeypatch.setattr(load, "automatic_engines", lambda precision: engines(precision)[-1:])


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The overrides that train a tiny model on the toy corpus, which lies there prepared."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    folder = tmp_path_factory.mktemp("toy")
    write_toy_text(folder, seed=1)
    options = [*toy_options(folder), f"prepared={folder / 'prepared'}"]
    preprocess(compose("preprocess", options), lambda words: None)
    return options


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own folder, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def other_text(tmp_path: Path) -> list[str]:
    """The overrides of a toy corpus in the test's own folder, not prepared yet."""
    write_toy_text(tmp_path, seed=2)
    return toy_options(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Trains with these overrides in this process, and returns the folder of the run."""

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
    """Trains on this many devices with these overrides, each in a process with as many threads as this one."""
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
    command = [python(), "-m", "nmt", "train"]
    return lambda devices, *options: subprocess.run(
        [*command, *options, f"trainer.devices={devices}"], check=True
    )


@pytest.fixture(scope="session")
def finished(toy: list[str], trained: Callable[..., Path]) -> Path:
    """A run of 60 updates that nothing disturbed, with a checkpoint every 12."""
    return trained(*toy, "checkpoints.every_steps=12")


LINES = [f"ka {a} lo {b} mi {a}{b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va", "we")]


def save_model(folder: Path, model: "Transformer", tokenizer: "Tokenizer") -> Path:
    """Write a model directory for translation from en to de; its tokenizer lies beside it."""
    from nmt.files import ModelDescription, sha256
    from nmt.model import write_model_directory

    file = folder.with_name(f"{folder.name}.spm")
    tokenizer.save(file)
    description = ModelDescription(
        asdict(model.config), model.vocabulary_size, "en", "de", sha256(file), {}
    )
    write_model_directory(folder, model, file, description, "")
    return folder


def write_random_model(folder: Path, **settings: Any) -> "Transformer":
    """Write a model directory with a random model, which is returned; its tokenizer lies beside it."""
    import torch

    from nmt.config import ModelConfig, TokenizerConfig
    from nmt.model import Transformer
    from nmt.text import train_tokenizer

    tokenizer = train_tokenizer(LINES, TokenizerConfig("bpe", 300))
    torch.manual_seed(1)
    base = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2}
    model = Transformer(
        ModelConfig(name="tiny", **{**base, **settings}), tokenizer.vocabulary_size
    ).eval()
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
    """A model directory with a tiny model that Marian trained from en to de: its translations are made-up words."""
    return import_fixture("tied", tmp_path_factory.mktemp("words") / "model")


@pytest.fixture(scope="session")
def tagged_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `word_model`, into deu and fra by tags."""
    return import_fixture("tagged", tmp_path_factory.mktemp("tags") / "model")


def import_fixture(name: str, output: Path) -> Path:
    """One of the models that Marian trained, as a model directory."""
    from nmt.commands import compose

    run_import = pytest.importorskip("nmt.plugins.exchange.commands").run_import
    words = [f"path={Path(__file__).parent / 'fixtures' / 'marian' / name}", f"output={output}"]
    run_import(compose("import", [*words, "source=en", "target=de"]))
    return output


@dataclass
class Outcome:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    def failed(self, *words: str) -> None:
        """Assert that the command ended with an error that users can fix, whose last line contains `words`."""
        assert self.code == 2, self.err
        assert "Traceback" not in self.err
        last = self.err.splitlines()[-1]
        assert last.startswith("nmt: "), self.err
        assert all(word in last for word in words), last

    def refused(self, *words: str) -> None:
        """Assert that the command failed in this way and printed nothing else."""
        self.failed(*words)
        assert self.err.count("\n") == 1, self.err


@pytest.fixture
def nmt(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], here: Path
) -> Callable[..., Outcome]:
    """The command line in this process, in the test's own folder."""
    from nmt.cli import main

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["nmt", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        return Outcome(int(stopped.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def training_state() -> Callable[[Path], dict[str, Any]]:
    """Step, weights, Adam's moments and the number of target tokens of a run's last checkpoint."""
    import torch

    def load(run: Path) -> dict[str, Any]:
        content = torch.load(max(run.glob("checkpoints/*.ckpt")), weights_only=True)
        adam = content["optimizer_states"][0]["state"]
        state = {"step": content["global_step"], "weights": content["state_dict"], "adam": adam}
        return {**state, "tokens": content["nmt"]["tokens"]}

    return load


@pytest.fixture(scope="session")
def metrics() -> Callable[[Path], list[dict[str, str]]]:
    """The rows of a run's metrics.csv, without the columns that depend on time."""
    from nmt.training import read_metrics

    clock = ("seconds", "tokens_per_second", "mfu", "cost")
    return lambda run: [
        {k: v for k, v in row.items() if k not in clock} for row in read_metrics(run)
    ]
