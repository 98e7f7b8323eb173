"""`nmt verify`: check a bundle that `nmt cite` wrote."""

import json
from dataclasses import asdict
from typing import Any

from nmt.commands.console import talker
from nmt.config import Command, Option
from nmt.errors import NMTError
from nmt.plugins.cite.config import VerifyConfig


def run(config: VerifyConfig) -> int:
    """Print what was checked, and return 1 if anything differs or is missing."""
    from nmt.plugins.cite.verify import DIFFERS, MISSING, verify

    checks = []
    for check in verify(config, talker()):
        checks.append(check)
        if config.format == "text":
            print(check, flush=True)
    differs = any(check.result in (DIFFERS, MISSING) for check in checks)
    if config.format == "json":
        print(json.dumps({"differs": differs, "checks": [asdict(check) for check in checks]}, indent=2))
    return int(differs)


def one_bundle(words: list[str]) -> dict[str, Any]:
    """The bundle; NMTError for more than one."""
    if len(words) > 1:
        raise NMTError(f"{words[-1]}: this command takes one bundle; {words[0]} is given too")
    return {"bundle": words[0]}


COMMAND = Command(
    "verify",
    VerifyConfig,
    run,
    one_bundle,
    usage="BUNDLE",
    example="citation-test.zip reference=test.de",
    keys="sha256=null reference=test.de source=test.en run=runs/mine device=cpu",
    texts=("bundle", "source", "reference", "run"),
    options={"--json": Option("Short for format=json.", override="format=json")},
    memory="pass device=cpu, or leave run out",
)
