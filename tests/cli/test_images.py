import shutil

import pytest
import torch
from PIL import Image

from avalanche_f2ocl.cli.images import Unreadable, minibatches, unlabelled
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.image_fit import ImageFit


@pytest.fixture
def files(tmp_path):
    """Seven pictures, their grey 10 times their number; the second and the last are damaged."""
    for i in range(7):
        Image.new("L", (9, 9), 10 * i).save(tmp_path / f"{i}.png")
    for i in (1, 6):
        (tmp_path / f"{i}.png").write_bytes(b"damaged")
    return [(ImageSource(tmp_path), f"{i}.png") for i in range(7)]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "size, expected", [(2, [[0, 2], [3, 4], [5]]), (3, [[0, 2, 3], [4, 5]]), (9, [[0, 2, 3, 4, 5]])]
)
def test_what_can_be_read_fills_mini_batches(files, size, expected, workers):
    said = []
    unreadable = Unreadable(strict=False, say=said.append)
    batches = list(minibatches(files * 1, ImageFit(4), size, unreadable, workers))
    assert [indices for indices, _ in batches] == expected
    for indices, pixels in batches:
        assert pixels.shape == (len(indices), 3, 4, 4) and pixels.dtype == torch.uint8
        assert pixels[:, 0, 0, 0].tolist() == [10 * i for i in indices]
    assert [name.split("/")[-1] for name in unreadable.names] == ["1.png", "6.png"] and len(said) == 2


def test_strict_raises_the_first(files):
    with pytest.raises(UnreadableImage, match=r"1\.png"):
        list(minibatches(files, ImageFit(4), 2, Unreadable(strict=True, say=print), 0))


def test_files_folders_and_archives(files, tmp_path):
    folder, _ = files[0][0].path, (files[0][0].path / "notes.txt").write_text("")
    zipped = shutil.make_archive(str(tmp_path.parent / "zipped"), "zip", folder)
    tarred = shutil.make_archive(str(tmp_path.parent / "tarred"), "tar", folder)
    for source in (folder, zipped, tarred):
        found, others = unlabelled([str(source)])
        assert [name for _, name in found] == [f"{i}.png" for i in range(7)]
        assert others == [f"{source}/notes.txt"]
    found, others = unlabelled([str(folder / "notes.txt"), str(folder / "3.png")])
    assert [name for _, name in found] == ["notes.txt", "3.png"] and not others
