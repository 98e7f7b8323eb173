"""Measure nmt on one H100 or H200 in one call of eight minutes, against estimated figures.

    python benchmarks/gpu.py [--seconds 480] [--quickstart FOLDER] [--wheels FOLDER] [--cache FILE]
    python benchmarks/gpu.py --only training_big,profile
    python benchmarks/gpu.py --dry-run

The script prints each figure at once. A table comes last: what was measured, what was expected and
their ratio, or whether a property holds. The expected figures are estimates from counted operations
(gpu_report.py), not measurements; a MISS is worth a look at the profile. The table, all numbers as
JSON, the logs and profiles go to $OUT or, if it is not set, to ./gpu-results.

--seconds     End after this time. Steps without enough time left are skipped, optional ones first.
--only        Run only these steps; --list prints their names.
--dry-run     Compute about a fiftieth of everything on a CPU, to test this script. The figures
              mean nothing.
--quickstart  The prepared corpus of the quickstart: `nmt preprocess experiment=quickstart` writes
              it to data/quickstart_en_de. Without it, the quickstart is skipped.
--cache       The file inductor.tar.gz from an earlier call on the same kind of GPU, which saves
              time for compiling.

A GPU machine without network: --wheels installs wheels that are missing there from a folder, for
this call only. Prepare the folder (3 MB) elsewhere; 3.12 is the Python version of the GPU machine:

    pip download --no-deps --only-binary=:all: --python-version 3.12 \\
        --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 -c constraints.txt \\
        -d wheels hydra-core omegaconf lazy-loader typer sentencex sacremoses polib
    pip wheel --no-deps -c constraints.txt -w wheels antlr4-python3-runtime

Then copy this repository with the folders wheels and data/quickstart_en_de, and call

    python benchmarks/gpu.py --wheels wheels --quickstart data/quickstart_en_de
"""

import argparse
import importlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gpu_report import Report, Row, table
from gpu_settings import Settings

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "nmt-toolkit"
COMPILED = {"base": "loop", "big": "loop", "toy": "command", "quickstart": "command"}
"""What is compiled in the background from the start: models of bare loops and of `nmt train`."""
RESERVE = 12.0
"""Seconds at the end for the table and the files."""
CACHE_BYTES = 15_000_000
HEADER = """\
Expected figures are estimates from counted operations, made before anything was measured.
MISS: worse than the estimate by more than a factor of 1.4, or a property that does not hold.
Utilization (MFU) refers to 989 TFLOP/s, the dense bfloat16 peak of both cards.
"""


@dataclass(frozen=True)
class Step:
    """A function `(settings, report) -> None` of a module, called by a worker process."""

    name: str
    module: str
    seconds: float
    """What it should take on an H100; it does not start with less time left."""
    limit: float
    """After this time, its worker is killed."""
    is_optional: bool = False
    """These steps come last, so that they are the first for which no time is left."""


STEPS = [
    Step("machine", "gpu_machine", 8, 40),
    Step("attention_plans", "gpu_machine", 15, 45),
    Step("numerics", "gpu_checks", 10, 40),
    Step("kernel_names", "gpu_checks", 3, 20),
    Step("same_translations", "gpu_checks", 8, 30),
    Step("syncs", "gpu_checks", 12, 40),
    Step("determinism", "gpu_runs", 50, 90),
    Step("training_base", "gpu_training", 45, 90),
    Step("training_big", "gpu_training", 70, 120),
    Step("train_command", "gpu_runs", 30, 60),
    Step("profile", "gpu_training", 45, 80),
    Step("quickstart", "gpu_runs", 60, 110),
    Step("search", "gpu_search", 15, 45),
    Step("compiled_numerics", "gpu_checks", 30, 60, is_optional=True),
    Step("quickstart_resumed", "gpu_runs", 60, 110, is_optional=True),
    Step("training_more", "gpu_training", 25, 60, is_optional=True),
    Step("ctranslate2", "gpu_search", 20, 30, is_optional=True),
]
DRY_LIMIT = 600.0
"""A dry run has few cores: it may take longer over a step than a GPU."""


def parse_arguments() -> argparse.Namespace:
    keeps_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keeps_lines)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--quickstart", default="")
    parser.add_argument("--wheels", default="")
    parser.add_argument("--cache", default="")
    # How this script starts itself.
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    parser.add_argument("--compile", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


# The main process: it imports no library, so that it cannot hang or crash with one.


class Results:
    """Rows and steps so far, written to files after each step, because the end may never come."""

    def __init__(self, out: Path, is_dry: bool) -> None:
        self.out = out
        self.is_dry = is_dry
        self.rows: list[Row] = []
        self.steps: dict[str, dict[str, Any]] = {}
        self.start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    def add(self, row: Row) -> None:
        self.rows.append(row)
        words = [row.step, row.what, row.measured]
        if row.expected:
            words.append(f"expected {row.expected}")
        if row.verdict:
            words.append(row.verdict)
        print(f"[{self.seconds:6.1f} s] " + " | ".join(words), flush=True)

    def end_step(self, name: str, status: str, seconds: float, reason: str = "") -> None:
        self.steps[name] = {"status": status, "seconds": seconds, "reason": reason}
        if status != "ok":
            self.add(Row(name, "the step", f"{status}: {reason}"))
        self.write()

    def text(self) -> str:
        lines = [HEADER]
        if self.is_dry:
            lines.insert(0, "DRY RUN on a CPU with tiny models: the figures mean nothing.\n")
        lines.append(table(self.rows))
        lines.append("| step | status | seconds |")
        lines.append("|---|---|---|")
        for name, step in self.steps.items():
            lines.append(f"| {name} | {step['status']} {step['reason']} | {step['seconds']:.1f} |")
        return "\n".join(lines) + "\n"

    def write(self) -> None:
        (self.out / "table.md").write_text(self.text())
        content = {
            "seconds": self.seconds,
            "dry_run": self.is_dry,
            "steps": self.steps,
            "rows": [vars(row) for row in self.rows],
        }
        (self.out / "results.json").write_text(json.dumps(content, indent=1) + "\n")


class Worker:
    """A process that makes one step after another, so that libraries load only once."""

    def __init__(self, settings_file: Path, environment: dict[str, str], log: Path) -> None:
        self.log = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(settings_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
            # Its own group, which is killed with everything that the steps started.
            start_new_session=True,
        )
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):
                self.messages.put(json.loads(line))
        self.messages.put(None)

    def make(self, step: Step, limit: float, add: Callable[[Row], None]) -> str:
        """Make a step; return what went wrong, or an empty string."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(step.name + "\n")
            self.process.stdin.flush()
        except OSError as error:
            return f"its process is gone ({error})"
        end = time.monotonic() + limit
        while True:
            try:
                message = self.messages.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return f"not finished after {limit:.0f} s"
            if message is None:
                return f"its process ended with code {self.process.wait()}; see the log"
            if "row" in message:
                add(Row(**message["row"]))
            if "done" in message:
                return str(message["done"])

    def kill(self) -> None:
        kill_group(self.process)
        self.log.close()


def kill_group(process: "subprocess.Popen[Any]") -> None:
    # The group may outlive its first process.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def install_wheels(folder: Path, target: Path) -> None:
    """Install the wheels that this Python lacks, or has in another version, into a new folder."""
    missing = []
    for wheel in sorted(folder.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = ""
        if installed != version:
            missing.append(str(wheel))
    if not missing:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, *missing], check=True, timeout=120)
    print(f"installed {len(missing)} wheels from {folder}", flush=True)


def describe_checkout(target: Path) -> None:
    """Make nmt's version known to Python, which nmt asks for, unless nmt is installed."""
    try:
        metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        source = (ROOT / "nmt" / "__init__.py").read_text()
        version = re.search(r'__version__ = "(.*)"', source)
        assert version is not None
        folder = target / f"{PACKAGE.replace('-', '_')}-{version[1]}.dist-info"
        folder.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version[1]}\n"
        (folder / "METADATA").write_text(text)


def name_of_card() -> str:
    """H100 or H200, or an empty string for another card."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        names = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((card for card in ("H100", "H200") if card in names), "")


def environment_of(settings: Settings, site: Path) -> dict[str, str]:
    """The environment of all processes that compute."""
    paths = [str(ROOT), str(site), os.environ.get("PYTHONPATH", "")]
    cache = Path(settings.work) / "inductor"
    cache.mkdir()
    environment = dict(os.environ)
    if settings.is_dry:
        # On busy cores, threads would wait for each other.
        environment["OMP_NUM_THREADS"] = "1"
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
    }


@contextmanager
def compiling(settings: Settings, file: Path, environment: dict[str, str]) -> Iterator[None]:
    """Fill the compiler's cache in the background."""
    models = [] if settings.is_dry else list(COMPILED)
    with (Path(settings.out) / "compiler.txt").open("wb") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--worker", str(file), "--compile", model],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
            for model in models
        ]
        try:
            yield
        finally:
            for process in processes:
                kill_group(process)


def make_steps(
    steps: list[Step],
    results: Results,
    seconds: float,
    is_dry: bool,
    new_worker: Callable[[], Worker],
) -> None:
    """Make the steps in order, in one worker; after a failure, the next step gets a new one."""
    worker = None
    try:
        for step in steps:
            left = seconds - RESERVE - results.seconds
            if left < (0 if is_dry else step.seconds):
                kind = "optional, " if step.is_optional else ""
                results.end_step(step.name, "skipped", 0.0, f"{kind}{max(left, 0):.0f} s left")
                continue
            worker = worker or new_worker()
            start = time.monotonic()
            limit = min(left, DRY_LIMIT if is_dry else step.limit)
            problem = worker.make(step, limit, results.add)
            status = "failed" if problem else "ok"
            results.end_step(step.name, status, time.monotonic() - start, problem)
            if problem:
                # After an error on a GPU, a process may not be able to use it any more.
                worker.kill()
                worker = None
    finally:
        if worker is not None:
            worker.kill()


def keep_cache(work: Path, out: Path) -> None:
    """Pack the compiler's cache for another call, unless it is too large to send around."""
    target = out / "inductor.tar.gz"
    files = [path for path in (work / "inductor").rglob("*") if path.is_file()]
    if sum(path.stat().st_size for path in files) > 10 * CACHE_BYTES:
        return
    with tarfile.open(target, "w:gz", compresslevel=3) as archive:
        archive.add(work / "inductor", "inductor")
    if target.stat().st_size > CACHE_BYTES:
        target.unlink()


def chosen_steps(names: str) -> list[Step]:
    if not names:
        return STEPS
    chosen = names.split(",")
    unknown = set(chosen) - {step.name for step in STEPS}
    if unknown:
        sys.exit(f"--only: no step is called {', '.join(sorted(unknown))}; see --list")
    return [step for step in STEPS if step.name in chosen]


def main(arguments: argparse.Namespace) -> int:
    steps = chosen_steps(arguments.only)
    out = Path(os.environ.get("OUT") or "gpu-results").resolve()
    out.mkdir(parents=True, exist_ok=True)
    # A caller's time limit may end this process: then the files are still written.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    log = out / "log.txt"
    log.write_bytes(b"")
    results = Results(out, arguments.dry_run)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        site = Path(work) / "site"
        if arguments.wheels:
            install_wheels(Path(arguments.wheels), site)
        describe_checkout(site)
        settings = Settings(
            is_dry=arguments.dry_run,
            out=str(out),
            work=work,
            quickstart=str(Path(arguments.quickstart).resolve()) if arguments.quickstart else "",
            card="" if arguments.dry_run else name_of_card(),
        )
        file = Path(work) / "settings.json"
        settings.write(file)
        environment = environment_of(settings, site)
        if arguments.cache:
            with tarfile.open(arguments.cache) as archive:
                archive.extractall(work, filter="data")
        with compiling(settings, file, environment):
            try:
                make_steps(
                    steps,
                    results,
                    arguments.seconds,
                    settings.is_dry,
                    lambda: Worker(file, environment, log),
                )
            finally:
                results.write()
                print(results.text(), flush=True)
        if not settings.is_dry:
            keep_cache(Path(work), out)
    failed = [name for name, step in results.steps.items() if step["status"] == "failed"]
    if failed:
        print(f"failed: {', '.join(failed)}; see {log}")
    return 1 if failed else 0


# A worker: it reads names of steps and answers with rows and, at the end of a step, "done".


def work(settings: Settings) -> None:
    answers = os.fdopen(os.dup(1), "w")
    # What libraries print goes to the log.
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message, default=str) + "\n")
        answers.flush()

    prepare(settings)
    modules = {step.name: step.module for step in STEPS}
    for line in sys.stdin:
        name = line.strip()
        print(f"\n=== {name} ===", file=sys.stderr, flush=True)
        problem = ""
        try:
            module = importlib.import_module(modules[name])
            getattr(module, name)(settings, Report(name, settings.card, settings.is_dry, send))
        # A worker answers whatever happens in a step, also if a command calls sys.exit.
        except BaseException as error:
            traceback.print_exc()
            problem = (f"{type(error).__name__}: {error}".splitlines() or [""])[0][:300]
        finally:
            clean_up(settings)
        send({"done": problem})


def prepare(settings: Settings) -> None:
    """Set what must be set before the first operation on a GPU."""
    try:
        from nmt import kernels
        from nmt.kernels import compilation

        kernels.prepare()
        if settings.is_dry:
            # It checks that functions can be compiled, which takes seconds, and makes no kernels.
            compilation.BACKEND = "eager"
    except Exception:
        traceback.print_exc()


def clean_up(settings: Settings) -> None:
    """Leave nothing of a step that the next one would notice."""
    try:
        from gpu_training import forget_everything

        forget_everything(settings.device)
    except Exception:
        traceback.print_exc()


def compile_model(settings: Settings, model: str) -> None:
    start = time.perf_counter()
    if COMPILED[model] == "loop":
        from gpu_training import warm_up_compiler

        warm_up_compiler(settings, model)
    else:
        from gpu_runs import warm_up_command

        warm_up_command(settings, model)
    print(f"{model}: compiled in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    given = parse_arguments()
    if given.list:
        print("\n".join(step.name for step in STEPS))
    elif given.compile:
        compile_model(Settings.read(Path(given.worker)), given.compile)
    elif given.worker:
        work(Settings.read(Path(given.worker)))
    else:
        sys.exit(main(given))
