"""``f2ocl app``: a page in the browser on which to teach a model with pictures."""

import argparse
import os
import time
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from avalanche_f2ocl.app.page import make_page
from avalanche_f2ocl.app.teacher import Teacher
from avalanche_f2ocl.cli.messages import counted, say
from avalanche_f2ocl.cli.output import check_place
from avalanche_f2ocl.cli.stopping import Stopped, StopSignals
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.methods import make_model
from avalanche_f2ocl.models.model_file import holds_backbone
from avalanche_f2ocl.options import DEFAULT_BACKBONE


def run(args: argparse.Namespace) -> NoReturn:
    """Serves the page until a signal ends it.

    Raises:
        Stopped: a signal ended it.
        ImportError: Gradio is not installed.
        OSError, TypeError, ValueError: the file cannot be read or written, or the port is taken.
    """
    try:
        import gradio  # noqa: F401
    except ImportError as error:
        raise ImportError("needs gradio: pip install 'avalanche-f2ocl[app]'") from error
    teacher = make_teacher(args)
    with StopSignals() as stop, TemporaryDirectory(prefix="f2ocl-app-") as folder:
        os.environ["GRADIO_TEMP_DIR"] = folder  # dropped pictures are removed with it
        page = make_page(teacher)
        *_, address, _ = page.launch(
            server_name=args.host,
            server_port=args.port,
            inbrowser=args.open,
            share=False,
            quiet=True,
            prevent_thread_lock=True,
            footer_links=[],
            ssr_mode=False,
        )
        say(f"{counted(len(teacher.counts), 'class', 'classes')} known; the page is at {address} (Ctrl-C ends it)")
        try:
            stop.check()
            stop.waiting = True
            while True:
                time.sleep(3600)
        except Stopped as stopped:
            lost = "" if teacher.saved else f"; what was taught since it was last saved is not in {args.file}"
            raise Stopped(stopped.number, f"{stopped}{lost}") from None
        finally:
            page.close(verbose=False)


def make_teacher(args: argparse.Namespace) -> Teacher:
    """Makes a teacher of the file's model, or of a new one if there is no such file.

    Raises:
        OSError, TypeError, ValueError: the file cannot be read, or an option is not allowed.
    """
    check_place(args.file, replace=True)
    if not args.file.exists():
        own: dict[str, Any] = {"weights": args.weights, "image_size": args.image_size, "device": args.device}
        model = make_model(args.method or "best", args.backbone or DEFAULT_BACKBONE, **own)
        return Teacher(model, args.file, args.with_backbone)
    fixed = ("method", "backbone", "image_size")
    if given := [name for name in fixed if getattr(args, name)]:
        names = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{names} cannot be given: {str(args.file)!r} exists, and the file decides")
    model = load_model(args.file, weights=args.weights, device=args.device)
    return Teacher(model, args.file, args.with_backbone or holds_backbone(args.file))
