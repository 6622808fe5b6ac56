import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from torch.nn import functional as F

from avalanche_f2ocl.backbone.load import load_backbone
from benchmarks.beyond import ceiling
from benchmarks.beyond.features import RECOMMENDED, WHOLE, Trial


@pytest.fixture(scope="module")
def loaded():
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (24, 3, 32, 32), dtype=torch.uint8, generator=draw)
    return load_backbone("micro_vit", precision="float32"), images, torch.arange(24) % 3, 0.25


def test_kernel_ridge_is_that_of_scikit_learn():
    draw = torch.Generator().manual_seed(0)
    x, labels, train = torch.randn(30, 5, generator=draw), torch.arange(30) % 3, torch.arange(20)
    kernel = ((1 + ceiling.cosines(x, train)) / 2) ** 2
    targets = F.one_hot(labels[train]).float()
    targets = targets - targets.mean(0)

    def error(penalty):
        predicted = cross_val_predict(
            KernelRidge(alpha=penalty, kernel="precomputed"), kernel[train], targets, cv=LeaveOneOut()
        )
        return ((torch.from_numpy(predicted) - targets) ** 2).sum().item()

    chosen = min(ceiling.PENALTIES, key=error)
    expected = KernelRidge(alpha=chosen, kernel="precomputed").fit(kernel[train], targets).predict(kernel)
    ours = ceiling.kernel_ridge(kernel, train, labels)
    torch.testing.assert_close(ours, torch.as_tensor(expected, dtype=torch.float32), rtol=1e-3, atol=1e-3)


def test_an_image_and_its_mirror_image_have_the_same_layers(loaded):
    backbone, images, labels, share = loaded
    there = ceiling.Mirrored(backbone, images, labels, share, seed=1)
    back = ceiling.Mirrored(backbone, images.flip(-1), labels, share, seed=1)
    torch.testing.assert_close(ceiling.features_of(there, WHOLE), ceiling.features_of(back, WHOLE), rtol=0, atol=2e-3)
    plain = ceiling.features_of(Trial(backbone, images, labels, share, seed=1), WHOLE)
    assert not torch.allclose(ceiling.features_of(there, WHOLE), plain, atol=0.01)


def test_every_variant_has_a_figure(loaded):
    figures = ceiling.trials(loaded, seed=1)
    assert tuple(figures) == ceiling.VARIANTS
    both = Trial(*loaded, 1).accuracy((WHOLE, RECOMMENDED), 4)
    assert figures["as recommended"] == round(both, 4)
