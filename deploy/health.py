"""Exit with 0 if the `nmt serve` that a process runs is healthy, or if the process runs something else.

`python health.py [PROCESS]`, the HEALTHCHECK of Containerfile. In a container, process 1 is nmt.
"""

import sys
import urllib.request
from pathlib import Path

SECONDS = 5
"""The time limit for the server's answer."""


def server_address(words: list[str]) -> str:
    """The URL of the server that a command line starts; empty if it starts none."""
    commands = [Path(word).name for word in words]
    if "nmt" not in commands:
        return ""
    # An init program and Python come before nmt.
    command, *arguments = words[commands.index("nmt") + 1 :] or [""]
    if command != "serve":
        return ""
    keys = dict(word.split("=", 1) for word in arguments if "=" in word)
    host = keys.get("host", "127.0.0.1")
    # Requests cannot be sent to the address that stands for all addresses.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{keys.get('port', '5000')}"


def main(process: str) -> None:
    command_line = Path("/proc", process, "cmdline").read_bytes()
    address = server_address(command_line.decode(errors="replace").split("\0"))
    if not address:
        return
    # A container may have a proxy in its environment, which cannot reach this server.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"{address}/health", timeout=SECONDS).close()
    except OSError as error:
        sys.exit(f"{address}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["1"])
