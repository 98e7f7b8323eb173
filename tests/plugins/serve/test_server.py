"""Parts of `nmt serve` without a server: batches, turns, rates, downloads and parsing."""

import asyncio
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from nmt.commands import compose
from nmt.errors import NMTError
from nmt.plugins.serve import downloads
from nmt.plugins.serve.admission import Admission
from nmt.plugins.serve.app import Server
from nmt.plugins.serve.failures import Failed, Rate
from nmt.plugins.serve.models import Turns
from nmt.plugins.serve.other_words import SplitText, joined
from nmt.plugins.serve.parsing import SentDocument, read_lines, write
from nmt.plugins.serve.processes import Lane, Parsers
from nmt.plugins.serve.queues import Queue, QueuedRequest, Search
from nmt.translation import Translated

pytestmark = pytest.mark.anyio
DOCUMENT = SentDocument(b"<p>one</p>\n<p>two</p>" * 2000, "a.html")
HUGE = SentDocument(b"<p>one</p>" * 500_000, "a.html")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def queue_of(*requests: QueuedRequest) -> Queue:
    queue = Queue()
    for request in requests:
        queue.add(request)
    return queue


def texts(count: int, size: int = 1, **search) -> QueuedRequest:
    return QueuedRequest(Search(**search), ["x" * size] * count)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 20))
async def test_requests_take_turns_in_batches(sizes, most):
    texts_of_requests = [[f"{n}.{i}" for i in range(size)] for n, size in enumerate(sizes)]
    requests = [QueuedRequest(Search(), lines) for lines in texts_of_requests]
    queue = queue_of(*requests)
    texts_in_batches = []
    while queue.lines:
        batch = queue.take(most)
        assert 0 < len(batch) <= most
        turns = Counter(line.request for line in batch)
        # No request gets two lines more than another one that still has lines.
        for request in requests:
            if request.lines:
                assert max(turns.values()) - turns[request] <= 1
        texts_in_batches += [line.text for line in batch]
    assert sorted(texts_in_batches) == sorted(chain(*texts_of_requests))
    assert queue.take(most) == []


async def test_a_short_text_waits_for_one_batch_of_documents():
    documents = [texts(300, 100, n_best=n) for n in range(6)]  # no two share a batch
    queue = queue_of(*documents)
    for _ in range(8):
        queue.take()
    short = texts(1)
    queue.add(short)
    assert short in {line.request for line in [*queue.take(), *queue.take()]}
    assert len({queue.take()[0].request for _ in range(6)}) == 6  # the documents take turns


async def test_a_long_line_is_a_batch_of_its_own():
    long = QueuedRequest(Search(), ["x" * 2000, "short"])
    queue = queue_of(texts(1), long, texts(1))
    assert len(queue.take()) == 2
    assert queue.take(long_too=False) == []
    assert [len(line.text) for line in queue.take()] == [2000]
    assert [line.text for line in queue.take(long_too=False)] == ["short"]


def test_two_threads_take_turns():
    turns = Turns()
    order = list[str]()

    def work(name: str, count: int) -> None:
        for _ in range(count):
            with turns:
                order.append(name)
                time.sleep(0.005)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(work, "long", 30)
        time.sleep(0.02)
        pool.submit(work, "short", 3)
    assert order.index("short") + 6 > len(order) - order[::-1].index("short")  # one after the other


@pytest.mark.parametrize(
    ("prefix", "rest", "words"),
    [
        ("ka lo ", "mi  so.", ["ka", "lo", "mi", "so."]),
        ("ka lo", "mi", ["ka", "lo", "mi"]),  # from clients that omit the blank
        (" ", "ka", ["ka"]),
        ("設定", "を開く", ["設", "定", "を", "開", "く"]),
        ("Word", "ファイル 2", ["Word", "フ", "ァ", "イ", "ル", "2"]),
        ("เปิด", "", ["เ", "ปิ", "ด"]),
    ],
)
def test_words_in_scripts_without_blanks_are_characters(prefix, rest, words):
    text = SplitText(joined(prefix, rest))
    assert text.words == words
    for begin in range(len(words)):
        for end in range(begin, len(words) + 1):
            assert "".join(text.text_of(begin, end).split()) == "".join(words[begin:end])


def test_the_rate_of_each_client_is_limited():
    rate = Rate(6)
    assert [rate.wait("a", now=0) for _ in range(6)] == [0] * 6
    assert rate.wait("a", now=0) == pytest.approx(10)
    assert rate.wait("b", now=0) == 0
    assert rate.wait("a", now=9.9) == pytest.approx(0.1)
    assert rate.wait("a", now=10.1) == 0


async def test_files_make_room_for_new_ones_and_expire(word_model, monkeypatch):
    monkeypatch.setattr(downloads, "KEPT_BYTES", 10)
    monkeypatch.setattr(downloads, "KEPT_SECONDS", 0.2)
    server = Server(compose("serve", [f"run={word_model}"]))
    contents = (b"1", b"123456789", b"12")
    tokens = [server.downloads.keep("a_de.txt", content) for content in contents]
    assert [token in server.downloads.files for token in tokens] == [False, False, True]
    await asyncio.sleep(0.3)
    with pytest.raises(Failed, match="expired"):
        await server.download(SimpleNamespace(path_params={"token": tokens[2]}))


def children() -> int:
    return len(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


async def test_parsing_processes_end_with_their_request():
    parsers = Parsers(60.0)
    before = children()
    lines, marked_up = await parsers.run("ann", read_lines, DOCUMENT, 10)
    assert lines[:2] == ["one", "two"]
    assert len(lines) == 11
    assert marked_up
    assert children() == before + 1
    task = asyncio.create_task(parsers.run("ann", read_lines, HUGE, 10))
    await asyncio.sleep(0.1)
    small = SentDocument(b"<p>one</p>", "a.html")  # is parsed by another process
    written = await parsers.run("ann", write, small, [[Translated("1")]])
    assert written.content == b"<p>1</p>"
    with pytest.raises(Failed, match="not UTF-8"):
        await parsers.run("ann", read_lines, SentDocument(b"\xff", "a.html"), 10)
    assert not task.done()
    assert children() == before + 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == before + 1


@pytest.mark.parametrize("limits", [(2**26, 10), (2**30, 0)])
async def test_a_document_over_the_limits_ends_only_its_process(monkeypatch, limits):
    parsers = Parsers(60.0)
    with monkeypatch.context() as patched:
        patched.setattr(parsers.long, "limits", limits)
        with pytest.raises(Failed, match="MiB of memory"):
            await parsers.run("ann", read_lines, HUGE, 10)
    assert await parsers.run("ann", read_lines, DOCUMENT, 10)


async def test_clients_take_turns_at_parsing():
    lane = Lane(1, 10, 1.0)
    order = list[str]()

    async def parse(client: str) -> None:
        async with lane.turn(client, 60.0):
            order.append(client)
            await asyncio.sleep(0.001)

    clients = [*["ann"] * 4, "bob", "bob", "eve"]
    tasks = [asyncio.create_task(parse(client)) for client in clients]
    await asyncio.sleep(0)
    tasks[2].cancel()  # while it waits
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["ann", "ann", "bob", "eve", "ann", "bob"]
    assert lane.free == 1
    assert not lane.waiting


async def test_the_wait_for_parsing_counts_only_the_turns_before_it():
    lane = Lane(1, 10, average=2.0)
    assert lane.wait_of("bob") == 0
    async with lane.turn("ann", 60.0):
        tasks = [asyncio.create_task(lane.wait("ann")) for _ in range(5)]
        await asyncio.sleep(0)
        # Bob's first document waits for the one being parsed and for one of Ann's.
        assert lane.wait_of("bob") == 4.0
        # Ann's next one waits for all of them.
        assert lane.wait_of("ann") == 12.0
        for task in tasks:
            task.cancel()


async def test_a_document_that_waits_too_long_is_refused():
    lane = Lane(1, 10, average=2.0)
    async with lane.turn("ann", 60.0):
        with pytest.raises(Failed, match="too many documents"):
            async with lane.turn("bob", 0.01):
                pytest.fail("the process is occupied")
    assert lane.free == 1
    assert not lane.waiting


async def test_a_document_that_would_wait_too_long_is_refused_at_once():
    parsers = Parsers(patience=-1.0)
    with pytest.raises(Failed, match="too many documents") as caught:
        await parsers.run("ann", read_lines, DOCUMENT, 10)
    assert caught.value.status_code == 503


async def test_a_short_document_does_not_wait_for_long_ones():
    parsers = Parsers(60.0)
    small = SentDocument(b"<p>one</p>", "a.html")
    await parsers.run("ann", read_lines, small, 10)
    tasks = [asyncio.create_task(parsers.run("ann", read_lines, HUGE, 10)) for _ in range(3)]
    await asyncio.sleep(0.2)
    await parsers.run("ann", read_lines, small, 10)
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_uploads_of_one_address_leave_room_for_others(word_model):
    admission = Admission(compose("serve", [f"run={word_model}", "limits.file_bytes=1000"]))

    def upload(address: str, size: str) -> AbstractContextManager[None]:
        request = SimpleNamespace(
            client=SimpleNamespace(host=address), headers={"content-length": size}
        )
        return admission.room_for_upload(request)

    with ExitStack() as uploads:
        for _ in range(6):
            uploads.enter_context(upload("ann", "1000"))
        uploads.enter_context(upload("ann", "9999"))  # is refused later, because it is too large
        uploads.enter_context(
            upload("ann", "")
        )  # counts as the largest, because its size is unknown
        with pytest.raises(Failed, match="too many files"):
            uploads.enter_context(upload("ann", "1"))
        for _ in range(80):
            uploads.enter_context(upload("bob", "100"))
        with pytest.raises(Failed, match="too many files"):
            uploads.enter_context(upload("eve", "1"))
    assert not admission.uploads


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["host=0.0.0.0"], "without a key"),
        (["host=example.org"], "without a key"),
        (["decode.do_sample=true"], "cannot sample"),
    ],
    ids=str,
)
def test_options_that_are_refused(words, problem):
    with pytest.raises(NMTError, match=problem):
        compose("serve", words)


@pytest.mark.parametrize(
    "words",
    [
        ["host=::1"],
        ["host=localhost"],
        ["host=0.0.0.0", "anonymous=true"],
        ["host=::", "keys=x"],
    ],
    ids=str,
)
def test_hosts_that_are_local_or_guarded_are_accepted(words):
    compose("serve", words)
