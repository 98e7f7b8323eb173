"""Reading checkpoints, and choosing among them."""

import pickle
import shutil
import struct
import zipfile
from pathlib import Path

import pytest
import torch

from nmt.errors import NMTError
from nmt.training import checkpoint_step, list_checkpoints, load_checkpoint
from nmt.training.checkpoints import UnreadableCheckpoint


@pytest.fixture
def checkpoint(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(list_checkpoints(finished)[-1], tmp_path))


def test_a_checkpoint_holds_only_tensors_numbers_and_strings(checkpoint):
    def leaves(value):
        if isinstance(value, dict):
            return {leaf for pair in value.items() for item in pair for leaf in leaves(item)}
        return {leaf for item in value for leaf in leaves(item)} if isinstance(value, (list, tuple)) else {type(value)}

    content = torch.load(checkpoint, weights_only=True)
    assert leaves(content) <= {torch.Tensor, int, float, str, bool, type(None)}
    assert content["global_step"] == checkpoint_step(checkpoint) == 60


@pytest.mark.parametrize("share", [0, 0.5, 0.999])
def test_a_truncated_checkpoint_is_named(checkpoint, share):
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: int(share * len(content))])
    assert_unreadable(checkpoint, "cut")


def assert_unreadable(path: Path, words: str) -> None:
    with pytest.raises(UnreadableCheckpoint, match=rf"{path.name}: no readable checkpoint .*{words}") as raised:
        load_checkpoint(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_checkpoint_with_one_flipped_bit_is_named(checkpoint, share):
    content = bytearray(checkpoint.read_bytes())
    with zipfile.ZipFile(checkpoint) as archive:
        tensor = max(archive.infolist(), key=lambda member: member.file_size)
    name, extra = struct.unpack_from("<HH", content, tensor.header_offset + 26)
    begin = tensor.header_offset + 30 + name + extra  # between two members is padding that nobody reads
    content[begin + int(share * tensor.file_size)] ^= 4
    checkpoint.write_bytes(content)
    assert_unreadable(checkpoint, "damaged")


@pytest.mark.parametrize("content", [{"state_dict": {}}, {"nmt": 1}, {"nmt": {}}, [1, 2], torch.zeros(3), "text", None])
def test_what_is_no_checkpoint_of_ours_is_named(tmp_path, content):
    torch.save(content, tmp_path / "step=1.ckpt")
    with pytest.raises(NMTError, match=r"step=1\.ckpt"):
        load_checkpoint(tmp_path / "step=1.ckpt")


class Payload:
    """Unpickling this would touch a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("save", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content))])
def test_a_checkpoint_runs_nothing(tmp_path, save):
    save({"nmt": Payload(tmp_path / "touched")}, tmp_path / "step=1.ckpt")
    with pytest.raises(UnreadableCheckpoint, match=r"step=1\.ckpt") as raised:
        load_checkpoint(tmp_path / "step=1.ckpt")
    assert "weights_only" not in str(raised.value)
    assert not (tmp_path / "touched").exists()


def test_a_checkpoint_of_another_format_names_both_versions(checkpoint):
    content = torch.load(checkpoint, weights_only=True)
    content["nmt"]["format_version"] = 99
    torch.save(content, checkpoint)
    with pytest.raises(NMTError, match=r"format version 99.*reads 2"):
        load_checkpoint(checkpoint)
