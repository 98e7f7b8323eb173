"""A Python that has already imported torch, Lightning and the rest, and forks for each program.

Start `python()` like `sys.executable`. Programs run in forks of a server with the streams, folder, environment, signals
and exit code of their client, but in another session: tests of terminals, process groups or memory need sys.executable.
"""

import json
import os
import signal
import socket
import struct
import sys
from functools import cache

# pathlib is not imported, so that a client starts quickly.
SIZE = struct.Struct("!I")


@cache
def python() -> str:
    """The path of the program; Python itself without Linux's process descriptors. All test processes share it."""
    if sys.platform != "linux":
        return sys.executable
    import subprocess
    import tempfile
    from pathlib import Path

    from filelock import FileLock

    import nmt

    tests = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    folder = Path(tempfile.gettempdir(), f"nmt-tests-{tests}")
    folder.mkdir(exist_ok=True)
    program, listens = folder / "python", folder / "socket"
    with FileLock(folder / "lock"):
        if not program.exists():
            words = [sys.executable, __file__, "server", str(listens), str(program), str(tests)]
            package = {
                "PYTHONPATH": str(Path(nmt.__file__).parents[1])
            }  # the one under test, wherever it is installed
            server = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env={**os.environ, **package},
            )
            SERVERS.append(server)
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            client = [sys.executable, "-ISE", __file__, "client", str(listens)]
            program.write_text(f'#!/bin/sh\nexec {" ".join(client)} "$@"\n')
            program.chmod(0o755)
    return str(program)


SERVERS: list[object] = []  # kept, or Python would warn about processes that nobody waits for


def client(name: str, words: list[str]) -> int:
    """Run a program in the server, and return its exit code or die of its signal."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(name)
    request = json.dumps([words, os.getcwd(), dict(os.environ), os.getpid()]).encode()  # noqa: PTH109
    socket.send_fds(connection, [SIZE.pack(len(request))], [0, 1, 2])
    connection.sendall(request)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: connection.sendall(bytes([number])))
    (code,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    return code


def server(name: str, executable: str, tests: str) -> None:
    """Import everything slow; then serve until the process that runs the tests ends."""
    import gc
    import select
    import shutil

    import lightning  # noqa: F401
    import pyarrow  # noqa: F401
    import sacrebleu  # noqa: F401
    import sentencepiece  # noqa: F401
    import tokenizers  # noqa: F401
    import torch._dynamo  # noqa: F401

    import nmt.commands
    import nmt.training.train  # noqa: F401
    from nmt.training import peak

    peak.IDLE_ROUNDS = 1  # every program that trains measures the peak
    gc.collect()
    gc.freeze()  # memory that garbage collection does not touch is not copied
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(64)
    # Processes that a program starts, such as Lightning's, use the server too.
    sys.executable = executable
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    tests_end = os.pidfd_open(int(tests))
    while tests_end not in select.select([listener, tests_end], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return watch(connection)
        connection.close()
    shutil.rmtree(os.path.dirname(name))  # noqa: PTH120
    os._exit(0)


def watch(connection: socket.socket) -> None:
    """Fork again for the program; forward the client's signals to it and its exit code to the client."""
    import select

    head, streams, *_ = socket.recv_fds(connection, SIZE.size, 3)
    request = connection.recv(*SIZE.unpack(head), socket.MSG_WAITALL)
    program = os.fork()
    if program == 0:
        connection.close()
        return begin(streams, *json.loads(request))
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(program)
    while ended not in (ready := select.select([ended, connection], [], [])[0]):
        numbers = connection.recv(16) if ready else b""
        for number in numbers or bytes([signal.SIGKILL]):
            os.kill(program, number)
        if not numbers:
            os.waitpid(program, 0)
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    connection.sendall(struct.pack("!i", code))
    os._exit(0)


def begin(
    streams: list[int], words: list[str], folder: str, environment: dict[str, str], client: int
) -> None:
    """Behave like a Python that was started with these arguments."""
    import atexit
    import pathlib
    import threading
    import traceback

    os.setsid()
    # The process that started the program is the client's parent, not the server.
    os.getppid = lambda: int(
        pathlib.Path(f"/proc/{client}/stat").read_text().rpartition(")")[2].split()[1]
    )
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if threads := environment.get("OMP_NUM_THREADS"):
        sys.modules["torch"].set_num_threads(int(threads))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        )
    sys.path[1:1] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    code = 0
    try:
        run(words, folder)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception:
        traceback.print_exc()
        code = 1
    # Everything that Python does at exit except freeing modules, which takes a second.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def run(words: list[str], folder: str) -> None:
    """Run a program as `python WORDS` does."""
    import runpy
    import types

    what, *rest = [
        word for word in words if word != "-P"
    ]  # the folder of a program is not on its path anyway
    if what == "-m":
        sys.argv, sys.path[0] = rest, folder
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif what == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv, sys.path[0] = words, os.path.dirname(what)  # noqa: PTH120
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    role, socket_name, *others = sys.argv[1:]
    if role == "server":
        server(socket_name, *others)
    else:
        sys.exit(client(socket_name, others))
