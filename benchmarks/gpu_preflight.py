"""What the GPU benchmark checks before it starts anything, with standard libraries only."""

# So that an old Python gets as far as the message about its version.
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

OLDEST_PYTHON = (3, 11)
PACKAGES = {
    # typer needs it, and wheels are downloaded without what they depend on.
    "annotated_doc": "annotated-doc",
    "antlr4": "antlr4-python3-runtime",
    "hydra": "hydra-core",
    "jinja2": "jinja2",
    "lazy_loader": "lazy-loader",
    "lightning": "lightning",
    "numpy": "numpy",
    "omegaconf": "omegaconf",
    "pyarrow": "pyarrow",
    "regex": "regex",
    "rich": "rich",
    "sacrebleu": "sacrebleu",
    "safetensors": "safetensors",
    "sentencepiece": "sentencepiece",
    "sentencex": "sentencex",
    "tensorboard": "tensorboard",
    "tokenizers": "tokenizers",
    "torch": "torch",
    "typer": "typer",
    "yaml": "pyyaml",
}
"""Module -> package, for all packages that the steps import; pip installs their dependencies with them."""
COMPILERS = ("gcc", "g++", "cc", "clang")
GPU_SECONDS = 120
"""Importing torch for the first time on a machine may take a minute."""
NAME_OF_GPU = """\
import torch
if torch.cuda.is_available():
    print("GPU:", torch.cuda.get_device_name())
"""


def normalized(name: str) -> str:
    """The name of a package as all its spellings share it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wheels_in(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("*.whl")) if folder else []


def fits_this_python(wheel: Path) -> bool:
    """Whether the tags in the name of a wheel admit this Python version."""
    pythons, abis = wheel.stem.split("-")[-3:-1]
    major, minor = sys.version_info[:2]
    for tag in pythons.split("."):
        if tag in (f"py{major}", f"cp{major}{minor}", f"py{major}{minor}"):
            return True
        oldest = re.fullmatch(rf"cp{major}(\d+)", tag)
        if "abi3" in abis and oldest and int(oldest[1]) <= minor:
            return True
    return False


def path_problems(arguments: argparse.Namespace) -> list[str]:
    problems = []
    if arguments.quickstart and not Path(arguments.quickstart).is_dir():
        problems.append(f"--quickstart: there is no folder {arguments.quickstart}")
    if arguments.cache and not Path(arguments.cache).is_file():
        problems.append(f"--cache: there is no file {arguments.cache}")
    elif arguments.cache and not tarfile.is_tarfile(arguments.cache):
        problems.append(f"--cache: {arguments.cache} is not a tar archive")
    if not arguments.wheels:
        return problems
    wheels = wheels_in(arguments.wheels)
    if not Path(arguments.wheels).is_dir():
        problems.append(f"--wheels: there is no folder {arguments.wheels}")
    elif not wheels:
        problems.append(f"--wheels: {arguments.wheels} contains no wheels")
    others = [wheel.name for wheel in wheels if not fits_this_python(wheel)]
    if others:
        version = "{}.{}".format(*sys.version_info[:2])
        problems.append(f"--wheels: not for this Python ({version}): {', '.join(others)}")
    return problems


def missing_packages(folder: str) -> list[str]:
    """The needed packages that are neither installed nor among the wheels."""
    brought = {normalized(wheel.name.split("-")[0]) for wheel in wheels_in(folder)}
    missing = []
    for module, package in PACKAGES.items():
        if find_spec(module) is None and package not in brought:
            missing.append(package)
    return missing


def package_problems(folder: str) -> list[str]:
    missing = missing_packages(folder)
    if not missing:
        return []
    names = ", ".join(missing)
    if folder:
        return [f"missing packages, neither installed nor in {folder}: {names}"]
    advice = "install them, or pass --wheels with a folder of wheels for this call (see --help)"
    return [f"missing packages: {names}; {advice}"]


def visible_gpu() -> tuple[str, str]:
    """The name of the GPU that torch uses, and what is wrong if there is none."""
    command = [sys.executable, "-c", NAME_OF_GPU]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GPU_SECONDS)
    except subprocess.TimeoutExpired:
        return "", f"torch did not find a GPU within {GPU_SECONDS} s"
    for line in done.stdout.splitlines():
        if line.startswith("GPU: "):
            return line.removeprefix("GPU: "), ""
    if done.returncode == 0:
        return "", "torch finds no GPU (torch.cuda.is_available() is false); see --dry-run"
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return "", f"torch cannot use a GPU: {reason}"


def compiler_warnings() -> list[str]:
    """What torch.compile lacks."""
    warnings = []
    has_variable = "CC" in os.environ or "CXX" in os.environ
    if not has_variable and not any(map(shutil.which, COMPILERS)):
        warnings.append("warning: no C++ compiler, such as gcc; figures with torch.compile fail")
    if find_spec("triton") is None:
        warnings.append("warning: the package triton is missing; figures with torch.compile fail")
    return warnings


def preflight(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Print warnings; return the name of the GPU and the problems, one line each."""
    if sys.version_info < OLDEST_PYTHON:
        version = "{}.{}".format(*sys.version_info[:2])
        oldest = "{}.{}".format(*OLDEST_PYTHON)
        return "", [f"Python {version} is too old: nmt needs {oldest} or newer"]
    problems = []
    # NaN is not positive either.
    if not arguments.seconds > 0:
        problems.append(f"--seconds: must be positive, not {arguments.seconds:g}")
    problems += path_problems(arguments)
    problems += package_problems(arguments.wheels)
    gpu = ""
    if arguments.dry_run:
        return gpu, problems
    if find_spec("torch") is not None:
        gpu, problem = visible_gpu()
        if problem:
            problems.append(problem)
    for warning in compiler_warnings():
        print(warning, file=sys.stderr)
    return gpu, problems
