"""Find which pairs of a prepared corpus follow the pair before them in the original text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.data.columns import map_file
from nmt.data.lengths import Ints
from nmt.data.prepared import PreparedCorpus
from nmt.errors import NMTError

Flags = NDArray[np.bool_]


def continues_text(corpus: PreparedCorpus, names: Sequence[str]) -> Flags:
    """For each training pair, whether its line follows that of the pair before it, [pairs].

    `names` are those of the sources. Pairs that preparation has dropped or held out leave a gap in
    the numbers of lines. Raises NMTError for a corpus without a record of its borders.
    """
    borders = corpus.manifest.counts["train"].get("borders")
    if borders is None:
        raise NMTError(
            f"{corpus.folder} does not record where its files begin, which data.join needs: "
            "prepare it again with overwrite=true"
        )
    # The lines of all pairs, for a moment: 8 bytes for each.
    lines = np.concatenate([*lines_of(corpus.split("train").files.paths)])
    return consecutive(lines, corpus.bounds("train"), borders, names)


def lines_of(paths: Sequence[Path]) -> Iterator[Ints]:
    """The numbers of the lines of all pairs of a split's files, in blocks."""
    for path in paths:
        for block in pa.ipc.open_stream(map_file(path)):
            yield block.column("line").to_numpy()


def consecutive(
    lines: Ints, bounds: Ints, borders: Mapping[str, Sequence[int]], names: Sequence[str]
) -> Flags:
    """For each line, whether it continues the line before it.

    `bounds` are each source's first row, then the end; `borders` are as in Counts.
    """
    continues = np.zeros(len(lines), np.bool_)
    continues[1:] = np.diff(lines) == 1
    for name, begin, end in zip(names, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        of_source = continues[begin:end]
        of_source[:1] = False
        ranges = borders.get(name, ())
        # The lines of a source ascend.
        firsts = np.searchsorted(lines[begin:end], ranges[0::2], side="left")
        ends = np.searchsorted(lines[begin:end], ranges[1::2], side="right")
        for first_row, end_row in zip(firsts.tolist(), ends.tolist(), strict=True):
            of_source[first_row:end_row] = False
    return continues
