"""Composition: the defaults are the paper's, every group composes, and a mistake is one line that helps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from nmt.commands import COMMANDS, compose
from nmt.config import (
    Compute,
    TranslatorOptions,
    build,
    flatten,
    groups,
    set_text,
    to_tree,
    to_yaml,
)
from nmt.config.composition import conf_folders
from nmt.errors import NMTError


def files_of_groups() -> dict[Path, Path]:
    """Each file of a group, such as model/tiny.yaml -> its path."""
    files = {}
    for folder in conf_folders():
        for file in sorted(folder.rglob("*.yaml")):
            files[file.relative_to(folder)] = file
    return files


FILES = files_of_groups()
CHOICES = [(path.parts[0], str(Path(*path.parts[1:]).with_suffix(""))) for path in FILES]
"""Each group with each of its options."""


def values(config: Any, *keys: str) -> dict[str, Any]:
    tree = flatten(to_tree(config))
    return {key: tree[key] for key in keys}


def error_line(command: str, *overrides: str, config_dir: Path | None = None) -> str:
    with pytest.raises(NMTError) as error:
        compose(command, [*overrides], config_dir)
    assert "\n" not in str(error.value)
    return str(error.value)


PAPER = {
    "data.source": "en",
    "data.target": "de",
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
BIG = {
    "model.d_model": 1024,
    "model.d_ff": 4096,
    "model.heads": 16,
    "model.dropout": 0.3,
    "trainer.max_steps": 300_000,
    "checkpoints.keep": 20,
    "checkpoints.every_steps": 600,
}


def test_the_defaults_are_the_papers_base_model() -> None:
    config = compose("train", [])
    assert values(config, *PAPER) == PAPER


def test_preprocess_and_train_have_the_same_defaults() -> None:
    assert compose("preprocess", []) == compose("train", [])


def test_model_big_is_the_papers_big_model() -> None:
    big = compose("train", ["model=big"])
    assert values(big, *PAPER) == PAPER | BIG
    assert big.name == f"{big.data.name}-big"


def written_in(group: str, option: str) -> dict[str, Any]:
    """The tree of the keys that an option's file sets."""
    text = FILES[Path(group, f"{option}.yaml")].read_text()
    tree = yaml.safe_load(text) or {}
    tree.pop("defaults", None)
    return tree if "@package _global_" in text else {group: tree}


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_option_of_every_group_is_offered_and_takes_effect(group: str, option: str) -> None:
    assert option in groups(COMMANDS["train"])[group].options
    config = compose("train", [f"{group}={option}"])
    composed = flatten(to_tree(config))
    for key, value in flatten(written_in(group, option)).items():
        if "${" not in str(value):
            assert composed[key] in (value, [value])
    assert config.prepared == f"data/{config.data.name}"
    assert config.run == f"runs/{config.name}"


def test_no_file_of_a_group_names_python_code() -> None:
    assert not [path for path, file in FILES.items() if "_target_" in file.read_text()]


ROWS_OF_TABLE_3 = [
    option
    for group, option in CHOICES
    if option.startswith("table3/") and option not in ("table3/base", "table3/big")
]


@pytest.mark.slow
@pytest.mark.parametrize("option", ROWS_OF_TABLE_3)
def test_a_row_of_table_3_differs_from_its_base_only_in_its_keys(option: str) -> None:
    written = written_in("experiment", option)
    of_row = {key for key in flatten(written) if key.startswith(("model.", "optim."))}
    assert len(of_row) == (2 if "layers" in option else 1)
    base = flatten(to_tree(compose("train", ["experiment=table3/base"])))
    row = flatten(to_tree(compose("train", [f"experiment={option}"])))
    changed = {key for key, value in row.items() if value != base[key]}
    assert of_row | {"name", "run"} <= changed
    # Widths that are not given follow from others.
    assert changed <= of_row | {"model.d_k", "model.d_v", "name", "run"}


@pytest.mark.parametrize(
    ("command", "override", "line"),
    [
        ("train", "model.d_modle=3", "unknown key model.d_modle; did you mean model.d_model?"),
        ("train", "hads=4", "unknown key hads; did you mean model.heads?"),
        ("train", "max_stesp=3", "unknown key max_stesp; did you mean trainer.max_steps?"),
        ("train", "tokenizer.size=3", "unknown key tokenizer.size; choose from tokenizer.kind, "),
        ("train", "--model.nrom=pre", "--model.nrom: no such option; did you mean model.norm?"),
        ("train", "=", "=: write KEY=VALUE or KEY=[A,B] without spaces"),
        ("score", "metrics=[bleu,", "metrics=[bleu,: write KEY=VALUE or KEY=[A,B] without spaces"),
        (
            "translate",
            "x=y is an equation",
            "unknown key x; if this is input text, write text='x=y is an equation'",
        ),
        ("train", "hydra.searchpath=[file:///tmp]", "unknown key hydra.searchpath; "),
        (
            "train",
            "experiment=a_heads_16",
            "experiment=a_heads_16: no such option; did you mean table3/a_heads_16?",
        ),
        (
            "train",
            "model=zzz",
            "model=zzz: no such option; choose from base, big, small, student, tiny",
        ),
        ("train", "model=base,big", "model=base,big: give one value"),
        ("train", "model.heads", "model.heads"),
        ("train", "data.train=[a,b", "'data.train=[a,b' cannot be parsed; quote"),
        ("train", "=3", "'=3'"),
        ("train", "name=${data.nmae}", "Interpolation key 'data.nmae' not found"),
        ("preprocess", "prepared=", "prepared: must name a folder"),
        (
            "preprocess",
            "name=x",
            "name=x: `nmt preprocess` does not read this key; pass data.name=x",
        ),
        ("translate", "run=[]", "run: pass a run"),
        (
            "train",
            "model.heads=7",
            "model.heads=7: must divide model.d_model=512, or set model.d_k and model.d_v",
        ),
        (
            "train",
            "batching.tokens_per_update=4",
            "batching.tokens_per_update=4: must be at least batching.micro_",
        ),
        ("train", "decode.n_best=9", "decode.n_best=9: must be at most decode.beam_size=4"),
        ("train", "decode.top_k=5", "decode.temperature, top_k and top_p are for sampling"),
        (
            "train",
            "tokenizer.vocabulary_size=299",
            "tokenizer.vocabulary_size=299: must be at least 300",
        ),
        ("train", "trainer.devices=0", "trainer.devices=0: "),
        (
            "train",
            "trainer.max_time=15min",
            "trainer.max_time=15min: must be a duration, such as 15m",
        ),
    ],
)
def test_a_mistake_is_one_line_that_helps(command, override, line):
    assert error_line(command, override).startswith(line)


@pytest.mark.parametrize(
    ("d_model", "rate"), [(128, 1.5e-3), (256, 6.7e-4), (512, 3e-4), (1024, 1.34e-4)]
)
def test_the_learning_rate_for_adapting_falls_with_the_width(d_model, rate):
    config = compose("train", ["experiment=adapt", f"model.d_model={d_model}"])
    exact = d_model in (128, 512)
    assert config.optim.learning_rate == pytest.approx(rate, rel=1e-9 if exact else 0.01)


@pytest.mark.parametrize(
    ("command", "override", "key", "value"),
    [
        ("train", "model=big model.dropout=0.1", "model.dropout", 0.1),
        ("train", "data.source=de", "prepared", "data/files_de_fr"),
        (
            "train",
            "experiment=table3/b_d_k_16 model=tiny",
            "name",
            "files_en_fr-table3-tiny-b_d_k_16",
        ),
        ("train", "name=mine", "run", "runs/mine"),
        ("train", "trainer.max_time=15m", "trainer.max_time", "00:00:15:00"),
        ("train", "trainer.max_time=1d12h", "trainer.max_time", "01:12:00:00"),
        ("train", "trainer.max_time='00:02:30:00'", "trainer.max_time", "00:02:30:00"),
        ("train", "name=1.10", "name", "1.10"),
        ("train", "name=1_000", "name", "1_000"),
        ("train", "name=007", "name", "007"),
        ("train", "data.name=1.10", "data.name", "1.10"),
        ("train", "data.name=1_000", "data.name", "1_000"),
        ("train", "data.name=007", "data.name", "007"),
        ("train", "data.train=corpus/train", "data.train", ["corpus/train"]),
        ("train", "data.train=[a,b/c.tsv]", "data.train", ["a", "b/c.tsv"]),
        ("train", "data.train=a.en:a.de", "data.train", ["a.en:a.de"]),
        ("train", "data.path=日本", "data.path", "日本"),
        ("train", "data.path=1e3", "data.path", "1e3"),
        ("train", "data.path=true", "data.path", "true"),
        ("train", "data.train='a:b'", "data.train", ["a:b"]),
        ("train", "data.train=1e3", "data.train", ["1e3"]),
        ("train", "data.train=null", "data.train", []),
        ("train", "data.train=['a,b',c]", "data.train", ["a,b", "c"]),
        ("train", "data.train=${data.target}", "data.train", ["fr"]),
    ],
)
def test_an_override_takes_effect(command, override, key, value):
    config = compose(command, ["data=files", "data.target=fr", *override.split()])
    assert values(config, key) == {key: value}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "costs ${oc.env:HOME}",
        "${",
        "${data.name}",
        r"a\${x} \\${y} \\",
        "${a${b}}'\"",
        "$ {x} }{",
        "<2de> ",
        "a, b [c] {d}",
        "'tis",
        "",
    ],
)
def test_running_text_is_taken_as_written(text):
    assert compose("translate", [f"target={text}"]).translator.target == text
    printed = to_yaml(COMMANDS["translate"], [f"source_prefix={text}"])
    assert OmegaConf.create(printed).source_prefix == text
    assert compose("translate", [set_text("target_prefix", text)]).translator.target_prefix == text


def test_quotes_and_blanks_in_a_list_do_not_count():
    assert compose("translate", ["source_prefix='<2de> '"]).translator.source_prefix == "<2de> "
    data = compose(
        "preprocess", ["data=files", "data.train=[日本, 1e3]", "data.valid=a b, (c) [d]"]
    ).data
    assert (data.train, data.valid) == (["日本", "1e3"], ["a b, (c) [d]"])


@pytest.fixture
def config_dir(tmp_path):
    """Groups of a user."""
    files = {
        "model/mine.yaml": "name: mine\nd_model: 64\nheads: 2\n",
        "model/base.yaml": "name: never\nd_model: 2\nheads: 1\n",
        "model/nameless.yaml": "d_model: 64\n",
        "model/typo.yaml": "name: typo\nd_modle: 64\n",
        "model/text.yaml": "name: text\nheads: many\n",
        "model/nowhere.yaml": "defaults: [nothing]\n",
        "data/mine.yaml": "defaults: [files]\nname: 1.10\ntrain: ${oc.env:CORPORA}/a\n",
        "data/no.yaml": "defaults: [files]\ntarget: no\n",
        "data/unkind.yaml": "name: x\n",
        "experiment/small.yaml": (
            "# @package _global_\ndefaults:\n  - override /model: mine\nseed: 5\n"
        ),
        "experiment/mine/deep.yaml": "# @package _global_\nseed: 7\n",
        "experiment/typo.yaml": "# @package _global_\ndefaults:\n  - override /model: mien\n",
        "experiment/local.yaml": "seed: 5\n",
    }
    folder = tmp_path / "a, b's ${x} [c]=d"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_groups_in_config_dir_are_found_and_offered(config_dir, monkeypatch):
    monkeypatch.chdir(config_dir.parent)
    assert compose("train", ["model=mine"], Path(config_dir.name)).model.d_model == 64
    assert {"mine", "tiny"} < {*groups(COMMANDS["train"], config_dir)["model"].options}
    assert error_line("train", "model=mine").startswith("model=mine: no such option")


def test_config_dir_cannot_replace_an_option_of_nmt(config_dir):
    assert compose("train", ["model=base"], config_dir).model.d_model == 512


def test_config_dir_must_exist():
    line = error_line("train", config_dir=Path("nowhere"))
    assert line == "--config-dir nowhere: no such folder"


def test_an_experiment_in_config_dir_chooses_other_groups_there(config_dir):
    config = compose("train", ["data=files", "experiment=small", "seed=6"], config_dir)
    assert config.model.name == "mine"
    assert config.seed == 6
    assert config.name == "files_en_de-mine"


def test_an_experiment_may_be_in_a_subfolder(config_dir):
    assert compose("train", ["experiment=mine/deep"], config_dir).seed == 7


@pytest.fixture
def working_directory(config_dir, monkeypatch) -> Path:
    """A folder with the groups of a user in ./conf, and files there that nmt must not read."""
    folder = config_dir.parent / "conf"
    config_dir.rename(folder)
    for name in ("config.yaml", "train.yaml", "hydra/config.yaml", "decode/mine.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("defaults: [")
    monkeypatch.chdir(folder.parent)
    return folder.parent


def test_config_dir_takes_precedence_over_conf(working_directory):
    other = working_directory / "other"
    (other / "model").mkdir(parents=True)
    (other / "model/mine.yaml").write_text("name: other\nd_model: 32\nheads: 1\n")
    assert compose("train", ["model=mine"], other).model.name == "other"


def test_only_the_chosen_files_of_conf_are_read(working_directory):
    assert compose("train", ["model=big"]).model.d_model == 1024
    assert {"mine", "mine/deep"} < {*groups(COMMANDS["train"])["experiment"].options, "mine"}
    assert compose("train", ["data=files", "experiment=small"]).model.d_model == 64
    line = error_line("train", "model=typo")
    assert "unknown key model.d_modle; did you mean model.d_model?" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["experiment=table3/b_d_k_16", "data=files"],
        ["minutes=3", "model=small", "init=null", "logger=[csv,wandb]"],
        ["minutes=0.5", "name=quick", "trainer.max_time=1h"],
        [
            "data=files",
            "data.train=[a b,c]",
            "data.sources=[{train:x,share:0.3,tag:'<2de>'},{train:y,name:z}]",
        ],
        [
            r"data.path='\${oc.env:HOME}'",
            "data=files",
            "data.name=1.10",
            "optim.epsilon=1e-7",
            "data.test=${name}",
        ],
        ["experiment=multi30k", "run=there", "prepared=${run}/x"],
    ],
)
def test_cfg_prints_an_experiment_that_composes_the_same(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = compose("train", words)
    printed = to_yaml(COMMANDS["train"], words)
    Path("conf/experiment").mkdir(parents=True)
    Path("conf/experiment/mine.yaml").write_text(printed)
    assert compose("preprocess", ["experiment=mine"]) == config
    assert to_yaml(COMMANDS["train"], ["experiment=mine"]) == printed
    # Names that follow from other keys still follow from them, and given names stay.
    changed = compose("train", ["experiment=mine", "data.name=new"])
    if any(word.startswith(("name=", "run=")) for word in words):
        assert changed.run == config.run
    else:
        assert changed.run.startswith("runs/new-")


def test_a_file_of_a_user_may_read_the_environment(config_dir, monkeypatch):
    assert "Environment variable 'CORPORA' not found" in error_line(
        "train", "data=mine", config_dir=config_dir
    )
    monkeypatch.setenv("CORPORA", "/far/away")
    data = compose("train", ["data=mine"], config_dir).data
    assert (data.train, data.name) == (["/far/away/a"], "1.1")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model=typo", "unknown key model.d_modle"),
        ("model=nameless", "model.name: a value is needed; pass model.name=VALUE"),
        ("model=text", "model.heads=many: must be a whole number"),
        ("model=nowhere", "nothing"),
        ("data=no", "data.target=false: must be a string"),
        ("data=unkind", "data.kind: a value is needed; pass data.kind=VALUE"),
        ("experiment=typo", "mien"),
    ],
)
def test_a_mistake_in_a_file_of_a_user_is_one_line(config_dir, override, message):
    assert message in error_line("train", override, config_dir=config_dir)


def test_init_may_not_refer_to_a_missing_value(config_dir):
    line = error_line("train", "model=nameless", "init=${model.name}", config_dir=config_dir)
    assert line == "model.name: a value is needed; pass model.name=VALUE"


def test_the_defaults_of_plugins_leave_the_options_that_are_set():
    options = TranslatorOptions(["x"], Compute("torch", device="cuda:1"), target="de")
    assert replace(build(TranslatorOptions, {}, base=options), plugins={}) == options
