"""An S3 server that asks its clients to slow down: `python s3_server.py PORT EVERY`.

It runs moto, and answers every EVERY-th request with the error 503; 0: none.
"""

import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


def main() -> None:
    port = int(sys.argv[1])
    every = int(sys.argv[2])
    server = DomainDispatcherApplication(create_backend_app)
    numbers = itertools.count(1)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if every and next(numbers) % every == 0:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start("503 Slow Down", [("Content-Type", "application/xml")])
            return [SLOW_DOWN]
        replies: Iterable[bytes] = server(environ, start)
        return replies

    run_simple("127.0.0.1", port, answer, threaded=True)


if __name__ == "__main__":
    main()
