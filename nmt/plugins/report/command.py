"""`nmt report`: write a page about a training run. `nmt attention`: draw the attention of every head of a model."""

from dataclasses import dataclass
from pathlib import Path

from nmt.commands import train
from nmt.commands.console import one_run, talker
from nmt.config import MISSING, Command, DecodeConfig, choice, compose, exists, number, require, running_text, to_tree
from nmt.errors import NMTError


@dataclass
class ReportConfig:
    """The tree of `nmt report`."""

    run: str = "runs/latest"
    """The run, finished or still training; a word without = is short for it."""
    output: str | None = None
    """The HTML page to write; null: report.html in the run."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: where the run found it."""
    split: str = choice("valid", "valid", "test")
    """The set that is translated: valid or test."""
    sentences: int | None = number(500, 0, 10**9)
    """The number of its first sentences to translate; 0 for none, null for all."""
    examples: int = number(12, 0, 10_000)
    """The number of best, of median and of worst translations on the page."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING


@dataclass
class AttentionConfig:
    """The tree of `nmt attention`."""

    sentence: str = running_text(MISSING)
    """The sentence to look at; words without = are short for it."""
    target: str | None = running_text(None)
    """Its translation; null: the model's own."""
    run: str = "runs/latest"
    """A run, or a model directory."""
    output: str = "attention.html"
    """The page to write."""
    layer: int | None = number(None, 1, 1000)
    """Only this layer of each stack, counted from 1; null: all."""
    head: int | None = number(None, 1, 4096)
    """Only this head of each layer, counted from 1; null: all."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require(bool(self.sentence.strip()), "sentence: is empty; give one to look at")
        require(self.output.endswith(".html"), f"output={self.output}: must end in .html")


def report(config: ReportConfig) -> None:
    """Write the page about a run, and print its path."""
    from nmt.files import check_output, write_file
    from nmt.plugins.report.run import find_run, open_run

    console = talker()
    folder = find_run(config.run)  # before the seconds that Lightning takes to load
    output = check_output(Path(config.output or folder / "report.html"), "report.html")
    with console.status("loading"):
        run = open_run(folder, config.prepared)
        from nmt.plugins.report.training_page import training_page, translate_held_out

    quality = translate_held_out(run, config.split, config.sentences, config.decode, config.device, console)
    write_file(output, training_page(run, *quality, config.examples, to_tree(compose(train.COMMAND, []))))
    print(output)


def attention(config: AttentionConfig) -> None:
    """Write the page of a sentence's attention, and print its path."""
    from nmt.files import check_output, write_file
    from nmt.plugins.report.attention_page import attend, attention_page

    output = check_output(Path(config.output), "attention.html")
    chosen = (config.layer, config.head)
    seen = attend(config.run, config.sentence, config.target, config.device, config.decode, chosen)
    write_file(output, attention_page(seen))
    print(output)


def sentence_and_run(words: list[str]) -> dict[str, str]:
    """Take an existing folder as the run and the other word as the sentence; NMTError for more than one of either."""
    runs = [word for word in words if exists(Path(word)) and Path(word).is_dir()]
    sentences = [word for word in words if word not in runs]
    if len(runs) > 1 or len(sentences) > 1:
        raise NMTError(f"{words[-1]}: one sentence and one run, please, as in `nmt attention 'A SENTENCE' runs/mine`")
    return {**({"run": runs[0]} if runs else {}), **({"sentence": sentences[0]} if sentences else {})}


REPORT = Command(
    "report",
    ReportConfig,
    report,
    one_run,
    usage="[RUN]",
    example="runs/mine",
    groups={"decode": "paper"},
    memory="pass device=cpu, as a training may have filled the device, or sentences=0 to translate nothing",
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
