"""README.md of a model on the Hugging Face Hub: the model's card, with the name on the hub."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt import files
from nmt.config import NMTError
from nmt.plugins.exchange.hub_card import FRONT_MATTER
from nmt.plugins.exchange.hub_files import CARD
from nmt.plugins.exchange.hub_names import HubName

NO_LICENSE = "| License | not stated |"
"""The row in the card of an imported model whose license nmt does not know."""
AT_REVISION = """revision="{revision}", """
TRANSFORMERS = """
## transformers

`{folder}/` contains the model for the transformers library. Its README.md compares the results.

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

place = dict({revision}subfolder="{folder}")
model = AutoModelForSeq2SeqLM.from_pretrained("{repository}", **place)
tokenizer = AutoTokenizer.from_pretrained("{repository}", **place)
```
"""
CTRANSLATE2 = """
## CTranslate2

`{folder}/` contains the model for CTranslate2. Its README.md has a program that translates in this
folder, and compares the results.

```python
import os

from huggingface_hub import snapshot_download

os.chdir(snapshot_download("{repository}", {revision}allow_patterns="{folder}/*") + "/{folder}")
```
"""
OTHER = """
## {format}

`{folder}/` contains the model for another program, which its README.md describes.
"""
SECTIONS = {"huggingface": TRANSFORMERS, "ctranslate2": CTRANSLATE2}
"""Format of an export -> the section on how to use it."""


@dataclass(frozen=True)
class PublishedExport:
    """An export in a folder of a repository."""

    format: str
    folder: str


def published_card(
    card: str, name: HubName, license: str | None, exports: Sequence[PublishedExport]
) -> str:
    """The text of README.md on the hub, made from the text in the model directory.

    Everything that a user has written into it stays.
    """
    text = card.replace(files.THIS_FOLDER, str(name))
    if license is not None:
        text = with_license(text, license)
    for export in exports:
        section = SECTIONS.get(export.format, OTHER)
        revision = ""
        if name.revision != HubName.revision:
            revision = AT_REVISION.format(revision=name.revision)
        text += section.format(
            format=export.format,
            folder=export.folder,
            repository=name.repository,
            revision=revision,
        )
    return text


def with_license(card: str, license: str) -> str:
    """A card whose metadata state a license."""
    import yaml

    card = card.replace(NO_LICENSE, NO_LICENSE.replace("not stated", license))
    match = FRONT_MATTER.match(card)
    try:
        metadata = files.parse_yaml(match[1]) if match else {}
    # YAML has several ways to be wrong, such as impossible dates and unhashable keys.
    except (NMTError, ValueError, TypeError) as error:
        raise NMTError(f"{CARD}: its metadata cannot be read; correct them") from error
    body = card[match.end() :] if match else f"\n{card}"
    if not isinstance(metadata, dict):
        raise NMTError(f"{CARD}: its metadata are no mapping; correct them")
    # The names of licenses without an identifier.
    for key in ("license_name", "license_link"):
        metadata.pop(key, None)
    metadata["license"] = license
    text = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n{body}"
