"""The largest entries of rows, against a full sort."""

import pytest
import torch

from nmt.search.beam_search import BLOCK_TOKENS, largest

WIDTHS = [1, 5, 63, 64, 65, 4 * BLOCK_TOKENS - 1, 4 * BLOCK_TOKENS, 1000, 8 * BLOCK_TOKENS * 4 + 17, 5003]


@pytest.mark.parametrize("kind", ["random", "ties", "few finite", "the best at the end"])
@pytest.mark.parametrize("width", WIDTHS)
def test_values_are_those_of_a_sort_and_no_other_row_changes_the_indices(width, kind):
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(9, width, generator=generator)
    if kind == "ties":
        x = x.round()
    if kind == "few finite":
        x = x.masked_fill(torch.rand(9, width, generator=generator) < 0.99, -torch.inf)
    if kind == "the best at the end":
        x[:, -min(width, 20) :] += 9
    for k in (1, 2, 8, 33):
        values, indices = largest(x, k)
        assert torch.equal(values, x.sort(dim=1, descending=True).values[:, :k])
        assert torch.equal(x.gather(1, indices), values)
        assert all(len(set(row)) == len(row) for row in indices.tolist())
        assert all(torch.equal(largest(x[row : row + 1], k)[1][0], indices[row]) for row in range(len(x)))
        assert torch.equal(largest(x.flip(0), k)[1].flip(0), indices)
