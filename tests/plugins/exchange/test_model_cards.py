"""Model cards and the READMEs of exports have the metadata of the Hugging Face Hub."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from nmt.files import front_matter, input_of, read_description
from nmt.files.description import ModelDescription
from nmt.plugins.exchange.hub_card import metadata_of, origin_of
from tests.conftest import import_fixture

SCORE = {
    "name": "BLEU",
    "value": 24.123,
    "sentences": 1000,
    "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1",
}


def described(source: str = "en", target: str = "de", **training) -> ModelDescription:
    return ModelDescription({"name": "base: # x"}, 300, source, target, "", training)


def tree_of(text: str) -> dict:
    """The metadata at the beginning of a README.md."""
    match = re.match(r"---\n(.*?)\n---\n\n", text, flags=re.S)
    assert match
    return yaml.safe_load(match[1])


def test_metadata_of_a_trained_model():
    config = {"data": {"name": "news: [1]"}}
    tree = tree_of(front_matter(described(score=SCORE, config=config), "nmt-toolkit"))
    [index] = tree.pop("model-index")
    assert tree == {
        "language": ["en", "de"],
        "library_name": "nmt-toolkit",
        "pipeline_tag": "translation",
        "metrics": ["bleu"],
    }
    [result] = index["results"]
    assert result["metrics"][0]["args"]["signature"] == SCORE["signature"]
    assert result["metrics"][0]["value"] == 24.12
    assert result["dataset"]["name"] == "news: [1]"


HUB = {"kind": "hub", "hub": "wmt/wmt14", "path": None, "sources": []}


@pytest.mark.parametrize(
    ("data", "datasets"),
    [
        (HUB, ["wmt/wmt14"]),
        # Nothing is known about the content of a folder or a file.
        ({**HUB, "path": "copy"}, None),
        ({**HUB, "kind": "files"}, None),
        ({**HUB, "kind": "unknown"}, None),
        (
            {**HUB, "sources": [{"hub": "a/b"}, {"path": "x"}, {"kind": "files"}, {"hub": "a/b"}]},
            ["a/b"],
        ),
        # From a file that anyone has written.
        ({**HUB, "hub": "a/b\nlicense: mit"}, None),
        ({**HUB, "hub": 1, "sources": 2}, None),
        ("text", None),
    ],
)
def test_datasets_of_the_hub_are_listed(data, datasets):
    tree = tree_of(front_matter(described(config={"data": data}), "nmt"))
    assert tree.get("datasets") == datasets


def test_the_trained_directions_are_listed_and_used_in_the_example():
    tags = ("<tyv_Cyrl2rus_Cyrl>", "<rus_Cyrl2tyv_Cyrl>")
    sources = [{"tag": tag} for tag in tags]
    description = described("mul", "mul", config={"data": {"sources": sources}})
    assert tree_of(front_matter(description, "nmt"))["language"] == ["tyv", "ru"]
    assert input_of(description) == "source=tyv_Cyrl target=rus_Cyrl < input.tyv_Cyrl"


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("mul", "mul", ["multilingual"]),
        ("eng_Latn", "tyv_Cyrl", ["en", "tyv"]),
        ("zho_Hans", "zho_Hant", ["zh"]),
        ("not a code", "a\nb: c", None),
        ("und", "und", None),
        ("en", "en", ["en"]),
        ("en", "zh-Hans", ["en", "zh-Hans"]),
        ("source.a", "it's: [x", None),
    ],
)
def test_only_codes_that_the_hub_accepts_are_listed(source, target, languages):
    tree = tree_of(front_matter(described(source, target), "nmt"))
    assert tree.get("language") == languages


def test_the_hub_s_library_reads_the_metadata():
    hub = pytest.importorskip("huggingface_hub")
    record = {"score": SCORE, "license": "cc-by-nc-4.0", "base_model": "facebook/nllb-200"}
    card = hub.ModelCard(front_matter(described(**record), "transformers") + "# A model\n")
    assert card.data.license == "cc-by-nc-4.0"
    assert card.data.base_model == "facebook/nllb-200"
    [result] = card.data.eval_results
    assert (result.task_type, result.metric_type, result.metric_value) == (
        "translation",
        "bleu",
        24.12,
    )
    assert result.dataset_split == "validation"


@pytest.mark.parametrize(
    ("card", "license"),
    [
        ("---\nlicense: cc-by-nc-4.0\n---\n# NLLB", "cc-by-nc-4.0"),
        ("---\nlicense: other\nlicense_name: my-terms\n---\n", "my-terms"),
        ("---\r\nlicense: mit\r\n---\r\n", "mit"),
        ("# No metadata\nlicense: mit\n", None),
        ("---\nlicense: '[mit](http://example.org)'\n---\n", None),
        ("---\nlicense: [mit, gpl]\n---\n", None),
        ("---\nlicense: &a [*a]\n---\n", None),
        ("---\n- mit\n---\n", None),
        ("---\nlicense: !!python/object/apply:os.system [x]\n---\n", None),
        (f"---\nlicense: {'x' * 200}\n---\n", None),
        ("---\nlicense: mit\n", None),
    ],
)
def test_license_of_an_untrusted_card(card, license, tmp_path):
    (tmp_path / "README.md").write_text(card, newline="")
    (tmp_path / "config.json").write_text('{"_name_or_path": "../../etc"}')
    expected = {} if license is None else {"license": license}
    assert origin_of(tmp_path) == expected


def test_a_card_that_is_no_text_is_ignored(tmp_path):
    (tmp_path / "README.md").write_bytes(b"---\nlicense: \xff\n---\n")
    assert metadata_of(tmp_path / "README.md") == {}
    assert metadata_of(tmp_path / "missing.md") == {}


@pytest.mark.slow
@pytest.mark.parametrize("export_format", ["ctranslate2", "huggingface"])
def test_license_is_shown_from_import_to_export(nmt, tmp_path, monkeypatch, export_format):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # An export is in the format of the hub, and so it can be imported.
    import_fixture("tied", tmp_path / "model")
    assert nmt("export", "model", "format=huggingface", "output=hub").code == 0
    (tmp_path / "hub/README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    config = json.loads((tmp_path / "hub/config.json").read_text())
    config["_name_or_path"] = "Helsinki-NLP/opus-mt-en-de"
    (tmp_path / "hub/config.json").write_text(json.dumps(config))
    shutil.rmtree(tmp_path / "model")
    done = nmt("import", "hub", "output=model")
    assert done.out.endswith(", license cc-by-4.0\n")
    record = read_description(Path("model")).record
    assert (record.license, record.base_model) == ("cc-by-4.0", "Helsinki-NLP/opus-mt-en-de")
    card = (tmp_path / "model/README.md").read_text()
    assert "| License | cc-by-4.0 |" in card
    assert tree_of(card)["library_name"] == "nmt-toolkit"
    assert nmt("export", "model", f"format={export_format}", "output=out").code == 0
    text = (tmp_path / "out/README.md").read_text()
    tree = tree_of(text)
    library = {"huggingface": "transformers"}.get(export_format, export_format)
    assert tree["library_name"] == library
    assert tree["license"] == "cc-by-4.0"
    assert tree["base_model"] == "Helsinki-NLP/opus-mt-en-de"
    assert "Its license is cc-by-4.0, as the original states." in text
