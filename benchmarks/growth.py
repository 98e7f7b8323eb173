"""Measure how time and memory grow with the corpus, the number and length of lines, the vocabulary and the beam.

    python benchmarks/growth.py MODEL TEXT [SWEEP ...] [--sizes N]
        [--results build/growth.json] [--figure build/growth.svg]

Each point runs in its own process, so that peak memory is its own. A model of `model=small` with random weights trains
on random tokens or translates them; each translation ends after as many tokens as its source has. The sweep `lines`
runs the whole command with MODEL, a model directory, on the lines of TEXT, repeated as needed. The script adds points
to RESULTS, draws all of them, and prints slopes fitted to the logarithms of the larger half of each sweep. A slope is 1
if time or memory is proportional to the size, and less if a fixed part remains.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from statistics import linear_regression

REPEATS, SENTENCES, LENGTH, VOCABULARY = 3, 16, 32, 8000
Points = dict[str, dict[str, tuple[float, float]]]
"""Sweep -> size -> seconds and gigabytes."""


def timed(work: Callable[[], object]) -> float:
    """Least seconds of some repetitions, after one that is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def train(length: int = LENGTH, vocabulary: int = VOCABULARY) -> float:
    """An update on sentences of this length."""
    import torch

    from nmt.commands import compose
    from nmt.data import dummy_batch
    from nmt.kernels import forget_old_kernels, keep_freed_memory
    from nmt.training import TranslationModule

    keep_freed_memory()
    forget_old_kernels()
    config = compose("train", ["data=files", "model=small"])
    module = TranslationModule(config.model, config.optim, vocabulary, seed=1)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)
    batch = dummy_batch(SENTENCES, length, length)

    def update() -> None:
        loss, _ = module.losses(batch)
        (loss / batch.target_out.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return timed(update)


def search(length: int = LENGTH, vocabulary: int = VOCABULARY, beam: int = 4) -> float:
    """Translate sentences of this length into as many tokens, by the torch engine."""
    import torch

    from nmt.commands import compose
    from nmt.config import DecodeConfig
    from nmt.kernels import keep_freed_memory
    from nmt.model import Transformer
    from nmt.search import TorchEngine

    keep_freed_memory()
    torch.manual_seed(1)
    model = Transformer(compose("train", ["data=files", "model=small"]).model, vocabulary).eval()
    sentences = torch.randint(4, vocabulary, (SENTENCES, length)).tolist()
    limits = {"min_length": length, "max_length": length, "batch_tokens": SENTENCES * (length + 1)}
    engine = TorchEngine([model], DecodeConfig(beam_size=beam, **limits), keeps_kernels=True)

    def translate() -> None:
        found = engine.search(sentences, [[] for _ in sentences])
        assert all(len(hypotheses[0].tokens) == length for hypotheses in found)

    return timed(translate)


def plan(pairs: int) -> float:
    """Plan a corpus, up to the first update."""
    from lengths import text_like_lengths

    from nmt.config import BatchingConfig
    from nmt.data import BatchPlanner

    lengths = text_like_lengths(pairs)
    start = time.perf_counter()
    BatchPlanner(*lengths, BatchingConfig(25_000, 8), seed=1).update(0)
    return time.perf_counter() - start


def prepare(pairs: int) -> float:
    """`nmt preprocess` with a vocabulary of 37,000 and two workers."""
    from preprocess import write_corpus

    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), pairs, [])
        files = [f"data.{split}={folder}/{split}" for split in ("train", "valid", "test")]
        options = [
            "data=files",
            "data.name=generated",
            *files,
            f"prepared={folder}/out",
            "workers=2",
        ]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "nmt", "preprocess", *options], check=True, stdout=sys.stderr
        )
        return time.perf_counter() - start


def translate_lines(lines: int, model: str, text: str) -> float:
    """`nmt translate engine=ctranslate2 precision=int8`, the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.write_text(
            "".join(islice(cycle(Path(text).read_text().splitlines(keepends=True)), lines))
        )
        options = [
            f"run={model}",
            "engine=ctranslate2",
            "precision=int8",
            "overwrite=true",
            f"input={source}",
            f"output={folder}/out",
        ]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "nmt", "translate", *options],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - start


SWEEPS: dict[str, tuple[str, list[int], Callable[..., float]]] = {
    "planning": ("pairs", [10**4, 10**5, 10**6, 10**7, 4 * 10**7], plan),
    "preparing": ("pairs", [10**4, 10**5, 10**6], prepare),
    "lines": ("lines", [100, 1000, 3000, 10_000, 30_000], translate_lines),
    "training by length": ("tokens a sentence", [8, 16, 32, 64, 128, 256, 512, 1024], train),
    "search by length": ("tokens a sentence", [8, 16, 32, 64, 128, 256, 512], search),
    "training by vocabulary": (
        "entries",
        [1000 * 2**n for n in range(7)],
        lambda size: train(vocabulary=size),
    ),
    "search by vocabulary": (
        "entries",
        [1000 * 2**n for n in range(7)],
        lambda size: search(vocabulary=size),
    ),
    "search by beam": ("hypotheses", [1, 2, 4, 8, 16, 32, 64], lambda beam: search(beam=beam)),
}


def measure(sweep: str, size: int, files: list[str]) -> tuple[float, float]:
    """Seconds, and the most gigabytes that one of the process and its children had."""
    command = [
        sys.executable,
        __file__,
        "point",
        sweep,
        str(size),
        *(files if sweep == "lines" else []),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seconds = float(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return seconds, usage.ru_maxrss / 1e6


def slopes(points: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Of seconds and of gigabytes, over the larger half of the sizes."""
    upper = sorted((int(size), *values) for size, values in points.items())[len(points) // 2 :]
    columns = [[math.log(value) for value in column] for column in zip(*upper, strict=True)]
    seconds, memory = (linear_regression(columns[0], column).slope for column in columns[1:])
    return seconds, memory


def draw(points: Points, path: Path) -> None:
    """Seconds and gigabytes of each sweep on logarithmic axes, with a dotted line of slope 1."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "growth", "font.size": 8})
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    for number, (sweep, found) in enumerate(points.items(), 1):
        axes = figure.add_subplot(2, 4, number)
        sizes = sorted(map(int, found))
        for column, (name, marker) in enumerate((("seconds", "o-"), ("GB", "s--"))):
            values = [found[str(size)][column] for size in sizes]
            axes.loglog(
                sizes,
                values,
                marker,
                markersize=3,
                label=f"{name}, slope {slopes(found)[column]:.2f}",
            )
        last = found[str(sizes[-1])][0]
        axes.loglog(
            [sizes[0], sizes[-1]],
            [last * sizes[0] / sizes[-1], last],
            ":",
            color="grey",
            linewidth=0.8,
        )
        axes.set(title=sweep, xlabel=SWEEPS[sweep][0])
        axes.legend(frameon=False, fontsize=7)
        axes.minorticks_off()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1].strip())
    parser.add_argument("files", nargs=2)
    parser.add_argument("sweeps", nargs="*", default=[])
    parser.add_argument(
        "--sizes", type=int, help="only this many of the smallest sizes, at least 3"
    )
    parser.add_argument("--results", type=Path, default=Path("build/growth.json"))
    parser.add_argument("--figure", type=Path, default=Path("build/growth.svg"))
    options = parser.parse_args()
    points: Points = json.loads(options.results.read_text()) if options.results.exists() else {}
    if unknown := set(options.sweeps) - set(SWEEPS):
        parser.error(f"{', '.join(unknown)}: the sweeps are {', '.join(SWEEPS)}")
    for sweep in options.sweeps or SWEEPS:
        unit, sizes, _ = SWEEPS[sweep]
        points[sweep] = {}
        for size in sizes[: options.sizes]:
            seconds, memory = points[sweep][str(size)] = measure(sweep, size, options.files)
            print(f"{sweep}: {size:11,} {unit:18} {seconds:8.3f} s  {memory:6.2f} GB", flush=True)
        print(
            "{}: slopes {:.2f} (seconds), {:.2f} (memory)".format(sweep, *slopes(points[sweep])),
            flush=True,
        )
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(json.dumps(points, indent=1))
    draw({sweep: points[sweep] for sweep in SWEEPS if sweep in points}, options.figure)


if __name__ == "__main__":
    if sys.argv[1] == "point":
        print(SWEEPS[sys.argv[2]][2](int(sys.argv[3]), *sys.argv[4:]))
    else:
        main()
