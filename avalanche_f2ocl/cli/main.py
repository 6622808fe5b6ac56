"""Arguments, output and exit codes of ``f2ocl``.

The exit code is 0 for success, 1 for an error, reported in one line, and 2 for wrong usage. If a signal stopped the
program, it is 128 plus the signal's number: 130 for Ctrl-C, and 141 if nobody reads the output any more.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from avalanche_f2ocl import __version__
from avalanche_f2ocl.rivals import WITHOUT_BOUNDARIES

_SIGPIPE = 13
_LEARNED = "what `f2ocl train` or strategy.save wrote, or hf-hub:user/name of the Hugging Face Hub"
_READ_ONLY = ("eval", "predict", "info", "export", "counts")


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="f2ocl", description="Learn classes online from images, without keeping any.", allow_abbrev=False
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
        own.add_argument("--batch-size", type=_positive, default=batch_size, help="default %(default)s")
        own.add_argument("--workers", type=_count, help="processes that decode; default one a core, at most 4")
        own.add_argument("--strict", action="store_true", help="stop at the first image that cannot be read")
        own.add_argument("--quiet", action="store_true", help="no progress bar")

    train = command("train", "Learn the classes of a folder or zip, in one pass, and save what was learned.")
    train.add_argument("images", help="folder, zip or tar with <class>/* or train/<class>/*")
    train.add_argument("--out", type=Path, required=True, help="file to write")
    train.add_argument("--overwrite", action="store_true", help="replace the file if there is one")
    train.add_argument("--save-every", type=_positive, metavar="N", help="save after every N images as well")
    train.add_argument(
        "--hold-out", type=_share, metavar="SHARE", help="leave out a share of each class and test on it"
    )
    train.add_argument("--from", dest="go_on", type=Path, metavar="FILE", help=f"go on with {_LEARNED}")
    train.add_argument(
        "--method", metavar="NAME", choices=("best", "f2ocl", "vit-ridge", "vit-ncm", *WITHOUT_BOUNDARIES),
        help="best: the recommended settings (default); f2ocl: the paper's; vit-ridge, vit-ncm: without prompts; "
        f"other authors' on frozen features: {', '.join(WITHOUT_BOUNDARIES)}",
    )  # fmt: skip
    train.add_argument("--backbone", help="timm name, or micro_vit; default vit_base_patch16_224.augreg_in21k")
    train.add_argument("--image-size", type=_positive, help="side in pixels; default the backbone's")
    train.add_argument(
        "--fit", choices=("auto", "crop", "squash", "pad"),
        help="how photographs become squares; default auto, the backbone's own crop",
    )  # fmt: skip
    train.add_argument(
        "--option", type=_option, action="append", default=[], metavar="NAME=VALUE", help="more of the method's options"
    )
    train.add_argument(
        "--order", choices=("shuffled", "classes"), default="shuffled", help="classes: one after the other, by name"
    )
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--with-backbone", action="store_true", help="put the frozen weights into the file as well")
    common(train, 10)

    evaluate = command("eval", "Accuracy of what was learned.")
    evaluate.add_argument("file", type=Path, help=_LEARNED)
    evaluate.add_argument("images", help="folder, zip or tar with <class>/* or test/<class>/*")
    evaluate.add_argument("--hold-out", type=_share, metavar="SHARE", help="only what `train --hold-out` left out")
    common(evaluate, 128)

    predict = command(
        "predict", "The likeliest classes of images: a line each.",
        jsonl="a JSON object a line", csv="a header, and a row an image",
    )  # fmt: skip
    predict.add_argument("file", type=Path, help=_LEARNED)
    predict.add_argument("images", nargs="+", help="image files, folders, zips or tars")
    predict.add_argument("--topk", type=_positive, default=1, help="classes an image; default %(default)s")
    predict.add_argument(
        "--reject", type=_share, metavar="SHARE",
        help="say 'none of these' of images that look less like anything learned than this share of known images",
    )  # fmt: skip
    common(predict, 128)

    info = command("info", "What a saved learner is.")
    info.add_argument("file", type=Path, help=_LEARNED)

    export = command("export", "Write the prediction to an ONNX file, and check it in ONNX Runtime.")
    export.add_argument("file", type=Path, help=_LEARNED)
    export.add_argument("out", type=Path, help="file to write, ending in .onnx")
    export.add_argument("--overwrite", action="store_true", help="replace the file if there is one")
    export.add_argument("--weights", help="local checkpoint of the backbone")

    counts = command("counts", "How many images of each class it has learned: a line each.")
    counts.add_argument("file", type=Path, help=_LEARNED)
    _add_corrections(command, common)

    app = command("app", "Teach a model by pictures on a page in the browser.")
    app.add_argument("file", type=Path, help="what is known already, and where it is saved; it need not be there")
    app.add_argument("--method", choices=("best", "f2ocl", "vit-ridge", "vit-ncm"), help="of a new file; as for train")
    app.add_argument("--backbone", help="of a new file; timm name, or micro_vit; default as for train")
    app.add_argument("--image-size", type=_positive, help="of a new file; side in pixels; default the backbone's")
    app.add_argument("--with-backbone", action="store_true", help="put the frozen weights into the file as well")
    app.add_argument("--weights", help="local checkpoint of the backbone")
    app.add_argument("--device", help="default CUDA if there is one, else CPU")
    app.add_argument("--host", default="127.0.0.1", help="0.0.0.0 lets other machines in; default this one alone")
    app.add_argument("--port", type=_positive, help="default the first that is free from 7860 on")
    app.add_argument("--open", action="store_true", help="open the browser")
    return parser


def _add_corrections(command: Any, common: Any) -> None:
    """The commands that change what a file has learned, in place."""

    def correction(name: str, help: str) -> argparse.ArgumentParser:
        own = command(name, f"{help} The file is written anew, whole or not at all.")
        own.add_argument("file", type=Path, help="what `f2ocl train` or strategy.save wrote")
        return own

    rename = correction("rename", "Give a class another name.")
    rename.add_argument("name", help="of the class, or its id")
    rename.add_argument("new", help="name that no other class has")
    merge = correction("merge", "Make one class of two.")
    merge.add_argument("name", help="of the class that goes, or its id")
    merge.add_argument("into", help="the class that stays")
    forget = correction("forget", "Remove classes.")
    forget.add_argument("names", nargs="+", metavar="name", help="of a class, or its id")
    for own in (rename, merge, forget):
        _add_place(own)
    unlearn = correction("unlearn", "Take images that were learned out again.")
    relabel = correction("relabel", "Give images that were learned another label.")
    for own in (unlearn, relabel):
        own.add_argument("images", nargs="+", help="image files, folders, zips or tars")
        own.add_argument("--label", required=True, help="class that they were learned as")
        common(own, 128)
    relabel.add_argument("--to", required=True, help="class that they are of; a new name is a new class")


def _add_place(own: argparse.ArgumentParser) -> None:
    own.add_argument("--weights", help="local checkpoint of the backbone")
    own.add_argument("--device", help="default CUDA if there is one, else CPU")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: arguments; by default those of the process.

    Returns:
        The exit code.

    Example:
        >>> main(["info", "nowhere.safetensors"])
        1
    """
    args = _parser().parse_args(argv)
    # Imported only once the arguments are right, since importing torch takes seconds.
    from avalanche_f2ocl.cli import app, correct, counts, evaluate, export, info, predict, train
    from avalanche_f2ocl.cli.formats import print_result
    from avalanche_f2ocl.cli.stopping import Stopped
    from avalanche_f2ocl.models.class_names import UnknownClass
    from avalanche_f2ocl.models.hub import learned_file

    modules: Any = {"train": train, "eval": evaluate, "predict": predict, "info": info, "export": export}
    modules |= {"counts": counts, "app": app}
    module = modules.get(args.command, correct)
    if hasattr(sys.stdout, "reconfigure"):  # names of files may contain bytes that are no text
        sys.stdout.reconfigure(errors="surrogateescape" if os.name == "posix" else "backslashreplace")
    try:
        if args.command in _READ_ONLY:
            args.file = learned_file(args.file)
        print_result(module.run(args), module.text, args.form)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise it would fail again at exit
        return 128 + _SIGPIPE
    except Stopped as stopped:
        print(f"f2ocl {args.command}: {stopped}", file=sys.stderr)
        return 128 + stopped.number
    except KeyboardInterrupt:
        print(f"f2ocl {args.command}: interrupted", file=sys.stderr)
        return 130
    except (ImportError, OSError, TypeError, ValueError, RuntimeError, MemoryError, UnknownClass) as error:
        print(f"f2ocl {args.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
