"""Users' own heads, prompts and elections, which files refer to by name."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.metadata import entry_points
from types import FunctionType
from typing import Any

_KNOWN: dict[str, dict[str, Callable[..., Any]]] = {"head": {}, "prompt_assignment": {}, "prompt_election": {}}
EXTENSIBLE = tuple(_KNOWN)
"""Options that take a user's own class or function."""
_PLAIN = (bool, int, float, str, type(None))


def register(option: str, factory: Callable[..., Any]) -> str:
    """Makes a class or function known, so that an option, a file or the command line may refer to it by its name.

    Passing it to a strategy or model registers it, too, so a call is needed only if a file is opened before that. An
    installed package can declare it instead, as an entry point of the group ``avalanche_f2ocl.<option>``.

    Args:
        option: ``"head"``, ``"prompt_assignment"`` or ``"prompt_election"``.
        factory: a class, a function, or ``functools.partial`` of one with keywords that are numbers, strings, booleans
            or None. docs/extending.md says what each option asks of it.

    Returns:
        The name, made of module, qualified name and the keywords of a partial.

    Raises:
        ValueError: the option takes nothing of a user's own.
        TypeError: the factory is a lambda, a closure or something else that no name identifies.

    Example:
        >>> from avalanche_f2ocl.heads import NCMHead
        >>> register("head", partial(NCMHead, metric="euclidean"))
        "avalanche_f2ocl.heads.ncm.NCMHead(metric='euclidean')"
    """
    if option not in EXTENSIBLE:
        raise ValueError(f"option={option!r}: allowed are {', '.join(map(repr, EXTENSIBLE))}")
    name = _name(option, factory)
    _KNOWN[option][name] = factory
    return name


def find(option: str, name: str) -> Callable[..., Any] | None:
    """The class or function registered under a name, or declared under it by an installed package; None without.

    Nothing else is imported: a name is looked up, never treated as a path to code.

    Example:
        >>> find("head", "os.system") is None
        True
    """
    if name not in _KNOWN[option]:
        for point in entry_points(group=f"avalanche_f2ocl.{option}"):
            if name in (point.name, point.value.replace(":", ".")):
                _KNOWN[option][name] = point.load()
    return _KNOWN[option].get(name)


def found(option: str, name: Any) -> Callable[..., Any]:
    """What :func:`find` gives for a name that has been checked before, so that it is there."""
    factory = find(option, name)
    assert factory is not None, (option, name)
    return factory


def known_name(option: str, value: Any, allowed: tuple[Any, ...]) -> str:
    """The name of an option's value, which is an allowed or registered name, or a class or function.

    Raises:
        TypeError, ValueError: the value is none of these.
    """
    if callable(value):
        return register(option, value)
    if value in allowed or (isinstance(value, str) and find(option, value)):
        return value
    raise ValueError(
        f"{option}={value!r}: allowed are {', '.join(map(repr, allowed))}, a class or function of your own, or the "
        "name of one that is registered"
    )


def needs(options: Mapping[str, Any]) -> dict[str, str]:
    """By option, the registered names that must be known for a model with these options to be made again."""
    return {option: options[option] for option in EXTENSIBLE if options.get(option) in _KNOWN[option]}


def check_made(option: str, name: Any, made: object, base: type, attributes: Collection[str]) -> None:
    """Raises ``TypeError`` unless ``made``, the result of a user's class or function, has what a model needs."""
    lacks = [attribute for attribute in attributes if not hasattr(made, attribute)]
    if lacks or not isinstance(made, base):
        reason = f"lacks {', '.join(lacks)}" if lacks else f"is no {base.__module__}.{base.__name__}"
        raise TypeError(f"{option}={name!r} made a {type(made).__name__}, which {reason}")


def _name(option: str, factory: Any) -> str:
    if isinstance(factory, partial):
        bad = [repr(value) for value in factory.keywords.values() if not isinstance(value, _PLAIN)]
        if factory.args or bad:
            raise TypeError(
                f"{option}={factory!r}: a partial may have keywords that are numbers, strings, booleans or None, so "
                f"that files can name them; this one has {', '.join(bad) or 'positional arguments'}"
            )
        keywords = ", ".join(f"{name}={value!r}" for name, value in sorted(factory.keywords.items()))
        return f"{_name(option, factory.func)}({keywords})"
    name = f"{getattr(factory, '__module__', None)}.{getattr(factory, '__qualname__', '<object>')}"
    closure = isinstance(factory, FunctionType) and factory.__closure__
    of_an_object = not isinstance(getattr(factory, "__self__", type), type)
    if name.endswith(">") or closure or of_an_object:
        raise TypeError(
            f"{option}={factory!r}: must be a class, a function without a closure, or functools.partial of one, since "
            "files tell it by its name"
        )
    return name
