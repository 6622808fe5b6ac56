"""Random changes of training images, drawn anew in each pass over a mini-batch."""

from typing import Literal

import torch
from torch import Tensor
from torchvision.transforms import v2

from avalanche_f2ocl.backbone.preprocessing import ImagePreparation
from avalanche_f2ocl.rng import generator

Augment = Literal["none", "crop", "autoaugment"]
PADDING = 4


def augmented(images: Tensor, prepare: ImagePreparation, augment: Augment, seed: int, number: int) -> Tensor:
    """Images shifted by up to four pixels, mirrored at random, and changed by a policy, each independently.

    Args:
        images: ``(B, C, H, W)`` as ``prepare`` takes them.
        prepare: fits the images to the size at which they are changed.
        augment: ``"crop"``, shifted and mirrored; ``"autoaugment"``, afterwards also changed by the policy for
            CIFAR-10.
        seed, number: the random draws depend only on these two.

    Returns:
        ``(B, 3, S, S)``, again in a form that ``prepare`` takes.

    Source: Cubuk et al., AutoAugment: Learning Augmentation Policies from Data, 2019.

    Example:
        >>> from avalanche_f2ocl.image_fit import ImageFit
        >>> prepare = ImagePreparation(ImageFit(32), (0.5,) * 3, (0.5,) * 3)
        >>> augmented(torch.zeros(2, 3, 8, 8), prepare, "crop", seed=0, number=0).shape
        torch.Size([2, 3, 32, 32])
    """
    transforms = [v2.RandomCrop(prepare.fit.image_size, padding=PADDING), v2.RandomHorizontalFlip()]
    if augment == "autoaugment":
        transforms.append(v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10))
    transform = v2.Compose(transforms)
    pixels = ((prepare(images) * prepare.std + prepare.mean) * 255).round().clamp(0, 255).to(torch.uint8)
    # torchvision draws from the global generator; CUDA's, which manual_seed would also set, is left alone.
    with torch.random.fork_rng(devices=[]):
        torch.random.set_rng_state(generator(seed, "augmentation", number).get_state())
        changed = torch.stack([transform(image) for image in pixels])
    if prepare.inputs == "normalised":
        return (changed / 255 - prepare.mean) / prepare.std
    return changed
