"""Measure `nmt preprocess` on generated text: memory, and pairs per second compared with sentencepiece alone.

    python benchmarks/preprocess.py [PAIRS] [SOURCE_TEXT TARGET_TEXT]
    WORKERS=8 python benchmarks/preprocess.py [PAIRS]
    python benchmarks/preprocess.py memory PAIRS PAIRS...
    python benchmarks/preprocess.py repeated PAIRS PAIRS...

The script writes PAIRS (4.5 million) pairs as long as WMT's to a temporary folder. Their words are as frequent as in
the two text files; without files, the words are made up and follow Zipf's law. It prepares the pairs with two workers,
and prints the seconds of each part and the peak memory of all processes: `resident` includes pages of mapped files,
which the system can reclaim, and `own` does not. Then sentencepiece encodes some of the same lines.

The main process finds the ends of lines, distributes blocks and joins the results. The script prints its processor
seconds and those of the workers for each part. Their ratio is the number of workers that keep the main process busy:
with more workers, a part takes no less time. `preprocess_scaling.py` predicts how much time more workers save.

With `memory`, the script prepares several sizes, drawing the held-out sets, and prints the memory that each million
pairs adds to the main process and to all processes. The vocabulary is trained on few pairs and buffers are small, or
they would hide what grows with the corpus; lines are short, which saves time. With `repeated`, nine tenths of the pairs
are the same one.
"""

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lengths import text_like_lengths

PAIRS = 4_500_000
WORKERS = int(os.environ.get("WORKERS", "2"))
REFERENCE_LINES = 400_000
BLOCK = 50_000
TOKENS_PER_WORD = 1.15
MADE_UP_WORDS = 200_000
PARTS = {
    "reading and filtering": ("begin", "learned"),
    "learning the vocabulary": ("learned", "write_ids"),
    "encoding and writing": ("write_ids", "end"),
}
METHODS = ("learned", "write_ids")
MEMORY_SAMPLE = 20_000
SMALL_BUFFER = 1 << 16
SHORTER = 5
"""The divisor of the lengths of lines when memory is measured, which may grow with pairs, not with their lengths."""

Words = tuple[np.ndarray, np.ndarray]


def words_of(path: str) -> Words:
    """The words of a text and their shares."""
    counts = Counter(Path(path).read_text(encoding="utf-8").split())
    frequencies = np.array(list(counts.values()), dtype=float)
    return np.array(list(counts), dtype=object), frequencies / frequencies.sum()


def made_up_words(seed: int) -> Words:
    """Words of two to five syllables, the n-th most frequent in proportion to 1 / (n + 2.7) (Mandelbrot 1953)."""
    random = np.random.default_rng(seed)
    syllables = np.array(
        [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "s")],
        dtype=object,
    )
    words = [
        syllables[random.integers(0, len(syllables), size)].sum()
        for size in random.integers(2, 6, MADE_UP_WORDS)
    ]
    shares = 1 / (np.arange(MADE_UP_WORDS) + 2.7)
    return np.array(words, dtype=object), shares / shares.sum()


def write_text(path: Path, lengths: np.ndarray, words: Words) -> None:
    """Lines of as many words as give about these lengths in tokens."""
    random = np.random.default_rng(len(path.name))
    cumulative = words[1].cumsum()
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, len(lengths), BLOCK):
            sizes = np.maximum((lengths[start : start + BLOCK] / TOKENS_PER_WORD).astype(int), 1)
            drawn = words[0][
                np.searchsorted(cumulative, random.random(sizes.sum())).clip(
                    max=len(cumulative) - 1
                )
            ].tolist()
            ends = sizes.cumsum().tolist()
            file.writelines(
                " ".join(drawn[end - size : end]) + "\n"
                for size, end in zip(sizes.tolist(), ends, strict=True)
            )


def write_corpus(folder: Path, pairs: int, texts: list[str], divisor: int = 1) -> None:
    """Write the three sets; the divisor makes lines shorter than WMT's."""
    words = [words_of(text) for text in texts] or [made_up_words(1), made_up_words(2)]
    for prefix, size, seed in (("train", pairs, 1), ("valid", 3000, 2), ("test", 3000, 3)):
        lengths = text_like_lengths(size, seed)
        for code, side, side_words in zip(("en", "de"), lengths, words, strict=True):
            write_text(folder / f"{prefix}.{code}", side // divisor, side_words)


def processor_seconds(process: multiprocessing.process.BaseProcess) -> float:
    """The processor seconds of a running child process; 0 if it has just ended."""
    try:
        # The second field is the name in parentheses; times in user and system mode are fields 14 and 15.
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Moment(NamedTuple):
    wall: float
    processor: float  # seconds of this process and its children
    main: float  # processor seconds of this process alone

    @classmethod
    def now(cls) -> "Moment":
        own, ended = (
            sum(resource.getrusage(who)[:2])
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        running = sum(map(processor_seconds, multiprocessing.active_children()))
        return cls(time.perf_counter(), own + ended + running, own)


Moments = "multiprocessing.Queue[tuple[str, Moment] | None]"


def note_first_call(name: str, times: Moments) -> None:
    """Make a method of `Preparation` note when it is first called."""
    from nmt.preparation.preparation import Preparation

    method = getattr(Preparation, name)

    def noting(*arguments: Any) -> Any:
        setattr(Preparation, name, method)
        times.put((name, Moment.now()))
        return method(*arguments)

    setattr(Preparation, name, noting)


def repeat_first_pair(folder: Path) -> None:
    """Replace nine of ten training pairs by the first one."""
    for code in ("en", "de"):
        path = folder / f"train.{code}"
        other = path.with_suffix(".all")
        path.rename(other)
        with other.open("rb") as lines, path.open("wb") as file:
            first = next(lines)
            file.write(first)
            file.writelines(
                line if number % 10 == 0 else first for number, line in enumerate(lines)
            )
        other.unlink()


def prepare(folder: Path, times: Moments, overrides: list[str], has_small_buffers: bool) -> None:
    """Run the command, noting when each of its parts begins."""
    from nmt.commands import compose
    from nmt.preparation import deduplication, preprocess, reading

    if has_small_buffers:
        deduplication.RUN_PAIRS = SMALL_BUFFER
        deduplication.TASK_PAIRS = SMALL_BUFFER
        reading.CANDIDATES = SMALL_BUFFER // 4

    options = [
        "data=files",
        "data.name=generated",
        f"data.train={folder / 'train'}",
        "data.filters.deduplicate=true",
        f"prepared={folder / 'out'}",
        f"workers={WORKERS}",
    ]
    config = compose("preprocess", [*options, *overrides])
    for name in METHODS:
        note_first_call(name, times)
    times.put(("begin", Moment.now()))
    try:
        preprocess(config, lambda words: None)
        times.put(("end", Moment.now()))
    finally:
        times.put(None)


def given_sets(folder: Path) -> list[str]:
    return [f"data.{split}={folder / split}" for split in ("valid", "test")]


def status_of(process: int) -> dict[str, str]:
    return dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines()
    )


def own_memory(process: int) -> int:
    """Bytes of a process that are no pages of files; 0 if it has just ended."""
    try:
        status = status_of(process)
        return (int(status["RssAnon"].split()[0]) + int(status["RssShmem"].split()[0])) * 1024
    except (OSError, KeyError):
        return 0


def memory_of(process: int) -> tuple[int, int]:
    """Bytes of a process and its children, all of them and those that are no pages of files."""
    resident = 0
    own = own_memory(process)
    try:
        resident = int(status_of(process)["VmRSS"].split()[0]) * 1024
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                sizes = memory_of(int(child))
                resident += sizes[0]
                own += sizes[1]
    except (OSError, KeyError):
        pass  # it has just ended
    return resident, own


class Memory(NamedTuple):
    """The most bytes at once: `own` leaves out pages of mapped files."""

    resident: int
    own: int
    main: int  # own bytes of the main process


def run(
    folder: Path,
    overrides: list[str],
    has_small_buffers: bool = False,
) -> tuple[dict[str, Moment], Memory]:
    """Prepare the corpus in another process: when each part began, and the most memory at once."""
    context = multiprocessing.get_context("spawn")
    times = context.Queue()
    process = context.Process(target=prepare, args=(folder, times, overrides, has_small_buffers))
    process.start()
    most = (0, 0, 0)
    while process.is_alive():
        number = process.pid or os.getpid()
        sizes = (*memory_of(number), own_memory(number))
        most = tuple(map(max, most, sizes))
        time.sleep(0.1)
    moments = dict(iter(times.get, None))
    missing = {name for part in PARTS.values() for name in part} - moments.keys()
    if missing:
        raise SystemExit(f"the preparation failed before {', '.join(sorted(missing))}")
    return moments, Memory(*most)


def reference(folder: Path, lines: list[str]) -> list[tuple[float, float]]:
    """Seconds and processor seconds that sentencepiece takes a line: one by one, and in two threads of its own."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "out" / "tokenizer.model")
    )
    moments = [Moment.now()]
    for line in lines:
        processor.encode(line)
    moments.append(Moment.now())
    for first in range(0, len(lines), BLOCK):
        processor.encode(lines[first : first + BLOCK], num_threads=2)
    moments.append(Moment.now())
    return [
        ((end.wall - begin.wall) / len(lines), (end.processor - begin.processor) / len(lines))
        for begin, end in pairwise(moments)
    ]


def first_lines(path: Path, count: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(count), strict=False)]


def measure_memory(sizes: list[int], is_repeated: bool) -> None:
    """Print the memory for corpora of these sizes, and what each million pairs adds."""
    options = [f"tokenizer.sample={MEMORY_SAMPLE}", "tokenizer.vocabulary_size=8000"]
    before: tuple[int, Memory] | None = None
    for pairs in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            write_corpus(Path(temporary), pairs, [], SHORTER)
            if is_repeated:
                repeat_first_pair(Path(temporary))
            _, memory = run(Path(temporary), options, has_small_buffers=True)
        print(
            f"{pairs:,} pairs: main process {memory.main / 1e6:.0f} MB, all processes {memory.own / 1e6:.0f} MB"
        )
        if before:
            millions = (pairs - before[0]) / 1e6
            main_growth, growth = ((memory[i] - before[1][i]) / 1e6 / millions for i in (2, 1))
            print(
                f"  a million pairs adds {main_growth:.1f} MB to the main process, {growth:.1f} MB to all"
            )
        before = pairs, memory


def measure_speed(pairs: int, texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_corpus(folder, pairs, texts)
        seen, memory = run(folder, given_sets(folder))
        lines = [
            line
            for code in ("en", "de")
            for line in first_lines(folder / f"train.{code}", REFERENCE_LINES // 2)
        ]
        one, two = reference(folder, lines)
    parts = {
        name: Moment(*np.subtract(seen[end], seen[begin])) for name, (begin, end) in PARTS.items()
    }
    for name, part in parts.items():
        workers = part.processor - part.main
        print(
            f"{name}: {part.wall:.1f} s; processor seconds: main process {part.main:.2f}, workers {workers:.2f} "
            f"({workers / part.main:.1f} workers keep the main process busy)"
        )
    line = (parts["reading and filtering"].wall + parts["encoding and writing"].wall) / (2 * pairs)
    processor = (seen["end"].processor - seen["begin"].processor) / (2 * pairs)
    print(f"{1 / line:,.0f} lines a second without learning")
    print(f"{processor * 1e6:.1f} us of processor time for each line, learning included")
    for name, (each, _) in (("one by one", one), ("in two threads", two)):
        print(f"sentencepiece alone, {name}: {1 / each:,.0f} lines a second")
        print(f"  of that, nmt preprocess keeps {each / line:.2f}")
    print(
        f"most memory at once, all processes: {memory.resident / 1e9:.2f} GB resident, {memory.own / 1e9:.2f} GB own"
    )


def main() -> None:
    words = sys.argv[1:]
    if words and words[0] in ("memory", "repeated"):
        measure_memory([int(word) for word in words[1:]], words[0] == "repeated")
    else:
        measure_speed(int(words[0]) if words else PAIRS, words[1:])


if __name__ == "__main__":
    main()
