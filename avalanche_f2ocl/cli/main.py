"""Arguments, output and exit codes of ``f2ocl``: 0, 1 for an error of one line, 2 for usage, 130 for an interrupt."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="f2ocl", description="Learn classes online from images, without keeping any.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="train | eval | predict | info")

    def command(name: str, help: str) -> argparse.ArgumentParser:
        own = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        own.add_argument("--json", action="store_true", help="print one JSON value instead of text")
        return own

    def common(own: argparse.ArgumentParser, batch_size: int) -> None:
        own.add_argument("--weights", help="local checkpoint of the backbone")
        own.add_argument("--device", help="default CUDA if there is one, else CPU")
        own.add_argument("--batch-size", type=_positive, default=batch_size, help="default %(default)s")
        own.add_argument("--quiet", action="store_true", help="no progress bar")

    train = command("train", "Learn the classes of a folder or zip, in one pass, and save what was learned.")
    train.add_argument("images", help="folder or zip with <class>/* or train/<class>/*")
    train.add_argument("--out", type=Path, required=True, help="file to write")
    train.add_argument("--from", dest="go_on", type=Path, metavar="FILE", help="go on with what this file has learned")
    train.add_argument(
        "--method", choices=("best", "f2ocl", "vit-ridge", "vit-ncm"),
        help="best: the recommended settings (default); f2ocl: the paper's; vit-ridge, vit-ncm: without prompts",
    )  # fmt: skip
    train.add_argument("--backbone", help="timm name, or micro_vit; default vit_base_patch16_224.augreg_in21k")
    train.add_argument("--image-size", type=_positive, help="side in pixels; default the backbone's")
    train.add_argument(
        "--option", type=_option, action="append", default=[], metavar="NAME=VALUE", help="more of the method's options"
    )
    train.add_argument(
        "--order", choices=("shuffled", "classes"), default="shuffled", help="classes: one after the other, by name"
    )
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--with-backbone", action="store_true", help="put the frozen weights into the file as well")
    train.add_argument("--skip-unreadable", action="store_true", help="pass over images that cannot be read")
    common(train, 10)

    evaluate = command("eval", "Accuracy of what was learned.")
    evaluate.add_argument("file", type=Path, help="what `f2ocl train` or strategy.save wrote")
    evaluate.add_argument("images", help="folder or zip with <class>/* or test/<class>/*")
    common(evaluate, 128)

    predict = command("predict", "The likeliest classes of images: a line each.")
    predict.add_argument("file", type=Path, help="what `f2ocl train` or strategy.save wrote")
    predict.add_argument("images", nargs="+", help="image files, folders or zips")
    predict.add_argument("--topk", type=_positive, default=1, help="classes an image; default %(default)s")
    common(predict, 128)

    info = command("info", "What a saved learner is.")
    info.add_argument("file", type=Path)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: arguments; default those of the process.

    Returns:
        The exit code.

    Example:
        >>> main(["info", "nowhere.safetensors"])
        1
    """
    args = _parser().parse_args(argv)
    # Not before the arguments are right: torch takes seconds.
    from avalanche_f2ocl.cli import evaluate, info, predict, train

    module = {"train": train, "eval": evaluate, "predict": predict, "info": info}[args.command]
    try:
        result = module.run(args)
    except KeyboardInterrupt as interrupt:
        print(f"f2ocl {args.command}: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        print(f"f2ocl {args.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(json.dumps(result) if args.json else module.text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
