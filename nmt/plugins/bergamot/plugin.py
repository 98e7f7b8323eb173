"""Firefox's offline translation models: import them, train models of their shape, and export those with a page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmt.config import require


@dataclass
class BergamotConfig:
    """Options of `nmt export format=bergamot`."""

    page: str | None = None
    """Also write translator.html, a page that translates without a server, with the engine from this .tgz, which
    `npm pack @browsermt/bergamot-translator@0.4.9` downloads."""

    prepared: str | None = None
    """Prepared corpus from which likely translations of words are counted; null: the corpus of the training."""

    def check(self, owner: Any) -> None:
        is_used = self.page is not None or self.prepared is not None
        require(owner.format == "bergamot" or not is_used, "page and prepared are for format=bergamot; omit them")


def register(add: Callable[..., None]) -> None:
    here = "nmt.plugins.bergamot"
    add("import", ".bin", f"{here}.reading:read_model")
    facts = {"keys": ("sample",), "precision": "int8", "marker": "model_info.json"}
    add("export", "bergamot", f"{here}.export:export", **facts)
    add("options", "export.bergamot", f"{here}.plugin:BergamotConfig", inline=True)
