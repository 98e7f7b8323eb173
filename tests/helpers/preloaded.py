"""A Python that has already imported torch, Lightning and other packages, and forks for each program.

Start `python()` in place of `sys.executable`. Programs run in forks of a server, with the streams,
folder, environment, signals and exit code of their client, but in another session. Tests of
terminals, process groups or memory need `sys.executable`.
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
CODE = struct.Struct("!i")
SERVERS: list[object] = []
"""Kept, because Python would warn about processes that nobody waits for."""


@cache
def python() -> str:
    """The path of the program, which all test processes share.

    On systems other than Linux, which lack process descriptors, it is Python itself.
    """
    if sys.platform != "linux":
        return sys.executable
    import tempfile
    from pathlib import Path

    from filelock import FileLock

    tests = os.getpid()
    if "PYTEST_XDIST_WORKER" in os.environ:
        tests = os.getppid()
    folder = Path(tempfile.gettempdir(), f"nmt-tests-{tests}")
    folder.mkdir(exist_ok=True)
    program = folder / "python"
    listens = folder / "socket"
    with FileLock(folder / "lock"):
        if not program.exists():
            start_server(str(listens), str(program), tests)
            client = [sys.executable, "-ISE", __file__, "client", str(listens)]
            program.write_text(f'#!/bin/sh\nexec {" ".join(client)} "$@"\n')
            program.chmod(0o755)
    return str(program)


def start_server(listens: str, program: str, tests: int) -> None:
    import subprocess
    from pathlib import Path

    import nmt

    environment = dict(os.environ)
    # The package under test, wherever it is installed.
    environment["PYTHONPATH"] = str(Path(nmt.__file__).parents[1])
    words = [sys.executable, __file__, "server", listens, program, str(tests)]
    server = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
    )
    SERVERS.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"


def client(name: str, words: list[str]) -> int:
    """Run a program in the server. Return its exit code, or die of its signal."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(name)
    folder = os.getcwd()  # noqa: PTH109
    request = json.dumps([words, folder, dict(os.environ), os.getpid()]).encode()
    socket.send_fds(connection, [SIZE.pack(len(request))], [0, 1, 2])
    connection.sendall(request)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: connection.sendall(bytes([number])))
    (code,) = CODE.unpack(connection.recv(CODE.size, socket.MSG_WAITALL))
    if code < 0:
        number = -code
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return code


def server(name: str, executable: str, tests: str) -> None:
    """Import everything slow, then serve until the process that runs the tests ends."""
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
    while True:
        readable, _, _ = select.select([listener, tests_end], [], [])
        if tests_end in readable:
            break
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            watch(connection)  # does not return
        connection.close()
    shutil.rmtree(os.path.dirname(name))  # noqa: PTH120
    os._exit(0)


def watch(connection: socket.socket) -> None:
    """Fork again for the program. Forward the client's signals, and return the exit code to it."""
    import select

    head, streams, *_ = socket.recv_fds(connection, SIZE.size, 3)
    request = connection.recv(*SIZE.unpack(head), socket.MSG_WAITALL)
    program = os.fork()
    if program == 0:
        connection.close()
        begin(streams, *json.loads(request))  # does not return
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(program)
    while True:
        readable, _, _ = select.select([ended, connection], [], [])
        if ended in readable:
            break
        numbers = connection.recv(16)
        if not numbers:  # the client was killed
            os.kill(program, signal.SIGKILL)
            os.waitpid(program, 0)
            os._exit(0)
        for number in numbers:
            os.kill(program, number)
    _, status = os.waitpid(program, 0)
    connection.sendall(CODE.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def parent_of(process: int) -> int:
    import pathlib

    status = pathlib.Path(f"/proc/{process}/stat").read_text()
    _, _, after_name = status.rpartition(")")
    return int(after_name.split()[1])


def begin(
    streams: list[int], words: list[str], folder: str, environment: dict[str, str], client: int
) -> None:
    """Behave like a Python that was started with these arguments."""
    import atexit
    import threading

    os.setsid()
    # The process that started the program is the client's parent, not the server.
    os.getppid = lambda: parent_of(client)
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    threads = environment.get("OMP_NUM_THREADS")
    if threads:
        sys.modules["torch"].set_num_threads(int(threads))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in folders if path]
    code = exit_code(words, folder)
    # Everything that Python does at exit except freeing modules, which takes a second.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def exit_code(words: list[str], folder: str) -> int:
    """Run a program as `python WORDS` does, and return its exit code."""
    import traceback

    try:
        run(words, folder)
    except SystemExit as error:
        if isinstance(error.code, int):
            return error.code
        return 0 if error.code is None else 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def run(words: list[str], folder: str) -> None:
    import runpy
    import types

    # The folder of a program is not on its path anyway.
    what, *rest = [word for word in words if word != "-P"]
    if what == "-m":
        sys.argv = rest
        sys.path[0] = folder
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif what == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(what)  # noqa: PTH120
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    role, socket_name, *others = sys.argv[1:]
    if role == "server":
        server(socket_name, *others)
    else:
        sys.exit(client(socket_name, others))
