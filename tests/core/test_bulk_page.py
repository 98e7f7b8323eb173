"""The commands of docs/guides/bulk.md, with stand-ins for SLURM."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import WORDS
from tests.helpers.preloaded import python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guides/bulk.md").read_text()
SEARCH = "engine=torch decode=greedy decode.max_extra_length=3 buffer=1"
SBATCH = f"""#!{sys.executable}
# Runs the tasks of an array one after another, and again those that were requeued.
import os, re, subprocess, sys
from pathlib import Path

job = 100 + len(list(Path().glob("job-*")))
Path(f"job-{{job}}").touch()
*options, last = sys.argv[1:]
for option in options:
    if option.startswith("--dependency=afterok:"):
        previous = option.partition(":")[2]
        # --kill-on-invalid-dep=yes cancels the job.
        if Path(f"failed-{{previous}}").exists():
            sys.exit()
if "--wrap" in options:
    sys.exit(subprocess.run(["bash", "-c", last]).returncode)
script = Path(last).read_text()
given = [option for option in options if option.startswith("--array=")]
array = given[0] if given else re.search(r"--array=\\S+", script)[0]
tasks = []
for piece in array.partition("=")[2].partition("%")[0].split(","):
    first, _, end = piece.partition("-")
    tasks += range(int(first), int(end or first) + 1)
for number, task in enumerate(tasks, 1):
    variables = {{
        "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_ARRAY_TASK_COUNT": str(len(tasks)),
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_ARRAY_JOB_ID": str(job),
        # SLURM starts the last task with the ID of the array, and the other ones with new IDs.
        "SLURM_JOB_ID": str(job if task == tasks[-1] else 1000 + task),
    }}
    code = 1
    while code:
        with Path(f"slurm-{{job}}_{{task}}.out").open("a") as output:
            streams = {{"stdout": output, "stderr": output}}
            code = subprocess.run(["bash", last], env={{**os.environ, **variables}}, **streams).returncode
        requeued = Path("requeued")
        if code and not (requeued.exists() and requeued.read_text() == f"requeue {{job}}_{{task}}\\n"):
            Path(f"failed-{{job}}").touch()
            break
        requeued.rename(f"requeued-{{task}}") if code else None
if "--parsable" in options:
    print(job)
"""
SRUN = """#!/bin/bash
# Sends SIGUSR1 once to task 4 while it translates, as SLURM does before the time limit.
shift
"$@" & task=$!
partial=mono.de.parts/.004-of-004.nmt-partial.json
if [ "$SLURM_ARRAY_TASK_ID" = 4 ] && [ ! -e signaled ]; then
    while [ ! -e $partial ]; do sleep 0.01; done
    touch signaled
    kill -USR1 $task
fi
wait $task
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


@pytest.fixture
def shell(here: Path, checkpoint: str, monkeypatch: pytest.MonkeyPatch):
    """Runs lines of the page in a shell, on four parts of a small input."""
    lines = [" ".join(WORDS[: number % 9]) + "\n" for number in range(800)]
    Path("mono.en").write_text("".join(lines))
    Path("bin").mkdir()
    programs = {
        "sbatch": SBATCH,
        "srun": SRUN,
        "scontrol": '#!/bin/bash\necho "$@" > requeued\n',
        "nmt": f'#!/bin/bash\nexec {python()} -m nmt "$@"\n',
    }
    for name, content in programs.items():
        Path("bin", name).write_text(content)
        Path("bin", name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path('bin').resolve()}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def adapted(text: str) -> str:
        text = text.replace("runs/x", f"{checkpoint} {SEARCH}").replace("threads=4", "threads=1")
        text = text.replace("/64", "/4").replace("1-64%16", "1-4%2")
        text = text.replace("{}/16", "{}/4").replace("seq 16", "seq 4")
        return re.sub(r"source \S+activate;?", "", text)

    Path("translate.sbatch").write_text(adapted(blocks("bash")[0]))

    def run(text: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", adapted(text)]
        return subprocess.run(command, capture_output=True, text=True, timeout=400)

    return run


def expected(shell) -> bytes:
    assert shell("nmt translate mono.en runs/x output=whole").returncode == 0
    return Path("whole").read_bytes()


@pytest.mark.slow
def test_an_array_of_slurm_is_requeued_and_joined(shell):
    submit = next(block for block in blocks("sh") if "sbatch" in block)
    outcome = shell(submit)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "mono.de: 800 lines of 4 parts\n"
    assert Path("signaled").exists()
    assert Path("requeued-4").read_text() == "requeue 100_4\n"
    assert "resuming after" in Path("slurm-100_4.out").read_text()
    assert Path("mono.de").read_bytes() == expected(shell)
    # Submitted again, no task computes anything.
    again = "mono.de: 800 lines of 4 parts, which had been joined before\n"
    assert shell(submit).stdout == again
    assert "part 3/4 is complete" in Path("slurm-102_3.out").read_text()


@pytest.mark.slow
def test_tasks_that_failed_are_submitted_again(shell):
    Path("signaled").touch()
    Path("mono.de.parts").mkdir()
    for number in (1, 3):
        # Another file with the name of a part makes its task fail.
        Path(f"mono.de.parts/00{number}-of-004").write_text("other\n")
    submit = next(block for block in blocks("sh") if "sbatch" in block)
    outcome = shell(submit)
    assert outcome.stdout == ""
    assert not Path("mono.de").exists()
    assert "overwrite=true" in Path("slurm-100_3.out").read_text()
    for number in (1, 3):
        Path(f"mono.de.parts/00{number}-of-004").unlink()
    missing = shell("nmt gather mono.de")
    assert missing.returncode == 2
    (numbers,) = re.findall(r"unfinished parts: (.*) of 4 \(", missing.stderr)
    assert numbers == "1, 3"
    assert shell(f"sbatch --array={numbers.replace(' ', '')} translate.sbatch").returncode == 0
    assert shell("nmt gather mono.de").stdout == "mono.de: 800 lines of 4 parts\n"
    assert Path("mono.de").read_bytes() == expected(shell)


@pytest.mark.slow
def test_xargs_runs_parts_on_one_machine(shell):
    xargs, _ = next(block for block in blocks("sh") if "xargs" in block).splitlines()
    outcome = shell(xargs)
    assert outcome.stdout == "mono.de: 800 lines of 4 parts\n", outcome.stderr
    assert Path("mono.de").read_bytes() == expected(shell)
    again = shell(xargs)
    assert again.returncode == 0
    assert again.stdout == "mono.de: 800 lines of 4 parts, which had been joined before\n"
    assert again.stderr.count("is complete") == 4


@pytest.mark.slow
def test_the_script_for_many_files(shell):
    Path("split").mkdir()
    subprocess.run(["split", "-l", "300", "mono.en", "split/mono."], check=True)
    script = blocks("bash")[1]
    Path("split/mono.ab").rename("later")
    Path("split/mono.ab").mkdir()
    assert shell(script).returncode != 0
    Path("split/mono.ab").rmdir()
    Path("later").rename("split/mono.ab")
    outcome = shell(script)
    assert outcome.returncode == 0, outcome.stderr
    assert "translated/mono.aa" not in outcome.stdout
    assert sorted(path.name for path in Path("translated").iterdir()) == [
        "mono.aa",
        "mono.ab",
        "mono.ac",
    ]
    assert Path("mono.de").read_bytes() == expected(shell)
