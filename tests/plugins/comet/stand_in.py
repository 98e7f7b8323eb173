"""A stand-in for `comet-score`: the same options, ways to read lines and output, other scores.

`install` makes an environment with this program, as `uv tool install` would.
"""

import argparse
import json
import os
import sys
from pathlib import Path


def score(source: str, hypothesis: str, reference: str) -> float:
    """A score that depends on each of the three texts."""
    different = abs(len(hypothesis) - len(reference)) + abs(len(hypothesis) - len(source)) / 2
    return 1 / (1 + different)


def read(name: str) -> list[str]:
    """The lines as COMET's score.py reads them."""
    with Path(name).open(encoding="utf-8") as file:
        return [line.strip() for line in file.readlines()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources")
    parser.add_argument("--references")
    parser.add_argument("--translations", nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--batch_size", type=int)
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--to_json")
    parser.add_argument("--only_system", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    call = {**vars(options), "python_path": os.environ.get("PYTHONPATH")}
    # Beside the program, not beside a link to it.
    with Path(sys.argv[0]).resolve().with_name("calls").open("a") as file:
        file.write(json.dumps(call) + "\n")
    output = {}
    for name in options.translations:
        rows = []
        lines = [read(options.sources), read(name), read(options.references)]
        # COMET pairs lines like this, without a message if there are more of one side.
        for source, hypothesis, reference in zip(*lines):  # noqa: B905
            value = score(source, hypothesis, reference)
            rows.append({"src": source, "mt": hypothesis, "ref": reference, "COMET": value})
        output[name] = rows
    Path(options.to_json).write_text(json.dumps(output, indent=4, ensure_ascii=False))


def install(environment: Path, version: str = "2.2.7", program: str | None = None) -> Path:
    """Make an environment with the program; return the program's path."""
    if program is None:
        program = Path(__file__).read_text()
    path = environment / "bin" / "comet-score"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)
    packages = environment / "lib" / "python3.11" / "site-packages"
    metadata = packages / f"unbabel_comet-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: unbabel-comet\nVersion: {version}\n")
    return path


if __name__ == "__main__":
    main()
