"""The Ray cluster of a job: which one it is, and what of Ray's talk a user sees."""

import os
import pwd
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from nmt.config import NMTError, one_line
from nmt.translation import warn

NAMESPACE = "nmt"
NEW = "local"
"""What Ray calls a cluster that it starts on this machine for one program."""
NAMES = (NEW, "auto")
"""Values of an address that Ray looks up itself."""
CLIENT = "ray://"
ANSWER_SECONDS = 5.0
"""The time in which a cluster must accept a connection."""
QUIET = {
    # Ray would report each use to its makers.
    "RAY_USAGE_STATS_ENABLED": "0",
    # Workers without a GPU say device=cpu, so Ray need not hide the GPUs, and need not warn.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
GONE_SECONDS = 3.0
"""The time after which a cluster whose head does not answer is gone."""
LOOK_SECONDS = 1.0
"""The time between two attempts to connect to the head."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""The signals that end nmt. Ray replaces their handlers."""
CAUSES = {
    # First, because Ray's paragraph goes on with the end of that machine.
    "its owner has died": "Ray on the machine of this job has ended",
    "running low on memory": "its machine was short of memory, so Ray stopped it",
    "node has died": "its machine is gone",
    "node was terminated": "its machine is gone",
    "node is dead": "its machine is gone",
    "exit code": "its process exited with an error",
    "unexpectedly exits": "its process was killed or crashed, perhaps because memory ran out",
    "unavailable": "it no longer answers",
}
"""Part of Ray's paragraph about a dead worker -> what it means."""
NO_CAUSE = re.compile(
    r"The actor died unexpectedly before finishing this task\.?"
    r"|\b(class_name|actor_id|pid|name|namespace|ip):[ \t]*\S*"
)
"""What Ray's paragraph has even if Ray knows no cause."""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to a cluster, or start one, and yield the module ray; at the end, leave it."""
    program = sys.modules.get("ray")
    if program and program.is_initialized():  # by the program that calls nmt
        yield program
        return
    chosen = address_to_use(address)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray  # reads these variables

    # Ray prints a paragraph on standard output for each dead worker, whatever its options are. nmt
    # reports each one in a line, and the job writes to files.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        try:
            with same_signals():
                ray.init(
                    chosen,
                    namespace=NAMESPACE,
                    logging_level="ERROR",
                    log_to_driver=False,
                    include_dashboard=False,
                )
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise NMTError(
                f"{address or 'cluster=ray'}: cannot connect to the Ray cluster "
                f"({one_line(error)}); if it asks for a token, set RAY_AUTH_MODE=token"
            ) from error
        try:
            warn(description(ray, chosen))
            yield ray
        finally:
            ray.shutdown()


class ClusterGone(NMTError):
    """The head of the cluster is gone."""


class Head:
    """The head of a cluster, which knows its machines and starts workers.

    Ray itself waits a minute for a head that is gone, and then ends the process with its own
    message. While the head does not answer, no call must need it: such a call would wait, too.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_there = True
        self.answered = time.monotonic()
        self.looked = self.answered

    def answers(self) -> bool:
        """Whether the head answers; ClusterGone if it has not for GONE_SECONDS.

        Asks at most once per LOOK_SECONDS.
        """
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return self.is_there
        self.is_there = answers(self.address)
        self.looked = time.monotonic()
        if self.is_there:
            self.answered = self.looked
        elif self.looked - self.answered > GONE_SECONDS:
            raise ClusterGone(
                f"the Ray cluster at {self.address} is gone: its head does not answer; repeat the "
                "command to resume"
            )
        return self.is_there


@contextmanager
def same_signals() -> Iterator[None]:
    """Keep the handlers of signals.

    Ray's own handler of SIGTERM, which is not in Python, prints a C++ stack and exits with 15.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if handler is not None:  # None: it is not in Python
                signal.signal(number, handler)


def address_to_use(address: str | None) -> str | None:
    """What `ray.init` gets; None: the cluster that `ray start` has recorded on this machine.

    Ray alone would fail if the recorded cluster is dead, and would join it if it is someone else's.
    NMTError if no program listens at an address that the user gave.
    """
    given = address or os.environ.get("RAY_ADDRESS")
    if given:
        # Ray would try for many minutes, and print a line every few seconds.
        if given not in NAMES and not answers(given.removeprefix(CLIENT)):
            key = "ray.address" if address else "RAY_ADDRESS"
            raise NMTError(
                f"{key}={given}: no Ray cluster answers; `ray status` on the machine of the "
                "cluster's head shows whether it runs"
            )
        return given
    path = record_of_ray_start()
    try:
        recorded = path.read_text().strip()
        owner = path.stat().st_uid
    except (OSError, ValueError):
        return NEW
    if not recorded:
        return NEW
    if owner != os.getuid():
        warn(
            f"Ray runs on this machine for {name_of_user(owner)}; to use that cluster, pass "
            f"ray.address={recorded}"
        )
        return NEW
    if not answers(recorded):
        warn(
            f"no Ray cluster answers at {recorded}, which `ray start` has recorded in {path}; run "
            "`ray start` again to use a cluster"
        )
        return NEW
    return None


def record_of_ray_start() -> Path:
    """The file in which `ray start` records the address of this machine's cluster."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    return Path(folder, "ray", "ray_current_cluster")


def name_of_user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def answers(address: str) -> bool:
    """Whether a program listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def address_of_head(ray: Any, address: str | None) -> str:
    """HOST:PORT of the cluster's head, or of its server for clients."""
    given = address or os.environ.get("RAY_ADDRESS") or ""
    if given.startswith(CLIENT):
        return given.removeprefix(CLIENT)
    head: str = ray.get_runtime_context().gcs_address
    return head


def description(ray: Any, address: str | None) -> str:
    """The cluster of a job, in words."""
    resources = dict[str, int]()
    machines = 0
    for node in ray.nodes():
        if node["Alive"]:
            machines += 1
            for name in ("CPU", "GPU"):
                resources[name] = resources.get(name, 0) + int(node["Resources"].get(name, 0))
    sizes = []
    for name in ("CPU", "GPU"):
        number = resources.get(name, 0)
        sizes.append(f"1 {name}" if number == 1 else f"{number:,} {name}s")
    size = ", ".join(sizes)
    if address == NEW:
        return f"Ray started on this machine: {size}"
    where = address or ray.get_runtime_context().gcs_address
    count = "1 machine" if machines == 1 else f"{machines:,} machines"
    return f"Ray cluster at {where}: {count}, {size}"


def cause_of_death(error: Exception) -> str:
    """Why a worker died, from Ray's paragraph about it."""
    text = " ".join(str(error).split())
    for part, meaning in CAUSES.items():
        if part in text:
            return meaning
    cause = NO_CAUSE.sub(" ", str(error)).strip()
    return one_line(RuntimeError(cause)) if cause else "its process ended"
