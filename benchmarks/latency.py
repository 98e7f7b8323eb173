"""Compare the time for one line through nmt with a bare call of CTranslate2 in the same process, on one core each.

    python benchmarks/latency.py RUN TEXT [LINES] [ROUNDS] [precision=int8]

The first LINES (200) lines of TEXT are translated one at a time, in ROUNDS (3) rounds, with beam 4 and greedily, by:

- CTranslate2: sentencepiece, `translate_batch` and detokenization on the exported model;
- nmt.load: `model.translate(line)`, which also splits long text, protects URLs and the like, and reranks hypotheses;
- nmt serve: one HTTP client with an open connection.

The script prints the 50th and 95th percentiles in milliseconds, and the medians' ratios to CTranslate2.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from serve import HEAD, begin_server, direction_of, percentile, threading_drain

BEAMS = {"beam 4": 4, "greedy": 1}


def bare_translator(folder: str, precision: str, beam: int) -> Callable[[str], str]:
    import ctranslate2
    import sentencepiece

    engine = ctranslate2.Translator(
        folder, compute_type=precision, inter_threads=1, intra_threads=1
    )
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tokenizer.model")

    def translate(line: str) -> str:
        tokens = tokenizer.encode(line, out_type=str)
        results = engine.translate_batch(
            [tokens], beam_size=beam, max_decoding_length=len(tokens) + 50
        )
        return str(tokenizer.decode(results[0].hypotheses[0]))

    return translate


def http_translator(port: int) -> Callable[[str], str]:
    """A function that translates a line over one connection, which stays open."""
    connection, direction = socket.create_connection(("127.0.0.1", port)), direction_of(port)
    answers = connection.makefile("rb")

    def translate(line: str) -> str:
        body = json.dumps({"q": line} | direction).encode()
        head = HEAD.format(
            method="POST", path="/translate", kind="application/json", length=len(body)
        )
        connection.sendall(head.encode() + body)
        headers = b"".join(iter(answers.readline, b"\r\n"))
        length = int(headers.lower().partition(b"content-length:")[2].split()[0])
        return str(json.loads(answers.read(length))["translatedText"])

    return translate


def latencies_of(translate: Callable[[str], object], lines: list[str]) -> list[float]:
    latencies = []
    for line in lines:
        begin = time.perf_counter()
        translate(line)
        latencies.append(time.perf_counter() - begin)
    return latencies


def compare(run: str, lines: list[str], rounds: int, precision: str) -> None:
    import nmt

    model = nmt.load(run, engine="ctranslate2", precision=precision, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "nmt",
            "export",
            run,
            "format=ctranslate2",
            f"output={folder}/model",
        ]
        subprocess.run(command, check=True, capture_output=True)
        print(f"{len(lines):,} lines, {rounds} rounds, {precision}; milliseconds")
        print(f"{'':22} {'p50':>7} {'p95':>7} {'ratio':>7}")
        for name, beam in BEAMS.items():
            keys = [
                "engine=ctranslate2",
                f"precision={precision}",
                "threads=1",
                f"decode.beam_size={beam}",
            ]
            server, port = begin_server(run, keys)
            threading_drain(server)
            contenders: dict[str, Callable[[str], object]] = {
                "CTranslate2": bare_translator(f"{folder}/model", precision, beam),
                "nmt.load": partial(model.translate, beam_size=beam),
                "nmt serve": http_translator(port),
            }
            latencies: dict[str, list[float]] = {contender: [] for contender in contenders}
            for translate in contenders.values():  # a round to warm up
                latencies_of(translate, lines)
            for _ in range(rounds):
                for contender, translate in contenders.items():
                    latencies[contender] += latencies_of(translate, lines)
            server.terminate()
            base = percentile(latencies["CTranslate2"], 0.5)
            for contender, seconds in latencies.items():
                p50, p95 = percentile(seconds, 0.5), percentile(seconds, 0.95)
                print(
                    f"{name + ', ' + contender:22} {1000 * p50:7.2f} {1000 * p95:7.2f} {p50 / base:7.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    words = [word for word in sys.argv[1:] if "=" not in word]
    options = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    count, rounds = (*map(int, words[2:]), *(200, 3)[len(words) - 2 :])
    text = [
        line for line in Path(words[1]).read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    compare(words[0], text[:count], rounds, options.get("precision", "int8"))
