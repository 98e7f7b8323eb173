"""Table 1: what each type of layer costs.

python -m nmt.reproduce.table1 GRID FILE    # measures the layers, and goes on where FILE ends
python -m nmt.reproduce.table1 GRID         # prints what that would take, as JSON
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from nmt.commands.reproduce import ReproduceConfig
from nmt.errors import NMTError
from nmt.reproduce.complexity.exponents import HEADINGS, cells, notes
from nmt.reproduce.complexity.exponents import rows as exponents
from nmt.reproduce.complexity.figure import draw_layers
from nmt.reproduce.complexity.layers import LAYERS, Layer
from nmt.reproduce.complexity.measuring import GRIDS, Measurements, expected, measure
from nmt.reproduce.document import NOT_RUN, Document, Grid, Line
from nmt.reproduce.results import Result
from nmt.reproduce.scales import Scale
from nmt.reproduce.stages import Stage
from nmt.reproduce.table import Row, Table

NAME = "layers"
PAPERS = ("layer type", "complexity, paper", "sequential, paper", "path, paper")


def rows(config: ReproduceConfig, scale: Scale) -> list[Row]:
    """Table 1 (section 4): one row, of which all layer types come."""
    path = Path(config.work) / "layers.json"
    stage = Stage("measure layers", (scale.grid, str(path)), path, module="nmt.reproduce.table1")
    return [Row(NAME, [stage], lambda: findings(path), grid=scale.grid)]


def findings(path: Path) -> dict[str, Any]:
    found = Measurements.load(path)
    table = [cells(row) for row in exponents(found)]
    return {"devices": found.setup["device"], "figures": {**json.loads(found.dump()), "table": table}}


def document(scale: Scale, results: dict[str, Result]) -> Document:
    result = results.get(NAME)
    found = measurements(result) if result else None
    table = [cells(row) for row in exponents(found)] if found else [not_run(layer) for layer in LAYERS]
    lines = [Line([row[heading] for heading in HEADINGS]) for row in table]
    return Document(
        "table1",
        "Table 1: what each type of layer costs",
        scale.name,
        "Ours are of layers alone, which the machine below ran and counted.",
        notes=notes(found) if found else [],
        grids=[Grid("Complexity of each layer", list(HEADINGS), lines, words=len(HEADINGS))],
        results=[result] if result else [],
        pictures={"Time and memory": draw_layers(found)} if found else {},
    )


def not_run(layer: Layer) -> dict[str, str]:
    """The paper's columns of a layer type."""
    paper = layer.name, layer.complexity, layer.sequential, layer.path
    return {**dict.fromkeys(HEADINGS, NOT_RUN), **dict(zip(PAPERS, paper, strict=True))}


def measurements(result: Result) -> Measurements:
    """What was measured; NMTError where a result holds something else."""
    try:
        found = Measurements.read(result.figures["setup"], result.figures["points"])
        found.check_whole()
    except (NMTError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise NMTError(
            f"{result.row}.json: holds no measurements of layers; remove it, and they are made again"
        ) from error
    return found


TABLE = Table("table1", rows, document)

if __name__ == "__main__":
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    device = accelerator or torch.device("cpu")
    grid, *files = GRIDS[sys.argv[1]], *map(Path, sys.argv[2:])
    try:
        for path in files:
            measure(grid, device, path)
    except NMTError as error:
        sys.exit(f"nmt: {error}")
    if not files:
        print(json.dumps(asdict(expected(grid, device))))
