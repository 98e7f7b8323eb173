"""Quality estimation: the calibrated probability that a translation is good, without reference."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.config import SettingError, choice, number
from nmt.extensions import Add, CommandEntry, OptionsEntry, StageEntry

if TYPE_CHECKING:
    from nmt.config import TranslatorOptions


@dataclass
class QualityConfig:
    """What becomes of translations that are probably not good."""

    minimum: float | None = number(None, 1e-6, 1.0)
    """Lowest probability of a good translation to keep as it is, such as 0.9; needs
    `nmt calibrate`; null: keep all."""
    below: str = choice("mark", "mark", "omit")
    """What to do with other translations: mark them or leave them out (omit)."""

    def check(self, owner: "TranslatorOptions") -> None:
        problem = ""
        if self.minimum is None:
            if self.below != "mark":
                advice = "needs a minimum; pass minimum=PROBABILITY, such as minimum=0.8"
                raise SettingError(advice, key="below", value=self.below)
            return
        if len(owner.run) > 1:
            problem = "not supported for ensembles, which are not calibrated; name one run"
        elif owner.decode.do_sample:
            problem = "not supported with decode.do_sample=true; omit one of them"
        if problem:
            raise SettingError(problem, key="minimum", value=str(self.minimum))


def register(add: Add) -> None:
    path = "nmt.plugins.quality"
    calibrate = CommandEntry(
        "calibrate",
        f"{path}.command:COMMAND",
        summary="Calibrate how probable it is that a model's translation is good.",
    )
    add(calibrate)
    # First on the way in, and last on the way out: it judges what the user gets.
    stage = StageEntry(
        "quality",
        f"{path}.stage:quality",
        # Before the translation memory, so that it sees all translations of a line.
        order=5,
        key=("quality", "minimum"),
        judges=True,
        file="quality.json",
        state=f"{path}.stage:state",
        pictures=("quality.svg",),
    )
    add(stage)
    add(OptionsEntry("translator.quality", f"{path}.plugin:QualityConfig", is_inline=True))
    add(OptionsEntry("score.quality", f"{path}.judging:EstimationConfig", is_inline=True))
