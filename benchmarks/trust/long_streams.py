"""Long streams: does anything drift, or grow?"""

import gc
import os
import threading
from math import fsum
from pathlib import Path

import numpy as np
import torch
from timm.models import VisionTransformer

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.class_means import ClassMeans


def means_error(updates: int, classes: int = 10, batch_size: int = 4, dim: int = 2) -> float:
    """Largest relative error of class means and counts after ``updates`` updates, compared with exact sums."""
    draw = generator(0, "long-stream")
    vectors = torch.randn(updates, batch_size, dim, generator=draw) + 3
    rows = torch.randint(classes, (updates, batch_size), generator=draw)
    means = ClassMeans(dim)
    means.add_rows(classes)
    for x, y in zip(vectors, rows, strict=True):
        means.update(x, y)
    x, y = vectors.view(-1, dim).double().numpy(), rows.view(-1).numpy()
    exact = np.array([[fsum(x[y == c, d]) / (y == c).sum() for d in range(dim)] for c in range(classes)])
    counts = np.bincount(y, minlength=classes)
    error = np.abs(means.means().numpy() - exact) / np.abs(exact)
    return max(error.max(), np.abs(means.used("counts").numpy() / counts - 1).max())


def resources() -> dict[str, int]:
    """What this process holds: memory in MB, and numbers of files, threads and Python objects."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory_mb": pages * os.sysconf("SC_PAGE_SIZE") >> 20,
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
    }


def many_steps(steps: int, warm_up: int = 200) -> dict[str, object]:
    """Takes ``steps`` full steps of F2OCL on a tiny random ViT, with one class absent after the first step.

    Returns:
        How ``resources`` grew after the warm-up, and whether the absent class's prompt, moments, step count,
        key and prototype are bit for bit as they were.
    """
    torch.manual_seed(0)
    vit = VisionTransformer(img_size=16, patch_size=8, embed_dim=16, depth=1, num_heads=2, num_classes=0)
    model = F2OCLModel(vit, prompt_length=2)
    images = torch.randint(0, 256, (50, 4, 3, 16, 16), dtype=torch.uint8, generator=generator(0, "long-stream-images"))
    model.learn(images[0], [0, 0, 0, 0])
    before = _of_first_class(model)
    for step in range(steps):
        if step == warm_up:
            held = resources()
        model.learn(images[step % len(images)], [1 + step % 7, 2, 3, 4])
    after = resources()
    same = all(torch.equal(one, other) for one, other in zip(before, _of_first_class(model), strict=True))
    return {name: after[name] - held[name] for name in after} | {"absent class unchanged": same}


def _of_first_class(model: F2OCLModel) -> list[torch.Tensor]:
    state = model.optimizer.state[model.pool.prompts]
    tensors = [model.pool.prompts.detach(), *state.values(), model.keys.sums, model.head.counts]
    tensors += [head.sums for head in model.head.heads]
    return [tensor[0].clone() for tensor in tensors]
