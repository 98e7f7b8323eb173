"""`nmt attention`: draw the attention of every head of a model."""

from dataclasses import dataclass
from pathlib import Path

from nmt.config import MISSING, Command, DecodeConfig, exists, number, require
from nmt.errors import NMTError


@dataclass
class AttentionConfig:
    """The tree of `nmt attention`."""

    sentence: str = MISSING
    """The sentence to look at; words without = are short for it."""
    target: str | None = None
    """Its translation; null: the model's own."""
    run: str = "runs/latest"
    """A run, or a model directory."""
    output: str = "attention.html"
    """The page to write, or a picture if the name ends in .png."""
    layer: int | None = number(None, 1, 1000)
    """Only this layer of each stack, counted from 1; null: all."""
    head: int | None = number(None, 1, 4096)
    """Only this head of each layer, counted from 1; null: all."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require(bool(self.sentence.strip()), "sentence: is empty; give one to look at")
        require(self.output.endswith((".html", ".png")), f"output={self.output}: must end in .html or .png")


def run(config: AttentionConfig) -> None:
    """Write the page or picture, and print its path."""
    from nmt.files import write_file
    from nmt.plugins.report.attention_page import attend, attention_page, select, write_picture
    from nmt.plugins.report.pages import check_output

    output = check_output(Path(config.output), "attention.html")
    seen = attend(config.run, config.sentence, config.target, config.device, config.decode)
    seen.stacks = [select(stack, config.layer, config.head) for stack in seen.stacks]
    if output.suffix == ".png":
        write_picture(output, seen)
    else:
        write_file(output, attention_page(seen))
    print(output)


def sentence_and_run(words: list[str]) -> dict[str, str]:
    """Take an existing folder as the run and the other word as the sentence; NMTError for more than one of either."""
    runs = [word for word in words if exists(Path(word)) and Path(word).is_dir()]
    sentences = [word for word in words if word not in runs]
    if len(runs) > 1 or len(sentences) > 1:
        raise NMTError(f"{words[-1]}: one sentence and one run, please, as in `nmt attention 'A SENTENCE' runs/mine`")
    return {**({"run": runs[0]} if runs else {}), **({"sentence": sentences[0]} if sentences else {})}


COMMAND = Command(
    "attention",
    AttentionConfig,
    run,
    sentence_and_run,
    usage="'A SENTENCE' [RUN]",
    example="'The law will never be perfect.' runs/mine",
    texts=("sentence", "target"),
    groups={"decode": "paper"},
)
