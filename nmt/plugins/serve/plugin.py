"""Translation over HTTP: one process answers clients and translates, others parse documents."""

from nmt.extensions import Add, CommandEntry


def register(add: Add) -> None:
    # The summary is written here, so that `nmt --help` need not import the server.
    command = CommandEntry(
        "serve",
        "nmt.plugins.serve.command:COMMAND",
        summary="Translate over HTTP, with a page for browsers.",
    )
    add(command)
