"""`nmt preprocess`: from raw pairs of lines to a prepared corpus.

    read -> clean and filter -> deduplicate, hold out -> learn the vocabulary -> encode -> Arrow

Text and ids pass through memory in blocks; what is kept for each pair is a hash and a flag.
"""

import hashlib
import re
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import DataConfig, FilterConfig, PreprocessAndTrainConfig
from nmt.errors import NMTError
from nmt.text.corpora import read_split, sources
from nmt.text.files import Pair
from nmt.text.filters import filter_pairs, letters
from nmt.text.manifest import FORMAT_VERSION, Manifest, fingerprint, read_manifest
from nmt.text.tokenizers import Tokenizer, clean, load_tokenizer, tokenizer_fingerprint, train_tokenizer

BLOCK = 5000
TEXT_SCHEMA = pa.schema({"source": pa.string(), "target": pa.string(), "hash": pa.uint64()})
IDS_SCHEMA = pa.schema(
    {
        "source": pa.list_(pa.int32()),
        "target": pa.list_(pa.int32()),
        "source_length": pa.int32(),
        "target_length": pa.int32(),
    }
)
In = TypeVar("In")
Out = TypeVar("Out")
Say = Callable[[str], None]


def blocks(items: Iterable[In], size: int = BLOCK) -> Iterator[list[In]]:
    """Consecutive lists of `size` items; the last may be shorter."""
    iterator = iter(items)
    while block := list(islice(iterator, size)):
        yield block


def bounded_map(
    function: Callable[[In], Out], items: Iterable[In], pool: ProcessPoolExecutor, ahead: int
) -> Iterator[Out]:
    """`map` over processes, in order, that reads at most `ahead` items before it gives their results."""
    waiting: deque[Future[Out]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@contextmanager
def arrow_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that appends a block of columns to an Arrow stream file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        yield lambda columns: writer.write_batch(pa.record_batch(columns, schema=schema))


def pair_hashes(pairs: list[Pair]) -> NDArray[np.uint64]:
    """64-bit hashes, equal for equal pairs."""
    digests = (hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest() for pair in pairs)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def clean_and_filter(pairs: list[Pair], filters: FilterConfig) -> tuple[list[Pair], Counter[str]]:
    """A block of raw pairs -> the clean ones that pass the filters, and counts of those that do not."""
    return filter_pairs([(clean(source), clean(target)) for source, target in pairs], filters)


def first_of_equals(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True at the first place of every value; memory for a tenth of large inputs at a time."""
    keep = np.zeros(len(hashes), dtype=bool)
    parts = len(hashes) // 4_000_000 + 1
    for part in range(parts):
        places = np.flatnonzero(hashes % np.uint64(parts) == part)
        keep[places[np.unique(hashes[places], return_index=True)[1]]] = True
    return keep


@dataclass
class Preparation:
    """One run of `nmt preprocess`, writing into `folder`."""

    config: PreprocessAndTrainConfig
    folder: Path
    say: Say
    pool: ProcessPoolExecutor
    counts: dict[str, Any]

    @property
    def data(self) -> DataConfig:
        return self.config.data

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        return bounded_map(function, items, self.pool, 2 * self.config.workers)

    def collect_train(self) -> Any:
        """Read, clean and filter the training pairs into a memory-mapped dataset with columns source, target, hash."""
        import datasets

        dropped: Counter[str] = Counter()
        read = 0
        pairs = read_split(self.data, "train", dropped)
        assert pairs is not None
        path = self.folder / "text.arrow"
        with arrow_writer(path, TEXT_SCHEMA) as write:
            for kept, reasons in self.map(partial(clean_and_filter, filters=self.data.filters), blocks(pairs)):
                read += len(kept) + reasons.total()
                dropped += reasons
                if kept:
                    source, target = zip(*kept, strict=True)
                    write({"source": source, "target": target, "hash": pair_hashes(kept)})
                self.say(f"read {read:,} pairs")
        read += dropped["invalid UTF-8"] + dropped["malformed"]
        self.counts["train"] = {"read": read, "dropped": dropped}
        return datasets.Dataset.from_file(str(path))

    def hold_out(self, text: Any, keep: NDArray[np.bool_], splits: list[str]) -> dict[str, list[int]]:
        """Draw the missing splits from the pairs in `keep`, and drop from it whatever shares its letters with them.

        So no held-out line occurs in training, on either side, even with other digits, case or punctuation.
        """
        sizes = {"valid": self.data.valid_size, "test": self.data.test_size}
        wanted = {split: sizes[split] for split in splits}
        drawn: dict[str, list[int]] = {split: [] for split in splits}
        sides: tuple[set[str], set[str]] = (set(), set())
        open_splits = [split for split in splits if wanted[split]]
        for index in np.random.default_rng(self.config.seed).permutation(np.flatnonzero(keep)).tolist():
            if not open_splits:
                break
            row = text[index]
            keys = letters(row["source"]), letters(row["target"])
            short = row["source"].count(" ") + 1 < self.data.held_out_min_words
            if short or keys[0] in sides[0] or keys[1] in sides[1]:
                continue
            for side, key in zip(sides, keys, strict=True):
                side.add(key)
            drawn[open_splits[-1]].append(index)
            if len(drawn[open_splits[-1]]) == wanted[open_splits[-1]]:
                open_splits.pop()
        held_out = {index for indices in drawn.values() for index in indices}
        start = 0
        for rows in text.iter(batch_size=BLOCK):
            for index, (source, target) in enumerate(zip(rows["source"], rows["target"], strict=True), start):
                if letters(source) in sides[0] or letters(target) in sides[1]:
                    if keep[index] and index not in held_out:
                        self.counts["train"]["dropped"]["like a held-out line"] += 1
                    keep[index] = False
            start += len(rows["source"])
        if open_splits or not keep.any():
            raise NMTError(
                f"the corpus has too few different pairs to draw data.valid_size={self.data.valid_size} and "
                f"data.test_size={self.data.test_size} from it: lower these, or give data.valid and data.test"
            )
        return drawn

    def nothing_left(self) -> NMTError:
        train = self.counts["train"]
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items()) or "none was read"
        return NMTError(f"no training pair is left of {train['read']:,} ({reasons}): check data.train and data.filters")

    def read_held_out(self, split: str) -> list[Pair] | None:
        """All raw pairs of a validation or test set, unfiltered; None where it is to be drawn from train."""
        dropped: Counter[str] = Counter()
        pairs = read_split(self.data, split, dropped)
        if pairs is None:
            return None
        kept = list(pairs)
        if split == "valid" and not kept:
            raise NMTError("data.valid holds no pair: training needs some to be validated on")
        self.counts[split] = {"read": len(kept) + dropped.total(), "dropped": dropped}
        return kept

    def write_ids(self, split: str, tokenizer: Tokenizer, text_blocks: Iterable[list[Pair]], limit: int | None) -> None:
        """Encode blocks of clean pairs and save them as a dataset; longer ones than `limit` tokens are dropped."""
        import datasets

        datasets.disable_progress_bars()
        path = self.folder / f"{split}.arrow"
        kept = dropped = 0
        with arrow_writer(path, IDS_SCHEMA) as write:
            for columns, too_long in self.map(partial(encode_block, tokenizer=tokenizer, limit=limit), text_blocks):
                write(columns)
                kept += len(columns["source_length"])
                dropped += too_long
                self.say(f"encoded {kept:,} pairs of {split}")
        if dropped:
            self.counts[split]["dropped"]["too long (tokens)"] += dropped
        if split == "train" and not kept:
            raise self.nothing_left()
        self.counts[split]["kept"] = kept
        ids = datasets.Dataset.from_file(str(path))
        path.unlink()  # mapped into memory, it stays readable
        self.counts[split]["tokens"] = {
            side: int(sum(chunk.to_numpy().sum() for chunk in ids.data.column(f"{side}_length").chunks))
            for side in ("source", "target")
        }
        if kept:
            ids.save_to_disk(str(self.folder / split))

    def write_text(self, split: str, pairs: list[Pair]) -> None:
        """The raw lines of a held-out set, for `nmt translate` and `nmt score`."""
        for side, language in enumerate((self.data.source, self.data.target)):
            # JSON and the hub allow line ends within a text; here a line is a sentence.
            lines = "".join(re.sub(r"[\r\n]+", " ", pair[side]) + "\n" for pair in pairs)
            (self.folder / f"{split}.{language}").write_text(lines, encoding="utf-8", newline="\n")

    def run(self) -> None:
        """Read, hold out, learn the vocabulary, encode, and write everything but the manifest."""
        self.counts["train"] = {}
        held_out = {split: self.read_held_out(split) for split in ("valid", "test")}
        text = self.collect_train()
        keep = np.ones(len(text), dtype=bool)
        if self.data.filters.deduplicate:
            keep = first_of_equals(text.with_format("numpy")["hash"][:])
            self.counts["train"]["dropped"]["duplicates"] += int((~keep).sum())
        missing = [split for split, pairs in held_out.items() if pairs is None]
        if missing:
            for split, indices in self.hold_out(text, keep, missing).items():
                held_out[split] = [(row["source"], row["target"]) for row in (text[i] for i in indices)]
                self.counts[split] = {"read": len(indices), "dropped": Counter()}
        if not keep.any():
            raise self.nothing_left()
        tokenizer = self.learn_vocabulary(text, keep)
        for split, pairs in held_out.items():
            assert pairs is not None
            self.write_text(split, pairs)
            clean_blocks = ([(clean(s), clean(t)) for s, t in block] for block in blocks(pairs))
            self.write_ids(split, tokenizer, clean_blocks, None)
        self.write_ids("train", tokenizer, kept_blocks(text, keep), self.data.filters.max_tokens)
        (self.folder / "text.arrow").unlink()

    def learn_vocabulary(self, text: Any, keep: NDArray[np.bool_]) -> Tokenizer:
        """Train the tokenizer on a sample of the kept pairs, both sides, and save it."""
        config = self.config.tokenizer
        places = np.flatnonzero(keep)
        if len(places) > config.sample:
            places = np.sort(np.random.default_rng(self.config.seed).choice(places, config.sample, replace=False))
        self.say(f"learning a {config.kind} vocabulary from {len(places):,} pairs")
        sample = text.select(places).iter(batch_size=BLOCK)
        lines = (line for rows in sample for side in ("source", "target") for line in rows[side])
        learnt = train_tokenizer(lines, config)
        # Read it back, so that what is used here is what a model directory will hold.
        path = self.folder / "tokenizer.model"
        learnt.save(path)
        return load_tokenizer(path)


def kept_blocks(text: Any, keep: NDArray[np.bool_]) -> Iterator[list[Pair]]:
    """Blocks of the kept pairs, in order."""
    start = 0
    for rows in text.iter(batch_size=BLOCK):
        size = len(rows["source"])
        flags = keep[start : start + size]
        yield [pair for pair, flag in zip(zip(rows["source"], rows["target"], strict=True), flags, strict=True) if flag]
        start += size


def encode_block(pairs: list[Pair], tokenizer: Tokenizer, limit: int | None) -> tuple[dict[str, Any], int]:
    """Columns of ids and lengths (which count the end symbol), and how many pairs were too long."""
    source = tokenizer.encode([pair[0] for pair in pairs])
    target = tokenizer.encode([pair[1] for pair in pairs])
    kept = [
        (s, t) for s, t in zip(source, target, strict=True) if limit is None or (len(s) <= limit and len(t) <= limit)
    ]
    columns = {
        "source": [s for s, _ in kept],
        "target": [t for _, t in kept],
        "source_length": [len(s) + 1 for s, _ in kept],
        "target_length": [len(t) + 1 for _, t in kept],
    }
    return columns, len(pairs) - len(kept)


def preprocess(config: PreprocessAndTrainConfig, say: Say) -> tuple[Manifest, bool]:
    """Prepare the corpus of `config` in the folder `config.prepared`, or do nothing where that is done already.

    Gives the manifest, and whether anything was done; `say` is told of the progress. Raises NMTError where the folder
    holds another preparation and not `config.overwrite`.
    """
    folder = Path(config.prepared)
    content = {
        "data": asdict(config.data),
        "tokenizer": asdict(config.tokenizer),
        "seed": config.seed,
        "sources": sources(config.data),
    }
    wanted = fingerprint(content)
    if folder.exists() and not (folder / "manifest.json").is_file():
        raise NMTError(f"{folder} is there already, but no prepared corpus: pass prepared=FOLDER, or move it away")
    if folder.exists() and not config.overwrite:
        there = read_manifest(folder)
        if there.fingerprint == wanted:
            return there, False
        raise NMTError(
            f"{folder} was prepared with another configuration ({there.difference(content)}): "
            "pass overwrite=true to replace it, or data.name=OTHER to keep both"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise NMTError(f"cannot write {folder} ({error.strerror}): pass prepared=FOLDER elsewhere") from error
    temporary.chmod(0o755)
    try:
        with ProcessPoolExecutor(config.workers) as pool:
            preparation = Preparation(config, temporary, say, pool, {})
            preparation.run()
        tokenizer = load_tokenizer(temporary / "tokenizer.model")
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            fingerprint=wanted,
            content=content,
            counts=preparation.counts,
            vocabulary_size=tokenizer.vocabulary_size,
            tokenizer=tokenizer_fingerprint(temporary / "tokenizer.model"),
            versions={name: version(name) for name in ("nmt-toolkit", "sentencepiece", "tokenizers", "datasets")},
        )
        manifest.write(temporary)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except BrokenProcessPool as error:
        raise NMTError("a worker process died, out of memory perhaps: try workers=1") from error
    except OSError as error:
        raise NMTError(f"cannot prepare {folder} ({error.strerror or error}): is the disk full?") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return manifest, True
