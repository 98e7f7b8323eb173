"""Whether the GPU computes what a CPU computes in float64, with the kernels and syncs it should."""

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from gpu_report import Report
from gpu_settings import Settings
from gpu_toy import prepare_toy
from torch import Tensor, nn
from torch.profiler import ProfilerActivity

from nmt.commands import COMMANDS, compose
from nmt.config import BOS, PAD, ModelConfig
from nmt.kernels import Compiler
from nmt.model import DecoderLayer, EncoderLayer, Transformer
from nmt.search import TorchEngine, beam_search, pad_source
from nmt.training import TranslationModule, summed_losses
from nmt.training.loss import label_smoothed_cross_entropy

SMOOTHING = 0.1
LIMITS = {"float32": 1e-5, "bfloat16": 1e-2}
"""Relative errors of a layer or of the loss."""
DEEP_LIMITS = {"float32": 1e-5, "bfloat16": 3e-2}
"""Relative errors of the gradient of a model of several layers."""
FIRST_CHECKED, LAST_CHECKED = 10, 30
"""The updates of `nmt train` that must not wait for the device."""

Results = list[Tensor]


def error_of(results: Results, reference: Results) -> float:
    """The largest relative error, in the Euclidean norm."""
    pairs = zip(results, reference, strict=True)
    errors = ((x.cpu().double() - y).norm() / y.norm().clamp(min=1e-30) for x, y in pairs)
    return max(float(error) for error in errors)


def autocast(device: torch.device, precision: str) -> Any:
    if precision == "bfloat16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def compared(
    report: Report,
    what: str,
    limits: dict[str, float],
    results: Callable[[torch.device, torch.dtype], Results],
    device: torch.device,
) -> None:
    """Compare results in each precision with those of a CPU in float64."""
    reference = results(torch.device("cpu"), torch.float64)
    for precision, limit in limits.items():
        with autocast(device, precision):
            error = error_of(results(device, torch.float32), reference)
        name = f"{what}, {precision}"
        report.check(name, error < limit, f"{error:.1e}", f"< {limit:.0e}", error=error)


def model_config(settings: Settings) -> ModelConfig:
    """Two layers as wide as base."""
    shape = {"d_model": 64, "d_ff": 128, "heads": 4} if settings.is_dry else {}
    layers = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    # In bfloat16, some inputs of a ReLU change their sign: 5 % of its gradient, in any program.
    return ModelConfig(name="checked", activation="gelu", **shape, **layers)


def loss_results(settings: Settings) -> Callable[[torch.device, torch.dtype], Results]:
    rows = 50 if settings.is_dry else 1_000
    width = 64 if settings.is_dry else 512
    vocabulary = settings.sizes.vocabulary
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(rows, width, generator=generator)
    weight = torch.randn(vocabulary, width, generator=generator) * width**-0.5
    targets = torch.randint(vocabulary, (rows,), generator=generator)

    def results(device: torch.device, dtype: torch.dtype) -> Results:
        x = hidden.to(device, dtype, copy=True).requires_grad_()
        matrix = weight.to(device, dtype, copy=True).requires_grad_()
        if dtype == torch.float64:
            logits = x @ matrix.t()
            loss = F.cross_entropy(logits, targets, label_smoothing=SMOOTHING, reduction="sum")
            likelihood = F.cross_entropy(logits, targets, reduction="sum")
        else:
            y = targets.to(device)
            loss, likelihood = label_smoothed_cross_entropy(x, matrix, y, SMOOTHING)
        loss.backward()
        return [loss.detach(), likelihood.detach(), x.grad, matrix.grad]

    return results


def gradients(module: nn.Module) -> Results:
    return [parameter.grad for parameter in module.parameters() if parameter.grad is not None]


def layer_results(
    settings: Settings, layer: nn.Module, is_padded: bool
) -> Callable[[torch.device, torch.dtype], Results]:
    width = model_config(settings).d_model
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 33, width, generator=generator)
    memory = torch.randn(8, 27, width, generator=generator)
    target = torch.randn(8, 33, width, generator=generator)
    keys = 33 if isinstance(layer, EncoderLayer) else 27
    mask = torch.arange(keys) < torch.arange(keys - 7, keys + 1)[:, None]

    def results(device: torch.device, dtype: torch.dtype) -> Results:
        copy = deepcopy(layer).to(device, dtype)
        leaf = x.to(device, dtype, copy=True).requires_grad_()
        seen = mask[:, None, None].to(device) if is_padded else None
        inputs = [leaf] if isinstance(layer, EncoderLayer) else [leaf, memory.to(device, dtype)]
        output = copy(*inputs, seen)
        (output * target.to(device, dtype)).sum().backward()
        return [output.detach(), leaf.grad, *gradients(copy)]

    return results


def sentences(lengths: list[int], vocabulary: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(4, vocabulary, (n,), generator=generator).tolist() for n in lengths]


def model_results(
    settings: Settings, model: Transformer, is_compiled: bool
) -> Callable[[torch.device, torch.dtype], Results]:
    """The loss of a padded batch, and the gradients of all parameters."""
    from nmt.data import Batch

    lengths = [31, 30, 24, 31, 9, 2, 17, 31]
    source = pad_source(sentences(lengths, model.vocabulary_size), torch.device("cpu"))
    target = pad_source(sentences(lengths[::-1], model.vocabulary_size), torch.device("cpu"))
    shifted = target.roll(1, dims=1)
    shifted[:, 0] = BOS
    real = (target.flatten() != PAD).nonzero()[:, 0]

    def results(device: torch.device, dtype: torch.dtype) -> Results:
        copy = deepcopy(model).to(device, dtype).train()
        if dtype == torch.float64:
            hidden = copy.decoder_states(source, shifted).flatten(0, 1)[real]
            logits = copy.logits(hidden)
            y = target.flatten()[real]
            loss = F.cross_entropy(logits, y, label_smoothing=SMOOTHING, reduction="sum")
        else:
            if is_compiled:
                copy.compiler = Compiler("benchmarks/gpu.py, numerics")
            tensors = [x.to(device) for x in (source, shifted, target, real)]
            loss, _ = summed_losses(copy, Batch(*tensors), SMOOTHING)
        loss.backward()
        together = torch.cat([gradient.flatten() for gradient in gradients(copy)])
        return [loss.detach(), together]

    return results


def numerics(settings: Settings, report: Report) -> None:
    """Loss, layers and a model against a CPU in float64; padding changes nothing."""
    device = settings.device
    torch.set_float32_matmul_precision("highest")
    compared(report, "loss and its gradients", LIMITS, loss_results(settings), device)
    torch.manual_seed(1)
    for kind in (EncoderLayer, DecoderLayer):
        layer = kind(model_config(settings))
        for is_padded in (False, True):
            results = layer_results(settings, layer, is_padded)
            name = f"{kind.__name__}, {'masked' if is_padded else 'no mask'}"
            compared(report, name, LIMITS, results, device)
    model = Transformer(model_config(settings), 1_000)
    results = model_results(settings, model, is_compiled=False)
    compared(report, "model of 2 + 2 layers", DEEP_LIMITS, results, device)
    padding(settings, report, model.to(device).eval())


def compiled_numerics(settings: Settings, report: Report) -> None:
    """The compiled model against a CPU in float64."""
    torch.manual_seed(1)
    model = Transformer(model_config(settings), 1_000)
    results = model_results(settings, model, is_compiled=True)
    compared(report, "compiled model of 2 + 2 layers", DEEP_LIMITS, results, settings.device)


@torch.no_grad()
def padding(settings: Settings, report: Report, model: Transformer) -> None:
    """Each sentence in a padded batch has the states that it has alone."""
    device = settings.device
    rows = sentences([31, 3, 17, 1], 1_000)
    source = pad_source(rows, device)
    for precision, limit in {"float32": 1e-5, "bfloat16": 2e-2}.items():
        errors = []
        with autocast(device, precision):
            together = model.decoder_states(source, source)
            for number, ids in enumerate(rows):
                alone = pad_source([ids], device)
                states = model.decoder_states(alone, alone, padded=False).float()
                same = together[number : number + 1, : states.shape[1]].float()
                errors.append(float((same - states).norm() / states.norm()))
        worst = max(errors)
        name = f"padded = alone, {precision}"
        report.check(name, worst < limit, f"{worst:.1e}", f"< {limit:.0e}", error=worst)


def kernel_names(settings: Settings, report: Report) -> None:
    """Which attention kernels the training step of a masked and an unmasked batch runs."""
    device = settings.device
    layer = EncoderLayer(model_config(settings)).to(device)
    x = torch.randn(8, 33, model_config(settings).d_model, device=device, requires_grad=True)
    mask = torch.ones(8, 1, 1, 33, dtype=torch.bool, device=device)
    mask[..., -5:] = False
    activities = [ProfilerActivity.CPU]
    if not settings.is_dry:
        activities.append(ProfilerActivity.CUDA)
    expected = {"no mask": "flash", "masked": "flash" if settings.is_dry else "efficient"}
    for name, word in expected.items():
        with torch.profiler.profile(activities=activities) as profiler:
            with autocast(device, "bfloat16"):
                output = layer(x, mask if name == "masked" else None)
            output.sum().backward()
            if device.type == "cuda":
                torch.cuda.synchronize()
        names = {event.key for event in profiler.key_averages()}
        attention = sorted(key for key in names if "attention" in key and "forward" in key)
        inner = [key for key in names if "attention" in key]
        is_wrong = any("cudnn" in key or "attention_math" in key for key in inner)
        is_right = any(word in key for key in inner)
        # On a CPU, "forward" is not part of the name.
        shown = attention or sorted(inner)
        report.check(
            f"attention kernel, {name}",
            is_right and not is_wrong,
            ", ".join(shown)[:160],
            f"{word}; neither cudnn nor math",
            names=sorted(inner),
        )


def sync_mode(device: torch.device, mode: str) -> None:
    if device.type == "cuda":
        torch.cuda.set_sync_debug_mode(mode)


@contextmanager
def watched_updates(device: torch.device) -> Iterator[list[int]]:
    """Let a sync raise an error in some updates of `nmt train`; yields the updates that ran."""
    step = TranslationModule.training_step
    seen = list[int]()

    def training_step(module: TranslationModule, batch: Any, batch_index: int) -> Tensor:
        if FIRST_CHECKED <= batch.update < LAST_CHECKED:
            sync_mode(device, "error")
            seen.append(batch.update)
        else:
            sync_mode(device, "default")
        return step(module, batch, batch_index)

    TranslationModule.training_step = training_step  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        sync_mode(device, "default")
        TranslationModule.training_step = step  # type: ignore[method-assign]


def syncs(settings: Settings, report: Report) -> None:
    """`nmt train` never waits for the device within an update; the search does once per step."""
    device = settings.device
    toy = prepare_toy(Path(settings.work) / "syncs")
    run = Path(settings.work) / "syncs" / "run"
    options = [
        *toy,
        "trainer.compile=false",
        f"run={run}",
        f"trainer.accelerator={'cpu' if settings.is_dry else 'cuda'}",
        f"trainer.max_steps={LAST_CHECKED + 2}",
        f"trainer.precision={settings.precision}",
        "trainer.log_every_n_steps=1000",
        "validation.bleu_sentences=0",
    ]
    if settings.is_dry:
        options.append("batching.micro_batches=1")
    problem = ""
    with watched_updates(device) as seen:
        try:
            COMMANDS["train"].run(compose("train", options))
        except RuntimeError as error:
            traceback.print_exc()
            frames = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "/nmt/" in frame.filename] or frames
            place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            problem = f"{place}: {str(error).splitlines()[0]}"
    updates = len(set(seen))
    passed = not problem and updates == LAST_CHECKED - FIRST_CHECKED
    measured = problem or f"{updates} updates of nmt train"
    report.check("no sync in an update", passed, measured, "20 updates")
    if settings.is_dry:
        report.skip("syncs per step of the search", "needs CUDA")
    else:
        search_syncs(settings, report)


def search_syncs(settings: Settings, report: Report) -> None:
    """Count the warnings of torch's sync debug mode in a search of known length."""
    device = settings.device
    model = Transformer(model_config(settings), 1_000).to(device).eval()
    steps = 20
    config = compose("translate", ["run=x", f"decode.max_length={steps}"]).translator.decode
    source = pad_source(sentences([20] * 16, 1_000), device)
    beam_search([model], source, config)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sync_mode(device, "warn")
        try:
            beam_search([model], source, config)
        finally:
            sync_mode(device, "default")
    waits = sum("synchroniz" in str(warning.message) for warning in caught)
    per_step = waits / steps
    report.check("syncs per step of the search", per_step < 1.5, f"{per_step:.2f}", "about 1")


def same_translations(settings: Settings, report: Report) -> None:
    """In float32, the device finds the translations that the CPU finds."""
    device = settings.device
    torch.manual_seed(1)
    model = Transformer(model_config(settings), settings.sizes.vocabulary).eval()
    lines = 4 if settings.is_dry else 200
    length = settings.sizes.translation_tokens
    options = ["run=x", f"decode.max_length={length}", "decode.batch_tokens=2000"]
    config = compose("translate", options).translator.decode
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(3, 40, (lines,), generator=generator).tolist()
    rows = sentences(lengths, settings.sizes.vocabulary)
    translations = {}
    for place in ("cpu", device.type):
        engine = TorchEngine([deepcopy(model).to(place)], config)
        results = engine.search(rows, [[] for _ in rows])
        translations[place] = [hypotheses[0].tokens for hypotheses in results]
    pairs = zip(translations["cpu"], translations[device.type], strict=True)
    same = sum(one == other for one, other in pairs)
    report.check(
        "search in float32 = the CPU's",
        same >= 0.99 * lines,
        f"{same} of {lines} translations",
        "> 99 %",
        same=same,
        lines=lines,
    )
