"""Matrices of a model of CTranslate2 in int8. No torch."""

from typing import Any

import numpy as np

LEVELS = 88
"""The largest number in a matrix, as measured (docs/benchmarks.md).

Processors with AVX2 but without VNNI multiply it by activations of up to 255 and add two such products in 16 bits. With
numbers up to 127, as CTranslate2 itself writes them, many of these sums are cut; with up to 64 none is, but the numbers
are coarser. Raise CONVERSION in nmt/translation/load.py with it.
"""


def quantize(spec: Any) -> None:
    """Round the matrices of a specification to int8, with a scale for each row."""
    from ctranslate2.specs.model_spec import NumpyVariable, visit_spec

    def round_matrix(layer: Any, name: str, value: Any) -> None:
        name = name.rpartition("/")[2]
        if isinstance(value, NumpyVariable) and f"{name}_scale" in vars(layer):
            matrix = value.numpy()
            largest = np.abs(matrix).max(axis=1)
            scale = LEVELS / np.where(largest > 0, largest, LEVELS)
            setattr(layer, name, NumpyVariable(np.rint(matrix * scale[:, None]).astype(np.int8)))
            setattr(layer, f"{name}_scale", NumpyVariable(scale))

    visit_spec(spec, round_matrix)
