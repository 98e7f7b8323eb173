"""Heat maps of every layer and head as one picture, by matplotlib."""

from pathlib import Path
from typing import Any

from nmt.errors import NMTError, how_to_install
from nmt.report.bands import Matrix, shorten


def load_matplotlib(output: Path) -> Any:
    """matplotlib's Figure, which needs no display; NMTError where it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NMTError(
            f"output={output}: pictures need matplotlib; output a .html, or {how_to_install('figures')}"
        ) from error
    return Figure


def write_figure(output: Path, stacks: list[tuple[str, list[Matrix]]]) -> None:
    """A row of heat maps for each layer of each kind of attention, a column for each head."""
    rows = [(title, matrix) for title, matrices in stacks for matrix in matrices]
    columns = len(rows[0][1].heads)
    side = 1.2 + 0.16 * max(max(len(m.queries), len(m.keys)) for _, m in rows)
    figure = load_matplotlib(output)(figsize=(side * columns, side * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for (title, matrix), line in zip(rows, axes, strict=True):
        for head, weights, axis in zip(matrix.heads, matrix.weights, line, strict=True):
            axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
            axis.set_title(f"{title}\nlayer {matrix.layer}, head {head}", fontsize=7)
            axis.set_xticks(range(len(matrix.keys)), map(plain, matrix.keys), rotation=90, fontsize=6)
            axis.set_yticks(range(len(matrix.queries)), map(plain, matrix.queries), fontsize=6)
    try:
        figure.savefig(output, dpi=150)
    except OSError as error:
        raise NMTError(f"cannot write {output} ({error.strerror}): is the disk full?") from error


def plain(token: str) -> str:
    """A token as a label; matplotlib would take dollar signs for formulas."""
    return shorten(token).replace("$", r"\$")
