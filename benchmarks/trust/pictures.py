"""Are pictures of all kinds read as they were made, and does a hostile file end a run? For ``docs/pictures.md``.

    python -m benchmarks.trust.pictures

It takes a minute on two cores. ``--quick`` tries few hostile files and writes nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import PIL

from benchmarks.trust import hostile_files, picture_formats

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pictures.md"
RESULTS = ROOT / "benchmarks" / "results" / "pictures.json"
GOOD = 6
"""Number of pictures of each of two classes."""

Run = Callable[..., tuple[int, str, str]]
"""Runs the command ``f2ocl`` and returns its exit code, its standard output and its standard error."""


def f2ocl(*args: object) -> tuple[int, str, str]:
    """Runs the command in a process of its own."""
    command = [sys.executable, "-m", "avalanche_f2ocl.cli.main", *map(str, args)]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=600)
    return done.returncode, done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")


def laid_out(folder: Path, quick: bool) -> tuple[list[str], int]:
    """Writes good and hostile files into two classes; returns names of unreadable files and the number of readable."""
    readable = len(hostile_files.good(folder, GOOD))
    bad = hostile_files.write(folder / "blue", hostile_files.unreadable(quick))
    bad += hostile_files.odd(folder / "red")
    readable += len(hostile_files.write(folder / "green", hostile_files.readable()))
    return [os.fsdecode(name) for name in bad], readable


def tried(folder: Path, run: Run = f2ocl, quick: bool = False, workers: int | None = None) -> list[dict[str, object]]:
    """What each command did with a folder and a zip of good and hostile files.

    Args:
        folder: an empty folder for the files.
        run: runs the command.
        quick: whether to try only a few hostile files.
        workers: number of processes that decode; None for the command's default.
    """
    images, zipped, rows = folder / "images", folder / "images.zip", []
    bad, readable = laid_out(images, quick)
    hostile_files.zip_of(zipped, images)
    # A zip holds no pipes and no links.
    bad_in_zip = [n for n in bad if not (images / "red" / n).is_symlink() and n != "pipe.jpg"]
    bad_in_zip = [os.fsencode(name).decode(errors="replace") for name in bad_in_zip]
    bad_in_zip += [Path(name).name for name in hostile_files.spoil(zipped, "red")]
    options = ("--quiet", "--json", *(() if workers is None else ("--workers", workers)))
    for source, unreadable in ((images, bad), (zipped, bad_in_zip)):
        out = folder / f"{source.name}.safetensors"
        for name, args in (
            ("train", ("train", source, "--out", out, "--backbone", "micro_vit")),
            ("eval", ("eval", out, source)),
            ("predict", ("predict", out, source)),
        ):
            started = time.monotonic()
            code, printed, said = run(*args, *options)
            seconds = time.monotonic() - started
            result = (json.loads(printed) if isinstance(printed, str) else printed) if code == 0 else None
            row = {"command": name, "source": "zip" if source == zipped else "folder", "exit code": code}
            row |= {"cannot be read": len(unreadable), "named": named(unreadable, said), "seconds": round(seconds, 1)}
            rows.append(row | {"pictures": readable} | outcome(name, result) | {"tracebacks": said.count("Traceback")})
    return rows


def named(names: list[str], said: str) -> int:
    """The number of files that have a line of their own on standard error."""
    lines = [line for line in said.splitlines() if line.startswith("skipped: ")]
    return sum(
        any(repr(name)[1:-1].replace("\\'", "'") in line.replace("\\'", "'") for line in lines) for name in names
    )


def outcome(command: str, result: object) -> dict[str, object]:
    """How many pictures were learned or predicted, and how many of them were predicted right."""
    if isinstance(result, list):
        right = sum(Path(row["image"]).parent.name == row["classes"][0]["class"] for row in result)
        return {"done": len(result), "right": right}
    if not isinstance(result, dict):
        return {"done": 0, "right": None}
    right = None if command == "train" else round(result["accuracy"] * result["images"])
    return {"done": result["images"], "right": right}


def table(rows: list[dict[str, object]]) -> str:
    """The rows as Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|---|" + "---|" * (len(rows[0]) - 1)]
    lines += ["| " + " | ".join("-" if v is None else str(v) for v in row.values()) + " |" for row in rows]
    return "\n".join(lines)


def put(text: str, mark: str, inside: str) -> str:
    """Replaces what stands between ``<!-- mark -->`` and ``<!-- /mark -->`` on a page."""
    before, rest = text.split(f"<!-- {mark} -->")
    return f"{before}<!-- {mark} -->\n{inside}\n<!-- /{mark} -->{rest.split(f'<!-- /{mark} -->')[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    formats = picture_formats.measure()
    with tempfile.TemporaryDirectory() as folder:
        runs = tried(Path(folder), quick=args.quick)
    print(table(formats), table(runs), sep="\n\n")
    wrong = [row["file"] for row in formats if row["read"] != "right"]
    plainly = sum(row["plainly"] == "right" for row in formats)
    print(f"\nread right: {len(formats) - len(wrong)} of {len(formats)}, plainly {plainly}; wrong: {wrong}")
    if not args.quick:
        result = {"pillow": PIL.__version__, "as root": os.geteuid() == 0, "formats": formats, "hostile": runs}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
        right = f"{len(formats) - len(wrong)} of {len(formats)}"
        count = f"{right} are read right, plainly {plainly} (Pillow {PIL.__version__})."
        text = put(PAGE.read_text(), "formats", f"{count}\n\n{table(formats)}")
        PAGE.write_text(put(text, "hostile", table(runs)))


if __name__ == "__main__":
    main()
