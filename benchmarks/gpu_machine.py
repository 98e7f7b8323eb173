"""What the machine can do at most, and what a new batch shape costs in cuDNN's attention."""

import platform
import shutil
import subprocess
import time
from collections.abc import Callable

import lightning
import numpy as np
import torch
import torch.nn.functional as F
from gpu_report import Report
from gpu_settings import Settings

PYTHON_ADDITIONS = 2_000_000
SECONDS_OF_PLANS = 25.0
"""Stop trying new shapes after this time: with cuDNN, 20 shapes could take minutes."""


def seconds_of(device: torch.device, function: Callable[[], object], times: int = 1) -> float:
    """Seconds per call, measured on the device."""
    if device.type == "cpu":
        start = time.perf_counter()
        for _ in range(times):
            function()
        return (time.perf_counter() - start) / times
    before = torch.cuda.Event(enable_timing=True)
    after = torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    before.record()
    for _ in range(times):
        function()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after) / 1000 / times


def best_of(rounds: int, function: Callable[[], float]) -> float:
    return min(function() for _ in range(rounds))


def machine(settings: Settings, report: Report) -> None:
    """Versions, and the ceilings to compare everything else with."""
    versions(settings, report)
    device = settings.device
    size = 128 if settings.is_dry else 8192
    x = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    seconds_of(device, lambda: x @ x, 3)
    seconds = best_of(3, lambda: seconds_of(device, lambda: x @ x, 10))
    report.figure("8192^3 product in bfloat16", 2 * size**3 / seconds / 1e12, "TFLOP/s")
    report.figure("copy of 4 GB", copy_speed(settings), "TB/s")
    empty = torch.zeros(1, device=device)
    launches = 1_000 if settings.is_dry else 10_000
    seconds_of(device, empty.zero_, 100)
    seconds = best_of(2, lambda: seconds_of(device, empty.zero_, launches))
    report.figure("launch of an empty kernel", seconds * 1e6, "us")
    start = time.perf_counter()
    total = 0
    for number in range(PYTHON_ADDITIONS):
        total += number
    rate = PYTHON_ADDITIONS / (time.perf_counter() - start)
    report.figure("additions of one Python thread", rate / 1e6, "million/s")


def copy_speed(settings: Settings) -> float:
    """TB/s of reading and writing the device's memory."""
    size = 20_000_000 if settings.is_dry else 2_000_000_000
    source = torch.empty(size, dtype=torch.uint8, device=settings.device)
    target = torch.empty_like(source)
    seconds = best_of(3, lambda: seconds_of(settings.device, lambda: target.copy_(source), 5))
    # A copy reads each byte and writes it.
    return 2 * size / seconds / 1e12


def versions(settings: Settings, report: Report) -> None:
    command = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ]
    if settings.is_dry:
        report.skip("card and driver", "needs CUDA")
    else:
        # Some containers have a GPU without this program.
        if shutil.which(command[0]):
            report.note("card and driver", subprocess.check_output(command, text=True).strip())
        else:
            report.skip("card and driver", "nvidia-smi is missing")
        report.check(
            "bfloat16 in hardware",
            torch.cuda.is_bf16_supported(including_emulation=False),
            torch.cuda.get_device_name(),
            "supported",
        )
    libraries = {
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "CUDA": torch.version.cuda,
        "cuDNN": torch.backends.cudnn.version(),
        "lightning": lightning.__version__,
        "numpy": np.__version__,
    }
    text = ", ".join(f"{name} {version}" for name, version in libraries.items())
    report.note("versions", text, **libraries)


def attention_seconds(device: torch.device, shapes: list[tuple[int, int]]) -> list[float]:
    """Seconds for the first forward and backward pass of masked attention at each [B, S]."""
    seconds = list[float]()
    end = time.perf_counter() + SECONDS_OF_PLANS
    for sentences, length in shapes:
        size = (sentences, 8, length, 64)
        q = torch.randn(size, device=device, dtype=torch.bfloat16, requires_grad=True)
        mask = torch.rand(sentences, 1, 1, length, device=device) < 0.9
        mask[..., 0] = True
        if device.type == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        F.scaled_dot_product_attention(q, q, q, mask).sum().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return seconds


def attention_plans(settings: Settings, report: Report) -> None:
    """The cost of 20 new shapes in masked attention, with cuDNN and without."""
    device = settings.device
    scale = 20 if settings.is_dry else 1
    random = np.random.default_rng(1)
    lengths = random.choice(np.arange(20, 120), size=40, replace=False)
    shapes = [(max(1, int(20_000 // length // scale)), int(length)) for length in lengths]
    # The first call initializes libraries.
    attention_seconds(device, [(4, 16)])
    torch.backends.cuda.enable_cudnn_sdp(False)
    off = float(np.median(attention_seconds(device, shapes[:20])))
    report.check_full_size(
        "attention, new shape, cuDNN off",
        off < 5e-3,
        f"{off * 1e3:.2f} ms",
        "< 5 ms",
        seconds=off,
    )
    if settings.is_dry:
        report.skip("attention, new shape, cuDNN on", "needs CUDA")
        return
    # Only allowed, as by default: torch prefers it on these cards.
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        attention_seconds(device, [(4, 16)])
        times = attention_seconds(device, shapes[20:])
    finally:
        torch.backends.cuda.enable_cudnn_sdp(False)
    on = float(np.median(times))
    report.check_full_size(
        "attention, new shape, cuDNN on",
        on > 10e-3,
        f"{on * 1e3:.1f} ms (median of {len(times)})",
        "100 to 1,000 ms; below 10 ms, cuDNN could stay on",
        seconds=on,
        all=times,
    )
