"""Learn and predict in a loop, without Avalanche: each image is first predicted, and then learned with its name.

    python examples/serve.py [--images 300]
"""

import argparse

import torch

from avalanche_f2ocl import F2OCLModel, datasets

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--images", type=int, default=300)
args = parser.parse_args()

NAMES = "zero one two three four five six seven eight nine".split()
data = datasets.load("digits").train
order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[: args.images]

model = F2OCLModel("micro_vit", prompt_assignment="shared", head="lda", head_features="q")
right, asked = 0, 0
for part in order.split(10):
    images = data.images[part]
    names = [NAMES[data.targets[i]] for i in part.tolist()]
    if model.batches:
        ids, probabilities = model.topk(images, k=1)
        right += sum(model.class_names[i] == name for i, name in zip(ids[:, 0].tolist(), names, strict=True))
        asked += len(names)
    model.learn(images, names)
print(f"{asked} images were predicted before their name was told, {100 * right / asked:.1f} % rightly.")
model.save("served.safetensors")
print(f"served.safetensors knows {', '.join(model.class_names.values())}.")
