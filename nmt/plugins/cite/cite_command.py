"""`nmt cite`: write a bundle of translations and scores that others can verify."""

from nmt.commands.console import talker
from nmt.commands.words import one_run
from nmt.config import Command
from nmt.plugins.cite.config import CiteConfig


def run(config: CiteConfig) -> None:
    """Write the bundle; print its path and SHA-256, and what to paste."""
    from nmt.plugins.cite.cite import SOFTWARE, cite, words_to_paste

    output, sha256, statement = cite(config, talker())
    print(f"{output}\nSHA-256 {sha256}\n\n{words_to_paste(statement, sha256)}\n\n{SOFTWARE}")


COMMAND = Command(
    "cite",
    CiteConfig,
    run,
    one_run,
    usage="[RUN]",
    example="runs/mine",
    keys="run=runs/mine source=test.en reference=test.de text=true metrics=[bleu,chrf,ter] output=mine.zip device=cpu",
    texts=("run", "source", "reference", "output", "prepared", "target"),
    memory="pass a lower decode.batch_tokens, or device=cpu",
    groups={"decode": "paper"},
)
