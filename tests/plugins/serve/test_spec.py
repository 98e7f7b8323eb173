"""The description of the server's routes in OpenAPI's format, compared with real answers."""

import json
from typing import Any

import pytest

from nmt.commands import compose
from nmt.plugins.serve.app import PAGE, Server as Application, make_app
from nmt.plugins.serve.forms import BatchForm, FileForm, TextForm, TranslateForm
from tests.plugins.serve.serving import LINES, upload

SPEC = json.loads((PAGE / "spec.json").read_text())
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
CHECKED = {
    "$ref",
    "const",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "oneOf",
    "properties",
    "required",
    "type",
}
"""The keywords that `problems` checks."""
KEYWORDS = CHECKED | {"description", "format"}
"""The keywords that may occur."""
TEXT = {"q": LINES[0], "source": "en", "target": "de"}
BATCH = {"texts": LINES[:2], "src_lang": "en", "tgt_lang": "de"}
SHORT = ["ka lo", "mi"]
"""Too short for a detected language that is not served."""
EVERYTHING = {"alternatives": 2, "details": True}


def problems(value: Any, schema: dict[str, Any], where: str = "") -> list[str]:
    """The differences of a value from its schema; keys that the schema lacks are differences."""
    assert schema.keys() <= KEYWORDS, schema.keys() - KEYWORDS
    if "$ref" in schema:
        schema = SPEC["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return problems(value, schema, where)
    if "oneOf" in schema:
        fitting = [part for part in schema["oneOf"] if not problems(value, part, where)]
        return [] if len(fitting) == 1 else [f"{where}: {len(fitting)} schemas fit {value!r:.80}"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{where}: {value!r:.80}"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where}: {value!r:.80}"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_of_type(value, kind) for kind in kinds):
        return [f"{where}: {value!r:.80} is not of {kinds}"]
    found = []
    if isinstance(value, dict):
        # A plain object, such as this description, has no list of properties.
        anything = {key: {"const": part} for key, part in value.items()}
        properties = schema.get("properties", anything)
        found += [f"{where}: lacks {key}" for key in schema.get("required", []) if key not in value]
        for key, part in value.items():
            if key not in properties:
                found.append(f"{where}: {key} is not described")
            else:
                found += problems(part, properties[key], f"{where}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where}: has {len(value)} items")
        for index, part in enumerate(value):
            found += problems(part, schema["items"], f"{where}[{index}]")
    return found


def is_of_type(value: Any, kind: str) -> bool:
    # In Python, True is an integer.
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def schema_of(path: str, method: str, status: int) -> dict[str, Any]:
    """The schema of an answer."""
    responses = SPEC["paths"][path][method]["responses"]
    if str(status) in responses:
        response = responses[str(status)]
    else:
        assert responses["default"] == {"$ref": "#/components/responses/Error"}
        response = SPEC["components"]["responses"]["Error"]
    return response["content"]["application/json"]["schema"]


def test_every_route_is_described(word_model):
    config = compose("serve", [str(word_model)])
    app = make_app(Application(config), config)
    routes = {}
    for route in app.routes:
        methods = {method.lower() for method in route.methods}
        routes[route.path] = methods - {"head"}
    assert routes == {path: set(methods) for path, methods in SPEC["paths"].items()}


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/translate", TEXT, 200),
        ("/translate", TEXT | EVERYTHING, 200),
        ("/translate", TEXT | {"q": "ka lo", "source": "auto"}, 200),
        ("/translate", TEXT | EVERYTHING | {"q": SHORT, "source": "auto"}, 200),
        ("/translate", TEXT | {"q": ["Das Haus"], "source": "de"} | EVERYTHING, 200),
        ("/translate", BATCH, 200),
        ("/translate", BATCH | EVERYTHING | {"texts": SHORT, "src_lang": "auto"}, 200),
        ("/translate", BATCH | {"tgt_lang": "hi"}, 400),
        ("/translate", BATCH | {"tgt_lang": None}, 400),
        ("/translate", {}, 400),
        ("/detect", {"q": "Hello"}, 200),
        ("/detect", {}, 400),
        ("/suggest", TEXT | {"s": "Hallo"}, 200),
        ("/suggest", {}, 400),
        ("/languages", None, 200),
        ("/frontend/settings", None, 200),
        ("/health", None, 200),
        ("/spec", None, 200),
    ],
    ids=str,
)
def test_answers_are_as_described(server, path, fields, status):
    code, answer = server.ask(path, fields)
    assert code == status
    method = "get" if fields is None else "post"
    assert problems(answer, schema_of(path, method, status)) == []


def test_answers_about_files_are_as_described(server):
    for name, status in (("a.txt", 200), ("a.unknown", 400)):
        code, answer = upload(server, name, b"va so")
        assert code == status
        assert problems(answer, schema_of("/translate_file", "post", status)) == []
    assert server.ask("/spec")[1] == SPEC


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"translatedText": 1}, "0 schemas fit"),
        ({"translatedText": "a", "translations": ["a"]}, "0 schemas fit"),
        ({}, "0 schemas fit"),
        ({"translatedText": "a", "more": 1}, "0 schemas fit"),
    ],
)
def test_the_check_of_answers_finds_mistakes(value, problem):
    (found,) = problems(value, schema_of("/translate", "post", 200))
    assert problem in found


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Text", TextForm),
        ("Translate", TranslateForm),
        ("TranslateBatch", BatchForm),
        ("File", FileForm),
    ],
)
def test_forms_are_described(name, form):
    schema = SPEC["components"]["schemas"][name]
    fields = {field.alias or key: field for key, field in form.model_fields.items()}
    assert {*schema["properties"]} == {*fields, "api_key"}
    assert {*schema["required"]} == {key for key in fields if fields[key].is_required()}
    names = {part["$ref"] for part in SPEC["components"]["schemas"]["AnyTranslate"]["oneOf"]}
    assert names == {f"#/components/schemas/{name}" for name in ("Translate", "TranslateBatch")}


def test_every_reference_leads_somewhere():
    text = (PAGE / "spec.json").read_text()
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names == {*SPEC["components"]["schemas"]}
