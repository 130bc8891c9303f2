"""Last fit of servo models: all windows, all rows, whole arms; what MJCFs can hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.progress import part_of
from armwise.servos.doubts import (
    TOLD,
    doubt_derivative,
    doubt_load_friction,
    in_any_form,
    with_even_load,
    with_own_limit,
    with_own_scale,
)
from armwise.servos.fit import (
    TORQUES,
    Prior,
    ServoFit,
    errors_together,
    fit_alike,
    fit_servo,
    fit_servos,
    idle,
    mean_errors,
    ranked,
    resolved,
    restricted,
    shared_values,
    standing,
    undetermined,
)
from armwise.servos.growth import ALIKE, Growth
from armwise.servos.halves import WORTH
from armwise.servos.joints import JointMotions, ServoJoint, at_rest
from armwise.servos.model import (
    CORE,
    ELEMENTS,
    EXPRESSIBLE,
    LIMITS,
    PARAMETERS,
    Values,
    meaningful,
    stacked,
    tables_of,
)
from armwise.servos.motions import LEAST_TRAVEL
from armwise.servos.rollout import ServoMotion, rounding_of
from armwise.servos.starts import (
    beyond_servos,
    evened,
    shape_starts,
    with_torques,
    without,
)

# Judgement: three are tried at the price of one and a half.
_VALLEYS = 3
"""Valleys beside the lowest of windows that all rows may prefer."""

# Judgement: a quarter of the windows are quick, and most rows are slow. Eight steps
# explain those fitted a percent better, and motions left out a percent worse.
_ALL_ROWS = 3
"""Steps of the last fit of an arm, to all rows."""

# Judgement: one or two do as a rule; four lead out of a valley that others' measured
# motion had led into.
_ROUNDS = 4
"""Times that joints are fitted under the others' free runs, at most."""


class LastFit:
    """Fits grown servo models to all there is.

    Args:
        course: Motions of the arm, joint by joint.
        joints: All of them.
        core: What every servo has.
    """

    def __init__(
        self, course: JointMotions, joints: Sequence[ServoJoint], core: Sequence[str]
    ) -> None:
        self.course, self.joints, self.core = course, list(joints), tuple(core)
        self.roller, self.dof = course.roller, course.dof
        self.progress = course.progress

    def fits(self, growth: Growth) -> list[ServoFit]:
        """Fit all rows of all motions, servos of one type pulled together."""
        moving = [joint for joint in self.joints if joint.moves]
        nears = self._windowed(moving, growth)
        if self.dof == 1:
            self.course.reload(self.joints)
        is_any = any(joint.is_alike for joint in moving)
        prior = shared_values(nears) if is_any else None
        resting = shared_values(nears, TORQUES)
        report = part_of(self.progress, "all motions", 0.85, 0.92)
        fits = self.roller.each(
            lambda joint: (
                self._moved(joint, prior)
                if joint.moves
                else self._still(joint, moving, resting)
            ),
            self.joints,
            report,
        )
        fits = self._together(fits)
        report = part_of(self.progress, "intervals", 0.95, 0.97)
        return self.roller.each(
            self._with_intervals, list(zip(self.joints, fits, strict=True)), report
        )

    def _together(self, fits: Sequence[ServoFit]) -> list[ServoFit]:
        """Fit joints under the load of the others' free runs, as in the whole arm's.

        What was measured of the others is blunt, and a joint that holds still under it
        may be pushed along by how they move in a free run.
        """
        fits, course = list(fits), self.course
        if self.dof == 1:
            return fits
        states = [(joint.motions, joint.halves) for joint in self.joints]
        firsts = list(fits)
        moving = np.array([joint.moves for joint in self.joints])
        # What rounding to an encoder's steps leaves on average is no error.
        least = [0.5 * rounding_of(joint.motions) for joint in self.joints]
        is_any = False
        for number in range(_ROUNDS):
            self.progress("whole arm", 0.92 + 0.03 * number / _ROUNDS)
            course.load_by(self.joints, [fit.values for fit in fits])
            pairs = list(zip(self.joints, fits, strict=True))
            nears = self.roller.each(self._stepped, pairs)
            # All of them, or one alone.
            trials = [nears] + [
                [*fits[:k], nears[k], *fits[k + 1 :]] for k in range(self.dof)
            ]
            arms = [[fit.values for fit in trial] for trial in [fits, *trials]]
            errors = np.maximum(course.whole_errors(self.joints, arms), least)
            # A joint that no row tells of tells nothing of the others either.
            counted = moving & np.isfinite(errors[0])
            ratios = (errors[1:] / errors[0])[:, counted].mean(axis=1)
            # What runs away is no better.
            best = int(np.argmin(np.nan_to_num(ratios, nan=np.inf)))
            if not ratios[best] < 1.0 - WORTH:
                break
            fits, is_any = trials[best], True
        else:
            course.load_by(self.joints, [fit.values for fit in fits])
        if not is_any:
            for joint, (motions, halves) in zip(self.joints, states, strict=True):
                joint.motions, joint.halves = motions, halves
        for joint, first, fit in zip(self.joints, firsts, fits, strict=True):
            # How the others move is a model, too.
            if fit is not first:
                joint.allow(fit.values, [first.values])
        return fits

    def _stepped(self, pair: tuple[ServoJoint, ServoFit]) -> ServoFit:
        """Fit all rows of a joint that moves from where it is."""
        joint, fit = pair
        if not joint.moves:
            return fit
        return fit_servo(
            self.roller, joint.motions, fit.values, fit.names,
            iterations=_ALL_ROWS, prior=joint.prior,
        )  # fmt: skip

    def _with_intervals(self, pair: tuple[ServoJoint, ServoFit]) -> ServoFit:
        """Return the fit of a joint, with what motions say of each of its numbers."""
        joint, fit = pair
        if not joint.moves:
            return fit
        fit = in_any_form(self.roller, joint, self._without_idle(joint, fit))
        return resolved(self.roller, joint.motions, fit, joint.prior)

    def _windowed(self, moving: Sequence[ServoJoint], growth: Growth) -> list[ServoFit]:
        """Fit all windows, with limits and torques that other servos lend."""

        def all_windows(joint: ServoJoint) -> ServoFit:
            near = self._all_windows(joint)
            self._tell_apart(joint)
            joint.fits, joint.best = [near.values] * 2, near.values
            return near

        report = part_of(self.progress, "all windows", 0.8, 0.85)
        nears = self.roller.each(all_windows, moving, report)
        growth.lend_limits()
        for k, joint in enumerate(moving):
            if joint.best is not nears[k].values:
                nears[k] = fit_servo(
                    self.roller, joint.windows, joint.best, joint.names,
                    iterations=growth.halves.steps, prior=joint.prior,
                )  # fmt: skip
                joint.fits = [nears[k].values] * 2
        return self._rescaled(moving, nears)

    def _moved(self, joint: ServoJoint, prior: Prior | None) -> ServoFit:
        """Fit all rows of a joint that moves.

        Args:
            joint: Fitted to its windows.
            prior: What servos have in common, if any are taken to be alike.
        """
        start, names = joint.fits[0], joint.names
        joint.prior = prior if joint.is_alike else joint.prior
        if joint.is_alike and prior is not None:
            alike = fit_alike(self.roller, joint.windows, start, names, 5, prior)
            own, near = (
                np.nanmean(mean_errors(self.roller, joint.motions, one))
                for one in (start, alike.values)
            )
            # As where servos are first taken to be alike, of all rows.
            start = alike.values if near < ALIKE * own else start
        start = with_own_scale(self.roller, joint, start)
        start = with_even_load(self.roller, joint, start, self.dof == 1)
        start = with_own_limit(self.roller, joint, start)
        doubt_derivative(self.roller, joint, start)
        servos = [other.fits[0] for other in self.joints if other.moves]
        loaded = [one for one in servos if one["driving"] + one["back_driven"] > 0.0]
        doubt_load_friction(self.roller, joint, start, loaded)
        return self._all_rows(joint, start)

    def _all_rows(self, joint: ServoJoint, start: Values) -> ServoFit:
        """Fit all rows, from the valley that windows have led to and from others.

        The lowest of windows is at times not that of all rows.
        """
        others: list[Values] = []
        if self.dof > 1:
            others = [without(values, joint.names) for values in joint.valleys]
        fits = fit_servos(
            self.roller, joint.motions, _able([start, *others], joint.names),
            joint.names, iterations={1: 6, 2: 8}.get(self.dof, _ALL_ROWS),
            prior=joint.prior,
        )  # fmt: skip
        lowest = ranked(self.roller, joint.motions, fits, joint.prior)[0]
        if lowest.values != fits[0].values:
            own, other = errors_together(
                self.roller, joint.motions, [fits[0].values, lowest.values]
            )
            # Lower by chance, such as in one motion.
            if standing(own - other) < TOLD:
                joint.allow(lowest.values, [fits[0].values])
        return lowest

    def _still(
        self, joint: ServoJoint, moving: Sequence[ServoJoint], prior: Prior
    ) -> ServoFit:
        """Return the servo of a joint that is never commanded: the others', as a rule.

        Where their motion pushes it about, that shows how stiff it is and what holds
        it; of its set-point it shows nothing, and friction of all kinds looks alike.
        """
        resting = at_rest([j.fits[0] for j in moving])
        travel = max(float(np.ptp(m.q)) for m in joint.motions)
        if travel <= LEAST_TRAVEL:
            empty = np.zeros((0, 0))
            return ServoFit(resting, (), np.nan, np.nan, empty, empty)
        joint.halves = self.course.windows(joint)
        joint.names = names = tuple(n for n in CORE if n != "delay")
        near = fit_servo(self.roller, joint.windows, resting, names, prior=prior)
        joint.fits = [
            fit_servo(
                self.roller, half, near.values, names, iterations=6, prior=prior
            ).values
            for half in joint.halves
        ]
        self._tell_apart(joint)
        start = with_own_scale(self.roller, joint, near.values)
        fit = fit_servo(
            self.roller, joint.motions, start, names, iterations=6, prior=prior
        )
        # The other servos say where to begin, and nothing of how well it is known.
        return resolved(self.roller, joint.motions, fit, None)

    def _without_idle(self, joint: ServoJoint, fit: ServoFit) -> ServoFit:
        """Return a fit without what has come to nothing in it."""
        own = [name for name in fit.names if name not in self.core]
        useless = idle(self.roller, joint.windows, fit.values, own)
        names = meaningful([name for name in fit.names if name not in useless])
        joint.names = names
        return restricted(fit, names)

    def _tell_apart(self, joint: ServoJoint) -> None:
        """Take down half of what the fits of both halves of the motions differ by."""
        first, second = joint.fits
        # A half that never meets a limit says nothing of it.
        idle_limits = set()
        for windows, values in zip(joint.halves, joint.fits, strict=True):
            idle_limits |= self._idle_limits(joint, windows, values)
        joint.apart, joint.alternatives = {}, []
        joint.allow(first, [second], [n for n in joint.names if n not in idle_limits])

    def _idle_limits(
        self, joint: ServoJoint, windows: Sequence[ServoMotion], values: Values
    ) -> set[str]:
        """Return the limits of a joint that no window meets."""
        limits = [n for n in joint.names if np.isinf(PARAMETERS[n].absent)]
        return set(idle(self.roller, windows, values, limits)) if windows else set()

    def _all_windows(self, joint: ServoJoint) -> ServoFit:
        """Fit most of the way on the windows, for they cost a tenth of all rows.

        Limits that drift to where they limit nothing are taken away. Other valleys of
        the windows are kept, for all rows may prefer one of them.
        """
        # One joint alone may take its time.
        is_alone = self.dof == 1
        friction = ELEMENTS["load friction"]
        if not is_alone and set(friction) & set(joint.names):
            # Friction of loads one way alone is an end of a valley.
            joint.names = tuple(dict.fromkeys((*joint.names, *friction)))
        valleys = [without(values, joint.names) for values in joint.valleys]
        starts: list[Values] = [*joint.models]
        if not is_alone:
            starts += valleys
            starts += evened(starts, joint.names)
            starts = self._lowest_first(joint, starts)
            passed = [without(values, joint.names) for values in joint.passed]
            joint.valleys = self._other_valleys(joint, [*starts[2:], *passed])
            starts = starts[:2]
        if "stribeck_shape" in joint.names:
            # Between shapes there are valleys, too.
            starts += shape_starts(starts[0])[1:]
        trials = fit_servos(
            self.roller, joint.windows, starts,
            joint.names, iterations=25 if is_alone else 8, prior=joint.prior,
        )  # fmt: skip
        lowest = self._lowest_first(joint, [fit.values for fit in trials])[0]
        near = next(fit for fit in trials if fit.values == lowest)
        useless = self._idle_limits(joint, joint.windows, near.values)
        useless |= undetermined(self.roller, joint.windows, near) & set(LIMITS)
        impossible = beyond_servos(near.values)
        useless |= impossible
        if not useless:
            return near
        names = meaningful([name for name in joint.names if name not in useless])
        start = without(near.values, names)
        free = fit_servo(
            self.roller, joint.windows, start, names, iterations=4, prior=joint.prior
        )
        own, bare = (
            np.nanmean(mean_errors(self.roller, joint.windows, one.values))
            for one in (near, free)
        )
        if bare > (1.0 + WORTH) * own and not impossible:
            return near
        joint.names = names
        return free

    def _other_valleys(
        self, joint: ServoJoint, starts: Sequence[Values]
    ) -> list[dict[str, float]]:
        """Return valleys of windows beside the lowest, those that all rows prefer."""
        starts = self._lowest_first(joint, starts)[:_VALLEYS]
        if not starts:
            return []
        fits = fit_servos(
            self.roller, joint.windows, starts, joint.names,
            iterations=4, prior=joint.prior,
        )  # fmt: skip
        return [dict(fit.values) for fit in fits]

    def _lowest_first(
        self, joint: ServoJoint, servos: Sequence[Values]
    ) -> list[Values]:
        """Return servos by their costs over all rows, of which windows are a part."""
        able = _able(servos, joint.names)
        scale = np.full(len(able), rounding_of(joint.motions))
        costs = self.roller.costs(joint.motions, tables_of(stacked(able)), scale)
        return [able[k] for k in np.argsort(costs, kind="stable")]

    def _rescaled(
        self, joints: Sequence[ServoJoint], fits: Sequence[ServoFit]
    ) -> list[ServoFit]:
        """Bring torques far from the other servos' to their size, if that does as well.

        Where gravity does not load a joint, and its rotor outweighs the links, torques
        and inertia are known up to one factor, along which a fit drifts without end.
        """
        # Judgement: of two servos none is the usual one.
        if len(fits) < 3:
            return list(fits)
        median = float(np.median([fit.values["stiffness"] for fit in fits]))
        prior = shared_values(fits, TORQUES)
        rescaled = list(fits)
        for k, (joint, fit) in enumerate(zip(joints, fits, strict=True)):
            factor = median / fit.values["stiffness"]
            # Within what the prior allows servos of one type.
            if abs(np.log(factor)) < 3.0 * prior.std.get("stiffness", np.inf):
                continue
            start = with_torques(fit.values, factor)
            other = fit_servo(
                self.roller,
                joint.windows,
                start,
                joint.names,
                iterations=8,
                prior=prior,
            )
            own, near = (
                np.nanmean(mean_errors(self.roller, joint.windows, one.values))
                for one in (fit, other)
            )
            # Judgement: as where servos first share their torques.
            if near < ALIKE * own:
                rescaled[k], joint.prior = other, prior
                joint.fits = [other.values] * 2
        return rescaled

    def expressible(self, fits: Sequence[ServoFit]) -> dict[str, np.ndarray]:
        """Fit what simulators can express, where that is not all."""
        if all(set(joint.names) <= set(EXPRESSIBLE) for joint in self.joints):
            return {}
        self.progress("for simulators", 0.97)

        def simplify(pair: tuple[ServoJoint, ServoFit]) -> dict[str, float]:
            joint, fit = pair
            # A joint that is never commanded has what the others have, beside its own.
            names = joint.names if joint.moves else EXPRESSIBLE
            expressible = [name for name in names if name in EXPRESSIBLE]
            simple = without(fit.values, expressible)
            # What Stribeck friction added at low speed is friction all the same.
            simple["coulomb"] += 0.5 * fit.values["static"]
            if not joint.moves:
                return simple
            return fit_servo(
                self.roller, joint.windows, simple, expressible, iterations=6,
                prior=joint.prior,
            ).values  # fmt: skip

        servos = self.roller.each(simplify, list(zip(self.joints, fits, strict=True)))
        return {k: np.array([servo[k] for servo in servos]) for k in PARAMETERS}


def _able(servos: Sequence[Values], names: Sequence[str]) -> list[Values]:
    """Return servos that have what is to be fitted."""
    return [v for v in servos if np.isfinite([v[n] for n in names]).all()]
