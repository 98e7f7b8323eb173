"""Firefox's offline translation models: import them, train such models, and export them."""

from dataclasses import dataclass
from typing import Any

from nmt.config import NMTError
from nmt.extensions import Add, ExporterEntry, ImporterEntry, OptionsEntry


@dataclass
class BergamotConfig:
    """Options of `nmt export format=bergamot`."""

    page: str | None = None
    """bergamot: package of Firefox's engine (the .tgz from
    `npm pack @browsermt/bergamot-translator@0.4.9`); if given, also write translator.html, a page
    that translates offline."""
    prepared: str | None = None
    """bergamot: prepared corpus to build the shortlist from; null: the corpus of the training."""
    shortlist: str | None = None
    """bergamot: file to use as the shortlist, such as lex.*.bin of the imported model; null: build
    one."""

    def check(self, owner: Any) -> None:
        # The keys of this plugin are next to those of all formats. Other formats would silently
        # ignore them.
        for key, value in vars(self).items():
            if value is not None and owner.format != "bergamot":
                raise NMTError(f"{key} is for format=bergamot; omit it")


def register(add: Add) -> None:
    here = "nmt.plugins.bergamot"
    names = (
        r"README\.md",
        r"model_info\.json",
        r"metadata\.json",
        r"config\.intgemm8bitalpha\.yml",
        r"translator\.html",
        r"model\.[^/]+\.bin",
        r"lex\.[^/]+\.bin",
        r"(src|trg)?vocab\.[^/]+\.spm",
    )
    bergamot = ExporterEntry(
        "bergamot",
        f"{here}.export:export",
        keys=("sample",),
        precision="int8",
        marker="model_info.json",
        files="|".join(names),
        supports=f"{here}.supported:BERGAMOT",
    )
    # By suffix; `nmt import` tries it after all of its own formats.
    add(ImporterEntry(".bin", f"{here}.reading:read_model"))
    add(bergamot)
    add(OptionsEntry("export.bergamot", f"{here}.plugin:BergamotConfig", is_inline=True))
