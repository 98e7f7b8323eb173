"""Write whole checkpoints: from a CPU at once, from an accelerator while training continues."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning.pytorch.plugins import TorchCheckpointIO
from torch import Tensor

from nmt import files

AfterWrite = Callable[[], None]
"""Called once a checkpoint is on disk, for example to remove the checkpoints that it replaces."""


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint directly into its folder before training continues.

    Lightning would first copy the checkpoint to memory and to a temporary folder.
    """

    abandoned = False

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        path: str | Path,
        storage_options: AfterWrite | None = None,
    ) -> None:
        """Write a checkpoint, then call `storage_options`.

        `Trainer.save_checkpoint` passes on only an argument of this name. Raises NMTError if the
        disk is full.
        """
        # Renamed only when complete: a killed process leaves no half checkpoint.
        with files.whole_file(Path(path)) as temporary:
            torch.save(checkpoint, temporary)
            if self.abandoned:
                # Within the block, which then removes the temporary file.
                raise KeyboardInterrupt
        if storage_options:
            storage_options()

    def finish(self) -> None:
        """Wait until every checkpoint is on disk; raise the error of a write that failed."""

    def abandon(self) -> None:
        """Give up a write that has begun, because the user wants the process to end at once."""
        # A thread cannot be stopped within torch.save, but it need not wait for the disk after it.
        self.abandoned = True


class BackgroundCheckpointIO(DirectCheckpointIO):
    """Copies a checkpoint to host memory and writes the copy in a thread while training continues.

    Lightning's AsyncCheckpointIO is unsuitable, even as a base class: it clones the tensors on
    their own device, which needs memory for a second set of weights and moments there; any number
    of clones may wait; and it raises the error of a write only after it has queued the next one.
    Here, at most one copy exists, and a save first waits for the write before it and raises its
    error.
    """

    def __init__(self) -> None:
        # One thread: writes end in the order in which they began.
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self.write: Future[None] | None = None

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        path: str | Path,
        storage_options: AfterWrite | None = None,
    ) -> None:
        """Start to write a checkpoint as it is now, then call `storage_options` in the thread."""
        self.finish()
        content = copied_to_host(checkpoint)
        write = super().save_checkpoint
        self.write = self.thread.submit(write, content, path, storage_options)

    def finish(self) -> None:
        # A failed write stays, so that every later call raises its error.
        if self.write:
            self.write.result()

    def teardown(self) -> None:
        """Let the write in progress end; Lightning calls this after training and after errors."""
        self.thread.shutdown()


def checkpoint_io(device: torch.device) -> DirectCheckpointIO:
    """The way to write checkpoints of a model on this device.

    On a CPU, a copy would double the memory that training needs, and the thread would take one of
    the cores that train.
    """
    if device.type == "cpu":
        return DirectCheckpointIO()
    return BackgroundCheckpointIO()


class Storage(NamedTuple):
    """Identifies the memory of a tensor: tensors with equal `Storage` share their numbers."""

    device: str
    address: int
    dtype: torch.dtype
    shape: torch.Size
    stride: tuple[int, ...]


def storage_of(tensor: Tensor) -> Storage:
    return Storage(
        device=tensor.device.type,
        address=tensor.data_ptr(),
        dtype=tensor.dtype,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def copied_to_host(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Copy everything in a checkpoint that may change while training continues."""
    copies: dict[Storage, Tensor] = {}
    content: dict[str, Any] = copied(checkpoint, copies)
    if any(storage.device != "cpu" for storage in copies):
        # The copies from an accelerator run one after another; wait for all of them at once.
        torch.accelerator.synchronize()
    return content


def copied(value: Any, copies: dict[Storage, Tensor]) -> Any:
    """Copy nested containers and their tensors; `copies` holds the copies made so far."""
    if isinstance(value, Tensor):
        # Tied weights have several names, but are copied and written once.
        storage = storage_of(value)
        if storage not in copies:
            # An accelerator can copy to pinned memory while the host continues.
            copy = torch.empty_like(value, device="cpu", pin_memory=value.is_cuda)
            copies[storage] = copy.copy_(value, non_blocking=True)
        return copies[storage]
    if isinstance(value, dict):
        return {key: copied(item, copies) for key, item in value.items()}
    if isinstance(value, list | tuple):
        # Numbers and strings do not change, so they need no copy.
        return type(value)(copied(item, copies) for item in value)
    return value
