"""translator.html, a page without a server: it contains the engine, as WebAssembly, and a model."""

import gzip
import html
import tarfile
from base64 import b64encode
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from nmt.config import NMTError
from nmt.files import ModelDescription, check_regular, sha256
from nmt.text import direction, language_name, language_tag

ENGINE = (
    "package/worker/bergamot-translator-worker.js",
    "package/worker/bergamot-translator-worker.wasm",
)
PARTS = ("engine", "wasm", "model", "lexicon", "source", "target")
"""The ids of the page's elements that contain files."""
SEARCH: dict[str, Any] = {
    "beam-size": 1,
    "normalize": 1.0,
    "word-penalty": 0,
    "max-length-break": 128,
    "max-length-factor": 2.0,
    "mini-batch-words": 1024,
    "workspace": 128,
    "skip-cost": True,
    "cpu-threads": 0,
    "alignment": "soft",
    "gemm-precision": "int8shiftAlphaAll",
    "quiet": True,
    "quiet-translation": True,
}
"""Settings of the engine, as Firefox sets them."""
PACKAGE = "@browsermt/bergamot-translator@0.4.9"
SHA256 = "9011be93222d839d7448ffdf00549d53ce8f541fd782ffc79779d1756397c41f"


def page_of(files: list[bytes], description: ModelDescription) -> bytes:
    """The page.

    `files` are the engine's two, the model, the shortlist, and a vocabulary for both sides or each.
    """
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    # Names of languages come from a model's description, so they are escaped.
    values = {"SEARCH": yaml.safe_dump(SEARCH)}  # texts, which become HTML
    for side, code in (("SOURCE", description.source), ("TARGET", description.target)):
        values[side] = language_name(code)
        values[f"{side}_TAG"] = language_tag(code)
        values[f"{side}_DIRECTION"] = direction(code)
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", html.escape(value))
    scripts = []
    # A vocabulary for both sides is `source`; then there is no `target`.
    for name, content in zip(PARTS, files, strict=False):
        # Browsers unpack gzip by themselves, which makes up for a part of what base64 adds. Without
        # a time, the page depends only on its content.
        packed = b64encode(gzip.compress(content, 9, mtime=0)).decode()
        scripts.append(f'<script type="text/plain" id="{name}">{packed}</script>')
    # After the texts, so that styles and files are not searched for their placeholders.
    blocks = {**looks(), "FILES": "\n".join(scripts)}
    for name, value in blocks.items():
        template = template.replace(f"{{{name}}}", value)
    return template.encode()


def looks() -> dict[str, str]:
    """The colors, styles and icon of the server's page, which this page shares."""
    server = resources.files("nmt.plugins.serve") / "page"
    return {
        "STYLES": (server / "page.css").read_text(encoding="utf-8"),
        "THEME": (server / "theme.js").read_text(encoding="utf-8"),
        "ICON": b64encode((server / "icon.svg").read_bytes()).decode(),
    }


def engine_files(package: Path) -> list[bytes]:
    """The engine's program and its WebAssembly, from the package that npm distributes."""
    check_regular(package)
    # The engine becomes a part of the page, and runs in the browsers of those who open it.
    if sha256(package) != SHA256:
        raise NMTError(f"page={package}: not the .tgz that `npm pack {PACKAGE}` writes")
    contents = []
    with tarfile.open(package) as archive:
        for name in ENGINE:
            # Read, not unpacked: names in an archive could lead outside of a folder.
            member = archive.extractfile(name)
            assert member
            contents.append(member.read())
    return contents
