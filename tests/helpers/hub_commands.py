"""Commands that use the Hugging Face Hub, in a process of their own.

The huggingface_hub library reads its variables when it is imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import Outcome

PROGRAM = """
import json
import sys
from nmt.cli import main
from nmt.files import named_model

for line in sys.stdin:
    # As in a process of its own, which finds each model once.
    named_model.cache_clear()
    sys.argv = ["nmt", *json.loads(line)]
    code = 0
    try:
        main()
    except SystemExit as stopped:
        code = stopped.code or 0
    print(f"exit code {code}", flush=True)
    print("end of command", file=sys.stderr, flush=True)
"""
"""Run a command for each line of standard input."""
USER_VARIABLES = ("HF_TOKEN", "HF_HUB_OFFLINE")


def user_environment(home: Path, url: str) -> dict[str, str]:
    """The variables of a user of the hub at `url` who has downloaded nothing yet."""
    variables = {**os.environ, "HF_ENDPOINT": url}
    variables["HF_HOME"] = str(home / "huggingface")
    variables["XDG_CACHE_HOME"] = str(home / "cache")
    # The server speaks the protocol of large files, not Xet's.
    variables["HF_HUB_DISABLE_XET"] = "1"
    for name in USER_VARIABLES:
        variables.pop(name, None)
    return variables


def run_commands(
    commands: list[list[str]], folder: Path, environment: dict[str, str]
) -> list[Outcome]:
    """The outcome of each command; all run in one process, because a start takes seconds."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        input="\n".join(map(json.dumps, commands)),
        capture_output=True,
        text=True,
    )
    messages = done.stderr.split("end of command\n")
    outcomes = []
    out = ""
    for line in done.stdout.splitlines(keepends=True):
        if line.startswith("exit code "):
            code = int(line.removeprefix("exit code "))
            outcomes.append(Outcome(code, out, messages[len(outcomes)]))
            out = ""
        else:
            out += line
    assert len(outcomes) == len(commands), done.stderr
    return outcomes
