"""A worker that translates blocks of a corpus to Parquet files, and what is told of its work."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nmt.config import TranslateConfig
from nmt.errors import NMTError, one_line
from nmt.plugins.cluster.parquet import Block, read_block, write_block
from nmt.translation import (
    SUMMARIES,
    RefusedLine,
    Translation,
    Translator,
    lines_of,
    load_translator,
    remark,
    summarize,
)


class BlockTranslator:
    """A model that translates blocks and writes their files: in this process, in another, or in a Ray actor."""

    kind: type[Block] = Block

    def __init__(self, config: TranslateConfig) -> None:
        self.config, self.counts, self.notices = config, Counter[str](), list[str]()
        self.translator: Translator | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate a block; a row for the driver, which holds the error if there was one."""
        self.notices.clear()
        before, block, error = self.counts.copy(), self.kind(**row), ""
        name = Path(block.file).name
        try:
            self.translate(block, name)
        except RefusedLine as problem:
            error = f"{name}, line {block.first + problem.index}: {problem.problem}"
        except NMTError as problem:
            error = str(problem)
        except Exception as problem:
            error = f"{block.file}, from line {block.first}: {type(problem).__name__}: {one_line(problem)}"
        counts = {kind: self.counts[kind] - before[kind] for kind in SUMMARIES}
        return {"lines": block.count, "error": error, "notices": "\n".join(self.notices), **counts}

    def translate(self, block: Block, name: str) -> None:
        self.translator = self.translator or load_translator(self.config, self.notices.append)
        lines, size = read_block(block, self.config.ray.column, self.notices.append), self.config.buffer
        parts = (lines[begin : begin + size] for begin in range(0, len(lines), size))
        found = list(lines_of(map(self.translator.translate_block, parts)))
        for number, translations in enumerate(found, block.first):
            remark(translations[0], f"{name}, line {number}", self.counts, self.notices.append)
        self.write(block, lines, found)

    def write(self, block: Block, lines: list[str], found: list[list[Translation]]) -> None:
        """Write the file of a block, given the translations of each line, best first."""
        write_block(Path(self.config.output), block, lines, [best for best, *_ in found])


def tell(rows: Iterable[dict[str, Any]], update: Callable[[str], None], notice: Callable[[str], None]) -> None:
    """Tell of blocks as soon as they are written; NMTError for the first error of a worker."""
    done, counts = 0, Counter[str]()
    for row in rows:
        if row["error"]:
            raise NMTError(row["error"])
        for words in row["notices"].splitlines():
            notice(words)
        counts.update({kind: row[kind] for kind in SUMMARIES})
        done += row["lines"]
        update(f"translated {done:,} lines")
    summarize(counts, notice)
