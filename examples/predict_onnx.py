"""Predicts with a file of `f2ocl export`; needs only onnxruntime, numpy and Pillow.

python examples/predict_onnx.py model.onnx pictures/*.jpg
"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


def square(image: Image.Image, side: int, fit: str, crop_pct: float, interpolation: str, fill: list[int]) -> np.ndarray:
    """A picture as the model expects it, ``(3, side, side)`` uint8."""
    image, resample = ImageOps.exif_transpose(image).convert("RGB"), Image.Resampling[interpolation.upper()]
    width, height = image.size
    if fit == "squash" or (fit == "auto" and width == height) or width == height == side:
        image = image.resize((side, side), resample)
    elif fit == "pad":
        image = ImageOps.pad(image, (side, side), resample, tuple(fill))
    else:
        shorter = int(side / crop_pct)
        width, height = (max(shorter, int(shorter * own / min(width, height))) for own in (width, height))
        left, top = round((width - side) / 2), round((height - side) / 2)
        image = image.resize((width, height), resample).crop((left, top, left + side, top + side))
    return np.asarray(image).transpose(2, 0, 1)


def main(model: str, *pictures: str) -> None:
    """Prints each picture's likeliest class and its probability."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    told = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    kept = ("fit", "crop_pct", "interpolation", "fill")
    options = {name: told["preprocessing"][name] for name in kept}
    side = told["preprocessing"]["image_size"]
    images = np.stack([square(Image.open(picture), side, **options) for picture in pictures])
    _, probabilities = session.run(None, {"images": images})
    for picture, shares in zip(pictures, probabilities, strict=True):
        print(picture, told["class_names"][shares.argmax()], f"{shares.max():.3f}", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
