"""metrics.csv, the log of a run. No torch import."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt import files
from nmt.config import NMTError, one_line

VALIDATION_COLUMNS = ("valid_loss", "valid_perplexity", "valid_bleu", "valid_f1")
COLUMNS = (
    "step",
    "loss",
    "perplexity",
    "learning_rate",
    "gradient_norm",
    "tokens_per_second",
    "padding",
    "mfu",
    "seconds",
    "flops",
    "cost",
    "skipped",
    *VALIDATION_COLUMNS,
)


class Logbook:
    """Writes metrics.csv, with one row per report.

    A restart keeps the rows up to the update `step` from which the run resumes. If training stopped
    between two regular reports, the last report covers only a part of its updates: unless `whole`,
    it is dropped, because the next report repeats its updates. `domain_columns` come last.
    """

    def __init__(
        self, run: Path, step: int, domain_columns: Sequence[str] = (), whole: bool = True
    ) -> None:
        self.path = run / "metrics.csv"
        self.columns = [*COLUMNS, *domain_columns]
        last_report = step if whole else step - 1
        kept = []
        # A killed process may have written rows of updates that this one repeats.
        for row in read_metrics(run):
            is_report = bool(row["loss"])  # otherwise a validation
            if int(row["step"]) <= (last_report if is_report else step):
                kept.append(row)
        header = dict(zip(self.columns, self.columns, strict=True))
        # The whole file, because an older version of nmt may have written other columns.
        files.write_file(self.path, self.lines(header, *kept))

    def lines(self, *rows: dict[str, str]) -> str:
        text = io.StringIO()
        csv.DictWriter(text, self.columns, extrasaction="ignore").writerows(rows)
        return text.getvalue()

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Append a row, with the method of Lightning's loggers."""
        row = {"step": str(step)}
        for name, value in metrics.items():
            row[name] = f"{value:.6g}"
        try:
            # Opened for each row, so that a killed process loses at most this one.
            with self.path.open("a", newline="", encoding="utf-8") as file:
                file.write(self.lines(row))
        except OSError as error:
            raise NMTError(
                f"cannot write {self.path} ({error.strerror}): is the disk full?"
            ) from error


def read_metrics(run: Path, last: int = 0) -> list[dict[str, str]]:
    """The complete rows of metrics.csv; if `last` is not 0, only that many rows from the end.

    Incomplete rows are left out, as are rows with null bytes, which some file systems write when
    the power fails.
    """
    path = run / "metrics.csv"
    if not path.exists():
        return []
    text = files.read_bytes(path).decode(errors="replace")
    # A row without a line end was cut off, even if its last number looks whole.
    end = text.rfind("\n") + 1
    lines = text[:end].replace("\0", "").splitlines()
    header = lines[:1]
    body = lines[1:]
    if last:
        body = body[-last:]
    rows = []
    try:
        for row in csv.DictReader(header + body):
            # DictReader stores extra fields under the key None, and None for missing fields.
            is_complete = None not in row and None not in row.values()
            if is_complete and re.fullmatch("[0-9]{1,15}", row.get("step", "")):
                rows.append(row)
    except csv.Error as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    return rows
