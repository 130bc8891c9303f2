"""Rows of the comparison: what a paper prints or says, ours, and a verdict by kind.

Each kind of statement has its own function. All of them put bounds on computed numbers
and let `judge` compare, so that a row can be judged again with other numbers: the
mutation test (`survivors`) perturbs every number and asks that the verdict changes.
Numbers of a paper are given as strings, digit by digit as it prints them, or as floats
with a word on how they follow from what it prints. A row that differs carries a probe
(`explained`): a sentence on why, with the number of a computation that could refute it.
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
    "kind", "values", "low", "high", "sign", "printed", "probe",
)  # fmt: skip
"""What every row has. `paper` is only what the paper prints or says; `beside` is our
aim, a theory, another program or what the plant was given; `values` to `sign` are what
`judge` compares, `printed` is digit by digit what the paper prints, and `probe` has the
values and bounds of the computation that supports the sentence on why ours differ."""

UNEXPLAINED = ("differs", "claim fails", "paper's slip")
"""Verdicts that need a probe."""

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
Printed = Number | str | Sequence[str]

LOOSEST = 0.1
"""Relative tolerance of `agrees` where the paper prints enough digits."""

_ROUNDING = 1e-6
"""Widest tolerance of a zero that stands for itself."""


def agrees(
    experiment: str,
    quantity: str,
    printed: Printed,
    ours: Number,
    *,
    within: float = LOOSEST,
    absolute: Number | None = None,
    at: str = "",
    shown: str = "",
    note: str = "",
) -> Row:
    """A number that the paper prints, beside the same number found independently.

    A tolerance beyond a tenth, or beyond half of the last printed digit where that is
    more, is refused.

    Args:
        experiment: Table, figure or section of the paper.
        quantity: What is compared, its unit in brackets.
        printed: What the paper prints, as strings; floats, with `at`, if it follows
            from what is printed. Several numbers are judged one by one.
        ours: What was computed.
        within: Largest difference, relative to the printed number.
        absolute: Largest difference in the quantity's own unit instead: half of the
            last printed digit, or what the paper itself allows.
        at: What floats follow from: an equation, code, a sum of printed numbers.
        shown: Ours in words or with a standard deviation, if numbers are not enough.
        note: Conditions.
    """
    target, texts = _as_printed(printed, at, f"{experiment}, {quantity}")
    values = _numbers(ours)
    width = _width(target, within, absolute)
    _refuse_loose(target, width, texts, f"{experiment}, {quantity}")
    return _row(
        "agrees", experiment, quantity, _text(texts or target, at),
        shown or _text(values), values, (target - width, target + width),
        _tolerance(within, absolute), note, printed=texts,
    )  # fmt: skip


def better(
    experiment: str,
    quantity: str,
    printed: Printed,
    ours: Number,
    *,
    less: bool = True,
    at: str = "",
    note: str = "",
) -> Row:
    """A performance that the paper prints: an error, a number of operations, a time.

    Within the tolerance it agrees, beyond it on the good side it is better, on the
    other side it differs.

    Args:
        experiment, quantity, printed, ours, at, note: As in `agrees`.
        less: Whether smaller is better.
    """
    target, texts = _as_printed(printed, at, f"{experiment}, {quantity}")
    values = _numbers(ours)
    width = _width(target, LOOSEST, None)
    ratio = target / values if less else values / target
    sign = np.full(target.size, 1.0 if less else -1.0)
    row = _row(
        "better", experiment, quantity, _text(texts or target, at), _text(values),
        values, (target - width, target + width), _tolerance(LOOSEST, None), note,
        sign=sign, printed=texts,
    )  # fmt: skip
    if row["verdict"] == "better":
        factor = f"better by a factor of {_text(ratio)}"
        row["note"] = f"{factor}; {note}" if note else factor
    return row


def recovered(
    experiment: str,
    quantity: str,
    truth: Printed,
    ours: Number,
    *,
    within: float = LOOSEST,
    absolute: Number | None = None,
    paper: str = "—",
    shown: str = "",
    note: str = "",
) -> Row:
    """What a simulated arm or sensor was made with, and what was found of it.

    Args:
        experiment, quantity, ours, within, absolute, shown, note: As in `agrees`.
        truth: What the plant was given: strings if the paper prints it, floats if not.
        paper: What the paper prints of what it found, if its truth is not printed.
    """
    target, texts = _as_printed(truth, "ours", "")
    values = _numbers(ours)
    width = _width(target, within, absolute)
    row = _row(
        "recovered", experiment, quantity, _text(texts) if texts else paper,
        shown or _text(values), values, (target - width, target + width),
        _tolerance(within, absolute), note, printed=texts,
    )  # fmt: skip
    if not texts:
        row["beside"] = f"simulated with {_distinct(target)}"
    return row


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
    printed: str | float,
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
        argument: Why it is a slip, with `{}` where the corrected number stands.
    """
    wrong, texts = _as_printed(printed, at, f"{experiment}, {quantity}")
    target, values = _numbers(corrected), _numbers(ours)
    width = _width(target, within, None)
    row = _row(
        "slip", experiment, quantity, _text(texts or wrong, at), _text(values),
        values, (target - width, target + width), f"{corrected:.6g} ± {within:.1%}",
        "", printed=texts,
    )  # fmt: skip
    apart = float(abs(wrong[0] - corrected) / abs(corrected))
    if abs(wrong[0] - ours) <= width[0]:  # then nothing is wrong with it
        row["verdict"] = "differs"
    return explained(
        row, f"{argument.format(f'{corrected:.6g}')}, {{:.2g}} of it away from what is "
        "printed", apart, above=within,
    )  # fmt: skip


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


def explained(
    row: Row,
    sentence: str,
    probe: Number,
    *,
    above: Number | None = None,
    below: Number | None = None,
) -> Row:
    """A row with a sentence on why ours differ, and the computation that supports it.

    Rows that do not differ are returned as they are. Where the computation refutes the
    sentence, the note says so and `is_explained` is false.

    Args:
        row: The row.
        sentence: Why, with a `{}` for every number of the computation.
        probe: Its numbers.
        above, below: Between which the sentence holds; not both may be missing.
    """
    if above is None and below is None:
        raise ValueError(f"{row['quantity']}: no number could refute: {sentence}")
    if row["verdict"] not in UNEXPLAINED:
        return row
    values = _numbers(probe)
    low = np.full(values.size, -np.inf) if above is None else _numbers(above)
    high = np.full(values.size, np.inf) if below is None else _numbers(below)
    bounds = [np.broadcast_to(x, values.shape).astype(float) for x in (low, high)]
    said = sentence.format(*values.tolist())
    why = f"Why: {said}" if _inside(values, *bounds) else f"Refuted by a probe: {said}"
    note, more = why, str(row["note"])
    if more:
        note = f"{why}. {more[:1].upper()}{more[1:]}"
    numbers = {"values": values, "low": bounds[0], "high": bounds[1]}
    plain = {name: x.tolist() for name, x in numbers.items()}
    return {**row, "note": note, "probe": plain}


def is_explained(row: Row) -> bool:
    """Whether a row needs no probe, or has one that holds and could have failed."""
    probe = row["probe"]
    if row["verdict"] not in UNEXPLAINED:
        return True
    return bool(probe) and _holds(probe) and not _probe_survivors(probe)


def _holds(probe: dict[str, Any]) -> bool:
    values, low, high = (np.asarray(probe[k], float) for k in ("values", "low", "high"))
    return _inside(values, low, high)


def _probe_survivors(probe: dict[str, Any]) -> list[str]:
    """Numbers of a probe that could be anything; as `survivors` treats claims."""
    survived = []
    for k, value in enumerate(probe["values"]):
        others = (4.0 * value, 0.25 * value, 1.0 / value if value else np.inf, -value)
        changed = [
            {**probe, "values": [*probe["values"][:k], x, *probe["values"][k + 1 :]]}
            for x in others
        ]
        if all(map(_holds, changed)):
            survived.append(f"value {k + 1} of the probe ({value:g})")
    return survived


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
    printed: Sequence[str] = (),
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
        "printed": list(printed),
        "probe": {},
    }
    row["verdict"] = judge(row)
    return row


def _as_printed(
    printed: Printed, at: str, what: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers of the paper, and their digits if they are printed as they stand."""
    if isinstance(printed, str):
        printed = (printed,)
    values = list(np.ravel(np.asarray(printed, dtype=object)))
    if all(isinstance(x, str) for x in values):
        texts = tuple(str(x) for x in values)
        return np.array([float(x.replace("−", "-")) for x in texts]), texts
    if not at:
        raise ValueError(f"{what}: say what the number follows from (at=…), or give "
                         "it as printed, digit by digit")  # fmt: skip
    return np.array([float(x) for x in values]), ()


def _half_digit(text: str) -> float:
    """Half a unit of the last digit: 0.5 of "26", 0.005 of "0.33"."""
    return float(0.5 * 10.0 ** -len(text.partition(".")[2]))


def _refuse_loose(
    target: np.ndarray, width: np.ndarray, texts: Sequence[str], what: str
) -> None:
    """A tenth; half of the last printed digit; of a zero, a tenth of its companions."""
    size = float(np.abs(target).max())
    for k, value in enumerate(target):
        widest = LOOSEST * abs(value) if value else max(LOOSEST * size, _ROUNDING)
        if texts:
            widest = max(widest, _half_digit(texts[k]))
        if width[k] > widest * (1.0 + 1e-9):
            raise ValueError(f"{what}: ± {width[k]:g} is too loose for {value:g}; "
                             f"at most {widest:g}")  # fmt: skip


def _numbers(value: Number) -> np.ndarray:
    return np.atleast_1d(np.asarray(value, dtype=float))


def _width(target: np.ndarray, within: float, absolute: Number | None) -> np.ndarray:
    if absolute is None:
        return np.asarray(within * np.abs(target))
    return np.broadcast_to(_numbers(absolute), target.shape)


def _inside(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    return bool(np.all((values >= low) & (values <= high)))  # NaN is not inside


def _text(values: np.ndarray | Sequence[str], at: str = "") -> str:
    text = ", ".join(v if isinstance(v, str) else f"{v:.5g}" for v in values)
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
