"""Messages that are no results."""

import sys


def say(message: str) -> None:
    """Prints one line to standard error, above a progress bar if there is one."""
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):
        print(one_line(message), file=sys.stderr)


def counted(count: int, one: str, more: str = "") -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, "image"), counted(0, "class", "classes")
        ('1 image', '0 classes')
    """
    return f"{count} {one if count == 1 else more or one + 's'}"


def none_readable(count: int) -> str:
    """The error where no image is left."""
    return f"none of {counted(count, 'image')} can be read"


def one_line(text: str) -> str:
    """Text without line breaks and tabs, which names of files may contain.

    Example:
        >>> one_line("a\\nb")
        'a\\\\nb'
    """
    return text.replace("\\", "\\\\").translate({9: "\\t", 10: "\\n", 13: "\\r"}) if _breaks(text) else text


def _breaks(text: str) -> bool:
    return any(sign in text for sign in "\t\n\r")
