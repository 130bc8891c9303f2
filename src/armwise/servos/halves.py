"""Fits to one half of the motions, judged on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.servos.fit import (
    ServoFit,
    doubt,
    effective_rows,
    errors_together,
    fit_servo,
    fit_servos,
    mean_errors,
    ranked,
)
from armwise.servos.joints import ServoJoint
from armwise.servos.model import PARAMETERS, Values
from armwise.servos.rollout import Roller, ServoMotion, rounding_of
from armwise.servos.servo import ServoElement

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: an element that predicts other motions less than half a percent better is
# not worth its parameters.
WORTH = 0.005
"""Fraction by which an element must reduce the error on motions left out."""

# Judgement: where all but rounding is explained, a percent is chance.
_LEAST_WORTH = 0.02
"""The same, of half an encoder's step."""

# Judgement: of elements that are not there one in six passes by chance.
SURE = 1.0
"""Standard errors over windows by which an element must save on motions left out."""

TIMING = ("delay", "acceleration", "slew", "derivative")
"""Parameters of the set-point, which few motions show."""


class HalfFits:
    """Models of joints that move, fitted to halves of their windows.

    Args:
        roller: Of single joints.
        joints: Those that move.
        dof: Of the arm.

    Attributes:
        errors: Number of a joint → its error in [rad] on motions left out.
        verdicts: Element → what it was worth.
        steps: Of a fit, as a rule.
        is_short: Whether few joints leave time for more of each fit.
    """

    def __init__(self, roller: Roller, joints: Sequence[ServoJoint], dof: int) -> None:
        self.roller, self.joints, self.dof = roller, joints, dof
        self.is_short = dof <= 2
        self.steps = {1: 10, 2: 6}.get(dof, 3)
        self.errors: dict[int, float] = {}
        self.verdicts: dict[str, ServoElement] = {}

    def judge(self) -> None:
        """Judge every joint's fits on windows as they are now."""
        self.errors = {j.number: self.left_out(j, j.fits) for j in self.joints}

    def few(self, joint: ServoJoint) -> list[ServoMotion]:
        """Return windows that tell most starts to lead nowhere."""
        return joint.few(20 if self.is_short else 8)

    def refitted(
        self,
        joint: ServoJoint,
        names: Sequence[str],
        starts: Sequence[Values],
        iterations: int,
    ) -> list[dict[str, float]]:
        """Return the fits of both halves from the best fit of all windows."""
        best = self.lowest(joint, names, starts, iterations)
        return self.halved(joint, names, best, self.steps)

    def lowest(
        self,
        joint: ServoJoint,
        names: Sequence[str],
        starts: Sequence[Values],
        iterations: int,
    ) -> dict[str, float]:
        """Return the best fit of all windows."""
        fits = fit_servos(
            self.roller, joint.windows, starts, names,
            iterations=iterations, prior=joint.prior,
        )  # fmt: skip
        return ranked(self.roller, joint.windows, fits, joint.prior)[0].values

    def halved(
        self, joint: ServoJoint, names: Sequence[str], start: Values, iterations: int
    ) -> list[dict[str, float]]:
        """Return the fits of both halves from one start."""
        return [
            self.fitted(joint, side, [start], iterations, names).values
            for side in (0, 1)
        ]

    def here(self, joint: ServoJoint) -> ServoFit:
        """Return a joint's fit with what all its windows say of it."""
        return fit_servo(
            self.roller, joint.windows, joint.fits[0], joint.names,
            iterations=1, prior=joint.prior,
        )  # fmt: skip

    def is_exact(self, joint: ServoJoint) -> bool:
        """Return whether neither other valleys nor second thoughts are worth it."""
        return self.errors[joint.number] <= rounding_of(joint.motions)

    def least(self, joint: ServoJoint) -> float:
        """Return what an element must save at least, in [rad]."""
        return _LEAST_WORTH * rounding_of(joint.motions)

    def mean_error(self) -> float:
        """Return the mean over joints of the error on motions left out, in [rad]."""
        return float(np.mean(list(self.errors.values())))

    def evidence(
        self, joint: ServoJoint, names: Sequence[str], simpler: Values
    ) -> float:
        """Return what all windows lose with a model of fewer parameters, less its gain.

        By Bayes' criterion, errors taken to be Laplace's.
        """
        errors = errors_together(self.roller, joint.windows, [*joint.models, simpler])
        *own, bare = np.nanmean(errors, axis=1)
        count = effective_rows(joint.windows)
        price = 0.5 * (len(joint.names) - len(names)) * np.log(max(count, 1.0))
        return float(count * np.log(bare / min(own)) - price)

    def fitted(
        self,
        joint: ServoJoint,
        side: int,
        starts: Sequence[Values],
        iterations: int,
        names: Sequence[str] | None = None,
    ) -> ServoFit:
        """Return the best fit of one half from some starts.

        Few motions are quick, and a half without them says little of the set-point:
        that is as all windows have it.
        """
        free = [n for n in names or joint.names if n not in joint.held]
        fits = fit_servos(
            self.roller, joint.halves[side], starts, free,
            iterations=iterations, prior=joint.prior,
        )  # fmt: skip
        return ranked(self.roller, joint.halves[side], fits, joint.prior)[0]

    def left_out(self, joint: ServoJoint, fits: Sequence[Values]) -> float:
        """Return the mean error in [rad] of each half's fit on the other half."""
        return mean_of(self.window_errors(joint, fits)[0])

    def window_errors(
        self, joint: ServoJoint, *models: Sequence[Values]
    ) -> Float[np.ndarray, "models windows"]:
        """Return errors in [rad] of models' halves on the other half's windows."""
        both = [
            errors_together(
                self.roller, joint.halves[1 - side], [fits[side] for fits in models]
            )
            for side in (0, 1)
            if joint.halves[1 - side] and joint.halves[side]
        ]
        return np.concatenate(both, axis=1) if both else np.zeros((len(models), 0))

    def left_out_ratio(self, joint: ServoJoint) -> float:
        """Return the error on motions left out over that on those fitted.

        Halves' fits on each other's motions over their own say it of half of the
        motions. With n of them errors are 1 ± p/n of what the model cannot explain, in
        squares: with all, the ratio of squares is the ratio of halves itself.
        """
        own = [
            np.nanmean(mean_errors(self.roller, windows, values))
            for windows, values in zip(joint.halves, joint.fits, strict=True)
            if windows
        ]
        ratio = self.left_out(joint, joint.fits) / max(float(np.mean(own)), 1e-12)
        # One motion has no other half.
        return float(np.sqrt(max(ratio, 1.0))) if np.isfinite(ratio) else 1.0

    def refit(self, joints: Sequence[ServoJoint]) -> None:
        """Fit joints anew, whose loads are others now."""

        def refit(joint: ServoJoint) -> None:
            joint.best = self.lowest(joint, joint.names, joint.fits, 2 * self.steps)
            joint.fits = self.halved(joint, joint.names, joint.best, self.steps)
            self.errors[joint.number] = self.left_out(joint, joint.fits)

        self.roller.each(refit, joints)


def by_chance(saved: Float[np.ndarray, " windows"], added: Sequence[str]) -> float:
    """Return what an element that is not there saves, as a standard deviation.

    A limit is met in few windows, and how much these save is no doubt that it is there:
    by chance windows save as much as they lose, and what they lose tells that.
    """
    if not any(np.isinf(PARAMETERS[name].absent) for name in added):
        return doubt(saved)
    saved = saved[np.isfinite(saved)]
    lost = np.minimum(saved, 0.0)
    return float(np.sqrt(2.0 * np.sum(lost**2)) / max(len(saved), 1))


def mean_of(errors: Float[np.ndarray, " windows"]) -> float:
    """Return the mean over windows with rows that count; NaN where there are none."""
    errors = errors[np.isfinite(errors)]
    return float(np.mean(errors)) if len(errors) else np.nan
