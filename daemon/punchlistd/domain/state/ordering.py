"""Sort keys: strings that represent places in a list and compare in list order.

The key of a task is derived from its id (`default_key`). If the task was moved, it has a rank made by `between`
instead. Ranks use the digits 0-9A-Za-z in ASCII order. No rank equals another key with zeros appended, so there is
always room between two keys. Ranks after the same task count up (`b10a1`, `b10a2`, …), and ranks before all tasks count
down (`Z9`, `Z8`, …). So keys stay short even after a thousand moves to the same end.
"""

import re

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUE = {digit: value for value, digit in enumerate(_DIGITS)}
_BASE = len(_DIGITS)
_LENGTHS = "`abcdefghijklmnopqrstuvwxyz"
_LONGEST = len(_LENGTHS) - 1
_COUNTER = re.compile(r"(.+)([a-z])([1-9][0-9]*)", re.ASCII | re.DOTALL)
_FRONT = re.compile(r"([A-Z])([0-9]+)", re.ASCII)


def default_key(task: str) -> str:
    """Return the key of a task that was never moved. Keys are in numeric order of the ids (`a1`, `a9`, `b10`)."""
    length = len(task)
    return (_LENGTHS[length] if length < _LONGEST else _LENGTHS[_LONGEST]) + task


def between(low: str, high: str) -> str:
    """Return a key after `low` and before `high`. An empty key means no neighbor.

    If the two are out of order, return a key after `low`.
    """
    guess = _before(high) if high and not low else _after(low)
    if low < guess and (not high or guess < high):
        return guess
    if high and low >= high:
        return low + "V"
    return _midpoint(low, high)


def _after(low: str) -> str:
    counter = _COUNTER.fullmatch(low)
    if counter is None:
        return low + "a1"
    head, _, digits = counter.groups()
    number = str(int(digits[:18]) + 1)
    return head + default_key(number)


def _before(high: str) -> str:
    front = _FRONT.fullmatch(high)
    if front is None:
        return "Z9"
    letter, digits = front.groups()
    number = int(digits[:18])
    if number:
        return letter + str(number - 1).rjust(len(digits), "0")
    return chr(ord(letter) - 1) + "9" * (len(digits) + 1) if letter > "A" else ""


def _midpoint(low: str, high: str) -> str:
    """Return the shortest key near the middle that ends in a letter."""
    key = ""
    position = 0
    while True:
        floor = _VALUE.get(low[position], 0) if position < len(low) else 0
        ceiling = _VALUE.get(high[position], _BASE) if high and position < len(high) else (0 if high else _BASE)
        if ceiling - floor > 1:
            key += _DIGITS[(floor + ceiling) // 2]
            return key if len(key) > 1 and key[-1] > "9" else key + "V"
        key += low[position] if position < len(low) else "0"
        if ceiling > floor:
            high = ""
        elif position > len(low) and position > len(high):
            return low + "V"
        position += 1
