"""`nmt score`: scores of a file of translations, for people or machines."""

import json
import sys
from pathlib import Path

from nmt.config import ScoreConfig
from nmt.errors import NMTError
from nmt.evaluation.scores import score
from nmt.text.files import BOM


def read_text(name: str) -> list[str]:
    """The lines of a file, or of standard input for "-", ended by LF or CRLF alone; NMTError where unreadable."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        text = content.removeprefix(BOM).decode()
    except OSError as error:
        raise NMTError(f"{name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NMTError(f"{name}, line {line}: invalid UTF-8") from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def example_text(sources: list[str] | None, references: list[str], hypotheses: list[str], count: int) -> str:
    """`count` examples spread evenly over the file: source, reference and translation one below another."""
    count = min(count, len(references))
    places = [i * len(references) // count for i in range(count)]
    blocks = []
    for place in places:
        rows = [("source", sources[place])] if sources else []
        rows += [("reference", references[place]), ("translation", hypotheses[place])]
        blocks.append("\n".join(f"{label:>11}  {text}" for label, text in rows))
    return "\n\n".join(blocks) + "\n\n" if blocks else ""


def report(config: ScoreConfig) -> str:
    """The scores of `config`, as text or JSON; NMTError where files cannot be read or their line counts differ."""
    assert config.reference is not None
    hypotheses, references = read_text(config.hypothesis), read_text(config.reference)
    sources = read_text(config.source) if config.source else None
    if sources is not None and len(sources) != len(references):
        raise NMTError(f"{config.source} has {len(sources)} lines but {config.reference} has {len(references)}")
    scores = score(hypotheses, references, config.metrics, config.language, config.lowercase)
    if config.format == "json":
        return json.dumps([item.as_dict() for item in scores], indent=2, ensure_ascii=False) + "\n"
    return example_text(sources, references, hypotheses, config.examples) + "".join(f"{item}\n" for item in scores)
