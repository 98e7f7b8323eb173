"""Exit with 0 if a process runs a healthy `nmt serve`, or another program.

`python health.py [PROCESS]`, the HEALTHCHECK of Containerfile. In a container, process 1 is nmt.
"""

import sys
import urllib.request
from pathlib import Path

PROGRAMS = ("nmt", "nmt-toolkit")
SECONDS = 5
"""The time limit for the server's answer."""


def server_address(words: list[str]) -> str:
    """The URL of the server that a command line starts; empty if it starts none."""
    commands = [Path(word).name for word in words]
    programs = [name for name in commands if name in PROGRAMS]
    if not programs:
        return ""
    # An init program and Python come before nmt.
    arguments = words[commands.index(programs[0]) + 1 :]
    if not arguments or arguments[0] != "serve":
        return ""
    keys = {}
    for word in arguments:
        key, _, value = word.partition("=")
        # Hydra also reads ++port=80 and host='::'.
        keys[key.lstrip("+")] = value.strip("'\"")
    # The system has chosen the port.
    if keys.get("port") == "0":
        return ""
    host = keys.get("host", "127.0.0.1")
    # Requests cannot be sent to the address that stands for all addresses.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{keys.get('port', '5000')}"


def main(process: str) -> None:
    try:
        command_line = Path("/proc", process, "cmdline").read_bytes()
    except OSError as error:
        sys.exit(f"process {process}: {error.strerror}")
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
    main(sys.argv[1] if len(sys.argv) > 1 else "1")
