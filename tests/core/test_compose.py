"""Composition: the defaults are the paper's, every group composes, and a mistake is one line that helps."""

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from nmt.commands import COMMANDS, compose
from nmt.compose import compose_tree, expand, groups, set_text, to_yaml
from nmt.compose.groups import command_groups, command_keys
from nmt.compose.plain import conf_folder
from nmt.config import ExperimentConfig
from nmt.errors import NMTError

FILES = sorted(path.relative_to(conf_folder()) for path in conf_folder().rglob("*.yaml"))
CHOICES = [(path.parts[0], str(Path(*path.parts[1:]).with_suffix(""))) for path in FILES if len(path.parts) > 1]
GLOBAL = "# @package _global_\n"
TREES = ["preprocess", "train", "translate", "parse", "score", "average"]


def values(tree: Any, *keys: str) -> dict[str, Any]:
    return {key: OmegaConf.select(OmegaConf.structured(tree), key) for key in keys}


def error_line(command: str, overrides: list[str], config_dir: Path | None = None) -> str:
    with pytest.raises(NMTError) as error:
        compose(command, overrides, config_dir)
    message = str(error.value)
    assert "\n" not in message
    assert message.strip() == message != ""
    return message


PAPER = {
    "data.source": "en",
    "data.target": "de",
    "data.hub": "wmt/wmt14",
    "data.subset": "de-en",
    "tokenizer.kind": "bpe",
    "tokenizer.vocabulary_size": 37000,
    "model.encoder_layers": 6,
    "model.decoder_layers": 6,
    "model.d_model": 512,
    "model.d_ff": 2048,
    "model.heads": 8,
    "model.d_k": 64,
    "model.d_v": 64,
    "model.dropout": 0.1,
    "model.norm": "post",
    "model.positions": "sinusoidal",
    "model.tied_embeddings": True,
    "batching.tokens_per_update": 25000,
    "batching.micro_batches": 8,
    "optim.beta1": 0.9,
    "optim.beta2": 0.98,
    "optim.epsilon": 1e-9,
    "optim.factor": 1.0,
    "optim.warmup": 4000,
    "optim.label_smoothing": 0.1,
    "trainer.max_steps": 100_000,
    "trainer.gradient_clip_val": None,
    "checkpoints.every_minutes": 10,
    "checkpoints.every_steps": 1400,
    "checkpoints.keep": 5,
    "decode.beam_size": 4,
    "decode.length_penalty": 0.6,
    "decode.max_extra_length": 50,
}


def test_the_defaults_are_the_papers() -> None:
    config = compose("train", [])
    assert isinstance(config, ExperimentConfig)
    assert values(config, *PAPER) == PAPER
    assert compose("preprocess", []) == config


def test_the_big_model_is_the_papers() -> None:
    big = {
        "model.d_model": 1024,
        "model.d_ff": 4096,
        "model.heads": 16,
        "model.d_k": 64,
        "model.dropout": 0.3,
        "trainer.max_steps": 300_000,
        "checkpoints.keep": 20,
        "checkpoints.every_steps": 600,
    }
    config = compose("train", ["model=big"])
    assert values(config, *PAPER) == PAPER | {key: value for key, value in big.items() if key in PAPER}
    assert config.name == "wmt14_en_de-big"


def test_what_is_said_on_the_command_line_wins_over_a_group() -> None:
    config = compose("train", ["trainer.max_steps=7", "model=big", "model.dropout=0.1", "checkpoints.keep=2"])
    assert (config.trainer["max_steps"], config.model.dropout, config.checkpoints.keep) == (7, 0.1, 2)


def test_the_french_corpus_and_its_word_pieces_are_the_papers() -> None:
    config = compose("train", ["data=wmt14_en_fr", "tokenizer=wordpiece32k"])
    assert (config.data.target, config.data.subset) == ("fr", "fr-en")
    assert (config.tokenizer.kind, config.tokenizer.vocabulary_size) == ("wordpiece", 32000)


@pytest.mark.parametrize("command", ["translate", "score", "average"])
def test_the_other_commands_compose(command: str) -> None:
    config = compose(command, ["reference=x"] if command == "score" else [])
    if command == "translate":
        assert (config.decode.beam_size, config.decode.length_penalty, config.decode.max_extra_length) == (4, 0.6, 50)


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_option_of_every_group_composes_and_takes_effect(group: str, option: str) -> None:
    config = compose("train", [f"{group}={option}"])
    file = yaml.safe_load((conf_folder() / group / f"{option}.yaml").read_text())
    own = {key: value for key, value in file.items() if key != "defaults"}
    is_global = "@package _global_" in (conf_folder() / group / f"{option}.yaml").read_text()
    composed = OmegaConf.to_container(OmegaConf.structured(config))
    for key, value in flat(own if is_global else {group: own}).items():
        if "${" not in str(value):
            assert flat(composed)[key] == value
    assert config.prepared == f"data/{config.data.name}"
    assert config.run == f"runs/{config.name}"


def flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {prefix.removesuffix("."): tree}
    return {key: value for name, part in tree.items() for key, value in flat(part, f"{prefix}{name}.").items()}


def test_every_group_and_option_is_offered() -> None:
    assert {(group, option) for group, options in groups().items() for option in options} == set(CHOICES)
    assert set(command_groups(COMMANDS["train"])) == {group for group, _ in CHOICES}
    assert {group: default for group, (default, _) in command_groups(COMMANDS["translate"]).items()} == {
        "decode": "paper"
    }


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_configuration_can_call_anything(path: Path) -> None:
    assert "_target_" not in (conf_folder() / path).read_text()


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("trainer.devices=8", "trainer.devices", 8),
        ("trainer.precision=bf16-mixed", "trainer.precision", "bf16-mixed"),
        ("++trainer.devices=8", "trainer.devices", 8),
        ("model.d_k=16", "model.d_k", 16),
        ("checkpoints.every_minutes=null", "checkpoints.every_minutes", None),
        ("data.train=corpus/train", "data.train", ["corpus/train"]),
        ("data.train=[a,b/c.tsv]", "data.train", ["a", "b/c.tsv"]),
        ("data.train=a.en:a.de", "data.train", ["a.en:a.de"]),
        ("data.source=de", "prepared", "data/files_de_fr"),
        ("data.name=mine", "run", "runs/mine-base"),
        ("name=mine", "run", "runs/mine"),
    ],
)
def test_an_override_takes_effect(override: str, key: str, value: Any) -> None:
    config = compose("train", ["data=files", "data.target=fr", override])
    assert values(config, key) == {key: value}


def test_the_run_of_a_name_does_not_depend_on_the_clock() -> None:
    assert compose("train", ["seed=3"]) == compose("train", ["seed=3"])


def test_the_quickstart_experiment_is_small() -> None:
    config = compose("train", ["experiment=quickstart"])
    assert (config.data.kind, config.run) == ("quickstart", "runs/quickstart")
    assert len(config.data.sha256) == 64
    assert config.model.d_model < 512
    assert config.tokenizer.vocabulary_size < 37000


def test_every_experiment_of_table_3_differs_from_its_base_alone_and_has_a_run_of_its_own() -> None:
    options = [option for group, option in CHOICES if option.startswith("table3/")]
    base = flat(asdict(compose("train", ["experiment=table3/base"])))
    assert (base["checkpoints.keep"], base["validation.bleu_sentences"]) == (1, None)
    runs = set()
    for option in options:
        config = compose("train", [f"experiment={option}"])
        runs.add(config.run)
        changed = {key for key, value in flat(asdict(config)).items() if value != base[key]}
        written = yaml.safe_load((conf_folder() / "experiment" / f"{option}.yaml").read_text())
        own = set(flat({key: written[key] for key in ("model", "optim") if key in written}))
        if option not in ("table3/base", "table3/big"):
            assert len(own) == (2 if "layers" in option else 1)
            assert own <= changed <= own | {"model.d_k", "model.d_v", "name", "run"}
    assert len(runs) == len(options)


def test_a_row_of_table_3_goes_with_other_models_and_corpora() -> None:
    config = compose("train", ["experiment=table3/b_d_k_16", "model=tiny", "data=quickstart", "tokenizer=bpe4k"])
    assert (config.name, config.model.d_model, config.model.d_k, config.model.d_v) == (
        "quickstart_en_de-table3-tiny-b_d_k_16",
        128,
        16,
        32,
    )


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("experiment=table3/a_heads_3", "table3/a_heads_32?"),
        ("experiment=a_heads_16", "table3/a_heads_16?"),
        ("experiment=table3", "did you mean table3/"),
    ],
)
def test_the_nearest_experiment_in_a_folder_is_named(override: str, nearest: str) -> None:
    assert nearest in error_line("train", [override])


@pytest.mark.parametrize(
    ("command", "overrides", "words"),
    [
        ("train", ["model.d_modle=3"], ["model.d_modle", "did you mean model.d_model?"]),
        ("train", ["seed=2", "optim.wramup=4"], ["optim.wramup", "did you mean optim.warmup?"]),
        ("train", ["trainer.devcies=8"], ["trainer.devcies", "did you mean trainer.devices?"]),
        ("train", ["modle=big"], ["modle", "did you mean model?"]),
        ("train", ["heads=4"], ["heads", "did you mean model.heads?"]),
        ("train", ["data.filters.max_word=3"], ["data.filters.max_word", "did you mean data.filters.max_words?"]),
        ("train", ["+model.d_modle=3"], ["d_modle"]),
        ("train", ["+sead=3"], ["sead"]),
        ("translate", ["beam_size=4"], ["beam_size", "decode.beam_size"]),
        ("score", ["referense=x"], ["referense", "did you mean reference?"]),
        ("average", ["ouptut=x"], ["ouptut", "did you mean output?"]),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(command: str, overrides: list[str], words: list[str]) -> None:
    message = error_line(command, overrides)
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    ("command", "override", "words"),
    [
        ("train", "model=bigg", ["model=bigg", "did you mean big?"]),
        ("train", "tokenizer=bpe", ["tokenizer=bpe", "did you mean bpe"]),
        ("train", "model=zzz", ["model=zzz", "base, big, small, student, tiny"]),
        ("train", "experiment=quickstrat", ["experiment=quickstrat", "quickstart"]),
        ("train", "model=null", ["model"]),
        ("train", "trainer=8", ["trainer=8", "paper"]),
        ("train", "model=base,big", ["model=base,big"]),
        ("translate", "decode=gredy", ["decode=gredy", "did you mean greedy?"]),
    ],
)
def test_an_unknown_option_of_a_group_is_named_with_those_there_are(
    command: str, override: str, words: list[str]
) -> None:
    message = error_line(command, [override])
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    ("command", "override"),
    [
        ("train", "model.heads=many"),
        ("train", "model.heads=null"),
        ("train", "model.heads=2.5"),
        ("train", "model.heads=[1,2]"),
        ("train", "model.tied_embeddings=maybe"),
        ("train", "optim.factor=fast"),
        ("train", "seed=abc"),
        ("train", "data.filters.max_words=few"),
        ("translate", "decode.beam_size=wide"),
        ("score", "examples=some"),
        ("average", "last=some"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_key(command: str, override: str) -> None:
    assert error_line(command, [override]).startswith(override)
    before = {"train": "run=x", "translate": "input=x", "score": "reference=x", "average": "run=x"}[command]
    assert error_line(command, [before, override]).startswith(override)


@pytest.mark.parametrize(
    ("command", "overrides", "words"),
    [
        ("train", ["model.heads=7"], ["model.heads=7", "model.d_model=512"]),
        ("train", ["batching.tokens_per_update=4"], ["batching.tokens_per_update=4", "batching.micro_batches=8"]),
        ("train", ["decode.n_best=9"], ["decode.n_best=9", "decode.beam_size=4"]),
        ("train", ["model.norm=sandwich"], ["model.norm=sandwich", "post, pre"]),
        ("translate", ["decode.n_best=2"], ["decode.n_best=2", "format=text"]),
        ("translate", ["format=xml"], ["format=xml", "text, tsv, jsonl"]),
        ("score", ["reference=x", "metrics=[bleu,rouge]"], ["metrics=rouge", "chrf"]),
        ("score", [], ["reference: a value is needed; `nmt score HYPOTHESIS REFERENCE`"]),
        ("train", ["model.heads"], ["model.heads", "KEY=VALUE"]),
        ("train", ["data.train=[a,b"], ["data.train=[a,b"]),
        ("train", ["=3"], ["=3"]),
        ("train", ["name=${data.nmae}"], ["data.nmae"]),
        ("preprocess", ["prepared="], ["prepared: is empty"]),
        ("train", ["run=' '"], ["run: is empty"]),
    ],
)
def test_a_broken_rule_or_a_value_that_cannot_be_read_is_one_line(
    command: str, overrides: list[str], words: list[str]
) -> None:
    message = error_line(command, overrides)
    assert all(word in message for word in words)


@pytest.mark.parametrize(
    "word",
    ["hydra.searchpath=[file:///tmp]", "hydra.run.dir=x", "+hydra.x=3", "~hydra", "hydra=x"],
)
def test_keys_of_hydra_itself_are_unknown(word: str) -> None:
    assert error_line("train", [word]).startswith("unknown key hydra")


@pytest.mark.parametrize(
    "override",
    [
        "name=${oc.env:HOME}",
        "name=a-${oc.env:HOME,x}-b",
        "name=${now:%Y}",
        "name='${oc.decode:${data.name}}'",
        "name='${oc.env:HOME}'",
        r"name=$\{oc.env:HOME\}",
        r"name='\\${oc.env:HOME}'",
        "name=str(${oc.env:HOME})",
        "data.train=[a,${oc.env:HOME}]",
        "data.train={a:${oc.env:HOME}}",
        "data.train=[[{a:{b:${oc.env:HOME}}}]]",
        "+trainer.max_time=${oc.env:HOME}",
    ],
)
def test_a_command_line_reads_no_environment(override: str) -> None:
    message = error_line("train", [override])
    assert "cannot be used; ${} names another key" in message
    assert message.startswith(override.partition("=")[0])


@pytest.mark.parametrize("command", ["score", "translate"])
def test_nor_do_lists_of_runs(command: str) -> None:
    assert "cannot be used" in error_line(command, ["run=[a,${oc.env:HOME}]"])


@pytest.mark.parametrize(
    "text", ["costs ${oc.env:HOME}", "${", "${data.name}", r"a\${x} \\${y} \\", "${a${b}}'\"", "$ {x} }{"]
)
def test_running_text_is_no_interpolation(text: str) -> None:
    assert compose("attention", [text]).sentence == text
    assert compose("attention", ["sentence=x", f"target={text}"]).target == text
    assert (
        yaml.safe_load(to_yaml(compose_tree(COMMANDS["translate"], [f"source_prefix={text}"])))["source_prefix"] == text
    )
    assert compose("translate", [set_text("target_prefix", text)]).target_prefix == text
    assert compose("report", [f"runs/{text}"]).run == f"runs/{text}"


def test_one_metric_is_a_list_of_one() -> None:
    assert compose("score", ["reference=x", "metrics=bleu"]).metrics == ["bleu"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's own groups."""
    files = {
        "model/mine.yaml": "name: mine\nd_model: 64\nheads: 2\n",
        "model/base.yaml": "name: never\nd_model: 2\nheads: 1\n",
        "model/typo.yaml": "name: typo\nd_modle: 64\n",
        "model/text.yaml": "name: text\nheads: many\n",
        "model/broken.yaml": "name: [broken\n",
        "experiment/small.yaml": "# @package _global_\ndefaults:\n  - override /model: mine\nseed: 5\n",
        "experiment/mine/deep.yaml": "# @package _global_\nseed: 7\n",
        "experiment/typo.yaml": "# @package _global_\ndefaults:\n  - override /model: mien\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_groups_of_ones_own_are_found_and_offered(own: Path) -> None:
    assert compose("train", ["model=mine"], own).model.d_model == 64
    assert "mine" in groups(own)["model"]
    assert "tiny" in groups(own)["model"]
    assert "mine" in command_groups(COMMANDS["train"], own)["model"][1]
    with pytest.raises(NMTError):
        compose("train", ["model=mine"])


def test_an_experiment_of_ones_own_chooses_groups_of_ones_own(own: Path) -> None:
    config = compose("train", ["experiment=small", "seed=6"], own)
    assert (config.model.name, config.seed, config.name) == ("mine", 6, "wmt14_en_de-mine")
    assert compose("train", ["experiment=mine/deep"], own).seed == 7


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (
            "experiment/x.yaml",
            "seed: 5\n",
            "{file}: its keys are not read; its first line has to be # @package _global_",
        ),
        (
            "experiment/x.yaml",
            "defaults: [override /model: tiny]\nseed: 5\n",
            "{file}: its first line has to be # @package _global_",
        ),
        (
            "experiment/x.yaml",
            f"{GLOBAL}data: files\n",
            "{file}: data=files is chosen by defaults: [override /data: files]",
        ),
        ("experiment/x.yaml", f"{GLOBAL}defaults: [data: files]\n", "defaults: [override /data: files]"),
        ("experiment/x.yaml", f"{GLOBAL}defaults: [override model: tiny]\n", "defaults: [override /model: tiny]"),
        ("experiment/x.yaml", f"{GLOBAL}defaults:\n  - override model: tiny\n", "defaults: [override /model: tiny]"),
        (
            "experiment/x.yaml",
            f"{GLOBAL}defaults: [override /data: files, override model: tiny]\n",
            "defaults: [override /model: tiny]",
        ),
        ("data/x.yaml", "name: x\ntrain: a\n", "data.kind: a value is needed; pass data.kind=VALUE, or begin the file"),
        ("data/x.yaml", "name: x\ntrain: a\n", "in {folder} with defaults: [files]"),
        ("tokenizer/x.yaml", "kind: bpe\n", "in {folder} with defaults: [bpe37k]"),
        ("model/x.yaml", "name: n-${now:%Y}\n", "${now:%Y} cannot be used; ${} names another key, as ${data.name}"),
        ("model/x.yaml", "defaults: [nowhere]\n", "{file}: In 'model/x': Could not load 'model/nowhere'."),
        ("model/x.yaml", "defaults: [x]\n", "nested too deeply, or includes itself"),
        ("model/x.yaml", "[" * 3000, "nested too deeply, or includes itself"),
        ("model/x.yaml", b"name: \xff\n", "is no YAML"),
    ],
)
def test_what_to_write_in_a_file_of_ones_own_is_told(tmp_path: Path, file: str, text: str | bytes, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    message = error_line("train", [f"{path.parent.name}=x"], tmp_path)
    assert line.replace("{file}", str(path)).replace("{folder}", str(path.parent)) in message


def test_a_file_of_ones_own_may_read_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPORA", "/far/away")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.yaml").write_text("defaults: [files]\nname: x\ntrain: ${oc.env:CORPORA}/a\n")
    assert compose("train", ["data=x"], tmp_path).data.train == ["/far/away/a"]


def test_a_folder_of_ones_own_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "a, b's ${x} [c]=d"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "x.yaml").write_text("name: mine\n")
    assert compose("train", ["model=x"], folder).model.name == "mine"


def test_a_relative_folder_of_ones_own_is_found(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    assert compose("train", ["model=mine"], Path(own.name)).model.name == "mine"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model=min", ["model=min", "did you mean mine?"]),
        ("model=typo", ["model/typo", "d_modle"]),
        ("model=text", ["model/text", "model.heads"]),
        ("model=broken", ["broken"]),
        ("experiment=typo", ["mien"]),
    ],
)
def test_a_mistake_in_a_file_of_ones_own_is_one_line_that_names_it(own: Path, override: str, words: list[str]) -> None:
    message = error_line("train", [override], own)
    assert all(word in message for word in words)


def test_a_missing_folder_of_ones_own_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nowhere") in error_line("train", [], tmp_path / "nowhere")


@pytest.mark.parametrize("command", TREES)
def test_every_key_of_the_tree_is_an_option_with_its_default(command: str) -> None:
    tree = OmegaConf.to_container(compose_tree(COMMANDS[command], []), resolve=False)
    options = command_keys(COMMANDS[command])
    assert set(options) == set(flat(tree)) - {"experiment"}
    assert all(text for _, text in options.values())


def test_the_printed_tree_is_the_configuration() -> None:
    tree = yaml.safe_load(to_yaml(compose_tree(COMMANDS["train"], ["model=big", "seed=4"])))
    assert (tree["model"]["heads"], tree["seed"], tree["run"]) == (16, 4, "runs/wmt14_en_de-big")


def test_a_tree_that_cannot_be_resolved_is_one_line_when_printed() -> None:
    with pytest.raises(NMTError, match=r"data\.nmae") as error:
        to_yaml(compose_tree(COMMANDS["train"], ["name=${data.nmae}"]))
    assert "\n" not in str(error.value)


def test_a_bare_word_is_the_run_to_report_on():
    assert compose("report", ["runs/x", "sentences=3"]).run == "runs/x"
    assert compose("report", ["runs/heads=4"]).run == "runs/heads=4"
    assert compose("report", [r"it's\odd\'"]).run == r"it's\odd\'"
    for words in (["a", "b"], ["a", "run=b"]):
        with pytest.raises(NMTError, match="takes one run"):
            compose("report", words)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("<2de> ", "<2de> "),
        ("de ", "de "),
        ("a, b [c] {d}", "a, b [c] {d}"),
        ("'<2de> '", "<2de> "),
        ('"x "', "x "),
        ("'tis", "'tis"),
        ("17", "17"),
        ("true", "true"),
        ("", ""),
    ],
)
def test_a_prefix_is_taken_as_it_is_written_or_without_its_quotes(word, text):
    config = compose("translate", [f"source_prefix={word}", f"target_prefix={word}"])
    assert (config.source_prefix, config.target_prefix) == (text, text)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("日本", ["日本"]),
        ("a:b", ["a:b"]),
        ("'a:b'", ["a:b"]),
        ("1e3", ["1e3"]),
        ("007", ["007"]),
        ("a b, (c) [d]", ["a b, (c) [d]"]),
        ("~/x=y", ["~/x=y"]),
        ("true", ["true"]),
        ("null", []),
        ("[a,b]", ["a", "b"]),
        ("[日本, 1e3]", ["日本", "1e3"]),
        ("['a,b',c]", ["a,b", "c"]),
        ("${data.name}", ["toy"]),
    ],
)
@pytest.mark.parametrize("command", ["preprocess", "train"])
def test_names_of_files_are_taken_as_they_are_written(command, value, names):
    words = ["data=files", "data.name=toy", f"data.train={value}", f"data.path={value if value[0] != '[' else 'x'}"]
    data = compose(command, words).data
    assert data.train == names
    assert value[0] == "[" or data.path == (names[0] if names else None)


@pytest.mark.parametrize("word", ["1.10", "1e3", "1_000", "true", "007", "nan"])
def test_a_name_that_looks_like_a_number_stays_as_it_was_written(word: str) -> None:
    config = compose("train", [f"name={word}", f"data.name={word}"])
    assert (config.name, config.data.name) == (word, word)


@pytest.mark.parametrize(
    "sweep", ["seed=range(1,1e12)", "seed=range(0,200) model.heads=1,2,4,8 model.dropout=range(0,20)"]
)
def test_a_sweep_has_an_end(sweep: str) -> None:
    with pytest.raises(NMTError, match="more than 10,000"):
        expand(COMMANDS["train"], sweep.split())


def test_aliases_that_stand_for_billions_of_values_are_one_line(tmp_path):
    file = tmp_path / "experiment" / "mine.yaml"
    file.parent.mkdir()
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise("abcdefghij")]
    file.write_text("\n".join(["# @package _global_", "a: &a [x, x, x, x, x, x, x, x, x]", *lines]) + "\n")
    with pytest.raises(NMTError, match=r"mine\.yaml: it holds more than 10,000 values"):
        compose("train", ["experiment=mine"], tmp_path)
