"""`nmt report` and `nmt attention`: pages about a training run and about what every head attends to."""

from dataclasses import dataclass
from pathlib import Path

from nmt.commands import one_run, talker
from nmt.config import MISSING, Command, DecodeConfig, choice, exists, number, require, running_text
from nmt.errors import NMTError


@dataclass
class ReportConfig:
    """Options of `nmt report`."""

    run: str = "runs/latest"
    """The run, finished or not; may be given without run=."""
    output: str | None = None
    """HTML page to write; null: report.html in the run folder."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: as recorded by the run."""
    split: str = choice("valid", "valid", "test")
    """Held-out set to translate: valid or test."""
    sentences: int | None = number(500, 0, 10**9)
    """Number of sentences to translate, from the beginning of the set; 0: none, null: all."""
    examples: int = number(12, 0, 10_000)
    """Number of translations to show in each group: best, median and worst."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    decode: DecodeConfig = MISSING


@dataclass
class AttentionConfig:
    """Options of `nmt attention`."""

    sentence: str = running_text(MISSING)
    """The sentence; may be given without sentence=."""
    target: str | None = running_text(None)
    """The translation of the sentence; null: the model's own."""
    run: str = "runs/latest"
    """A run or a model directory."""
    output: str = "attention.html"
    """HTML page to write."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require(bool(self.sentence.strip()), "sentence: must not be empty")
        require(self.output.endswith(".html"), f"output={self.output}: must end in .html")


def report(config: ReportConfig) -> None:
    from nmt.files import check_output, write_file
    from nmt.training import check_no_links

    folder, hint = Path(config.run), "not a training run (no config.yaml); pass a folder that `nmt train` wrote"
    if config.run == "runs/latest":
        hint = "train a model first: `nmt preprocess`, then `nmt train`"
    require((folder / "config.yaml").is_file(), f"run={folder}: {hint}")
    check_no_links(folder)
    output, console = check_output(Path(config.output or folder / "report.html"), "report.html"), talker()
    with console.status("loading"):
        from nmt.plugins.report.training_page import open_run, training_page, translate_held_out

        run = open_run(folder, config.prepared)
    write_file(output, training_page(run, *translate_held_out(run, config, console)))
    print(output)


def attention(config: AttentionConfig) -> None:
    from nmt.files import check_output, write_file
    from nmt.plugins.report.attention_page import attention_page

    output = check_output(Path(config.output), "attention.html")
    write_file(output, attention_page(config))
    print(output)


def sentence_and_run(words: list[str]) -> dict[str, str]:
    """An existing folder is the run, and any other word is the sentence; NMTError for two of either."""
    keys = ["run" if exists(word) and Path(word).is_dir() else "sentence" for word in words]
    if len(keys) != len(set(keys)):
        raise NMTError(f"{words[-1]}: pass one sentence and one run, as in `nmt attention 'A SENTENCE' runs/mine`")
    return dict(zip(keys, words, strict=True))


REPORT = Command(
    "report",
    ReportConfig,
    report,
    one_run,
    usage="[RUN]",
    example="runs/mine",
    groups={"decode": "paper"},
    memory="pass device=cpu, because training may have filled the device, or sentences=0 to translate nothing",
)
ATTENTION = Command(
    "attention",
    AttentionConfig,
    attention,
    sentence_and_run,
    usage="'A SENTENCE' [RUN]",
    example="'The law will never be perfect.' runs/mine",
    groups={"decode": "paper"},
)
