"""A process that has loaded everything, and forks for each command line: `nmt` in milliseconds, under limits.

It reads a JSON object a line: words, folder, limit_seconds, limit_bytes; and answers with code, seconds, the
processor's seconds (work), and bytes.
"""

import faulthandler
import gc
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    import datasets  # noqa: F401
    import lightning  # noqa: F401
    import sacrebleu  # noqa: F401
    import sacremoses  # noqa: F401
    import sentencepiece  # noqa: F401
    import tokenizers  # noqa: F401

    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


def run(job: dict[str, Any]) -> dict[str, Any]:
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        begin(job)
    # A pipe that nobody writes into takes no time of the processor.
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        late = time.monotonic() - start > job["limit_seconds"]
        if found:
            break
        if late:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": round(time.monotonic() - start, 2),
        "work": used.ru_utime + used.ru_stime,
        "late": late,
        "bytes": used.ru_maxrss * 1024,
    }


def begin(job: dict[str, Any]) -> None:
    """In the child: to the end of the process."""
    os.setsid()
    folder = Path(job["folder"])
    os.chdir(folder)
    for descriptor, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(name, flags, 0o644), descriptor)
    os.environ.update(XDG_CACHE_HOME=str(folder / "cache"), TMPDIR=str(folder), HOME=str(folder))
    with Path("/proc/self/statm").open() as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + job["limit_bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.dump_traceback_later(0.9 * job["limit_seconds"])
    code = 1
    try:
        command(job["words"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def command(words: list[str]) -> None:
    from nmt.cli import complain, main
    from nmt.errors import NMTError

    if words[0] in OTHERS:
        try:
            OTHERS[words[0]](*map(Path, words[1:]))
        except NMTError as error:
            complain(error)
            sys.exit(2)
        sys.exit(0)
    sys.argv = ["nmt", *words]
    main()


def blocks(path: Path) -> None:
    """What a cluster is told to translate: rows of Parquet, or lines."""
    from nmt.plugins.cluster.blocks import cut, find_files, read_block

    for block in cut(find_files(str(path)), 7, "source")[0]:
        read_block(block, "source", print)


OTHERS = {"blocks": blocks}

if __name__ == "__main__":
    main()
