"""Outputs of oracles as bytes, without pickle: model files keep some outputs as part of the proof of the lower bound.

An output may be None, a bool, a number, a string, a numpy number or array of these, and a list, tuple, dict or set of
outputs. It is written as JSON, in which a dict with one entry stands for what JSON does not have: ``{"t": [1, 2]}`` is
the tuple ``(1, 2)``. The core stores numbers of 32 bits, so the text is filled up with blanks to a multiple of four bytes.
"""

import json
from typing import Any

import numpy as np

from .estimator import number

#: The kinds of numpy numbers and texts that are written.
KINDS = "biufU"


def encoded(y: Any) -> bytes:
    """The bytes of an output. Equal outputs of the same types have equal bytes."""
    return filled(json.dumps(_plain(y), separators=(",", ":")).encode())


def decoded(content: bytes) -> Any:
    """The output with these bytes."""
    return _rich(json.loads(content))


def filled(content: bytes) -> bytes:
    """The same with blanks up to a multiple of four bytes."""
    return content + b" " * (-len(content) % 4)


def of_numbers(values: Any) -> bytes:
    """The bytes of what a user's own `encode` returns: whole numbers from 0 to 2**32 - 1."""
    checked = [number("a number of encode(y)", value, at_least=0, at_most=2**32 - 1, whole=True) for value in values]
    return np.array(checked, dtype="<u4").tobytes()


def to_numbers(content: bytes) -> list[int]:
    """The whole numbers of these bytes."""
    numbers: list[int] = np.frombuffer(content, dtype="<u4").tolist()
    return numbers


def _plain(y: Any) -> Any:
    if y is None or type(y) in (bool, int, float, str):
        return y
    if type(y) is list:
        return [_plain(item) for item in y]
    if type(y) is tuple:
        return {"t": [_plain(item) for item in y]}
    if type(y) is dict:
        return {"d": sorted(([_plain(key), _plain(value)] for key, value in y.items()), key=json.dumps)}
    if type(y) in (set, frozenset):
        return {"s" if type(y) is set else "f": sorted((_plain(item) for item in y), key=json.dumps)}
    if isinstance(y, np.ndarray | np.generic) and y.dtype.kind in KINDS and (y.dtype.kind == "U" or y.itemsize <= 8):
        if isinstance(y, np.generic):
            return {"n": [y.dtype.str, y.item()]}
        if type(y) is np.ndarray:
            return {"a": [y.dtype.str, list(y.shape), y.ravel().tolist()]}
    raise TypeError(
        f"an output holds something of type {type(y).__name__}, which has no encoding of its own: give the oracle the methods encode(y), "
        "which returns whole numbers from 0 to 2**32 - 1, and decode(numbers)"
    )


def _rich(text: Any) -> Any:
    if isinstance(text, list):
        return [_rich(item) for item in text]
    if not isinstance(text, dict):
        return text
    ((kind, content),) = text.items()
    if kind == "t":
        return tuple(_rich(item) for item in content)
    if kind == "d":
        return {_rich(key): _rich(value) for key, value in content}
    if kind == "s":
        return {_rich(item) for item in content}
    if kind == "f":
        return frozenset(_rich(item) for item in content)
    if kind == "n":
        return np.dtype(content[0]).type(content[1])
    if kind == "a":
        return np.array(content[2], dtype=content[0]).reshape(content[1])
    raise ValueError(f"an encoded output holds the unknown kind {kind!r}")
