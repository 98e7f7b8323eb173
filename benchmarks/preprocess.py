"""Measure `nmt preprocess` on generated text: memory, and pairs per second compared with sentencepiece alone.

    python benchmarks/preprocess.py [PAIRS] [SOURCE_TEXT TARGET_TEXT]

The script writes PAIRS (4.5 million) pairs as long as WMT's to a temporary folder. Their words are as frequent as in
the two text files; without files, the words are made up and follow Zipf's law. It prepares the pairs with two workers,
and prints the seconds of each part and the peak memory of all processes: `resident` includes pages of mapped files,
which the system can reclaim, and `own` does not. Then sentencepiece encodes some of the same lines.
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

import numpy as np
from lengths import text_like_lengths

PAIRS = 4_500_000
REFERENCE_LINES = 400_000
BLOCK = 50_000
TOKENS_PER_WORD = 1.15
MADE_UP_WORDS = 200_000
PARTS = {
    "reading and filtering": ("begin", "learning"),
    "learning the vocabulary": ("learning", "encoded"),
    "encoding and writing": ("encoded", "end"),
}

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
        [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "s")], dtype=object
    )
    words = [syllables[random.integers(0, len(syllables), size)].sum() for size in random.integers(2, 6, MADE_UP_WORDS)]
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
                np.searchsorted(cumulative, random.random(sizes.sum())).clip(max=len(cumulative) - 1)
            ].tolist()
            ends = sizes.cumsum().tolist()
            file.writelines(
                " ".join(drawn[end - size : end]) + "\n" for size, end in zip(sizes.tolist(), ends, strict=True)
            )


def write_corpus(folder: Path, pairs: int, texts: list[str]) -> None:
    words = [words_of(text) for text in texts] or [made_up_words(1), made_up_words(2)]
    for prefix, size, seed in (("train", pairs, 1), ("valid", 3000, 2), ("test", 3000, 3)):
        lengths = text_like_lengths(size, seed)
        for code, side, side_words in zip(("en", "de"), lengths, words, strict=True):
            write_text(folder / f"{prefix}.{code}", side, side_words)


Moment = tuple[float, float]


def processor_seconds() -> float:
    """Of this process and those of its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def prepare(folder: Path, times: "multiprocessing.Queue[tuple[str, Moment] | None]") -> None:
    """Run the command, noting at what time, and after what processor time, it begins each of its parts."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    said: set[str] = set()

    def say(words: str) -> None:
        part = words.split()[0]
        if part not in said:
            said.add(part)
            times.put((part, (time.perf_counter(), processor_seconds())))

    files = [f"data.{split}={folder / split}" for split in ("train", "valid", "test")]
    options = [
        "data=files",
        "data.name=generated",
        *files,
        "data.filters.deduplicate=true",
        f"prepared={folder / 'out'}",
    ]
    config = compose("preprocess", [*options, "workers=2"])
    times.put(("begin", (time.perf_counter(), processor_seconds())))
    try:
        preprocess(config, say)
        times.put(("end", (time.perf_counter(), processor_seconds())))
    finally:
        times.put(None)


def memory_of(process: int) -> tuple[int, int]:
    """Bytes of a process and its children, all of them and those that are no pages of files."""
    resident = own = 0
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        resident = int(status["VmRSS"].split()[0]) * 1024
        own = int(status["RssAnon"].split()[0]) * 1024 + int(status["RssShmem"].split()[0]) * 1024
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                sizes = memory_of(int(child))
                resident, own = resident + sizes[0], own + sizes[1]
    except (OSError, KeyError):
        pass  # it has just ended
    return resident, own


def run(folder: Path) -> tuple[dict[str, Moment], tuple[int, int]]:
    """Prepare the corpus in another process: when each part began, and the most memory at once."""
    context = multiprocessing.get_context("spawn")
    times = context.Queue()
    process = context.Process(target=prepare, args=(folder, times))
    process.start()
    most = (0, 0)
    while process.is_alive():
        sizes = memory_of(process.pid or os.getpid())
        most = (max(most[0], sizes[0]), max(most[1], sizes[1]))
        time.sleep(0.1)
    return dict(iter(times.get, None)), most


def reference(folder: Path, lines: list[str]) -> list[Moment]:
    """Seconds and processor seconds that sentencepiece takes a line: one by one, and in two threads of its own."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "out" / "tokenizer.model"))
    moments = [(time.perf_counter(), processor_seconds())]
    for line in lines:
        processor.encode(line)
    moments.append((time.perf_counter(), processor_seconds()))
    for first in range(0, len(lines), BLOCK):
        processor.encode(lines[first : first + BLOCK], num_threads=2)
    moments.append((time.perf_counter(), processor_seconds()))
    return [((end[0] - begin[0]) / len(lines), (end[1] - begin[1]) / len(lines)) for begin, end in pairwise(moments)]


def first_lines(path: Path, count: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(count), strict=False)]


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_corpus(folder, pairs, sys.argv[2:])
        seen, memory = run(folder)
        lines = [line for code in ("en", "de") for line in first_lines(folder / f"train.{code}", REFERENCE_LINES // 2)]
        one, two = reference(folder, lines)
    parts = {name: np.subtract(seen[end], seen[begin]) for name, (begin, end) in PARTS.items()}
    for name, (seconds, _) in parts.items():
        print(f"{name}: {seconds:.1f} s")
    line = (parts["reading and filtering"][0] + parts["encoding and writing"][0]) / (2 * pairs)
    processor = (np.subtract(seen["end"], seen["begin"])[1] - parts["learning the vocabulary"][1]) / (2 * pairs)
    print(f"{1 / line:,.0f} lines a second without learning, {processor * 1e6:.1f} us of processor time for each")
    for name, (each, processor_each) in (("one by one", one), ("in two threads", two)):
        print(f"sentencepiece alone, {name}: {1 / each:,.0f} lines a second, {processor_each * 1e6:.1f} us each")
        print(f"  of that, nmt preprocess keeps {each / line:.2f}; by processor time {processor_each / processor:.2f}")
    print(f"most memory at once, all processes: {memory[0] / 1e9:.2f} GB resident, {memory[1] / 1e9:.2f} GB own")


if __name__ == "__main__":
    main()
