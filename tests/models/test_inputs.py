import numpy as np
import pytest
import torch
from PIL import Image

from avalanche_f2ocl import FrozenModel


@pytest.fixture
def model(small_vit):
    return FrozenModel(small_vit, fit="crop")


@pytest.fixture
def arrays():
    """Three pictures of different sizes, (H, W, 3) uint8."""
    draw = np.random.default_rng(0)
    return [draw.integers(0, 256, (*size, 3), np.uint8) for size in ((40, 50), (64, 33), (32, 32))]


def test_one_picture_in_every_form_is_the_same(model, arrays, tmp_path):
    pictures = [Image.fromarray(array) for array in arrays]
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for picture, path in zip(pictures, paths, strict=True):
        picture.save(path)
    model.learn(paths, ["a", "b", "c"])
    expected = model(paths)
    for form in (pictures, arrays, list(map(str, paths)), [paths[0], pictures[1], arrays[2]]):
        assert torch.equal(model(form), expected)
    for i, one in enumerate((paths[0], pictures[1], arrays[2])):
        torch.testing.assert_close(model(one), expected[i : i + 1])
        assert model.predict(one).tolist() == [i] and model.topk(one, 1)[0].tolist() == [[i]]
    model.unlearn([arrays[2]], "c")
    model.relabel(pictures[1], "b", "a")
    assert model.class_counts == {0: 2}


def test_tensors_alone_and_of_several_sizes(model, arrays):
    tensors = [torch.from_numpy(array).permute(2, 0, 1) for array in arrays]
    model.learn(tensors[0], label="a")
    model.learn(tensors, ["a", "b", "c"])
    one_by_one = torch.cat([model(tensor.unsqueeze(0)) for tensor in tensors])
    torch.testing.assert_close(model(tensors), one_by_one, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model([tensor / 255 for tensor in tensors]), one_by_one, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model([tensors[0], arrays[0]])[:1], one_by_one[:1], rtol=1e-4, atol=1e-5)
    assert torch.equal(model([tensors[2]] * 2), model(torch.stack([tensors[2]] * 2)))


def test_arrays_of_all_kinds(model, arrays):
    model.learn(arrays, ["a", "b", "c"])
    grey, stack = arrays[2][..., 0], np.stack([arrays[2]] * 2)
    assert torch.equal(model(grey), model(grey[..., None])) and torch.equal(model(grey), model(Image.fromarray(grey)))
    assert torch.equal(model(stack), model([arrays[2]] * 2))
    opaque = np.dstack([arrays[2], np.full((32, 32), 255, np.uint8)])
    assert torch.equal(model(opaque), model(arrays[2]))
    torch.testing.assert_close(model(arrays[2].astype(np.float32) / 255), model(arrays[2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        ([], ValueError, "an empty list"),
        (None, TypeError, "images are NoneType: give a tensor"),
        ([None], TypeError, "an image is NoneType: give a tensor"),
        ("nowhere.png", FileNotFoundError, "'nowhere.png': there is no such file"),
        (np.zeros((3, 32, 32), np.uint8), ValueError, r"shape \(3, 32, 32\).*torch.from_numpy"),
        (np.zeros((32, 32, 3), np.int64), TypeError, "an image is int64"),
        (np.full((32, 32, 3), 2.0), ValueError, r"must lie in \[0, 1\]"),
        ([torch.zeros(32, 32, 3)], ValueError, r"shape \(32, 32, 3\): a tensor must be \(C, H, W\)"),
        (torch.zeros(32, 32), ValueError, r"must be \(B, C, H, W\)"),
    ],
)
def test_what_is_no_image(model, images, error, message):
    model.learn(torch.zeros(1, 3, 32, 32), "a")
    for ask in (model, model.predict, lambda x: model.learn(x, "b"), lambda x: model.unlearn(x, "a")):
        with pytest.raises(error, match=message):
            ask(images)
    assert model.class_counts == {0: 1}


def test_a_file_that_is_no_picture_is_named(model, tmp_path):
    (tmp_path / "notes.png").write_text("no picture")
    with pytest.raises(ValueError, match="notes.png' cannot be read as an image"):
        model.learn([tmp_path / "notes.png"], "a")


def test_normalised_inputs_are_tensors(small_vit, arrays):
    model = FrozenModel(small_vit, inputs="normalised")
    model.learn(torch.randn(3, 32, 32), "a")
    with pytest.raises(TypeError, match="inputs='normalised' takes tensors only"):
        model.predict(arrays)
    with pytest.raises(ValueError, match="several shapes"):
        model.predict([torch.randn(3, 32, 32), torch.randn(3, 32, 30)])
