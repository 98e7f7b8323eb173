"""Mixed precision on a processor: activations stay in the type of its products."""

import torch
from torch import Tensor


def lower_precision(x: Tensor) -> Tensor:
    """`x` in the type of mixed precision on a processor; as it is without, and on other devices.

    What follows, residual connections, layer normalisation and dropout, then has that type too, and half the bytes. In
    float32, every product would begin with a cast of its factor, and end with one of its gradient.
    """
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return x.to(torch.get_autocast_dtype("cpu"))
    return x
