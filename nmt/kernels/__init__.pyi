from .dropout import Dropout as Dropout
from .products import Linear as Linear, few_shapes as few_shapes, forget_old_kernels as forget_old_kernels
from .products import has_fast_product as has_fast_product, keep_freed_memory as keep_freed_memory, linear as linear
from .products import outer_product as outer_product, product as product
