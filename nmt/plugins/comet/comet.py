"""The metric `comet`: the program's scores of lines, with a signature."""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from nmt.commands import talker
from nmt.config import NMTError
from nmt.evaluation import LineScores, Score, Scoring
from nmt.files import parse_json, printable, sha256
from nmt.plugins.comet.program import (
    INSTALL,
    CometConfig,
    check_environment,
    check_model,
    find_program,
    is_checkpoint,
    precision_of,
    version_of,
)

PERCENT = 100
"""COMET's scores are mostly between 0 and 1; tables have two digits after the point."""
MOST_QUOTED = 200
"""The maximum number of characters of the program's message in ours."""
DIGITS_OF_HASH = 16
ENVIRONMENT_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME")
"""Variables that would make the program import the packages of our environment."""


def config_of(options: Mapping[str, Any]) -> CometConfig:
    config: CometConfig = options.get("comet", CometConfig())
    return config


def check(options: Mapping[str, Any]) -> None:
    """Raise NMTError if the program or the model is missing or cannot be used."""
    config = config_of(options)
    check_environment(find_program(config))
    check_model(config.model)


def comet_score(
    hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring
) -> list[Score]:
    """The mean of the lines' scores, which is what COMET calls the system score, times 100."""
    lines = score_lines([hypotheses], references, scoring)
    return [Score(scoring.metric, "COMET", fmean(lines.scores[0]), lines.signature)]


def score_lines(
    systems: Sequence[Sequence[str]], references: Sequence[str], scoring: Scoring
) -> LineScores:
    """Score all systems with one call of the program, times 100."""
    if scoring.lowercase:
        problem = "COMET has no such variant"
        raise NMTError(f"metrics=[comet] lowercase=true: {problem}; omit lowercase")
    assert scoring.sources is not None, "nmt checks it before any other work"
    config = config_of(scoring.options)
    program = find_program(config)
    with TemporaryDirectory(prefix="nmt-comet-") as temporary:
        folder = Path(temporary)
        write_lines(folder / "source", scoring.sources)
        write_lines(folder / "reference", references)
        names = [f"system{number}" for number in range(len(systems))]
        for name, hypotheses in zip(names, systems, strict=True):
            write_lines(folder / name, hypotheses)
        with talker().status("scoring with COMET"):
            call(program, config, folder, names)
        scores = read_scores(folder / "scores.json", names, len(references))
    return LineScores(scores, signature_of(config, program))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines so that COMET reads as many.

    Python, in which COMET reads them, ends a line at each CR and LF, and at nothing else.
    """
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        for line in lines:
            file.write(line.replace("\r", " ").replace("\n", " ") + "\n")


def call(program: Path, config: CometConfig, folder: Path, names: list[str]) -> None:
    """Run the program in a folder with the texts; NMTError with its last message if it fails."""
    # From the other folder, a relative path would lead elsewhere.
    model = str(Path(config.model).absolute()) if is_checkpoint(config.model) else config.model
    command = [
        str(program),
        "--sources=source",
        "--references=reference",
        f"--model={model}",
        f"--batch_size={config.batch_size}",
        f"--gpus={config.gpus}",
        "--to_json=scores.json",
        "--only_system",
        "--quiet",
        # Last, because it takes all words up to the next option.
        "--translations",
        *names,
    ]
    environment = {
        name: value for name, value in os.environ.items() if name not in ENVIRONMENT_OF_PYTHON
    }
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise NMTError(f"{program}: cannot be run ({error.strerror}); reinstall COMET") from error
    if done.returncode:
        raise NMTError(failure(done.returncode, done.stderr))


def failure(code: int, errors: str) -> str:
    """One line for a failed call, with the last line of the program's messages."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = printable(lines[-1])[:MOST_QUOTED] if lines else "no message"
    if code < 0:
        return f"comet-score was killed by signal {-code}; pass a lower comet.batch_size"
    advice = "check comet.model and, for a model on the Hub, the network"
    if "pkg_resources" in last:
        advice = f"reinstall it with `{INSTALL} --force`"
    return f"comet-score failed with exit code {code} ({last}); {advice}"


def read_scores(path: Path, names: list[str], count: int) -> list[list[float]]:
    """The scores of each system's lines in the program's output, times 100."""
    problem = "comet-score wrote other scores than expected"
    try:
        content = parse_json(path.read_bytes())
        scores = [scores_in(content[name]) for name in names]
    except (OSError, ValueError, TypeError, KeyError) as error:
        # Numbers that are not finite, too, which `parse_json` refuses.
        advice = f"reinstall it with `{INSTALL} --force`, or choose another comet.model"
        raise NMTError(f"{problem} ({type(error).__name__}: {error}); {advice}") from error
    for of_system in scores:
        if len(of_system) != count:
            raise NMTError(f"{problem}: {len(of_system):,} for {count:,} lines; report this bug")
    return scores


def scores_in(rows: list[dict[str, Any]]) -> list[float]:
    return [PERCENT * float(row["COMET"]) for row in rows]


def signature_of(config: CometConfig, program: Path) -> str:
    version = version_of(program)
    signature = {"metric": "comet", "nrefs": "1", "case": "mixed"}
    if is_checkpoint(config.model):
        path = Path(config.model)
        # The characters that separate the parts of a signature.
        signature["model"] = path.name.replace("|", "_").replace(":", "_")
        signature["sha256"] = sha256(path)[:DIGITS_OF_HASH]
    else:
        signature["model"] = config.model
    signature["scale"] = str(PERCENT)
    signature["precision"] = precision_of(version)
    signature["comet"] = version
    return "|".join(f"{key}:{part}" for key, part in signature.items())
