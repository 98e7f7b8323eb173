from .compilation import Compiler as Compiler, why_not_compiled as why_not_compiled
from .device import forget_old_kernels as forget_old_kernels, keep_freed_memory as keep_freed_memory
from .device import on_cpu as on_cpu, prepare as prepare, runs_ahead as runs_ahead
from .device import use_deterministic_kernels as use_deterministic_kernels
from .environment import environment_record as environment_record
from .dropout import Dropout as Dropout
from .products import (
    Linear as Linear,
    few_shapes as few_shapes,
    has_fast_product as has_fast_product,
)
from .products import linear as linear, outer_product as outer_product, product as product
