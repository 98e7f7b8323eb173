"""The program `comet-score`: where it is, its version, and its models."""

import re
import shutil
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from nmt.config import NMTError, number
from nmt.files import parse_yaml, read_mapping, read_text

# torchmetrics 0.10, which COMET pins, imports pkg_resources, which setuptools 82 has removed.
INSTALL = "uv tool install unbabel-comet --with 'setuptools<82'"
PACKAGE = "unbabel-comet"
FIRST_IN_HALF = (2, 2, 5)
"""The first version whose program converts models to float16 (`model.half()` in its score.py)."""
IS_ISOLATED = "include-system-site-packages = false"
NAME_ON_HUB = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
WITHOUT_REFERENCE = re.compile("kiwi|-qe(-|$)", re.IGNORECASE)
"""Names of models on the Hub that estimate quality without a reference."""
EXAMPLE = "Unbabel/wmt22-comet-da"


@dataclass
class CometConfig:
    """The options of COMET."""

    program: str = "comet-score"
    """Name or path of COMET's program, which is installed in a separate environment."""
    model: str = EXAMPLE
    """Model on the Hugging Face Hub, which COMET downloads once, or checkpoint (.ckpt)."""
    batch_size: int = number(16, 1, 100_000)
    """Number of lines per batch; a lower one saves memory."""
    gpus: int = number(1, 0, 64)
    """Number of GPUs; without a GPU, COMET uses the CPU; 0: always the CPU."""


def find_program(config: CometConfig) -> Path:
    """The path of the program; NMTError if it is not installed."""
    path = shutil.which(config.program)
    if path is None:
        problem = f"comet.program={config.program}: not found"
        raise NMTError(f"{problem}; install it with `{INSTALL}`, or pass its path")
    # Relative paths in PATH would not survive a change of the working directory.
    return Path(path).absolute()


def environment_of(program: Path) -> Path:
    """The environment that contains a program; uv and pipx link it from another folder."""
    return program.resolve().parent.parent


def distribution_of(program: Path) -> Distribution | None:
    """COMET's package in the environment of its program; None if it is elsewhere."""
    environment = environment_of(program)
    folders = environment.glob("lib*/python*/*-packages")
    paths = [str(folder) for folder in folders]
    return next(iter(distributions(name=PACKAGE, path=paths)), None)


def version_of(program: Path) -> str:
    """The version of COMET; "unknown" if its package is not in the environment of the program."""
    # The program has no option that prints its version.
    distribution = distribution_of(program)
    return distribution.version if distribution else "unknown"


def check_environment(program: Path) -> None:
    """Raise NMTError if COMET could not be imported.

    Otherwise, it would fail only after the translations have been made.
    """
    settings = environment_of(program) / "pyvenv.cfg"
    distribution = distribution_of(program)
    # Only an isolated environment contains everything that its programs import.
    if distribution is None or not settings.is_file() or IS_ISOLATED not in read_text(settings):
        return
    if not Path(str(distribution.locate_file("pkg_resources"))).is_dir():
        problem = "COMET needs setuptools below 82 in its environment"
        raise NMTError(f"{program}: {problem}; run `{INSTALL} --force`")


def precision_of(version: str) -> str:
    """The precision in which a version of the program computes."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if numbers is None:
        return "unknown"
    release = tuple(map(int, numbers.groups()))
    return "float16" if release >= FIRST_IN_HALF else "float32"


def is_checkpoint(model: str) -> bool:
    """Whether a model is a file, and not a name on the Hub."""
    return model.endswith(".ckpt")


def check_model(model: str) -> None:
    """Raise NMTError if a file cannot be a model of COMET, or a model uses no references."""
    where = f"comet.model={model}"
    path = Path(model)
    if path.is_dir():
        raise NMTError(f"{where}: is a folder; pass the checkpoint, such as {path / 'model.ckpt'}")
    if is_checkpoint(model):
        check_checkpoint(path, where)
    elif not NAME_ON_HUB.fullmatch(model):
        problem = "neither a checkpoint (.ckpt) nor the name of a model on the Hugging Face Hub"
        raise NMTError(f"{where}: {problem}; pass a model such as {EXAMPLE}")
    elif WITHOUT_REFERENCE.search(model):
        raise NMTError(without_reference(where))


def check_checkpoint(path: Path, where: str) -> None:
    if not path.is_file():
        raise NMTError(f"{where}: no such file")
    # COMET looks for it two folders above the checkpoint, wherever a link leads.
    settings = path.absolute().parent.parent / "hparams.yaml"
    if not settings.is_file():
        raise NMTError(f"{where}: COMET needs its settings in {settings}; copy them there")
    content = read_mapping(settings, parse_yaml)
    segments = content.get("input_segments")
    has_no_reference = isinstance(segments, list) and "ref" not in segments
    if content.get("class_identifier") == "referenceless_regression_metric" or has_no_reference:
        raise NMTError(without_reference(where))


def without_reference(where: str) -> str:
    problem = "estimates quality without a reference, which nmt score does not support"
    return f"{where}: {problem}; pass a model such as {EXAMPLE}"
