"""Growth of servo models: elements added one at a time, judged by motions left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.progress import Progress
from armwise.servos.fit import (
    ServoFit,
    doubt,
    errors_together,
    fit_alike,
    fit_servo,
    fit_servos,
    idle,
    is_shown,
    mean_errors,
    ranked,
    shared_values,
    undetermined,
)
from armwise.servos.joints import ServoJoint
from armwise.servos.model import (
    ELEMENTS,
    FALLS,
    LIMITS,
    PARAMETERS,
    Values,
    meaningful,
)
from armwise.servos.motions import sharpness_of
from armwise.servos.rollout import (
    Roller,
    ServoMotion,
    count_doubt,
    rounding_of,
)
from armwise.servos.servo import ServoElement
from armwise.servos.starts import (
    best_starts,
    beyond_servos,
    element_starts,
    shaken,
    shape_starts,
    without,
    without_limits,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: an element that predicts other motions less than half a percent better is
# not worth its parameters.
WORTH = 0.005
"""Fraction by which an element must reduce the error on motions left out."""

_AFTER_FRICTION = "start-up torque"
"""Element that is tried next when other valleys are sought."""

_PROFILE = "set-point profile"
"""Element that is in the firmware of all servos."""

_SET_POINT = ("acceleration limit", _PROFILE)
"""Elements that delay or hasten the set-point."""

_SLEW = "slew limit"
"""Element that other limits stand for."""

_FALLING = ("Stribeck friction", "stiction")
"""Elements of friction that falls off with speed."""

_FRICTION = ("load friction", "Stribeck friction")
"""Elements that limits of the set-point are mistaken for."""

# Judgement: where all but rounding is explained, a percent is chance.
_LEAST_WORTH = 0.02
"""The same, of half an encoder's step."""


# Judgement: a fifth of what an element must be worth.
_NOTHING = 0.001
"""Fraction by which errors on motions left out may grow where elements go."""


# Judgement: of elements that are not there one in six passes by chance.
_SURE = 1.0
"""Standard errors over windows by which an element must save on motions left out."""


# Judgement: as far as servos of one type differ.
_ALIKE = 0.15
"""Logarithm by which accelerations of one firmware differ at most."""


class Growth:
    """Adds elements to the servos of an arm.

    Args:
        roller: Of single joints.
        joints: Those that move, their core fitted; their models are what grows.
        motions: Of the whole arm.
        core: What every servo has.
        random: Generator of starting points.
        progress: Called with what is being done.

    Attributes:
        errors: Number of a joint → its error in [rad] on motions left out.
        verdicts: Element → what it was worth.
    """

    def __init__(
        self,
        roller: Roller,
        joints: Sequence[ServoJoint],
        motions: Sequence[ServoMotion],
        core: tuple[str, ...],
        random: np.random.Generator,
        progress: Progress,
    ) -> None:
        self.roller, self.joints, self.motions = roller, joints, motions
        self.core, self.random, self.progress = core, random, progress
        self.dof = motions[0].q.shape[1]
        # Few joints leave time for more of each fit.
        self.is_short = self.dof <= 2
        self.steps = {1: 10, 2: 6}.get(self.dof, 3)
        self.errors: dict[int, float] = {}
        self.verdicts: dict[str, ServoElement] = {}

    def elements(self) -> tuple[ServoElement, ...]:
        """Add elements one at a time; return what each was worth."""
        for joint in self.joints:
            joint.core = dict(joint.fits[0])
            joint.names = (*self.core, *joint.limits)
            bare = without(joint.core, joint.names)
            joint.fits = [
                self._fitted(joint, side, [bare], 4).values for side in (0, 1)
            ]
        self.errors = {j.number: self._left_out(j, j.fits) for j in self.joints}
        for joint in self.joints:
            joint.bare_error = self.errors[joint.number]
        first = {j.number: (j.names, j.fits) for j in self.joints}
        self._set_points(self.joints)
        self._slews(first)
        self._shapes()
        if any(joint.limits for joint in self.joints):
            self._reconsider("torque limit")
            for joint in [j for j in self.joints if "limited_damping" in j.names]:
                self._drop(joint, ["limited_damping"])
        # Again at the end, for what an element is worth depends on the others; of many
        # joints only those that were judged in another valley, for time.
        shown = [name for name in ELEMENTS if self._is_shown(name)]
        # These have just been judged.
        passes = [n for n in shown if n not in (*_SET_POINT, *_FRICTION)]
        passes += shown[: None if self.is_short else shown.index(_AFTER_FRICTION)]
        for k, element in enumerate(passes):
            # Friction is all there by then, or all that there is.
            if element == _AFTER_FRICTION:
                self._borrow()
                self._other_valleys(0.35 + 0.45 * k / len(passes))
            self.progress(element, 0.35 + 0.45 * k / len(passes))
            self._try(element)
        if self.verdicts[_PROFILE].is_needed and not self.is_short:
            # Joints that did not show it have changed since.
            self._spread()
        self._shapes()
        self._prune()
        if len(self.joints) > 1:
            self.verdicts["shared values"] = self._share()
        return tuple(self.verdicts.values())

    def _prune(self) -> None:
        """Take away what models can do without, now that the other elements are there.

        Of the many elements tried some pass by chance, and some only stood for others
        that came later.
        """
        self._without_derivative()
        for joint in self.joints:
            self.progress("what is not needed", 0.8)
            self._drop_idle(joint)
            self._drop_vague(joint)
            for element in reversed(ELEMENTS):
                self._drop_unshown(joint, element)
            self._drop_vague(joint)
            self._drop_idle(joint)

    def _shapes(self) -> None:
        """Let the fall of Stribeck friction with speed take any shape.

        Coulomb friction and damping depend on it. Whether motions tell shapes apart or
        not, a joint with such friction has one: what is not known of it is then in the
        intervals of the others.
        """
        name = "stribeck_shape"
        for joint in self.joints:
            if "stribeck_speed" not in joint.names or name in joint.names:
                continue
            self.progress("Stribeck friction", 0.38)
            names = _joined(joint.names, [name])
            fits = []
            for side, values in enumerate(joint.fits):
                starts = shape_starts(values)
                fit = self._fitted(joint, side, starts, 2 * self.steps, names)
                fits.append(fit.values)
            error = self._left_out(joint, fits)
            joint.names = names
            if error < self.errors[joint.number]:
                joint.fits, self.errors[joint.number] = fits, error

    def _drop_vague(self, joint: ServoJoint) -> None:
        """Take away what is so high that a factor of e higher is the same.

        It only stands for a little more delay, or for dry friction.
        """
        for name in set.intersection(*map(beyond_servos, joint.fits)):
            self._drop(joint, [name], tolerance=np.inf)
        vague = undetermined(self.roller, joint.windows, self._here(joint))
        for added in (*([n] for n in LIMITS), *(ELEMENTS[e] for e in _FALLING)):
            if vague & set(added):
                self._drop(joint, added, tolerance=_NOTHING)

    def _here(self, joint: ServoJoint) -> ServoFit:
        """Return a joint's fit with what all its windows say of it."""
        return fit_servo(
            self.roller, joint.windows, joint.fits[0], joint.names,
            iterations=1, prior=joint.prior,
        )  # fmt: skip

    def _drop_unshown(self, joint: ServoJoint, element: str) -> None:
        """Take an element away whose interval holds none, if that predicts as well."""
        added = [n for n in ELEMENTS[element] if n in joint.names]
        sizes = [n for n in added if PARAMETERS[n].scale != "log" and n not in FALLS]
        is_limit = bool(set(added) & set(LIMITS))
        # The derivative gain beside a limit is judged in all joints at once.
        is_limit |= element == "derivative gain" and "acceleration" in joint.names
        # Whether readings and commands are rounded or truncated, no log says.
        least = 2.0 * count_doubt(joint.motions)
        is_none = "offset" in added and all(
            abs(f["offset"]) < least for f in joint.fits
        )
        if is_none or (
            sizes and not is_limit and not is_shown(self._here(joint), sizes)
        ):
            gone = [n for n in added if n != "saturation"]
            self._drop(joint, gone, tolerance=_NOTHING)

    def _drop_idle(self, joint: ServoJoint) -> None:
        """Take away parameters without which free runs are the same."""
        while own := [n for n in joint.names if n not in self.core]:
            # One half may say nothing of what the other shows.
            one, other = (idle(self.roller, joint.windows, f, own) for f in joint.fits)
            names = sorted(set(one) & set(other), key=lambda n: one[n] + other[n])
            # One by one, for each may be idle for the sake of another.
            joint.names = meaningful([n for n in joint.names if n not in names[:1]])
            joint.fits = [without(f, joint.names) for f in joint.fits]
            if not names:
                return

    def _without_derivative(self) -> None:
        """Take a derivative gain from all joints of a profile, if none needs it."""
        own = [j for j in self.joints if set(ELEMENTS[_PROFILE]) <= set(j.names)]
        if not own:
            return
        trials = {}
        for joint in own:
            names = tuple(n for n in joint.names if n != "derivative")
            fits = []
            for side, values in enumerate(joint.fits):
                start = without(values, names)
                # What it hastened, the delay had to make up for; it damped, too, within
                # the limit of torque.
                gain, within = values["derivative"], start["limited_damping"]
                start["delay"] -= gain / values["stiffness"]
                start["damping"] += gain
                if "limited_damping" in names:
                    inner = within * values["damping"] + gain
                    start["limited_damping"] = inner / start["damping"]
                fit = self._fitted(joint, side, [start], 2 * self.steps, names)
                fits.append(fit.values)
            trials[joint.number] = names, fits, self._left_out(joint, fits)
        before = sum(self.errors[j.number] for j in own)
        # It has to be worth what any element has to.
        if sum(t[2] for t in trials.values()) > (1.0 + WORTH) * before:
            return
        for joint in own:
            names, fits, error = trials[joint.number]
            joint.names, joint.fits = names, fits
            self.errors[joint.number] = error

    def reconsidered(self, element: str) -> tuple[ServoElement, ...]:
        """Judge an element that joints were given on other windows since."""
        self.errors = {j.number: self._left_out(j, j.fits) for j in self.joints}
        self._reconsider(element)
        return tuple(self.verdicts.values())

    def _other_valleys(self, done: float) -> None:
        """Look for lower valleys of joints that are explained worse than rounding."""
        for joint in [j for j in self.joints if not self._is_exact(j)]:
            self.progress("other valleys", done)
            self._shake(joint)
            before = self.errors[joint.number]
            self.errors[joint.number] = self._left_out(joint, joint.fits)
            # Elsewhere, what was refused may be needed. Judgement: a hundredth is
            # within the scatter between halves of the motions.
            if abs(self.errors[joint.number] - before) > 0.01 * before:
                joint.tried.clear()

    def _slews(
        self, first: Mapping[int, tuple[tuple[str, ...], list[dict[str, float]]]]
    ) -> None:
        """Begin again with the limit of speed where it alone explains more.

        Without it limits of torque and acceleration stand for it, and keep it out.

        Args:
            first: Of every joint, names and fits before anything was added.
        """
        limited, before = [], self._mean_error()
        for joint in [j for j in self.joints if np.isfinite(j.core["slew"])]:
            self.progress(_SLEW, 0.37)
            grown = joint.names, joint.fits
            joint.names, joint.fits = first[joint.number]
            fits = self._with(joint, ELEMENTS[_SLEW])
            error = self._left_out(joint, fits)
            if error < self.errors[joint.number]:
                joint.names, joint.fits = _joined(joint.names, ELEMENTS[_SLEW]), fits
                self.errors[joint.number] = error
                limited.append(joint)
            else:
                joint.names, joint.fits = grown
        if limited:
            self._set_points(limited)
            after = self._mean_error()
            self.verdicts[_SLEW] = ServoElement(_SLEW, before, after, True)

    def _set_points(self, joints: Sequence[ServoJoint]) -> None:
        """Find the set-points' limits first, beside friction of any kind.

        Without friction limits stand for it, and friction for limits. Friction that is
        not needed beside the limits is taken away again.
        """
        for joint in joints:
            for element in _FRICTION:
                self.progress(element, 0.35)
                joint.fits = self._with(joint, ELEMENTS[element])
                joint.names = _joined(joint.names, ELEMENTS[element])
            self.errors[joint.number] = self._left_out(joint, joint.fits)
        for element in _SET_POINT:
            self.progress(element, 0.36)
            self._try(element, joints)
        for element in _FRICTION:
            self._reconsider(element, joints)
        for joint in joints:
            joint.tried.clear()

    def _reconsider(
        self, element: str, among: Sequence[ServoJoint] | None = None
    ) -> None:
        """Take an element away from the joints, or some, that do not need it."""
        added = set(ELEMENTS[element])
        errors = dict(self.errors)
        joints = self.joints if among is None else among
        for joint in [j for j in joints if added <= set(j.names)]:
            errors[joint.number] = self._drop(joint, ELEMENTS[element])
        is_needed = any(added <= set(j.names) for j in self.joints)
        self.verdicts[element] = ServoElement(
            element,
            float(np.mean(list(errors.values()))),
            self._mean_error(),
            is_needed,
        )

    def _is_exact(self, joint: ServoJoint) -> bool:
        """Return whether neither other valleys nor second thoughts are worth it."""
        return self.errors[joint.number] <= rounding_of(joint.motions)

    def _least(self, joint: ServoJoint) -> float:
        """Return what an element must save at least, in [rad]."""
        return _LEAST_WORTH * rounding_of(joint.motions)

    def _mean_error(self) -> float:
        """Return the mean over joints of the error on motions left out, in [rad]."""
        return float(np.mean(list(self.errors.values())))

    def _drop(
        self, joint: ServoJoint, added: Sequence[str], tolerance: float | None = None
    ) -> float:
        """Take an element away again, unless that predicts worse; return that error.

        Args:
            joint: Whose model.
            added: The element's parameters.
            tolerance: Fraction by which errors may grow; None: what an element must be
                worth.
        """
        names = meaningful([n for n in joint.names if n not in added])
        fits = []
        for side, values in enumerate(joint.fits):
            start = without_limits(values, names)
            # What it did is dry friction again.
            start["coulomb"] = max(start["coulomb"], joint.core["coulomb"])
            fits.append(
                self._fitted(joint, side, [start], 2 * self.steps, names).values
            )
        before, after = self.errors[joint.number], self._left_out(joint, fits)
        more = max(WORTH * before, self._least(joint))
        if tolerance is not None:
            more = tolerance * before
        if after < before + more:
            joint.names, joint.fits = names, fits
            self.errors[joint.number] = after
        return after

    def _try(self, element: str, among: Sequence[ServoJoint] | None = None) -> None:
        """Add an element to the joints, or some, that it predicts better for."""
        added = ELEMENTS[element]
        lacking = [
            j for j in (self.joints if among is None else among)
            if not set(added) <= set(j.names)
            and len(j.names) != j.tried.get(element)
            and (element not in self.verdicts or not self._is_exact(j))
        ]  # fmt: skip
        if not lacking:
            return
        before = self._mean_error()
        trials = {j.number: self._with(j, added) for j in lacking}
        rows = {
            j.number: self._window_errors(j, j.fits, trials[j.number]) for j in lacking
        }
        after = {number: _mean(new) for number, (_, new) in rows.items()}
        least = {
            j.number: max(self._least(j), _SURE * doubt(np.subtract(*rows[j.number])))
            for j in lacking
        }
        # Judgement: a profile is fitted for longer than what it is compared with.
        worth = 4.0 * WORTH if element == _PROFILE else WORTH
        willing = takers({n: self.errors[n] for n in after}, after, least, worth)
        taken = self.errors | ({n: after[n] for n in willing} if willing else after)
        # What some joints took before is needed, whatever the others say now.
        if willing or not any(set(added) <= set(j.names) for j in self.joints):
            self.verdicts.pop(element, None)
            mean = float(np.mean(list(taken.values())))
            self.verdicts[element] = ServoElement(element, before, mean, bool(willing))
        for joint in lacking:
            joint.tried[element] = len(joint.names)
            if joint.number in willing:
                joint.names = _joined(joint.names, added)
                joint.fits = trials[joint.number]
                self.errors[joint.number] = after[joint.number]
        if element == _PROFILE and willing:
            self._spread()

    def _spread(self) -> None:
        """Give all joints the set-point's profile that some of them show.

        It is in the firmware, and the same in all servos of an arm; few motions are
        quick enough to show it in every joint.
        """
        added = ELEMENTS[_PROFILE]
        donors = [j for j in self.joints if set(added) <= set(j.names)]
        sure = agreeing(donors)
        # Judgement: an arm has servos of two types, such as a gripper's, at most.
        timings = _timings([values for j in sure for values in j.fits])[:2]
        for joint in self.joints:
            self.progress(_PROFILE, 0.4)
            # Judgement: as for shared values; a joint that has its own keeps it if that
            # predicts better.
            factor = 1.0 - WORTH if joint in sure else 1.03
            if joint in donors and any(
                max(_apart(f, timing) for f in joint.fits) < _ALIKE
                for timing in timings
            ):
                continue
            trials = [self._profiled(joint, timing) for timing in timings]
            errors = [_mean(row) for row in self._window_errors(joint, *trials)]
            k = int(np.argmin(errors))
            if errors[k] < factor * self.errors[joint.number]:
                joint.names, joint.fits = _joined(joint.names, added), trials[k]
                self.errors[joint.number] = errors[k]

    def _profiled(self, joint: ServoJoint, timing: Values) -> list[dict[str, float]]:
        """Return the fits of both halves from another servo's set-point profile."""
        names = _joined(joint.names, ELEMENTS[_PROFILE])
        fits = []
        for side, values in enumerate(joint.fits):
            start = dict(values) | dict(timing)
            if values["derivative"] == 0.0:
                # As in `element_starts`: half of what seemed to be damping.
                start["damping"] = start["derivative"] = 0.55 * values["damping"]
            fit = self._fitted(joint, side, [start], 2 * self.steps, names)
            fits.append(fit.values)
        return fits

    def _borrow(self) -> None:
        """Give a joint the model of another's servo, where that predicts better.

        Elements are added one at a time, and a first one that only stands for others
        keeps those out. Servos of one arm are of one type: where one of them came to a
        better model, it is a start for all.
        """
        # Judgement: the two that are explained best; with all, it takes long.
        ratios = {j.number: self.errors[j.number] / j.bare_error for j in self.joints}
        best = sorted(self.joints, key=lambda j: ratios[j.number])[:2]
        models = [(j.number, j.names, j.fits) for j in best]
        for joint in [j for j in self.joints if not self._is_exact(j)]:
            own = [{n: values[n] for n in ("offset", "zero")} for values in joint.fits]
            for number, names, values in models:
                if number == joint.number:
                    continue
                self.progress("other servos", 0.5)
                starts = [dict(v) | mine for v, mine in zip(values, own, strict=True)]
                fits = [
                    self._fitted(joint, side, [start], 2 * self.steps, names).values
                    for side, start in enumerate(starts)
                ]
                error = self._left_out(joint, fits)
                if error < (1.0 - WORTH) * self.errors[joint.number]:
                    joint.names, joint.fits = names, fits
                    self.errors[joint.number] = error

    def _shake(self, joint: ServoJoint) -> None:
        """Look for a lower valley around a joint's fits, and take both halves there."""
        number, draws = (20, 7) if self.is_short else (8, 3)
        few = joint.windows[:: max(1, len(joint.windows) // number)]
        starts = [
            start
            for values in joint.fits
            for start in (values, *shaken(values, joint.names, self.random, draws))
        ]
        # Most lead nowhere, and few windows tell.
        for windows, count, iterations in ((few, 3, 8), (joint.windows, 1, 6)):
            fits = fit_servos(
                self.roller, windows, starts, joint.names,
                iterations=iterations, prior=joint.prior,
            )  # fmt: skip
            best = ranked(self.roller, windows, fits, joint.prior)
            starts = [fit.values for fit in best[:count]]
        joint.fits = [
            self._fitted(joint, side, [values, *starts], self.steps).values
            for side, values in enumerate(joint.fits)
        ]

    def _is_shown(self, element: str) -> bool:
        """Return whether an element can show in these motions."""
        if element == "winding temperature":
            warmth = np.array([m.warmth for m in self.motions])
            # Judgement: three kelvins are a hundredth of the torque.
            return bool((np.ptp(warmth, axis=0) > 3.0).any())
        # Zeros of several joints are sought together.
        return element != "joint zero" or self.dof == 1

    def _share(self) -> ServoElement:
        """Take all joints' servos to be alike, where that predicts as well."""
        before = self._mean_error()
        for joint, fits in zip(self.joints, self._sharing(), strict=True):
            error = self._left_out(joint, fits)
            # Servos of one arm are of one type as a rule, and alike they are known
            # where single joints say little: shared unless that predicts clearly worse.
            joint.is_alike = error < 1.03 * self.errors[joint.number]
            if joint.is_alike:
                joint.fits, self.errors[joint.number] = fits, error
        is_any = any(joint.is_alike for joint in self.joints)
        after = self._mean_error()
        return ServoElement("shared values", before, after, is_any)

    def _sharing(self) -> list[list[dict[str, float]]]:
        """Return the fits of both halves, all joints' servos taken to be alike."""
        sides = []
        for side in (0, 1):
            own = [self._fitted(j, side, [j.fits[side]], 1) for j in self.joints]
            prior = shared_values(own)
            sides.append(
                [
                    fit_alike(
                        self.roller, j.halves[side], j.fits[side], j.names, 4, prior
                    ).values
                    for j in self.joints
                ]
            )
        return [list(pair) for pair in zip(*sides, strict=True)]

    def _fitted(
        self,
        joint: ServoJoint,
        side: int,
        starts: Sequence[Values],
        iterations: int,
        names: Sequence[str] | None = None,
    ) -> ServoFit:
        """Return the best fit of one half from some starts."""
        fits = fit_servos(
            self.roller, joint.halves[side], starts, names or joint.names,
            iterations=iterations, prior=joint.prior,
        )  # fmt: skip
        return ranked(self.roller, joint.halves[side], fits, joint.prior)[0]

    def _with(self, joint: ServoJoint, added: Sequence[str]) -> list[dict[str, float]]:
        """Return the fits of both halves with an element added."""
        fits = []
        grown = _joined(joint.names, added)
        for side, values in enumerate(joint.fits):
            windows = joint.halves[side]
            starts = element_starts(values, added, windows)
            if len(added) > 1 and set(added) & set(LIMITS):
                # What they are worth shows once the others have made room for them, and
                # where commands change most.
                telling = sorted(windows, key=sharpness_of, reverse=True)
                trials = fit_servos(
                    self.roller, telling[: -(-len(windows) // 3)], starts, grown,
                    iterations=6,
                    prior=joint.prior,
                )  # fmt: skip
                nearest = ranked(self.roller, windows, trials, joint.prior)[0].values
                fit = self._fitted(joint, side, [nearest], 2 * self.steps, grown)
                fits.append(fit.values)
                continue
            limits = [name for name in LIMITS if name in grown]
            count = 1
            if (
                set(added) & set(LIMITS)
                and np.isfinite([joint.core[name] for name in limits]).all()
            ):
                # What the random starts came to, with what has been added since.
                first = {n: joint.core[n] for n in (*self.core, *limits)}
                starts.append(dict(values) | first)
                count = 2
            best = best_starts(self.roller, windows, starts, count)
            fits.append(self._fitted(joint, side, best, self.steps, grown).values)
        return fits

    def _left_out(self, joint: ServoJoint, fits: Sequence[Values]) -> float:
        """Return the mean error in [rad] of each half's fit on the other half."""
        return _mean(self._window_errors(joint, fits)[0])

    def _window_errors(
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
        ratio = self._left_out(joint, joint.fits) / max(float(np.mean(own)), 1e-12)
        # One motion has no other half.
        return float(np.sqrt(max(ratio, 1.0))) if np.isfinite(ratio) else 1.0


def agreeing(donors: Sequence[ServoJoint]) -> Sequence[ServoJoint]:
    """Return joints whose limit shows: it is the same in both halves of the motions."""
    return [j for j in donors if _apart(j.fits[0], j.fits[1]) < _ALIKE] or donors


def _apart(one: Values, other: Values) -> float:
    """Return how far two set-points' accelerations are apart, as a logarithm."""
    return abs(float(np.log(one["acceleration"] / other["acceleration"])))


def _timings(servos: Sequence[Values]) -> list[dict[str, float]]:
    """Return acceleration and delay of servos, those of one firmware taken together."""
    groups: list[list[Values]] = []
    for values in sorted(servos, key=lambda v: v["acceleration"]):
        if groups and _apart(groups[-1][0], values) < _ALIKE:
            groups[-1].append(values)
        else:
            groups.append([values])
    return [
        {name: float(np.median([v[name] for v in group]))
         for name in ("acceleration", "delay")}
        for group in sorted(groups, key=len, reverse=True)
    ]  # fmt: skip


def _joined(names: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return names and those added that are not among them."""
    return (*names, *(name for name in added if name not in names))


def _mean(errors: Float[np.ndarray, " windows"]) -> float:
    """Return the mean over windows with rows that count; NaN where there are none."""
    errors = errors[np.isfinite(errors)]
    return float(np.mean(errors)) if len(errors) else np.nan


def takers(
    before: Mapping[int, float],
    after: Mapping[int, float],
    least: Mapping[int, float],
    worth: float = WORTH,
) -> set[int]:
    """Return the joints that take an element, by their errors on motions left out.

    A joint takes what predicts its own motions better, beyond doubt. What an arm's
    servos need on the whole is in the firmware of all of them: the others take it,
    too, but those it would harm, and how much it would harm those is not counted.
    """
    saved = {n: before[n] - after[n] for n in after}
    own = {n for n in after if saved[n] > max(worth * before[n], least[n])}
    # Judgement: a hundredth is within the scatter between halves of the motions.
    parts = {n: max(saved[n] / before[n], -0.01) for n in after}
    if own and float(np.mean(list(parts.values()))) > worth:
        return {n for n in after if parts[n] > -0.01}
    return own
