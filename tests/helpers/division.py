"""Divide a prepared split among files, as preparation does for many pairs, and write it as one.

python tests/helpers/division.py CORPUS FILES    divides the training pairs among so many files
"""

import json
import sys
from pathlib import Path

import pyarrow as pa

from nmt.data import IDS_SCHEMA


def write_stream(path: Path, blocks: list[pa.RecordBatch]) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, IDS_SCHEMA) as writer:
        for block in blocks:
            writer.write_batch(block)


def cut_blocks(folder: Path, pairs: int) -> None:
    """Write pairs.arrow again with blocks of so many pairs; tiny corpora have one block."""
    path = folder / "pairs.arrow"
    table = pa.ipc.open_stream(path.read_bytes()).read_all().combine_chunks()
    blocks = []
    for begin in range(0, len(table), pairs):
        # A copy, because a slice would be written with offsets that do not begin at 0.
        blocks += table.take(list(range(begin, min(begin + pairs, len(table))))).to_batches()
    write_stream(path, blocks)


def divide(folder: Path, files: int) -> list[int]:
    """Replace pairs.arrow with numbered files of whole blocks; the numbers of pairs in them."""
    path = folder / "pairs.arrow"
    blocks = [*pa.ipc.open_stream(path.read_bytes())]
    path.unlink()
    rows = []
    for number in range(files):
        part = blocks[number * len(blocks) // files : (number + 1) * len(blocks) // files]
        write_stream(folder / f"pairs-{number + 1:05}.arrow", part)
        rows.append(sum(map(len, part)))
    return rows


def divide_corpus(corpus: Path, files: int) -> None:
    """Divide the training pairs of a corpus, and record that in its manifest."""
    path = corpus / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["counts"]["train"]["files"] = divide(corpus / "train", files)
    path.write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    divide_corpus(Path(sys.argv[1]), int(sys.argv[2]))
