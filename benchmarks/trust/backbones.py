"""Find out which of timm's models can be used with prompts, and write ``docs/backbones.md``.

    python -m benchmarks.trust.backbones

Every model that timm lists is first built without memory, to see its family. Those of a supported family are then built
with random weights, two blocks and images of three patches a side. Each has to give timm's own embedding without
prompts, learn a mini-batch under prompts, and open again from a file with its backbone. This takes about ten minutes;
nothing is downloaded.
"""

import argparse
import json
import logging
import tempfile
import warnings
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import timm
import torch
from tqdm import tqdm

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.families import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "backbones.md"
READOUTS = {
    "cls": "class token", "patch": "mean over the patches", "distilled": "mean of class and distillation token",
    "pool": "attention pool",
}  # fmt: skip
ABOUT = """# Backbones

Every model of timm's classes `VisionTransformer` and `Eva` can be used with prompts if its images are square and in
colour; others are refused before anything is downloaded. `readout="auto"`, the default, pools as timm's own model does,
so without prompts the embedding is the one that timm gives. `DualPrompt`, `SinglePrompt`, `CODAPrompt` and `MVP`
put prompts into blocks, for which they need a `VisionTransformer`.

`image_size` may be any multiple of the patch size.
"""


def tried(name: str, folder: Path) -> str:
    """The readout of an architecture that passes; raises an error if it does not."""
    torch.manual_seed(0)
    with torch.device("meta"):
        empty: Any = timm.create_model(name, num_classes=0)
    patch_size = empty.patch_embed.img_size[0] // empty.patch_embed.grid_size[0]
    vit = timm.create_model(name, num_classes=0, img_size=3 * patch_size).eval()
    model = F2OCLModel(vit, prompt_length=2)
    images = torch.rand(3, 3, 3 * patch_size, 3 * patch_size)
    with torch.no_grad():
        stock = vit.forward_head(vit.forward_features(model.backbone.prepare(images)), pre_logits=True)
    torch.testing.assert_close(model.backbone.encode(images), stock, rtol=1e-4, atol=1e-4)
    model.learn(images, [0, 1, 0])
    model.save(folder / "learned.safetensors", backbone=True)
    again = F2OCLModel.from_file(folder / "learned.safetensors")
    torch.testing.assert_close(again(images), model(images))
    return model.backbone.readout


def short(name: str) -> dict[str, int]:
    """Options that leave an architecture two blocks."""
    # Its blocks differ in their number of keys; one number holds for all.
    return {"depth": 2, "num_kv_heads": 4} if "sapiens2" in name else {"depth": 2}


def sort_names(names: list[str]) -> dict[str, dict[str, list[str]]]:
    """Names that are taken by class and readout, that are refused by class, and that failed by message."""
    result: dict[str, Any] = {"taken": defaultdict(list), "refused": defaultdict(list), "failed": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in tqdm(names, unit="model"):
            with torch.device("meta"):
                kind = timm.create_model(name)
            if not isinstance(kind, FAMILIES):
                result["refused"][type(kind).__name__].append(name)
                continue
            try:
                with patch("timm.create_model", partial(timm.create_model, **short(name))):
                    readout = tried(name, Path(folder))
                result["taken"][f"{type(kind).__name__}, {READOUTS[readout]}"].append(name)
            except Exception as error:
                result["failed"][name] = f"{type(error).__name__}: {error}"
    return result


def page(result: dict[str, Any]) -> str:
    """The page as Markdown."""
    taken = sum(map(len, result["taken"].values()))
    lines = [
        ABOUT,
        f"With timm {timm.__version__}, `python -m benchmarks.trust.backbones` tried {taken} architectures, with",
        "random weights and two blocks: each gave the same embedding as timm, learned under prompts, and was opened",
        "again from a file. To choose particular weights, add their tag to the name, as in",
        '`"vit_base_patch16_dinov3.lvd1689m"`.\n',
        "| class, readout | architectures |",
        "|---|---|",
    ]
    for group, names in sorted(result["taken"].items()):
        lines.append(f"| {group} | {', '.join(f'`{name}`' for name in names)} |")
    if result["failed"]:
        lines += ["\nThese do not work:\n", *(f"- `{name}`: {error}" for name, error in result["failed"].items())]
    vits = {kind: names for kind, names in result["refused"].items() if all("vit" in n or "beit" in n for n in names)}
    refused = [f"{kind} (such as `{names[0]}`)" for kind, names in sorted(vits.items())]
    lines.append("\nRefused, of other classes: " + "; ".join(refused) + ".")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default="*", help="only these, as timm.list_models takes them; prints instead")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    result = sort_names(timm.list_models(args.names))
    if args.names == "*":
        PAGE.write_text(page(result))
    print(json.dumps({"failed": result["failed"], "taken": {k: len(v) for k, v in result["taken"].items()}}, indent=1))


if __name__ == "__main__":
    main()
