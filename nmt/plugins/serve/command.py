"""`nmt serve`: translation over HTTP, for LibreTranslate's clients and for browsers."""

import importlib.util
from pathlib import Path
from typing import Any

from nmt.commands.words import paths_and_texts
from nmt.compose import Command, Option
from nmt.errors import NMTError, how_to_install
from nmt.plugins.serve.config import ServeConfig


def run(config: ServeConfig) -> None:
    """Serve, or make a key."""
    missing = [name for name in ("fastapi", "uvicorn", "py3langid") if importlib.util.find_spec(name) is None]
    if missing:
        raise NMTError(f"nmt serve: {', '.join(missing)} not installed; {how_to_install('serve')}")
    if config.new_key is not None:
        from nmt.plugins.serve.keys import add_key

        print(add_key(Path(str(config.keys)), config.new_key))
        return
    from nmt.plugins.serve.run import serve

    serve(config)


def models(words: list[str]) -> dict[str, Any]:
    """The models to serve; NMTError for a word that names none."""
    files, folders, texts = paths_and_texts(words, "`nmt serve RUN...`, or no word for runs/latest")
    if files or texts:
        raise NMTError(f"{[*files, *texts][0]}: `nmt serve` takes runs and model directories alone")
    return {"run": folders}


COMMAND = Command(
    "serve",
    "Translate over HTTP, with a page for browsers.",
    ServeConfig,
    run,
    models,
    usage="[RUN]...",
    example="runs/mine engine=ctranslate2 precision=int8",
    keys="host=0.0.0.0 port=8000 keys=keys.txt engine=ctranslate2 precision=int8 decode=greedy limits.characters=5000",
    options={"--open": Option("Short for open=true: open the page in a browser.", override="open=true")},
    memory="serve fewer models, or take precision=int8 with engine=ctranslate2",
)
