"""`nmt calibrate`: calibrate the probability that a model's translation is good."""

from dataclasses import dataclass

from nmt import commands
from nmt.config import Command, NMTError, TranslatorOptions, inline, number


@dataclass
class CalibrateConfig:
    """Options of `nmt calibrate`."""

    run: str = "runs/latest"
    """Run or model directory; may be given without run=."""
    source: str | None = None
    """File of source lines that the model was not trained on; null: the validation set of the
    model's training corpus."""
    reference: str | None = None
    """File of reference translations of `source`."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the run."""
    like: str | None = None
    """Calibrated model directory: use the same lines and options, which its quality.json
    records."""
    threshold: float = number(50.0, 1.0, 100.0)
    """A translation is good if its sentence chrF2 is at least this."""
    translator: TranslatorOptions = inline(
        TranslatorOptions(), "target", "engine", "precision", "threads", "device", "decode"
    )

    def __post_init__(self) -> None:
        for key, value, other in (
            ("source", self.source, "reference"),
            ("reference", self.reference, "source"),
        ):
            if value is not None and getattr(self, other) is None:
                raise NMTError(f"{key}={value}: pass {other}=FILE, too")
        if self.translator.decode.do_sample:
            raise NMTError("decode.do_sample=true: sampled translations have no probabilities")
        if self.like is not None and (self.source or self.prepared):
            raise NMTError(f"like={self.like}: omit source, reference and prepared")


def run(config: CalibrateConfig) -> None:
    from nmt.plugins.quality.calibrating import calibrate
    from nmt.plugins.quality.card import add_to_card
    from nmt.plugins.quality.record import write_record
    from nmt.plugins.quality.summary import summary_of

    folder, record = calibrate(config, commands.talker())
    add_to_card(folder, record)
    # Last: who finds the record finds the chart, too.
    path = write_record(folder, record)
    print(summary_of(record))
    print(path)


COMMAND = Command(
    "calibrate",
    CalibrateConfig,
    run,
    commands.one_run,
    usage="[RUN]",
    examples=(
        "runs/corpus-30min",
        "hub/model source=valid.en reference=valid.de threshold=60",
    ),
    memory="pass a lower decode.batch_tokens or fewer threads",
    groups={"decode": "paper"},
)
