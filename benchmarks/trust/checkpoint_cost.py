"""The costs of a checkpoint: seconds to write and to load, and bytes."""

import tempfile
import time
from pathlib import Path

import torch
from timm.models import VisionTransformer

from avalanche_f2ocl import F2OCLStrategy


def checkpoint_cost(classes: int, dim: int = 768, prompt_length: int = 20) -> dict[str, float]:
    """The costs for an F2OCL learner with prompts, moments, keys and prototypes of ``classes`` classes.

    Args:
        classes: number C of classes.
        dim: length D of a token.
        prompt_length: number L of tokens in a prompt.

    Returns:
        Seconds to write and to load, without the backbone's checksum (which is made once); bytes, and bytes a class.
    """
    # The depth does not matter, since the backbone is not written.
    vit = VisionTransformer(img_size=32, patch_size=16, embed_dim=dim, depth=1, num_heads=dim // 64, num_classes=0)
    options = dict(backbone=vit, prompt_length=prompt_length, evaluator=None)
    strategy = F2OCLStrategy(**options)
    strategy.model.add_classes(torch.arange(classes))
    strategy.model.backbone.checksum  # noqa: B018
    parameter = strategy.model.pool.prompts
    parameter.grad = torch.ones_like(parameter)
    strategy.optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learned"
        start = time.perf_counter()
        strategy.save(path)
        written = time.perf_counter()
        F2OCLStrategy.load(path, **options)
        loaded = time.perf_counter()
        size = path.stat().st_size
    return {
        "classes": classes,
        "seconds to write": round(written - start, 2),
        "seconds to load": round(loaded - written, 2),
        "bytes": size,
        "bytes a class": round(size / classes),
    }
