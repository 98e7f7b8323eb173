"""The chart of risk and coverage: lines that are not good among those kept by probability."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt.config import NMTError, matches
from nmt.files import SMALL, parse_json, read_mapping, remembered_sha256
from nmt.plugins.results.charts import Chart, Drawing, draw

FILE = "quality.json"
"""Written by `nmt calibrate` into the model directory."""
WEIGHTS = "model.safetensors"
RISK = Chart(
    "Risk and coverage",
    "percent of the kept lines that are not good",
    "",
    by="share of the validation lines kept: those with the highest probability",
)


def draw_risk(kept: list[float], risk: list[float]) -> Drawing | None:
    """Draw the shares of lines that are kept, and of these that are not good."""
    points = []
    for share, bad in zip(kept, risk, strict=True):
        points.append((round(100 * share), 100 * bad))
    return draw(RISK, {"validation": points}, 100)


def risk_of(model: Path) -> Drawing | None:
    """The chart of a model directory; None without a calibration of its weights."""
    # A damaged file is reported by `nmt translate minimum=...`; the page shows the rest of the run.
    with suppress(NMTError):
        tree = read_mapping(model / FILE, parse_json, SMALL)
        if tree.get("weights") != remembered_sha256(model / WEIGHTS):
            return None
        fits = tree.get("fits")
        if isinstance(fits, list) and fits and isinstance(fits[0], dict):
            return drawing_of(fits[0])
    return None


def drawing_of(fit: dict[str, Any]) -> Drawing | None:
    kept: Any = fit.get("kept")
    risk: Any = fit.get("risk")
    if not matches(kept, list[float]) or not matches(risk, list[float]):
        return None
    if len(kept) != len(risk):
        return None
    are_shares = all(0 <= share <= 1 for share in [*kept, *risk])
    return draw_risk(kept, risk) if are_shares else None
