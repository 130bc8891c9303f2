"""Rows of the comparison: what a paper prints or says, ours, and a verdict by kind.

Each kind of statement has its own function. All of them put bounds on computed numbers
and let `judge` compare, so that a row can be judged again with other numbers: the
mutation test (`survivors`) perturbs every number and asks that the verdict changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

Row = dict[str, Any]
Kind = Literal[
    "agrees",
    "better",
    "recovered",
    "claim",
    "slip",
    "ours",
    "not comparable",
    "not run",
]

KEYS = (
    "experiment", "quantity", "paper", "beside", "ours", "verdict", "tolerance", "note",
    "kind", "values", "low", "high", "sign",
)  # fmt: skip
"""What every row has. `paper` is only what the paper prints or says; `beside` is our
aim, a theory or another program; the last five are what `judge` compares."""

VERDICTS = (
    "agrees", "better", "recovered", "claim holds", "claim fails", "differs",
    "paper's slip", "ours", "not comparable", "not run",
)  # fmt: skip
"""What can become of a row."""

MEANINGS = {
    "agrees": "a printed number (or an equation's), found independently",
    "better": "a printed performance, surpassed; the row says by how much",
    "recovered": "what the simulated arm was made with was found again",
    "claim holds": "a sentence of the paper passes the stated threshold",
    "claim fails": "a sentence of the paper does not pass the stated threshold",
    "differs": "outside the stated tolerance; the note says why",
    "paper's slip": "the printed number contradicts the paper's own others",
    "ours": "not in the paper: our aim, theory, or another program",
    "not comparable": "the paper's conditions are not known well enough",
    "not run": "a package is missing here",
}

Number = float | Sequence[float] | np.ndarray

LOOSEST = 0.1
"""Relative tolerance of `agrees` where the paper prints enough digits."""


def agrees(
    experiment: str,
    quantity: str,
    printed: Number,
    ours: Number,
    *,
    within: float = LOOSEST,
    absolute: Number | None = None,
    at: str = "",
    shown: str = "",
    note: str = "",
) -> Row:
    """A number that the paper prints, beside the same number found independently.

    Args:
        experiment: Table, figure or section of the paper.
        quantity: What is compared, its unit in brackets.
        printed: What the paper prints; several numbers are judged one by one.
        ours: What was computed.
        within: Largest difference, relative to the printed number.
        absolute: Largest difference in the quantity's own unit instead: half of the
            last printed digit, or what the paper itself allows.
        at: Page of the paper.
        shown: Ours in words or with a standard deviation, if numbers are not enough.
        note: Conditions, and why they differ.
    """
    target, values = _numbers(printed), _numbers(ours)
    width = _width(target, within, absolute)
    bounds = (target - width, target + width)
    return _row(
        "agrees", experiment, quantity, _text(target, at), shown or _text(values),
        values, bounds, _tolerance(within, absolute), note,
    )  # fmt: skip


def better(
    experiment: str,
    quantity: str,
    printed: Number,
    ours: Number,
    *,
    less: bool = True,
    within: float = LOOSEST,
    at: str = "",
    note: str = "",
) -> Row:
    """A performance that the paper prints: an error, a number of operations, a time.

    Within the tolerance it agrees, beyond it on the good side it is better, on the
    other side it differs.

    Args:
        experiment, quantity, printed, ours, within, at, note: As in `agrees`.
        less: Whether smaller is better.
    """
    target, values = _numbers(printed), _numbers(ours)
    width = _width(target, within, None)
    ratio = target / values if less else values / target
    sign = np.full(target.size, 1.0 if less else -1.0)
    row = _row(
        "better", experiment, quantity, _text(target, at), _text(values), values,
        (target - width, target + width), _tolerance(within, None), note, sign=sign,
    )  # fmt: skip
    if row["verdict"] == "better":
        factor = f"better by a factor of {_text(ratio)}"
        row["note"] = f"{factor}; {note}" if note else factor
    return row


def recovered(
    experiment: str,
    quantity: str,
    truth: Number,
    ours: Number,
    *,
    within: float = LOOSEST,
    absolute: Number | None = None,
    shown: str = "",
    note: str = "",
) -> Row:
    """What a simulated arm or sensor was made with, and what was found of it.

    Args:
        experiment, quantity, ours, within, absolute, shown, note: As in `agrees`.
        truth: What the plant was given, usually a number that the paper prints.
    """
    target, values = _numbers(truth), _numbers(ours)
    width = _width(target, within, absolute)
    return _row(
        "recovered", experiment, quantity, _text(target), shown or _text(values),
        values, (target - width, target + width), _tolerance(within, absolute), note,
    )  # fmt: skip


def claim(
    experiment: str,
    quantity: str,
    sentence: str,
    ours: Number,
    *,
    above: Number | None = None,
    below: Number | None = None,
    why: str,
    shown: str = "",
    note: str = "",
) -> Row:
    """A sentence of the paper, judged by a threshold of ours.

    Args:
        experiment, quantity, ours, shown, note: As in `agrees`.
        sentence: What the paper says, as nearly as possible in its words.
        above, below: Bounds within which the sentence holds; without `above` a number
            must not be negative.
        why: Why the threshold lies where it does.
    """
    values = _numbers(ours)
    low = np.zeros(values.size) if above is None else _numbers(above)
    high = np.full(values.size, np.inf) if below is None else _numbers(below)
    bounds = tuple(np.broadcast_to(x, values.shape).astype(float) for x in (low, high))
    return _row(
        "claim", experiment, quantity, sentence, shown or _text(values), values,
        (bounds[0], bounds[1]), f"{_range_text(above, below)}: {why}", note,
    )  # fmt: skip


def slip(
    experiment: str,
    quantity: str,
    printed: float,
    ours: float,
    *,
    corrected: float,
    within: float = 0.01,
    at: str = "",
    argument: str,
) -> Row:
    """A number of the paper that contradicts the paper's own others.

    It counts as a slip only if ours is the corrected number and not the printed one.

    Args:
        experiment, quantity, printed, ours, at: As in `agrees`.
        corrected: What the paper's other numbers give, by arithmetic.
        within: Largest difference of ours from it, relative.
        argument: Why it is a slip.
    """
    target, values = _numbers(corrected), _numbers(ours)
    width = _width(target, within, None)
    row = _row(
        "slip", experiment, quantity, _text(_numbers(printed), at), _text(values),
        values, (target - width, target + width), f"{corrected:g} ± {within:.0%}",
        argument,
    )  # fmt: skip
    if abs(printed - ours) <= width[0]:  # then nothing is wrong with it
        row["verdict"] = "differs"
    return row


def own(
    experiment: str,
    quantity: str,
    beside: str,
    ours: Number,
    *,
    above: Number | None = None,
    below: Number | None = None,
    shown: str = "",
    note: str = "",
) -> Row:
    """What is not in the paper: our aim, a theory, or another program's number.

    Args:
        experiment, quantity, ours, shown, note: As in `agrees`.
        beside: What it is compared with, and whose that is.
        above, below: Our aim, if there is one.
    """
    values = _numbers(ours)
    low = np.full(values.size, -np.inf) if above is None else _numbers(above)
    high = np.full(values.size, np.inf) if below is None else _numbers(below)
    bounds = tuple(np.broadcast_to(x, values.shape).astype(float) for x in (low, high))
    aim = "" if above is None and below is None else _range_text(above, below)
    row = _row(
        "ours", experiment, quantity, "—", shown or _text(values), values,
        (bounds[0], bounds[1]), "", note,
    )  # fmt: skip
    row["beside"] = beside
    if aim:
        met = "met" if _inside(values, *bounds) else "missed"
        row["tolerance"] = f"aim {aim}: {met}"
    return row


def not_comparable(
    experiment: str, quantity: str, paper: str, ours: str, why: str
) -> Row:
    """A number of the paper whose conditions are not known well enough to judge ours.

    Args:
        experiment, quantity: As in `agrees`.
        paper: What the paper prints or says.
        ours: What was computed.
        why: What is not known.
    """
    none = np.zeros(0)
    return _row(
        "not comparable", experiment, quantity, paper, ours, none, (none, none), "", why
    )


def not_run(experiment: str, quantity: str, why: str) -> Row:
    """An experiment that needs a package that is not here."""
    none = np.zeros(0)
    return _row(
        "not run", experiment, quantity, "—", "—", none, (none, none), "", why
    )  # fmt: skip


def judge(row: Row) -> str:
    """Compare a row's numbers with its bounds; the verdict that follows."""
    values, low, high = (np.asarray(row[k], float) for k in ("values", "low", "high"))
    inside = _inside(values, low, high)
    match row["kind"]:
        case "agrees":
            return "agrees" if inside else "differs"
        case "better":
            sign = np.asarray(row["sign"], float)
            surpasses = bool(np.all(np.where(sign > 0, values < low, values > high)))
            return "agrees" if inside else "better" if surpasses else "differs"
        case "recovered":
            return "recovered" if inside else "differs"
        case "claim":
            return "claim holds" if inside else "claim fails"
        case "slip":
            return "paper's slip" if inside else "differs"
        case kind:
            return str(kind)


# The mutation test.

JUDGED = ("agrees", "recovered", "claim holds")
"""Verdicts that must not survive a perturbed number."""


def survivors(row: Row, seed: int = 0) -> list[str]:
    """Perturbations of a row's numbers, one by one, that leave its verdict as it is.

    A number with a tolerance is negated, doubled and shifted at random by several
    tolerances: each must change the verdict. A claim has a threshold, often far away;
    there at least one of doubling, halving and reversing (1/x: the compared things
    exchanged) must change it. Negation does not count: magnitudes are not negative.
    """
    if row["verdict"] not in JUDGED:
        return []
    random = np.random.default_rng(seed)
    left = []
    for k, value in enumerate(row["values"]):
        low, high = float(row["low"][k]), float(row["high"][k])
        if row["kind"] == "claim":
            tried = {"doubled": 2.0 * value, "halved": 0.5 * value}
            tried["reversed"] = 1.0 / value if value else np.inf
            if all(_judged_with(row, k, x) == row["verdict"] for x in tried.values()):
                left.append(f"value {k + 1} ({value:g}): doubled, halved, reversed")
            continue
        step = (high - low) * random.uniform(2.0, 5.0) * random.choice([-1.0, 1.0])
        tried = {"shifted": value + step}
        if low + high != 0.0:  # of a printed zero, the negative and double are zero
            tried |= {"negated": -value, "doubled": 2.0 * value}
        left += [
            f"value {k + 1} ({value:g}): {name}"
            for name, x in tried.items()
            if _judged_with(row, k, x) == row["verdict"]
        ]
    if not len(row["values"]):
        left.append("no number")
    return left


def _judged_with(row: Row, index: int, value: float) -> str:
    values = np.array(row["values"], float)
    values[index] = value
    return judge({**row, "values": values})


# Bounds and texts.


def _row(
    kind: Kind,
    experiment: str,
    quantity: str,
    paper: str,
    ours: str,
    values: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    tolerance: str,
    note: str,
    sign: np.ndarray | None = None,
) -> Row:
    if bounds[0].shape != values.shape:
        raise ValueError(f"{experiment}, {quantity}: {bounds[0].size} bounds for "
                         f"{values.size} numbers")  # fmt: skip
    row: Row = {
        "experiment": experiment,
        "quantity": quantity,
        "paper": paper,
        "beside": "",
        "ours": ours,
        "verdict": "",
        "tolerance": tolerance,
        "note": note,
        "kind": kind,
        "values": values.tolist(),
        "low": bounds[0].tolist(),
        "high": bounds[1].tolist(),
        "sign": [] if sign is None else sign.tolist(),
    }
    row["verdict"] = judge(row)
    return row


def _numbers(value: Number) -> np.ndarray:
    return np.atleast_1d(np.asarray(value, dtype=float))


def _width(target: np.ndarray, within: float, absolute: Number | None) -> np.ndarray:
    if absolute is None:
        return np.asarray(within * np.abs(target))
    return np.broadcast_to(_numbers(absolute), target.shape)


def _inside(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    return bool(np.all((values >= low) & (values <= high)))  # NaN is not inside


def _text(values: np.ndarray, at: str = "") -> str:
    text = ", ".join(f"{v:.5g}" for v in values)
    return f"{text} ({at})" if at else text


def _tolerance(within: float, absolute: Number | None) -> str:
    if absolute is None:
        return f"± {100 * within:g} %"
    return f"± {_distinct(absolute)}"


def _range_text(above: Number | None, below: Number | None) -> str:
    low = "" if above is None else f"≥ {_distinct(above)}"
    high = "" if below is None else f"≤ {_distinct(below)}"
    return " and ".join(x for x in (low, high) if x)


def _distinct(values: Number) -> str:
    """Numbers in their order, a common one once."""
    numbers = _numbers(values)
    return _text(numbers[:1] if np.all(numbers == numbers[0]) else numbers)
