import pytest
import torch

from avalanche_f2ocl.backbone.cells import cell_means


def test_quarters_by_a_loop(draw):
    patches = torch.randn(3, 24, 5, generator=draw)
    cells = cell_means(patches, (4, 6), 2)
    maps = patches.view(3, 4, 6, 5)
    for row in range(2):
        for column in range(2):
            part = maps[:, 2 * row : 2 * row + 2, 3 * column : 3 * column + 3].reshape(3, 6, 5)
            torch.testing.assert_close(cells[:, 2 * row + column], part.mean(1))


def test_one_cell_is_the_mean(draw):
    patches = torch.randn(2, 9, 4, generator=draw)
    assert torch.equal(cell_means(patches, (3, 3), 1), patches.mean(1, keepdim=True))


@pytest.mark.parametrize("side, grid", [(7, 2), (3, 2), (1, 2), (2, 3)])
def test_a_side_that_is_no_multiple_still_gives_all_cells(side, grid, draw):
    patches = torch.randn(2, side**2, 4, generator=draw)
    cells = cell_means(patches, (side, side), grid)
    assert cells.shape == (2, grid**2, 4) and cells.isfinite().all()
    torch.testing.assert_close(
        cells[:, 0].mean(), patches.view(2, side, side, 4)[:, : -(-side // grid), : -(-side // grid)].mean()
    )
