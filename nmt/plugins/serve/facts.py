"""Information for clients about the server: its languages and its settings."""

from pathlib import Path
from typing import Any

from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.parsing import supported_suffixes
from nmt.plugins.serve.routes import Routes
from nmt.text import (
    MOST_LISTED,
    direction,
    language_name,
    language_tag,
    match_language,
    native_name,
    read_texts,
    without_region,
)


def facts_of_languages(routes: Routes) -> list[dict[str, Any]]:
    """The answer to /languages."""
    languages = list[dict[str, Any]]()
    for code in routes.languages:
        targets = list(routes.pairs.get(code, {}))
        languages.append(language_facts(code, targets))
    return languages


def language_facts(code: str, targets: list[str]) -> dict[str, Any]:
    """A language for clients: LibreTranslate's fields, and those that the page needs."""
    # The page uses the short names where the region distinguishes no two languages.
    without = without_region(code)
    return {
        "code": code,
        "name": language_name(code),
        "targets": targets,
        "nativeName": native_name(code),
        "shortName": language_name(without),
        "shortNativeName": native_name(without),
        "tag": language_tag(code),
        "direction": direction(code),
    }


def usual_pair(routes: Routes) -> tuple[str, str]:
    """The languages that the page offers to a new user: if possible those of the first model."""
    source, targets = next(iter(routes.pairs.items()))
    if len(targets) > MOST_LISTED:
        # The first of many languages, in alphabetical order, is one that few users want.
        source = match_language("en", routes.pairs) or source
        targets = routes.pairs[source]
        target = match_language("es", targets)
        if target:
            return source, target
    return source, next(iter(targets))


def settings_of(config: ServeConfig, routes: Routes) -> dict[str, Any]:
    """The answer to /frontend/settings: LibreTranslate's fields, and those that the page needs."""
    source, target = usual_pair(routes)
    has_keys = bool(config.keys)
    return {
        "charLimit": config.limits.characters,
        "language": {
            "source": {"code": source, "name": language_name(source)},
            "target": {"code": target, "name": language_name(target)},
        },
        # LibreTranslate's default, in milliseconds.
        "frontendTimeout": 500,
        "suggestions": bool(config.suggestions),
        "models": [Path(name).name for name in config.run],
        "apiKeys": has_keys,
        "keyRequired": has_keys,
        "glossary": glossary_of(config),
        "filesTranslation": True,
        "supportedFilesFormat": supported_suffixes(),
    }


def glossary_of(config: ServeConfig) -> dict[str, Any] | None:
    """The name of the glossary that applies to all requests, and its number of terms."""
    options = config.translator.plugins.get("protection")
    if options is None or options.glossary is None:
        return None
    name = options.glossary
    terms = 0
    for line in read_texts(name):
        if line.strip() and not line.startswith("#"):
            terms += 1
    return {"name": Path(name).name, "terms": terms}
