"""Compare the speed of `nmt serve` with that of `nmt translate`, or test the server under mixed load.

    python benchmarks/serve.py MODEL TEXT [LINES] [ROUNDS] [KEY=VALUE...]
    python benchmarks/serve.py soak MODEL TEXT [MINUTES] [CLIENTS] [SLOW] [KEY=VALUE...]

MODEL is a run or model directory, TEXT a file of source lines, and KEY=VALUE are keys of `nmt serve`. Everything runs
on this machine, including the clients, whose CPU time is printed.

The first form translates the first LINES (1,000) lines in ROUNDS (3) rounds, in turn by a loaded translator of `nmt
translate` and over HTTP: by 1, 8 and 64 clients that send one line at a time, and by 64 clients that send texts of 10
lines. It prints the median sentences/s, their ratio to `nmt translate`, the 50th and 99th percentiles of latency, and
the number of translations that differ from those of `nmt translate`.

The second form lets CLIENTS (16) clients send lines, texts of 20 lines, lists in an unknown language, HTML and files
for MINUTES (30), with pauses of up to half a second. About one request in a hundred hangs, is cut off, or is garbage.
SLOW (0) further clients send files that take longer to parse than the server allows. Each minute, it prints the
requests answered, the latencies, and the memory of the server, and at the end the numbers of requests.
"""

import asyncio
import html
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

CLIENTS = ((1, 1), (8, 1), (64, 1), (64, 10))
"""Clients, and the lines of each of their requests."""
SLOW_FILE = "<p>" + "<b>a</b> " * 20 + "</p>\n"
SLOW_LINES = 12_000
FAULTS = 0.01
MOST_PAUSE = 0.5
HEAD = "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"


def translate_here(connection: Connection, model: str, options: list[str]) -> None:
    """In a process of its own: translate the lines that come, as `nmt translate` does, and tell the seconds."""
    from nmt.commands import compose
    from nmt.translation import load_translator

    known = [
        option
        for option in options
        if option.split("=")[0] in ("engine", "precision", "threads", "decode")
    ]
    translator = load_translator(
        compose("translate", [f"run={model}", *known]).translator, lambda words: None
    )
    translator.translate(["a"])
    while lines := connection.recv():
        begun = time.perf_counter()
        found = [translations[0].text for translations in translator.stream(lines, 2000)]
        connection.send((time.perf_counter() - begun, found))


class Client:
    """A connection that is kept."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def ask(
        self, path: str, body: bytes, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        head = HEAD.format(method="POST" if body else "GET", path=path, kind=kind, length=len(body))
        self.writer.write(head.encode() + body)
        status, length = 0, -1
        while (line := await self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            status = status or int(name.split()[1])
            length = int(value) if name.lower() == "content-length" else length
        return status, await self.reader.readexactly(length)

    async def translate(self, **asked: Any) -> Any:
        status, found = await self.ask(
            "/translate", json.dumps({"source": "auto"} | asked).encode()
        )
        assert status == 200, found
        return json.loads(found)


async def measure(
    port: int, lines: list[str], direction: dict[str, str], clients: int, size: int = 1
) -> tuple[Any, ...]:
    """Seconds, translations, latencies, and seconds of the processors that the clients took."""
    texts = ["\n".join(lines[start : start + size]) for start in range(0, len(lines), size)]
    waiting = iter(enumerate(texts))
    found, latencies = [""] * len(texts), list[float]()

    async def work(client: Client) -> None:
        for index, line in waiting:
            begun = time.perf_counter()
            answer = await client.translate(q=line, **direction)
            latencies.append(time.perf_counter() - begun)
            found[index] = answer["translatedText"]

    connections = [await Client(port).open() for _ in range(clients)]
    begun, own = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(work, connections))
    seconds, own = time.perf_counter() - begun, time.process_time() - own
    for client in connections:
        client.writer.close()
    return seconds, "\n".join(found).split("\n"), latencies, own


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def begin_server(model: str, options: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """The server, and its port."""
    command = [sys.executable, "-m", "nmt", "serve", model, "port=0", *options]
    server = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert server.stderr
    for line in server.stderr:
        if b" at http://" in line:
            return server, int(line.split(b"http://")[1].split()[0].rpartition(b":")[2])
    raise SystemExit("the server did not start")


def ask(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.read().decode()


def direction_of(port: int) -> dict[str, str]:
    first = json.loads(ask(port, "/languages"))[0]
    return {"source": first["code"], "target": first["targets"][0]}


def compare(model: str, lines: list[str], rounds: int, options: list[str]) -> None:
    """The first form."""
    ours, theirs = get_context("spawn").Pipe()
    reference = get_context("spawn").Process(
        target=translate_here, args=(theirs, model, options), daemon=True
    )
    reference.start()
    server, port = begin_server(model, options)
    threading_drain(server)
    direction = direction_of(port)
    asyncio.run(measure(port, lines[:64], direction, 8))
    names = ["nmt translate", *(f"{clients} x {size} lines" for clients, size in CLIENTS)]
    speeds: dict[str, list[float]] = {name: [] for name in names}
    latencies: dict[str, list[float]] = {name: [] for name in names}
    shares: dict[str, list[float]] = {name: [] for name in names}
    differing = Counter[str]()
    for _ in range(rounds):
        ours.send(lines)
        seconds, expected = ours.recv()
        speeds[names[0]].append(len(lines) / seconds)
        for (count, size), name in zip(CLIENTS, names[1:], strict=True):
            seconds, found, own_latencies, own = asyncio.run(
                measure(port, lines, direction, count, size)
            )
            speeds[name].append(len(lines) / seconds)
            latencies[name] += own_latencies
            shares[name].append(own / seconds)
            differing[name] = sum(a != b for a, b in zip(found, expected, strict=True))
    ours.send([])
    server.terminate()
    print(f"{len(lines):,} lines, medians of {rounds} rounds, {' '.join(options)}")
    print(
        f"{'':14} {'sentences/s':>12} {'ratio':>6} {'p50 ms':>8} {'p99 ms':>8} {'clients':>8} {'differ':>7}"
    )
    base = statistics.median(speeds[names[0]])
    for name in names:
        speed = statistics.median(speeds[name])
        more = ""
        if latencies[name]:
            p50, p99 = (1000 * percentile(latencies[name], share) for share in (0.5, 0.99))
            more = (
                f" {p50:8.1f} {p99:8.1f} {statistics.median(shares[name]):7.0%} {differing[name]:7}"
            )
        print(f"{name:14} {speed:12.1f} {speed / base:6.2f}{more}")


def threading_drain(server: subprocess.Popen[bytes]) -> None:
    """Read what the server logs, so that its pipe does not fill up; it is passed on."""
    import threading

    def drain() -> None:
        assert server.stderr
        for line in server.stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.flush()

    threading.Thread(target=drain, daemon=True).start()


def memory(pid: int) -> int:
    """MiB of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


class Soak:
    """The second form."""

    def __init__(
        self, port: int, lines: list[str], seconds: float, clients: int, slow: int
    ) -> None:
        self.port, self.lines, self.until = port, lines, time.monotonic() + seconds
        self.clients, self.slow = clients, slow
        self.direction = direction_of(port)
        self.counts, self.latencies = Counter[str](), list[float]()
        self.writers = list[asyncio.StreamWriter]()
        """Of all connections."""

    async def connect(self) -> Client:
        client = await Client(self.port).open()
        self.writers.append(client.writer)
        return client

    async def work(self, seed: int) -> None:
        """One client: ordinary requests, and now and then a bad one, after which it connects anew."""
        chance = random.Random(seed)
        client = await self.connect()
        kinds: list[Callable[[Client, random.Random], Any]] = [
            *(5 * [self.line]),
            self.text,
            self.text,
        ]
        kinds += [self.texts, self.html, self.file]
        while time.monotonic() < self.until:
            await asyncio.sleep(chance.random() * MOST_PAUSE)
            if chance.random() < FAULTS:
                await chance.choice([self.hang, self.cut, self.garbage])(chance)
                continue
            kind, begun = chance.choice(kinds), time.perf_counter()
            try:
                await kind(client, chance)
                self.counts[kind.__name__] += 1
                self.latencies.append(time.perf_counter() - begun)
            except (AssertionError, OSError, asyncio.IncompleteReadError, IndexError) as error:
                self.counts[f"FAILED {kind.__name__}: {str(error)[:80]}"] += 1
                client = await self.connect()

    async def line(self, client: Client, chance: random.Random) -> None:
        await client.translate(q=chance.choice(self.lines), **self.direction)

    async def text(self, client: Client, chance: random.Random) -> None:
        text = "\n".join(chance.choices(self.lines, k=20))
        answer = await client.translate(q=text, alternatives=chance.randint(0, 2), **self.direction)
        assert answer["translatedText"].count("\n") == 19

    async def texts(self, client: Client, chance: random.Random) -> None:
        fields = {"source": "auto", "target": self.direction["target"]}
        answer = await client.translate(q=chance.choices(self.lines, k=3), **fields)
        assert len(answer["detectedLanguage"]) == 3

    async def html(self, client: Client, chance: random.Random) -> None:
        text = "".join(f"<p>{html.escape(line)}</p>" for line in chance.choices(self.lines, k=5))
        answer = await client.translate(q=text, format="html", **self.direction)
        assert answer["translatedText"].count("</p>") == 5

    async def upload(self, client: Client, name: str, content: str) -> tuple[int, bytes]:
        parts = [*self.direction.items(), (f'file"; filename="{name}', content)]
        body = "".join(
            f'--b\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in parts
        )
        return await client.ask(
            "/translate_file", f"{body}--b--\r\n".encode(), "multipart/form-data; boundary=b"
        )

    async def send_slow_files(self) -> None:
        while time.monotonic() < self.until:
            client = await self.connect()
            status, _ = await self.upload(client, "a.html", SLOW_FILE * SLOW_LINES)
            self.counts[f"slow files answered with {status}"] += 1
            client.writer.close()
            await asyncio.sleep(MOST_PAUSE)

    async def file(self, client: Client, chance: random.Random) -> None:
        status, found = await self.upload(
            client, "a.txt", "\n".join(chance.choices(self.lines, k=10))
        )
        assert status == 200, found
        path = json.loads(found)["translatedFileUrl"].partition("localhost")[2]
        status, found = await client.ask(path, b"")
        assert status == 200, path
        assert found.count(b"\n") == 9

    async def hang(self, chance: random.Random) -> None:
        """Promise a body that never comes, or say nothing at all; hold the line for a while."""
        self.counts["hangs"] += 1
        client = await self.connect()
        head = HEAD.format(method="POST", path="/translate", kind="application/json", length=1000)
        client.writer.write(chance.choice(["", head[:20], head]).encode())
        asyncio.get_running_loop().call_later(30, client.writer.close)

    async def cut(self, chance: random.Random) -> None:
        """Ask for a long text, and go away."""
        self.counts["cuts"] += 1
        client = await self.connect()
        body = json.dumps(
            {"q": "\n".join(chance.choices(self.lines, k=50)), **self.direction}
        ).encode()
        head = HEAD.format(
            method="POST", path="/translate", kind="application/json", length=len(body)
        )
        client.writer.write(head.encode() + body)
        await asyncio.sleep(chance.random() / 10)
        client.writer.transport.abort()

    async def garbage(self, chance: random.Random) -> None:
        """Send bytes that are no HTTP, or no JSON."""
        self.counts["garbage"] += 1
        client = await self.connect()
        client.writer.write(
            chance.randbytes(200)
            if chance.random() < 0.5
            else b"POST /translate HTTP/1.1\r\n\r\n{["
        )
        with suppress(OSError):
            await asyncio.wait_for(client.reader.read(1000), 2)
        client.writer.close()

    async def report(self, pid: int) -> None:
        """A line for each minute."""
        print(" minute  answered  failed  p50 ms  p99 ms  server MiB")
        minute = 0
        while time.monotonic() < self.until:
            await asyncio.sleep(min(60, max(0.1, self.until - time.monotonic())))
            minute += 1
            seen, self.latencies = self.latencies or [0.0], []
            failed = sum(count for name, count in self.counts.items() if name.startswith("FAILED"))
            p50, p99 = (1000 * percentile(seen, share) for share in (0.5, 0.99))
            sizes = f"{memory(pid):11}"
            print(f"{minute:6} {len(seen):9,} {failed:7} {p50:7.0f} {p99:7.0f} {sizes}", flush=True)

    async def run(self, pid: int) -> None:
        slow = [self.send_slow_files() for _ in range(self.slow)]
        await asyncio.gather(self.report(pid), *slow, *map(self.work, range(self.clients)))
        # The server would wait for the rest of incomplete requests before it ends.
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # the transports close their sockets in the next turn of the loop
        print(", ".join(f"{name} {count:,}" for name, count in sorted(self.counts.items())))


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" not in word]
    options = [word for word in sys.argv[1:] if "=" in word]
    soak = words[0] == "soak"
    model, text, *numbers = words[soak:]
    lines = [line for line in Path(text).read_text(encoding="utf-8").splitlines() if line.strip()]
    if not soak:
        count, rounds = (*map(int, numbers), *(1000, 3)[len(numbers) :])
        compare(model, lines[:count], rounds, options)
        return
    server, port = begin_server(model, options)
    threading_drain(server)
    minutes, clients, slow = (*map(float, numbers), *(30, 16, 0)[len(numbers) :])
    asyncio.run(Soak(port, lines, 60 * minutes, int(clients), int(slow)).run(server.pid))
    server.terminate()
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    print(f"SIGTERM ended it with {server.wait(60)}; clients took {taken:.0f} s of a processor")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
