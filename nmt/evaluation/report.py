"""`nmt score`: scores of a file of translations, for people or machines."""

import json

from nmt.config import ScoreConfig
from nmt.errors import NMTError
from nmt.evaluation.scores import score
from nmt.text.files import MalformedLine, decode, read_lines


def read_text(name: str) -> list[str]:
    """The lines of a file, or of standard input for "-", ended by LF or CRLF alone; NMTError where unreadable."""
    lines = list[str]()
    for number, line in enumerate(read_lines(name), 1):
        try:
            lines.append(decode(line))
        except MalformedLine as error:
            raise NMTError(f"{name}, line {number}: {error}") from error
    return lines


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
