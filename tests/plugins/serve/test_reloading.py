"""A server whose model is replaced while it answers."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from nmt.files import read_description
from nmt.model import load_model, write_model_directory
from tests.plugins.serve.serving import LINES, Server, by_command, serving

TEXTS = [line.strip() for line in LINES if line.strip()] * 4
CLIENTS = 4


def write_other(model: Path, folder: Path) -> None:
    """Write the model with other weights."""
    other = load_model(model)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.1 * parameter.std() * torch.randn_like(parameter))
    description = read_description(model)
    write_model_directory(folder, other, model / "tokenizer.model", description, "")


class Load:
    """Clients that send requests one after the other until they are stopped."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.stopped = threading.Event()
        self.answers = list[tuple[int, tuple[str, ...]]]()

    def run(self) -> None:
        while not self.stopped.is_set():
            status, answer = self.server.translate(TEXTS)
            self.answers.append((status, tuple(answer.get("translatedText", ()))))


def test_no_request_fails_and_each_answer_is_from_one_model(word_model, tmp_path):
    served = shutil.copytree(word_model, tmp_path / "served")
    write_other(word_model, tmp_path / "other")
    old = tuple(by_command(word_model, TEXTS))
    new = tuple(by_command(tmp_path / "other", TEXTS))
    assert old != new
    with serving(served) as server, ThreadPoolExecutor(CLIENTS) as pool:
        load = Load(server)
        clients = [pool.submit(load.run) for _ in range(CLIENTS)]
        try:
            write_other(word_model, served)
            server.logged("serving the new model")
            later = server.translated(TEXTS)
            write_same(word_model, served)
            server.logged("serving the new model(.|\n)*serving the new model")
            last = server.translated(TEXTS)
        finally:
            load.stopped.set()
        for client in clients:
            client.result()
    assert tuple(later) == new
    assert tuple(last) == old
    assert {status for status, _ in load.answers} == {200}
    assert {answer for _, answer in load.answers} <= {old, new}
    assert {answer for _, answer in load.answers} == {old, new}


def write_same(model: Path, folder: Path) -> None:
    description = read_description(model)
    write_model_directory(folder, load_model(model), model / "tokenizer.model", description, "")


@pytest.mark.slow
def test_a_broken_model_is_logged_and_the_old_one_stays(word_model, tmp_path):
    served = shutil.copytree(word_model, tmp_path / "served")
    expected = by_command(word_model, TEXTS)
    with serving(served) as server:
        (served / "model.safetensors").write_bytes(b"broken")
        server.logged("keeping the old model, the new one fails: .*model.safetensors")
        assert server.translated(TEXTS) == expected
        write_other(word_model, served)
        server.logged("serving the new model")
        assert server.translated(TEXTS) != expected


@pytest.mark.slow
def test_a_model_for_other_languages_is_refused(word_model, tmp_path):
    served = shutil.copytree(word_model, tmp_path / "served")
    with serving(served) as server:
        path = served / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"target": "fr"}))
        server.logged("translates between other languages; restart the server")
        assert server.translate("tu")[0] == 200
