"""Workers on a Ray cluster, which take blocks and return results.

Ray places the workers, moves blocks and results, and reports what has died. nmt keeps a bounded
number of blocks at the workers, and gives the blocks of a dead worker to another worker. Ray's own
retries would wait for the dead worker to start again, which may never happen without its machine.
"""

import hashlib
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from nmt.config import NMTError, one_line
from nmt.errors import how_to_install, is_out_of_memory
from nmt.plugins.cluster import places
from nmt.plugins.cluster.connection import (
    NAMESPACE,
    ClusterGone,
    Head,
    address_of_head,
    cause_of_death,
    connected,
)
from nmt.plugins.cluster.job import Task, ray_options
from nmt.plugins.cluster.options import RayConfig
from nmt.plugins.cluster.worker import BlockWorker, WorkerFacts, programs_of
from nmt.translation import FinishedBlock, Work, changed_names, warn

AHEAD = 2
"""Blocks at a worker: it translates one while the next one is already there."""
POLL_SECONDS = 1.0
"""The longest time between two looks at the cluster."""
RESIZE_SECONDS = 5.0
"""The time between two counts of how many workers fit the cluster."""
PATIENCE_SECONDS = 30.0
"""The time without any worker after which a message says what nmt waits for."""


def check_installed() -> None:
    if find_spec("ray") is None:
        raise NMTError(f"cluster=ray needs the package ray: {how_to_install('ray')}")


@dataclass(eq=False)
class Worker:
    """A process of the cluster."""

    actor: Any
    is_ready: bool = False
    machine: str = "a new machine"
    results: list[Any] = field(default_factory=list)
    """Ray's references to the results that it owes, in the order in which it computes them."""


@dataclass
class Request:
    """What a worker was asked for; without a task, to load the model."""

    worker: Worker
    task: Task | None = None


@contextmanager
def ray_pool(work: Work, identity: dict[str, Any]) -> Iterator["RayPool"]:
    """Connect to a cluster, or start one; stop what was started at the end."""
    with connected(ray_options(work).address) as ray:
        pool = RayPool(ray, work, identity)
        try:
            if places.is_remote(places.plain(work.config.output)):
                pool.claim_output()
            yield pool
        except (ray.exceptions.RaySystemError, ConnectionError) as error:
            problem = f"the Ray cluster is gone ({one_line(error)}); repeat the command to resume"
            raise ClusterGone(problem) from error
        finally:
            pool.stop()


class RayPool:
    """The workers of a job."""

    def __init__(self, ray: Any, work: Work, identity: dict[str, Any]) -> None:
        self.ray = ray
        self.work = work
        self.config = work.config
        self.options = ray_options(work)
        self.identity = identity
        self.head = Head(address_of_head(ray, self.options.address))
        self.machine: str = ray.get_runtime_context().get_node_id()
        """Ray's name of the machine on which this job runs."""
        self.programs = programs_of(work.config.translator.compute.engine)
        self.workers = list[Worker]()
        self.requests = dict[Any, Request]()
        self.waiting = deque[Task]()
        """Tasks of workers that died."""
        self.losses = Counter[Task]()
        self.processors = dict[str, str]()
        """Processor -> the first machine that has it."""
        self.is_exhausted = False
        self.lost = 0
        self.failed_starts = 0
        self.next_start = 0.0
        """When the next worker may start, on the clock of `time.monotonic`."""
        self.most = 0
        """The largest number of workers at a time."""
        self.fitting = 1
        self.counted = -RESIZE_SECONDS
        self.started = time.monotonic()
        self.guard: Any = None
        self.has_warned_of_size = False

    def claim_output(self) -> None:
        """Hold a name in the cluster for the output; NMTError if another job holds it."""
        name = name_of_guard(self.config.output)
        token = uuid4().hex
        guard = self.ray.remote(Guard).options(name=name, namespace=NAMESPACE, num_cpus=0)
        with suppress(ValueError):  # the name is taken; Ray Client does not raise it here
            self.guard = guard.remote(token)
        try:
            holder = self.ray.get_actor(name, NAMESPACE)
            is_ours = self.ray.get(holder.token.remote()) == token
        except (ValueError, self.ray.exceptions.RayActorError):  # the other job has just ended
            is_ours = False
        if not is_ours:
            raise NMTError(
                f"output={self.config.output}: another nmt is writing it; wait until it exits"
            )

    def run(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, FinishedBlock]]:
        """See `Pool`."""
        while True:
            is_there = self.head.answers()
            self.assign(tasks)
            if self.is_exhausted and not self.waiting and not self.has_tasks():
                return
            if is_there:
                self.start_workers()
            for result in self.results():
                # The death of its worker may have taken it back already.
                if result in self.requests:
                    yield from self.answer(result)
            if is_there:
                self.warn_if_waiting()

    def results(self) -> list[Any]:
        """Results that have arrived; waits for one, but not for long."""
        if not self.requests:  # all workers died, and the next one must not start yet
            time.sleep(POLL_SECONDS)
            return []
        done: list[Any]
        done, _ = self.ray.wait(list(self.requests), timeout=POLL_SECONDS)
        return done

    def has_tasks(self) -> bool:
        return any(request.task for request in self.requests.values())

    def assign(self, tasks: Iterator[Task]) -> None:
        """Give blocks to the workers, first those of dead workers."""
        # In rounds, so that the last blocks do not queue at one worker while another one is idle.
        for depth in range(1, AHEAD + 1):
            for worker in self.workers:
                if not worker.is_ready or len(worker.results) >= depth:
                    continue
                task = self.next_task(tasks)
                if task is None:
                    return
                result = worker.actor.compute.remote(task.texts.lines, task.texts.rows)
                worker.results.append(result)
                self.requests[result] = Request(worker, task)

    def next_task(self, tasks: Iterator[Task]) -> Task | None:
        if self.waiting:
            return self.waiting.popleft()
        task = next(tasks, None)
        self.is_exhausted = task is None
        return task

    def start_workers(self) -> None:
        """Start the workers that are missing, unless those that exist can finish the job."""
        is_enough = bool(self.workers) and self.is_exhausted and not self.waiting
        if is_enough or time.monotonic() < self.next_start:
            return
        if time.monotonic() - self.counted >= RESIZE_SECONDS:
            self.fitting = self.number_that_fit()
            self.counted = time.monotonic()
        while len(self.workers) < (self.options.workers or self.fitting):
            # Without Ray's retries, see above. SPREAD: a lost machine costs few workers.
            remote = self.ray.remote(BlockWorker).options(
                num_cpus=self.options.cpus,
                num_gpus=self.options.gpus,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy="SPREAD",
            )
            worker = Worker(remote.remote(self.work))
            result = worker.actor.load.remote()
            worker.results.append(result)
            self.workers.append(worker)
            self.requests[result] = Request(worker)

    def number_that_fit(self) -> int:
        """How many workers the machines of the cluster can hold, at least one."""
        count = 0
        alive = {node["NodeID"]: node["Resources"] for node in self.ray.nodes() if node["Alive"]}
        if self.machine not in alive:
            # Workers that a dead machine has started die with it, and so do later ones.
            raise ClusterGone("Ray on this machine has ended; repeat the command to resume")
        nodes = list(alive.values())
        for resources in nodes:
            of_node = int(resources.get("CPU", 0)) // self.options.cpus
            if self.options.gpus:
                of_node = min(of_node, int(resources.get("GPU", 0)))
            count += of_node
        if not count and not self.has_warned_of_size:
            self.has_warned_of_size = True
            warn(too_small(nodes, self.options))
        # A worker that fits nowhere asks a cluster that can grow for another machine.
        return max(1, count)

    def answer(self, result: Any) -> Iterator[tuple[Task, FinishedBlock]]:
        """Handle the result of a worker, or its death."""
        request = self.requests[result]
        where = request.task.where if request.task else "cluster=ray"
        try:
            value = self.ray.get(result)
        except self.ray.exceptions.RayTaskError as error:
            raise cause_of(error, where) from error
        except self.ray.exceptions.RaySystemError:
            raise
        except self.ray.exceptions.RayError as error:
            self.lose(request.worker, error)
            return
        del self.requests[result]
        request.worker.results.remove(result)
        if request.task is None:
            self.check(value)
            request.worker.machine = value.machine
            request.worker.is_ready = True
            self.failed_starts = 0
            self.most = max(self.most, self.ready())
        else:
            yield request.task, value

    def lose(self, worker: Worker, error: Exception) -> None:
        """Take the tasks of a dead worker back; NMTError if one of them kills every worker."""
        self.workers.remove(worker)
        # It may only be out of reach, and must not hold its place.
        self.kill(worker)
        self.lost += 1
        warn(f"a worker on {worker.machine} died ({cause_of_death(error)})")
        if not worker.is_ready:
            self.failed_starts += 1
            # Longer each time: a cluster whose machines are being replaced needs a while.
            self.next_start = time.monotonic() + self.failed_starts
            if self.failed_starts >= self.options.losses:
                raise NMTError(
                    f"cluster=ray: {self.failed_starts} workers died while they loaded the model "
                    f"({one_line(error)}); is there enough memory for it?"
                )
        tasks = list[Task]()
        for result in worker.results:
            task = self.requests.pop(result).task
            if task:
                tasks.append(task)
        self.waiting.extendleft(reversed(tasks))
        # A worker computes its blocks in order, so only the first one may have killed it.
        if tasks:
            self.losses[tasks[0]] += 1
            if self.losses[tasks[0]] >= self.options.losses:
                raise NMTError(
                    f"{tasks[0].where}: {self.options.losses} workers died while they computed "
                    "this block; pass a lower ray.lines or decode.batch_tokens, or a higher "
                    "ray.losses if the cluster loses machines that often"
                )

    def check(self, facts: WorkerFacts | str) -> None:
        """Raise NMTError unless a new worker translates as all other ones do."""
        if isinstance(facts, str):
            raise NMTError(facts)
        changed = changed_names(self.identity, {**self.identity, **facts.identity}, {})
        if changed:
            raise NMTError(
                f"{facts.machine}: has another {', '.join(changed)} than this machine; all "
                "machines need the same files, which must not change during the job"
            )
        for name, release in self.programs.items():
            other = facts.programs.get(name)
            if other != release:
                raise NMTError(
                    f"{facts.machine}: has {name} {other}, but this machine has {release}; install "
                    "the same version on all machines"
                )
        if not self.processors:
            for notice in facts.notices:
                warn(notice)
        elif facts.processor not in self.processors:
            other_machine = next(iter(self.processors.values()))
            warn(
                f"{facts.machine} and {other_machine} have different processors: a translation may "
                "differ between them if two translations are almost equally likely"
            )
        self.processors.setdefault(facts.processor, facts.machine)

    def warn_if_waiting(self) -> None:
        """Say what the job waits for, if it has had no worker for a while."""
        if any(worker.is_ready for worker in self.workers):
            self.started = time.monotonic()
        elif time.monotonic() - self.started > PATIENCE_SECONDS:
            self.started = time.monotonic()
            resources = self.ray.available_resources()
            warn(
                f"waiting for a worker: it needs {self.options.cpus} CPUs and "
                f"{self.options.gpus} GPUs on one machine; {resources.get('CPU', 0):g} CPUs and "
                f"{resources.get('GPU', 0):g} GPUs are free in the cluster"
            )

    def kill(self, worker: Worker) -> None:
        # It may be dead already, as well as the cluster.
        with suppress(self.ray.exceptions.RayError, ValueError, ConnectionError, ClusterGone):
            if self.head.answers():
                self.ray.kill(worker.actor)

    def stop(self) -> None:
        for worker in self.workers:
            self.kill(worker)
        self.workers.clear()
        self.guard = None

    def ready(self) -> int:
        """The number of workers that can compute."""
        return sum(worker.is_ready for worker in self.workers)

    def state(self) -> str:
        """See `Pool`."""
        return workers_in_words(self.ready())

    def summary(self) -> str:
        """See `Pool`."""
        workers = workers_in_words(self.most)
        if not self.lost:
            return workers
        return f"{workers}, of which {self.lost:,} died and were replaced"


def workers_in_words(count: int) -> str:
    return "1 worker" if count == 1 else f"{count:,} workers"


def too_small(nodes: list[dict[str, float]], options: RayConfig) -> str:
    """What machines with these resources lack for a worker."""
    needs = [] if options.cpus == 1 else [f"{options.cpus:,} CPUs"]
    if options.gpus:
        needs.append("a GPU")
    if options.gpus and all(node.get("CPU", 0) >= options.cpus for node in nodes):
        needs = ["a GPU"]
    words = " and ".join(needs or ["a CPU"])
    return f"no machine of the cluster has {words}; nmt waits for one, in case the cluster grows"


def name_of_guard(output: str) -> str:
    """The name that a job holds in the cluster for its output."""
    return hashlib.sha256(places.plain(output).encode()).hexdigest()


class Guard:
    """An actor whose name shows that a job is running; Ray stops it with its driver."""

    def __init__(self, token: str = "") -> None:
        self.held_by = token

    def token(self) -> str:
        """What the job that holds the name gave."""
        return self.held_by


def cause_of(error: Any, where: str) -> Exception:
    """The error that a worker raised: one line if a user can fix it, otherwise the bug itself."""
    cause: Exception = error.cause
    if isinstance(cause, NMTError):
        return cause.within(where)
    if is_out_of_memory(cause):
        advice = "pass a lower decode.batch_tokens, or fewer workers per machine (ray.cpus)"
        return NMTError(f"{where}: a worker is out of memory: {advice} ({one_line(cause)})")
    return cause
