"""Measure nmt on one H100 or H200 in one call, beside estimates for these cards.

    python benchmarks/gpu.py --check
    python benchmarks/gpu.py [--seconds 480] [--quickstart FOLDER] [--wheels FOLDER] [--cache FILE]
    python benchmarks/gpu.py --only training_big,profile
    python benchmarks/gpu.py --dry-run

Run these commands in the root of the repository. The script tests one GPU, also on a machine with
several; it does not test training on several GPUs. The required steps fit in --seconds 480.
The optional steps follow; they are skipped if time runs out.

The script prints each figure at once. A table comes last: what was measured, what was expected and
their ratio, or whether a property holds. The expected figures are estimates from counted operations
(gpu_report.py), not measurements; a MISS is worth a look at the profile. On other cards, the table
has no ratios. The table, all numbers as JSON, the logs and profiles go to $OUT or, if it is not
set, to ./gpu-results.

--check       Only check that the machine has everything: Python, packages, paths and a GPU. Each
              call does this first. The exit code is 2 if something is missing.
--seconds     End after this time. Steps without enough time left are skipped, optional ones first.
--only        Run only these steps.
--list        Print each step's name, its expected seconds, whether it is required, and its purpose.
--dry-run     Compute about a fiftieth of everything on a CPU, to test this script. The figures
              mean nothing.
--quickstart  The prepared corpus of the quickstart: `nmt preprocess experiment=quickstart` writes
              it to data/quickstart_en_de. Without it, the quickstart is skipped.
--cache       The file inductor.tar.gz from an earlier call on the same kind of GPU, which saves
              time for compiling.
--wheels      Install the wheels in a folder that the machine lacks, for this call only.

The machine needs Python 3.11 or newer with these packages and what they depend on; `--check` names
what is missing:

    annotated-doc antlr4-python3-runtime hydra-core jinja2 lazy-loader lightning numpy omegaconf
    pyarrow pyyaml regex rich sacrebleu safetensors sentencepiece sentencex tensorboard tokenizers
    torch typer

A C++ compiler and the package triton, which comes with torch, are needed to compile. nmt itself
need not be installed. For a machine without network that lacks some small packages, prepare a
folder of wheels elsewhere, from the root of this repository. The example is for a machine that has
the large packages, such as torch, and lacks seven small ones. Replace 3.12 with the GPU machine's
Python version, and the package names with the names that `--check` prints:

    pip download --no-deps --only-binary=:all: --python-version 3.12 \\
        --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 -c constraints.txt \\
        -d wheels annotated-doc hydra-core omegaconf lazy-loader typer sentencex
    pip wheel --no-deps -c constraints.txt -w wheels antlr4-python3-runtime

Then copy this repository with the folders wheels and data/quickstart_en_de, and call

    python benchmarks/gpu.py --wheels wheels --quickstart data/quickstart_en_de
"""

# So that an old Python gets as far as the message about its version.
from __future__ import annotations

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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gpu_preflight import preflight, wheels_in
from gpu_report import Report, Row, table
from gpu_settings import Settings

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "nmt-toolkit"
RESERVE = 12.0
"""Seconds at the end for the table and the files."""
READY_SECONDS = 120.0
"""A worker may take this long to import what a step needs."""
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
    purpose: str
    compiles: tuple[str, ...] = ()
    """Models whose compilation in the background saves this step's time."""
    is_optional: bool = False
    """These steps come last, so that they are the first for which no time is left."""


MACHINE = Step("machine", "gpu_machine", 8, 40, "versions, and what the card can do at most")
"""Nothing else may use the GPU during this step."""
STEPS = [
    MACHINE,
    Step("attention_plans", "gpu_machine", 15, 45, "what a new batch shape costs in attention"),
    Step("numerics", "gpu_checks", 10, 40, "loss and layers against a CPU in float64"),
    Step("kernel_names", "gpu_checks", 3, 20, "which attention kernels run"),
    Step("same_translations", "gpu_checks", 8, 30, "the search finds a CPU's translations"),
    Step("syncs", "gpu_checks", 12, 40, "no update waits for the GPU"),
    Step(
        "determinism",
        "gpu_runs",
        50,
        90,
        "two runs, and a resumed one, have equal bits",
        compiles=("toy",),
    ),
    Step(
        "training_base",
        "gpu_training",
        45,
        90,
        "speed and memory of training base",
        compiles=("base",),
    ),
    Step(
        "training_big",
        "gpu_training",
        70,
        120,
        "speed and memory of training big",
        compiles=("big",),
    ),
    Step(
        "train_command",
        "gpu_runs",
        30,
        60,
        "`nmt train` is as fast as a bare loop",
        compiles=("base",),
    ),
    Step(
        "profile",
        "gpu_training",
        45,
        80,
        "which kernels take the time of an update",
        compiles=("big", "base"),
    ),
    Step("quickstart", "gpu_runs", 60, 110, "the quickstart, trained to its usual BLEU"),
    Step("search", "gpu_search", 15, 45, "speed of translation"),
    Step(
        "compiled_numerics",
        "gpu_checks",
        30,
        60,
        "a compiled model against a CPU in float64",
        is_optional=True,
    ),
    Step(
        "quickstart_resumed",
        "gpu_runs",
        60,
        110,
        "the quickstart, killed and resumed, has equal bits; needs the step quickstart",
        is_optional=True,
    ),
    Step(
        "training_more",
        "gpu_training",
        25,
        60,
        "speed of big in TF32, and with larger updates",
        compiles=("big",),
        is_optional=True,
    ),
    Step(
        "ctranslate2",
        "gpu_search",
        20,
        30,
        "speed of translation with CTranslate2, if it is installed",
        is_optional=True,
    ),
]
DRY_LIMIT = 600.0
"""A dry run has few cores: it may take longer over a step than a GPU."""


def parse_arguments() -> argparse.Namespace:
    keeps_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keeps_lines)
    parser.add_argument("--check", action="store_true")
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

    def __init__(self, out: Path, is_dry: bool, start: float) -> None:
        self.out = out
        self.is_dry = is_dry
        self.rows: list[Row] = []
        self.steps: dict[str, dict[str, Any]] = {}
        self.start = start

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
        if status == "interrupted":
            self.add(Row(name, "the step", f"interrupted {reason}"))
        elif status != "ok":
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

    def make(self, step: Step, limit: float, left: float, add: Callable[[Row], None]) -> str:
        """Make a step; return what went wrong, or an empty string.

        `limit` seconds count from the time when the worker has imported what the step needs,
        `left` seconds from now.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(step.name + "\n")
            self.process.stdin.flush()
        except OSError as error:
            return f"its process is gone ({error})"
        start = time.monotonic()
        last = start + left
        end = min(last, start + READY_SECONDS)
        expected = "ready"
        while True:
            try:
                message = self.messages.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return f"not {expected} after {end - start:.0f} s"
            if message is None:
                return f"its process ended with code {self.process.wait()}; see the log"
            if "ready" in message:
                start = time.monotonic()
                end = min(last, start + limit)
                expected = "finished"
            if "row" in message:
                add(Row(**message["row"]))
            if "done" in message:
                return str(message["done"])

    def kill(self) -> None:
        kill_group(self.process)
        self.log.close()


def kill_group(process: subprocess.Popen[Any]) -> None:
    # The group may outlive its first process.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def install_wheels(folder: str, target: Path) -> str:
    """Install the wheels that this Python lacks, or has in another version, into a new folder.

    Return what went wrong, or an empty string.
    """
    missing = []
    for wheel in wheels_in(folder):
        name, version = wheel.name.split("-")[:2]
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = ""
        if installed != version:
            missing.append(str(wheel))
    if not missing:
        return ""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--disable-pip-version-check", "--target", str(target)]
    try:
        done = subprocess.run([*command, *missing], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "--wheels: pip was not ready after 120 s"
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return f"--wheels: pip cannot install them: {reason}"
    print(f"installed {len(missing)} wheels from {folder}", flush=True)
    return ""


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


def card_of(gpu: str) -> str:
    """H100 or H200, or an empty string for another card."""
    return next((card for card in ("H100", "H200") if card in gpu), "")


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


class Compilations:
    """Processes that fill the compiler's cache in the background."""

    def __init__(self, models: list[str], settings_file: Path, log: Path) -> None:
        self.models = models
        self.settings_file = settings_file
        self.log = log
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, environment: dict[str, str]) -> None:
        """Start them, unless they have been started before."""
        models = self.models
        self.models = []
        for model in models:
            command = [sys.executable, __file__, "--worker", str(self.settings_file)]
            with self.log.open("ab") as log:
                process = subprocess.Popen(
                    [*command, "--compile", model],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
            self.processes.append(process)

    def kill(self) -> None:
        for process in self.processes:
            kill_group(process)


def make_steps(
    steps: list[Step],
    results: Results,
    seconds: float,
    new_worker: Callable[[], Worker],
    start_compiling: Callable[[], None],
) -> None:
    """Make the steps in order, in one worker; after a failure, the next step gets a new one."""
    worker = None
    try:
        for step in steps:
            left = seconds - RESERVE - results.seconds
            if left < (0 if results.is_dry else step.seconds):
                kind = "optional, " if step.is_optional else ""
                results.end_step(step.name, "skipped", 0.0, f"{kind}{max(left, 0):.0f} s left")
                continue
            if step is not MACHINE:
                start_compiling()
            worker = worker or new_worker()
            limit = DRY_LIMIT if results.is_dry else step.limit
            if make_step(step, worker, results, limit, left):
                # After an error on a GPU, a process may not be able to use it any more.
                worker.kill()
                worker = None
    finally:
        if worker is not None:
            worker.kill()


def make_step(step: Step, worker: Worker, results: Results, limit: float, left: float) -> str:
    """Make a step and record how it ended; return what went wrong, or an empty string."""
    start = time.monotonic()
    try:
        problem = worker.make(step, limit, left, results.add)
    # From a signal.
    except SystemExit:
        seconds = time.monotonic() - start
        results.end_step(step.name, "interrupted", seconds, f"after {seconds:.0f} s")
        raise
    status = "failed" if problem else "ok"
    results.end_step(step.name, status, time.monotonic() - start, problem)
    return problem


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
    chosen = names.split(",")
    return [step for step in STEPS if not names or step.name in chosen]


def unknown_steps(names: str) -> list[str]:
    """What is wrong with --only."""
    known = {step.name for step in STEPS}
    unknown = [name for name in names.split(",") if names and name not in known]
    if not unknown:
        return []
    return [f"--only: no step is called {', '.join(unknown)}; see --list"]


def list_steps() -> None:
    for step in STEPS:
        kind = "optional" if step.is_optional else "required"
        print(f"{step.name:<18}  {step.seconds:>3} s  {kind}  {step.purpose}")


def stop(number: int, frame: object) -> None:
    """End this process in answer to a signal, after it has written its files."""
    sys.exit(128 + number)


def models_to_compile(steps: list[Step]) -> list[str]:
    """In the order in which the steps need them."""
    models = list[str]()
    for step in steps:
        models += [model for model in step.compiles if model not in models]
    return models


def main(arguments: argparse.Namespace) -> int:
    start = time.monotonic()
    gpu, problems = preflight(arguments)
    problems += unknown_steps(arguments.only)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 2
    if arguments.check:
        print(f"ready: Python {sys.version.split()[0]}, {gpu or 'dry runs only'}")
        return 0
    # A caller's time limit may end this process: then the files are still written.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    out = Path(os.environ.get("OUT") or "gpu-results").resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out, arguments.dry_run, start)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        settings = Settings(
            is_dry=arguments.dry_run,
            out=str(out),
            work=work,
            quickstart=str(Path(arguments.quickstart).resolve()) if arguments.quickstart else "",
            card=card_of(gpu),
        )
        site = Path(work) / "site"
        problem = install_wheels(arguments.wheels, site)
        if problem:
            print(problem, file=sys.stderr)
            return 2
        describe_checkout(site)
        measure(chosen_steps(arguments.only), results, arguments, settings, site)
    failed = [name for name, step in results.steps.items() if step["status"] == "failed"]
    if failed:
        print(f"failed: {', '.join(failed)}; see {out / 'log.txt'}")
    return 1 if failed else 0


def measure(
    steps: list[Step],
    results: Results,
    arguments: argparse.Namespace,
    settings: Settings,
    site: Path,
) -> None:
    """Make the steps, print the table and keep the compiler's cache."""
    out = Path(settings.out)
    work = Path(settings.work)
    log = out / "log.txt"
    log.write_bytes(b"")
    file = work / "settings.json"
    settings.write(file)
    environment = environment_of(settings, site)
    if arguments.cache:
        with tarfile.open(arguments.cache) as archive:
            archive.extractall(work, filter="data")
    compiler_log = out / "compiler.txt"
    compiler_log.write_bytes(b"")
    models = [] if settings.is_dry else models_to_compile(steps)
    compilations = Compilations(models, file, compiler_log)
    try:
        make_steps(
            steps,
            results,
            arguments.seconds,
            lambda: Worker(file, environment, log),
            lambda: compilations.start(environment),
        )
    finally:
        results.write()
        print(results.text(), flush=True)
        compilations.kill()
    if not settings.is_dry:
        keep_cache(work, out)


# A worker: it reads names of steps. It answers "ready" after the imports of a step, then with rows
# and, at the end of the step, with "done".


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
            send({"ready": name})
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
    if model == "toy":
        from gpu_runs import warm_up_toy

        warm_up_toy(settings)
    else:
        from gpu_training import warm_up_compiler

        warm_up_compiler(settings, model)
    print(f"{model}: compiled in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    given = parse_arguments()
    if given.list:
        list_steps()
    elif given.compile:
        compile_model(Settings.read(Path(given.worker)), given.compile)
    elif given.worker:
        work(Settings.read(Path(given.worker)))
    else:
        sys.exit(main(given))
