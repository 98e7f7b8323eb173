"""Run a job on a cluster of several nodes on this machine, and disturb it.

`python on_ray.py PLAN WORD...` runs `nmt translate WORD...` in this process. PLAN is JSON with the
CPUs of each node, the number of workers to kill, the seconds between kills, and whether to remove
the last node after the kills. `edit` names a file of the model to change before the first kill, and
`guard` an output that another job writes. The script writes the kills and the driver's memory.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from nmt.commands import COMMANDS, compose
from nmt.errors import NMTError
from nmt.plugins.cluster.pool import NAMESPACE, Guard, name_of_guard

STORE_BYTES = 100 * 2**20


def parents() -> dict[int, int]:
    """The parent of each process."""
    table = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of a process, which is in parentheses, may contain blanks.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        table[int(path.parent.name)] = int(fields[1])
    return table


def descendants() -> list[int]:
    """The processes that this process and its children have started."""
    table = parents()
    ours = {os.getpid()}
    grows = True
    while grows:
        children = {child for child, parent in table.items() if parent in ours}
        grows = not children <= ours
        ours |= children
    return sorted(ours - {os.getpid()})


def workers() -> list[int]:
    """The workers of this cluster that translate at the moment."""
    found = []
    for process in descendants():
        try:
            title = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::BlockWorker.compute"):
            found.append(process)
    return found


def memory() -> int:
    """The memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    raise AssertionError("no VmRSS")


class Disturbance(threading.Thread):
    """Kills workers at random, then removes a node, while the job runs."""

    def __init__(self, plan: dict[str, Any], cluster: Cluster, node: Any) -> None:
        super().__init__(daemon=True)
        self.plan = plan
        self.cluster = cluster
        self.node = node
        self.generator = random.Random(plan.get("seed", 1))
        self.kills = 0
        self.is_removed = False
        self.memory: list[int] = []
        self.ended = threading.Event()

    def run(self) -> None:
        pause = self.plan.get("pause", 0.5)
        while not self.ended.wait(self.generator.uniform(0, 2 * pause)):
            self.memory.append(memory())
            targets = workers()
            if targets and self.kills < self.plan["kills"]:
                if "edit" in self.plan and self.kills == 0:
                    with Path(self.plan["edit"]).open("a") as file:
                        file.write("\n")
                os.kill(self.generator.choice(targets), signal.SIGKILL)
                self.kills += 1
            elif targets and self.plan["remove"] and not self.is_removed:
                self.is_removed = True
                self.cluster.remove_node(self.node, allow_graceful=False)


def main() -> None:
    plan = json.loads(sys.argv[1])
    head, *others = plan["nodes"]
    sizes = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": head, **sizes})
    node = None
    for cpus in others:
        node = cluster.add_node(num_cpus=cpus, object_store_memory=STORE_BYTES)
    ray.init(cluster.address, namespace="nmt", log_to_driver=False, logging_level="ERROR")
    guards = []
    if "guard" in plan:
        name = name_of_guard(plan["guard"])
        guards.append(ray.remote(Guard).options(name=name, namespace=NAMESPACE).remote())
    disturbance = Disturbance(plan, cluster, node)
    problem = ""
    begin = time.monotonic()
    try:
        disturbance.start()
        command = plan.get("command", "translate")
        COMMANDS[command].run(compose(command, sys.argv[2:]))
    except NMTError as error:
        problem = str(error)
    finally:
        seconds = time.monotonic() - begin
        disturbance.ended.set()
        disturbance.join()
        ray.shutdown()
        cluster.shutdown()
    report = {
        "problem": problem,
        "seconds": seconds,
        "kills": disturbance.kills,
        "is_removed": disturbance.is_removed,
        "memory": disturbance.memory,
    }
    print("\n" + json.dumps(report))


if __name__ == "__main__":
    main()
