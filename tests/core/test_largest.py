"""The largest entries of rows, against a full sort."""

import pytest
import torch

from nmt.search.beam_search import BLOCK_TOKENS, largest

WIDTHS = [1, 5, 63, 64, 65, 4 * BLOCK_TOKENS - 1, 4 * BLOCK_TOKENS, 1000, 8 * BLOCK_TOKENS * 4 + 17, 5003]


def rows(width: int, kind: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(9, width, generator=generator)
    if kind == "ties":
        return x.round()
    if kind == "few finite":
        return x.masked_fill(torch.rand(9, width, generator=generator) < 0.99, -torch.inf)
    if kind == "the best at the end":
        x[:, -min(width, 20) :] += 9
    return x


@pytest.mark.parametrize("kind", ["random", "ties", "few finite", "the best at the end"])
@pytest.mark.parametrize("k", [1, 2, 8, 33])
@pytest.mark.parametrize("width", WIDTHS)
def test_values_are_those_of_a_sort_and_indices_are_where_they_stand(width, k, kind):
    x = rows(width, kind)
    values, indices = largest(x, k)
    assert torch.equal(values, x.sort(dim=1, descending=True).values[:, :k])
    assert torch.equal(x.gather(1, indices), values)
    assert all(len(set(row)) == len(row) for row in indices.tolist())


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("width", WIDTHS)
def test_of_equals_a_row_gives_the_same_whatever_rows_stand_beside_it(width, k):
    x = rows(width, "ties")
    _, together = largest(x, k)
    for row in range(len(x)):
        assert torch.equal(largest(x[row : row + 1], k)[1][0], together[row])
    assert torch.equal(largest(x.flip(0), k)[1].flip(0), together)
