"""The arguments of ``f2ocl``; nothing here imports torch."""

import argparse
import json
from pathlib import Path
from typing import Any

from avalanche_f2ocl import __version__
from avalanche_f2ocl.rivals import WITHOUT_BOUNDARIES

_FILE = "model that `f2ocl train` or strategy.save wrote"
_MODEL = f"{_FILE}, or hf-hub:user/name on the Hugging Face Hub"
_WEIGHTS = "local checkpoint of the backbone, where it was not downloaded and is not in the model's file"


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: must be NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least 1")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number between 0 and 1")
    return share


def _count(text: str) -> int:
    return 0 if text == "0" else _positive(text)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands.

    Example:
        >>> make_parser().parse_args(["info", "learned.safetensors"]).command
        'info'
    """
    parser = argparse.ArgumentParser(
        prog="f2ocl",
        description="Learn classes online from images, without keeping any.",
        epilog="f2ocl COMMAND --help lists the options of a command. To begin with: "
        "f2ocl train pictures --out learned.safetensors, where pictures/ has a folder for each class.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str, **forms: str) -> argparse.ArgumentParser:
        own = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        own.set_defaults(form="text")
        group = own.add_mutually_exclusive_group()
        for form, told in {"json": "print one JSON value instead of text", **forms}.items():
            group.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=told)
        return own

    def common(own: argparse.ArgumentParser, batch_size: int) -> None:
        _add_place(own)
        own.add_argument(
            "--batch-size",
            type=_positive,
            metavar="N",
            default=batch_size,
            help="images at a time; default %(default)s",
        )
        own.add_argument(
            "--workers", type=_count, metavar="N", help="processes that decode images; default: one a core, at most 4"
        )
        own.add_argument("--strict", action="store_true", help="stop at the first image that cannot be read")
        own.add_argument("--quiet", action="store_true", help="show no progress bar")

    train = command("train", "Learn the classes of a folder or zip, in one pass, and save what was learned.")
    train.add_argument("images", help="folder, zip or tar with <class>/* or train/<class>/*")
    train.add_argument("--out", type=Path, metavar="FILE", required=True, help="file to write")
    train.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    train.add_argument("--save-every", type=_positive, metavar="N", help="save after every N images, too")
    train.add_argument(
        "--hold-out",
        type=_share,
        metavar="SHARE",
        help="test on a share of each class, which is not learned, such as 0.2",
    )
    train.add_argument("--from", dest="go_on", type=Path, metavar="FILE", help=f"continue with a {_MODEL}")
    train.add_argument(
        "--method", metavar="NAME", choices=("best", "f2ocl", "vit-ridge", "vit-ncm", *WITHOUT_BOUNDARIES),
        help="best: the recommended settings (default); f2ocl: those of the paper; vit-ridge, vit-ncm: no prompts, "
        f"nothing trained; methods of other authors, on frozen features: {', '.join(WITHOUT_BOUNDARIES)}",
    )  # fmt: skip
    train.add_argument(
        "--backbone",
        metavar="NAME",
        help="a ViT of timm, or micro_vit, which is bundled and for small images; "
        "default vit_base_patch16_224.augreg_in21k, a download of 410 MB",
    )
    train.add_argument(
        "--image-size", type=_positive, metavar="N", help="side in pixels; default: that of the backbone"
    )
    train.add_argument(
        "--fit", choices=("auto", "crop", "squash", "pad"),
        help="how photographs become squares; default: auto, the crop that belongs to the backbone",
    )  # fmt: skip
    train.add_argument(
        "--option",
        type=_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the method; can be repeated",
    )
    train.add_argument(
        "--order",
        choices=("shuffled", "classes"),
        default="shuffled",
        help="order of the images; default: shuffled; classes: one class after the other, by name",
    )
    train.add_argument("--seed", type=int, metavar="N", default=0, help="of all that is random; default %(default)s")
    train.add_argument(
        "--with-backbone", action="store_true", help="put the weights of the backbone into the file, too"
    )
    common(train, 10)

    evaluate = command("eval", "Test a saved model on images whose classes are known.")
    evaluate.add_argument("file", type=Path, help=_MODEL)
    evaluate.add_argument("images", help="folder, zip or tar with <class>/* or test/<class>/*")
    evaluate.add_argument(
        "--hold-out", type=_share, metavar="SHARE", help="test on what `train --hold-out SHARE` left out"
    )
    common(evaluate, 128)

    predict = command(
        "predict", "Print the likeliest class of each image, a line for each.",
        jsonl="print a JSON object for each image", csv="print a header and a row for each image",
    )  # fmt: skip
    predict.add_argument("file", type=Path, help=_MODEL)
    predict.add_argument("images", nargs="+", help="image files, folders, zips or tars")
    predict.add_argument(
        "--topk", type=_positive, metavar="K", default=1, help="classes to print for each image; default %(default)s"
    )
    predict.add_argument(
        "--reject", type=_share, metavar="SHARE",
        help="say 'none of these' for images unlike all that was learned; SHARE is the share of images of known "
        "classes that may be rejected by mistake, such as 0.05",
    )  # fmt: skip
    common(predict, 128)

    info = command("info", "Print what a saved model is: method, backbone, classes.")
    info.add_argument("file", type=Path, help=_MODEL)

    export = command("export", "Write a saved model as ONNX, and check it in ONNX Runtime.")
    export.add_argument("file", type=Path, help=_MODEL)
    export.add_argument("out", type=Path, help="file to write, ending in .onnx")
    export.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    export.add_argument("--weights", metavar="FILE", help=_WEIGHTS)

    counts = command("counts", "Print how many images of each class a saved model has learned.")
    counts.add_argument("file", type=Path, help=_MODEL)
    _add_corrections(command, common)

    app = command("app", "Teach a model with pictures on a page in the browser.")
    app.add_argument("file", type=Path, help="model to teach, saved there as well; a new one if it does not exist")
    app.add_argument(
        "--method", choices=("best", "f2ocl", "vit-ridge", "vit-ncm"), help="of a new model, see f2ocl train --help"
    )
    app.add_argument("--backbone", metavar="NAME", help="of a new model, see f2ocl train --help")
    app.add_argument("--image-size", type=_positive, metavar="N", help="of a new model, see f2ocl train --help")
    app.add_argument("--with-backbone", action="store_true", help="put the weights of the backbone into the file, too")
    _add_place(app)
    app.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; default: this machine alone; 0.0.0.0 lets others in"
    )
    app.add_argument("--port", type=_positive, metavar="N", help="default: the first that is free from 7860 on")
    app.add_argument("--open", action="store_true", help="open the page in the browser")
    return parser


def _add_corrections(command: Any, common: Any) -> None:
    """The commands that change what a file has learned, in place."""

    def correction(name: str, help: str) -> argparse.ArgumentParser:
        own = command(name, help)
        own.add_argument("file", type=Path, help=_FILE)
        return own

    rename = correction("rename", "Give a class another name.")
    rename.add_argument("name", help="name or id of the class")
    rename.add_argument("new", help="its new name, which no other class may have")
    merge = correction("merge", "Make one class of two.")
    merge.add_argument("name", help="name or id of the class that goes")
    merge.add_argument("into", help="name or id of the class that stays")
    forget = correction("forget", "Remove classes.")
    forget.add_argument("names", nargs="+", metavar="name", help="name or id of a class")
    for own in (rename, merge, forget):
        _add_place(own)
    unlearn = correction("unlearn", "Take images out again that were learned.")
    relabel = correction("relabel", "Give another label to images that were learned.")
    for own in (unlearn, relabel):
        own.add_argument("images", nargs="+", help="image files, folders, zips or tars")
        own.add_argument(
            "--label", metavar="NAME", required=True, help="name or id of the class that they were learned as"
        )
        common(own, 128)
    relabel.add_argument(
        "--to", metavar="NAME", required=True, help="name or id of their true class; a new name makes a new class"
    )


def _add_place(own: argparse.ArgumentParser) -> None:
    own.add_argument("--weights", metavar="FILE", help=_WEIGHTS)
    own.add_argument("--device", metavar="NAME", help="cpu, cuda or cuda:1; default: cuda if there is a GPU, else cpu")
