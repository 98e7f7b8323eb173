"""translator.html: a page with the engine, compiled to WebAssembly, and the model, that needs no server."""

import gzip
import html
import tarfile
from base64 import b64encode
from pathlib import Path

from nmt.config import NMTError, one_line, require
from nmt.files import ModelDescription

ENGINE = ("package/worker/bergamot-translator-worker.js", "package/worker/bergamot-translator-worker.wasm")
PARTS = "engine", "wasm", "model", "lexicon", "source", "target"
"""The ids of the page's elements that contain files."""
LARGEST = 2**26
"""Maximum size of a file in the package."""


def page_of(package: Path, files: list[bytes], description: ModelDescription) -> bytes:
    """The page; `files` are the model, the shortlist, and a vocabulary for both sides or each."""
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    contents = dict(zip(PARTS, [*engine_files(package), *files], strict=False))
    packed = {name: b64encode(gzip.compress(content, 9, mtime=0)).decode() for name, content in contents.items()}
    scripts = [f'<script type="text/plain" id="{name}">{text}</script>' for name, text in packed.items()]
    values = {"SOURCE": description.source, "TARGET": description.target}
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", html.escape(value))
    return template.replace("{FILES}", "\n".join(scripts)).encode()


def engine_files(package: Path) -> list[bytes]:
    """The engine's program and its WebAssembly, from the package that npm distributes."""
    advice = "pass the .tgz that `npm pack @browsermt/bergamot-translator` writes"
    try:
        with tarfile.open(package) as archive:
            contents = []
            for name in ENGINE:
                member = archive.extractfile(name)
                require(member is not None and archive.getmember(name).size <= LARGEST, f"page={package}: {advice}")
                assert member is not None
                contents.append(member.read())
            return contents
    except (OSError, KeyError, EOFError, tarfile.TarError) as error:
        raise NMTError(f"page={package}: cannot be read ({one_line(error)}); {advice}") from error
