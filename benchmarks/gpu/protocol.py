"""CIFAR-100, all of it, in ten groups and one pass on a ViT-Ti at 224 pixels: accuracy and seconds of four methods.

After each group the test images of all groups so far are tested. Without the data the bundled ViT learns digits.
"""

import json

from benchmarks.gpu.setting import Results, Setting, tried
from benchmarks.runs import runner

METHODS = ("vit-ncm", "vit-ridge-blocks", "f2ocl-best", "f2ocl-either")
"""The methods, the most valuable first."""
FIGURES = ("A_n", "F_n", "seconds", "image_size", "peak_memory_bytes", "dataset", "device")


def main(argv: list[str] | None = None) -> None:
    setting = Setting.of(argv)
    results = Results(setting.out)
    for method in ("vit-ncm",) if setting.small else METHODS:
        results[method] = tried(run, setting, method)


def run(setting: Setting, method: str) -> dict:
    """The figures of one run."""
    options = {"precision": "auto"}
    if setting.small or setting.data is None or setting.weights is None:
        few = ["--train-per-class", "10", "--test-per-class", "5"] if setting.small else []
        what = ["--dataset=digits", "--backbone=micro_vit", "--groups=5", *few]
    else:
        size = ["--image-size=224", "--fit=squash"]
        what = [f"--dataset={setting.data}", "--backbone=vit_tiny_patch16_224", f"--weights={setting.weights}", *size]
    common = ["--table=gpu", f"--method={method}", f"--device={setting.device}", "--quiet"]
    [(record, *_)] = runner.run(runner.parse_args([*common, *what, f"--options={json.dumps(options)}"])).values()
    return {name: record[name] for name in FIGURES}


if __name__ == "__main__":
    main()
