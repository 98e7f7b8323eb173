"""A process that has loaded everything, and forks for each command line: `nmt` in milliseconds, under limits.

It reads a JSON object a line: words, folder, seconds, bytes; and answers with code, seconds, work (the processor's
seconds) and late.
"""

import faulthandler
import gc
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def serve() -> None:
    import datasets  # noqa: F401
    import lightning  # noqa: F401
    import sacrebleu  # noqa: F401
    import sentencepiece  # noqa: F401
    import tokenizers  # noqa: F401

    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


def run(job: dict[str, Any]) -> dict[str, Any]:
    start, late, ended = time.monotonic(), False, 0
    child = os.fork()
    if child == 0:
        be_command(job)
    # A pipe that nobody writes into takes no time of the processor.
    while not ended:
        ended, status, used = os.wait4(child, os.WNOHANG)
        late = late or time.monotonic() - start > job["seconds"]
        if late and not ended:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)
    seconds, work = round(time.monotonic() - start, 2), used.ru_utime + used.ru_stime
    return {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "work": work, "late": late}


def be_command(job: dict[str, Any]) -> None:
    """In the child: to the end of the process."""
    os.setsid()
    os.chdir(job["folder"])
    for descriptor, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(name, flags, 0o644), descriptor)
    os.environ.update(XDG_CACHE_HOME=f"{job['folder']}/cache", TMPDIR=job["folder"], HOME=job["folder"])
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + job["bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.dump_traceback_later(0.9 * job["seconds"])
    code = 1
    try:
        from nmt.cli import main

        sys.argv = ["nmt", *job["words"]]
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
