"""`nmt schema`: a JSON Schema, with which editors complete and check YAML files."""

from nmt.extensions import Add, CommandEntry


def register(add: Add) -> None:
    add(
        CommandEntry(
            "schema",
            "nmt.plugins.editors.command:COMMAND",
            summary="Print a JSON Schema of YAML files, for editors.",
        )
    )
