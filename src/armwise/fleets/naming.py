"""Naming: which of the known defects explains best how a robot differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.fleets.defects import Defect, Hypothesis

if TYPE_CHECKING:
    from jaxtyping import Float

_LEAST_EXPLAINED = 0.5
"""Share of a difference that a name must explain to be given."""


def name_defect(
    difference: Float[np.ndarray, " base"],
    covariance: Float[np.ndarray, "base base"],
    usual: float,
    hypotheses: Sequence[Hypothesis],
    mean: Mapping[str, float],
) -> Defect | None:
    """Choose the defect that explains a difference best, by Bayes' information.

    Args:
        difference: Of the robot from the fleet's mean, in base parameters.
        covariance: Of that difference, for a robot without defects.
        usual: χ² of a usual robot's difference.
        hypotheses: What to choose from.
        mean: The fleet's mean parameters, by name.

    Returns:
        The best; None if even that explains too little of what is unusual.
    """
    whitener = np.linalg.inv(np.linalg.cholesky(covariance))
    target = whitener @ difference
    findings = [one.fit(target, whitener) for one in hypotheses]
    price = np.log(len(target))
    evidence = 0.5 * np.array(
        [f.gain - h.freedom * price for f, h in zip(findings, hypotheses, strict=True)]
    )
    weights = np.exp(evidence - max(float(evidence.max()), 0.0))
    k = int(np.argmax(evidence))
    unusual = max(float(target @ target) - usual, 1e-300)
    explained = min(findings[k].gain / unusual, 1.0)
    if explained < _LEAST_EXPLAINED:
        return None
    probability = float(weights[k] / weights.sum())
    return _described(hypotheses[k], findings[k].values, explained, probability, mean)


def _described(
    hypothesis: Hypothesis,
    values: np.ndarray,
    explained: float,
    probability: float,
    mean: Mapping[str, float],
) -> Defect:
    kind, place = hypothesis.kind, hypothesis.place
    position: tuple[float, ...] = ()
    size = float(values[0])
    if kind == "lost bolt":
        kind = "lost bolt" if size > 0 else "added mass"
        size, position = abs(size), tuple(map(float, values[1:]))
    elif kind == "dragging bearing":
        usual = [mean[f"{place}.{term}"] for term in ("viscous", "coulomb")]
        pairs = zip(values, usual, strict=True)
        factors = [1.0 + float(v) / u for v, u in pairs if u > 0]
        size = max(factors, default=float("inf"))
    return Defect(kind, place, size, position, explained, probability)
