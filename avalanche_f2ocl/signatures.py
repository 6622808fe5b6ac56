"""Signatures that name every option of a constructor, even if the constructor passes its options on."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_type_hints


def option_defaults(cls: type) -> dict[str, Any]:
    """Defaults, by name, of all parameters of a model's or strategy's constructor.

    Args:
        cls: the class. Its constructor names some parameters itself; the others are those of its ``model_type``, if it
            has one, and the fields of its ``config_type``.

    Example:
        >>> from avalanche_f2ocl import F2OCLModel
        >>> option_defaults(F2OCLModel)["prompt_length"]
        20
    """
    defaults = option_defaults(cls.model_type) if hasattr(cls, "model_type") else {}
    if hasattr(cls, "config_type"):
        defaults |= {field.name: field.default for field in fields(cls.config_type)}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and base is not object:
            parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
            defaults |= {p.name: p.default for p in parameters if p.default is not p.empty}
    return defaults


def spelled_out(function: Callable[..., Any], defaults: Mapping[str, Any]) -> inspect.Signature:
    """The signature of a function, in which ``**options: Unpack[Keywords]`` is spelled out, a parameter each.

    Args:
        function: any function; without such options the signature is its own.
        defaults: the default of each keyword.
    """
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for options in signature.parameters.values():
        if options.kind is options.VAR_KEYWORD and hasattr(options.annotation, "__args__"):
            (keywords,) = options.annotation.__args__
            parameters += [
                inspect.Parameter(name, options.KEYWORD_ONLY, default=defaults[name], annotation=hint)
                for name, hint in get_type_hints(keywords).items()
            ]
        elif options.kind is options.VAR_KEYWORD:
            parameters.append(options)
    return signature.replace(parameters=parameters)


class _OfConstructor:
    """A class's ``__signature__``: that of its constructor, even where ``__new__`` or a metaclass would hide it."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


class SpelledOut:
    """Mixin whose subclasses' constructors show each of their ``**options: Unpack[Keywords]``, with its default."""

    __signature__ = _OfConstructor()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        own = vars(cls).get("__init__")
        super().__init_subclass__(**kwargs)
        # Avalanche wraps constructors in checks that do not know options which are passed on.
        if own is not None:
            cls.__init__ = own  # type: ignore[method-assign]
            own.__signature__ = spelled_out(own, option_defaults(cls))
        elif "__init__" in vars(cls):
            delattr(cls, "__init__")
