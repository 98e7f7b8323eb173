"""Parts of `nmt serve` that need no process: batches, keys, rates, downloads, documents."""

import asyncio
import math
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import HTTPException
from hypothesis import given, strategies as st

from nmt.commands import compose
from nmt.config import DecodeConfig
from nmt.errors import NMTError
from nmt.plugins.documents import PlainText, Translated, read_file
from nmt.plugins.serve import files
from nmt.plugins.serve.detect import choose, detect
from nmt.plugins.serve.files import Downloads, Parser, safe_name
from nmt.plugins.serve.keys import Keys, add_key, digest, read_keys
from nmt.plugins.serve.rate import Rate
from nmt.plugins.serve.tasks import Failure, Line, Read, Search, SentDocument, Write
from nmt.plugins.serve.turns import TurnsEngine
from nmt.plugins.serve.waiting import Request, Waiting, answer
from nmt.search import Hypothesis
from nmt.text import language_name


def waiting_lines(*sizes: int, search: Search | None = None) -> tuple[Waiting, list[Request]]:
    """A queue with a request for each size; call it while a loop runs."""
    waiting = Waiting()
    requests = [Request(search or Search(), [f"{n}.{i}" for i in range(size)]) for n, size in enumerate(sizes)]
    for request in requests:
        waiting.add(request)
    return waiting, requests


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 20))
def test_batches_hold_each_line_once_and_in_turns(sizes, most):
    async def check():
        waiting, requests = waiting_lines(*sizes)
        seen = []
        while waiting.lines:
            batch = waiting.take(most)
            assert 0 < len(batch) <= most
            turns = Counter(request for request, _ in batch)
            # None gets two lines more than another that still has some.
            behind = [turns[request] for request in requests if request.next < len(request.lines)]
            assert max(turns.values()) - min(behind, default=max(turns.values())) <= 1
            seen += [(requests.index(request), index) for request, index in batch]
        assert sorted(seen) == [(n, i) for n, size in enumerate(sizes) for i in range(size)]
        assert waiting.take(most) == []
        assert not waiting.arrived.is_set()

    asyncio.run(check())


def test_a_long_text_does_not_keep_a_short_one_waiting():
    async def check():
        waiting, [_, short] = waiting_lines(1000, 1)
        assert (short, 0) in waiting.take(4)

    asyncio.run(check())


def test_only_lines_of_one_kind_of_search_go_together():
    async def check():
        waiting, [first] = waiting_lines(2)
        other = Request(Search(n_best=3), ["x"])
        waiting.add(other)
        assert {request for request, _ in waiting.take(10)} == {first}
        assert waiting.take(10) == [(other, 0)]

    asyncio.run(check())


def test_a_short_text_waits_for_one_batch_however_many_documents_there_are():
    async def check():
        waiting, _ = waiting_lines()
        for n in range(6):  # each with terms of its own, so that none goes with another
            waiting.add(Request(Search(details=True, glossary=((str(n), "x"),)), ["x" * 100] * 300))
        for _ in range(8):
            waiting.take(128)
        short = Request(Search(), ["short"])
        waiting.add(short)
        assert (short, 0) in [*waiting.take(128), *waiting.take(128)]
        first = {next(iter(waiting.take(128)))[0] for _ in range(6)}
        assert len(first) == 6  # the documents take turns

    asyncio.run(check())


@pytest.mark.parametrize(("seconds", "least", "most"), [(3.0, 1000, 1000), (0.6, 1000, 2000), (0.01, 8000, 8000)])
def test_batches_take_about_as_long_as_they_may(seconds, least, most):
    """`seconds`: those of 4,000 characters."""

    async def check():
        waiting, _ = waiting_lines()
        for _ in range(20):
            waiting.took(waiting.most_characters, seconds * waiting.most_characters / 4000)
        assert least <= waiting.most_characters <= most

    asyncio.run(check())


def test_a_request_that_is_given_up_leaves_no_lines():
    async def check():
        waiting, [first, second] = waiting_lines(5, 5)
        waiting.take(4)
        waiting.remove(first)
        assert waiting.lines == 3
        waiting.remove(first)
        waiting.remove(second)
        assert (waiting.lines, waiting.arrived.is_set()) == (0, False)

    asyncio.run(check())


def test_what_waits_is_answered_by_a_failure_once():
    async def check():
        waiting, [request] = waiting_lines(3)
        [(_, index), *_] = waiting.take(1)
        waiting.fail(Failure("broken"))
        assert [future.result().problem for future in request.answers] == ["broken"] * 3
        answer([(request, index)], [Line(["late"])])  # its batch comes back, and is too late

    asyncio.run(check())


def test_a_long_line_goes_alone_and_can_be_left_out():
    async def check():
        waiting, [before, after] = waiting_lines(1, 1)
        long = Request(Search(), ["x" * 2000, "short"])
        waiting.requests.insert(1, long)
        assert [request for request, _ in waiting.take(10)] == [before, after]
        assert waiting.take(10, long_too=False) == []
        assert waiting.take(10) == [(long, 0)]
        assert waiting.take(10, long_too=False) == [(long, 1)]

    asyncio.run(check())


def test_lines_whose_batch_was_lost_come_first_unless_nobody_waits_for_them():
    async def check():
        waiting, [first, second] = waiting_lines(2, 1)
        items = waiting.take(3)
        second.answers[0].cancel()
        waiting.retry(items)
        assert waiting.lines == 2
        assert [waiting.take(10), waiting.take(10), waiting.take(10)] == [[(first, 0)], [(first, 1)], []]
        waiting.retry(items)
        waiting.remove(first)
        assert (waiting.lines, waiting.take(10)) == (0, [])

    asyncio.run(check())


class Counting:
    """An engine that finds nothing and notes who searches."""

    config = DecodeConfig()

    def __init__(self) -> None:
        self.inside = self.most = 0
        self.calls: list[int] = []

    def with_search(self, config):
        return self

    def search(self, sentences, prefixes, constraints=None):
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.calls.append(len(sentences[0]))
        time.sleep(0.01)
        self.inside -= 1
        return [[Hypothesis(list(ids), 0.0, 0.0)] for ids in sentences]


@pytest.mark.parametrize("alone", [True, False])
def test_searches_take_turns_and_keep_their_order(alone):
    engine = Counting()
    turns = TurnsEngine(engine, alone)
    long, short = [[7] * 900 for _ in range(12)], [[8] * 3 for _ in range(4)]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(turns.search, long, [[]] * 12)
        time.sleep(0.015)
        second = pool.submit(turns.with_search(DecodeConfig()).search, short, [[]] * 4)
        assert [row[0].tokens for row in second.result()] == short
        assert not first.done()
        assert [row[0].tokens for row in first.result()] == long
    assert engine.most == 1 if alone else engine.most >= 1
    assert engine.calls.index(3) < 8


@given(st.text(st.sampled_from("ab \t\r\n\u2028\u00a0")))
def test_a_text_joined_from_its_own_lines_is_the_same(text):
    document = PlainText(text)
    assert document.join([Translated(line) for line in document.lines]).decode() == text
    assert all(line == line.strip() != "" for line in document.lines)
    lines = text.split("\n")
    assert [lines[number].strip() for number in document.numbers()] == document.lines


def test_files_of_other_kinds_and_encodings_are_refused():
    assert read_file("A.TXT", "ä\r\n\r\nb".encode()).join([Translated("x"), Translated("y")]) == b"x\r\n\r\ny"
    with pytest.raises(NMTError, match=r"not translated; \.txt, \.html"):
        read_file("a.exe", b"")
    with pytest.raises(NMTError, match="not UTF-8 at byte 2"):
        read_file("a.txt", b"a\xff")


def test_keys_are_stored_as_hashes_and_count_as_soon_as_the_file_changes(tmp_path, capsys):
    path = tmp_path / "keys.txt"
    key = add_key(path, "ann")
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    keys = Keys(path)
    assert (keys.name_of(key), keys.name_of(key[:-1]), keys.name_of("ä\ud800")) == ("ann", None, None)
    second = add_key(path, "bob")
    assert keys.name_of(second) == "bob"
    path.write_text(f"bob {digest(second)}\n# a remark\n")
    assert (keys.name_of(key), keys.name_of(second)) == (None, "bob")
    path.write_text("damaged")
    assert keys.name_of(second) is None
    assert "line 1" in capsys.readouterr().err
    path.unlink()
    assert keys.name_of(second) is None


@pytest.mark.parametrize("name", ["ann", "a b", ".x", ""])
def test_names_of_keys_are_new_and_plain(tmp_path, name):
    path = tmp_path / "keys.txt"
    add_key(path, "ann")
    with pytest.raises(NMTError, match="new_key"):
        add_key(path, name)
    assert len(read_keys(path)) == 1


def test_a_client_may_ask_so_often_in_a_minute_and_others_do_not_count():
    rate = Rate(6)
    assert [rate.wait("a", now=0) for _ in range(6)] == [0] * 6
    assert rate.wait("a", now=0) == pytest.approx(10)
    assert rate.wait("b", now=0) == 0
    assert rate.wait("a", now=9.9) > 0
    assert rate.wait("a", now=10.1) == 0
    assert [rate.wait("a", now=1000) for _ in range(7)][5:] == [0, pytest.approx(10)]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("notes.txt", "notes_de.txt"),
        ("../../etc/passwd.txt", "passwd_de.txt"),
        ('a"; filename="b.txt', "a_filename_b_de.txt"),
        ("C:\\x\\käse brot.TXT", "k_se_brot_de.txt"),
        ("\r\nX: y.txt", "X_y_de.txt"),
        (".txt", "txt_de"),
    ],
)
def test_names_of_translated_files_are_harmless(name, safe):
    assert safe_name(name, "de") == safe


def test_downloads_make_room_for_new_ones(monkeypatch):
    downloads = Downloads()
    first = downloads.add("a_de.txt", b"1")
    assert downloads.find(first) == ("a_de.txt", b"1")
    assert downloads.find("x.a_de.txt") is None
    monkeypatch.setattr("nmt.plugins.serve.files.MOST_BYTES", 10)
    second = downloads.add("b_de.txt", b"0123456789")
    assert (downloads.find(first), downloads.find(second)) == (None, ("b_de.txt", b"0123456789"))
    monkeypatch.setattr("time.monotonic", lambda: math.inf)
    assert downloads.find(second) is None


@pytest.mark.parametrize(
    ("text", "languages", "codes"),
    [
        ("Das ist ein kleines Haus, in dem wir wohnen.", ["en", "de"], ["de", "en"]),
        ("Hello", ["de", "en"], ["en", "de"]),  # Breton, among all languages of the world
        ("Um ficheiro de texto", ["en", "pt-BR"], ["pt-BR", "en"]),
        ("123 !?", ["en"], []),
    ],
)
def test_only_languages_of_the_server_are_detected(text, languages, codes):
    assert [code for code, _ in detect(text, languages)] == codes


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Das Haus steht am Ende der Straße.", "de"),
        ("The house is at the end of the street.", "en"),
        ("La maison est petite.", "en"),  # neither: the likeliest of the sources
        ("Open", "en"),  # as likely German, of which nobody can be sure
        ("...", "en"),
    ],
)
def test_text_is_in_a_source_language_or_surely_in_the_target_language(text, language):
    assert choose(text, ["en"], "de")[0] == language


DOCUMENT = SentDocument(b"<p>one</p>\n<p>two</p>" * 2000, format="html")


def test_a_document_is_parsed_by_a_process_and_written_by_it():
    async def check():
        parser = Parser(60)
        lines, marked_up = (await parser.answer(Read([DOCUMENT], 10)))[0]
        assert (lines[:2], len(lines), marked_up) == (["one", "two"], 11, True)
        small = SentDocument(b"<p>one</p>", format="html")
        assert await parser.answer(Write([small], [[[Translated("1")], [Translated("2")]]])) == [
            [b"<p>1</p>", b"<p>2</p>"]
        ]
        with pytest.raises(HTTPException, match="not UTF-8"):
            await parser.answer(Read([SentDocument(b"\xff", format="html")], 10))
        parser.end()

    asyncio.run(check())


@pytest.mark.parametrize(("name", "value"), [("PARSING_BYTES", 2**26), ("PARSING_SECONDS", 0)])
def test_a_document_that_takes_too_much_ends_its_process_alone(monkeypatch, name, value):
    async def check():
        parser = Parser(60)
        with monkeypatch.context() as patched:
            patched.setattr(files, name, value)
            with pytest.raises(HTTPException, match="MiB of memory"):
                await parser.answer(Read([SentDocument(b"<p>one</p>" * 500_000, format="html")], 10))
            parser.end()
        assert await parser.answer(Read([DOCUMENT], 10))
        parser.end()

    asyncio.run(check())


def test_a_parse_that_nobody_waits_for_is_ended():
    async def check():
        parser = Parser(60)
        await parser.answer(Read([DOCUMENT], 10))
        process = parser.process.process
        task = asyncio.create_task(parser.answer(Read([SentDocument(b"<p>one</p>" * 500_000, format="html")], 10)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(process.join, 10)
        assert process.exitcode == -signal.SIGKILL
        parser.end()

    asyncio.run(check())


@pytest.mark.parametrize(
    ("code", "name"), [("de", "German"), ("pt-BR", "Portuguese (Brazil)"), ("xx-nonsense!", "xx-nonsense!")]
)
def test_languages_have_english_names(code, name):
    assert language_name(code) == name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["host=0.0.0.0"], "without a key"),
        (["host=example.org"], "without a key"),
        (["new_key=ann"], "keys=FILE"),
        (["decode.do_sample=true"], "do_sample"),
        (["engine=fast"], "engine"),
        (["port=70000"], "port"),
        (["limits.seconds=0"], "limits.seconds"),
    ],
)
def test_what_is_not_safe_or_makes_no_sense_is_refused(words, told):
    with pytest.raises(NMTError, match=told):
        compose("serve", words)


@pytest.mark.parametrize("words", [["host=::1"], ["host=localhost"], ["host=0.0.0.0", "anonymous=true"]])
def test_what_was_asked_for_is_allowed(words):
    compose("serve", words)
