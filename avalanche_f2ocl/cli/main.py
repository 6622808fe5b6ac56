"""Output and exit codes of ``f2ocl``.

The exit code is 0 for success, 1 for an error, reported in one line, and 2 for wrong usage. If a signal stopped the
program, it is 128 plus the signal's number: 130 for Ctrl-C, and 141 if nobody reads the output any more.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from avalanche_f2ocl.cli.parser import make_parser

_SIGPIPE = 13
_READ_ONLY = ("eval", "predict", "info", "export", "counts")


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
    args = make_parser().parse_args(argv)
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
