"""Growth of servo models: valleys by all windows, elements by motions left out.

1. Limits of the set-point, a derivative gain and friction are mistaken for one another,
   so a joint begins with all of them, from a grid of valleys that are known to exist.
2. Lower valleys are sought around, and where the other joints' servos are; a limit of
   acceleration that two agree on is lent to those that do not show theirs.
3. Other elements are added one at a time.
4. What a model predicts as well without is taken away, and servos are taken to be
   alike where that predicts as well.
5. Once contact is known by these models, lower valleys are sought once more.

Valleys are chosen by their errors on all windows, elements by those of fits to one half
of the motions on the other: nothing depends on which start came first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.progress import Progress, part_of
from armwise.servos.fit import (
    SCATTER,
    Prior,
    ServoFit,
    doubt,
    effective_rows,
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
    borrowed,
    element_starts,
    evened,
    profile_starts,
    shaken,
    shape_starts,
    start_costs,
    without,
    without_derivative,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: an element that predicts other motions less than half a percent better is
# not worth its parameters.
WORTH = 0.005
"""Fraction by which an element must reduce the error on motions left out."""

_FIRST = (
    "acceleration limit",
    "derivative gain",
    "slew limit",
    "load friction",
    "bearing friction",
    "Stribeck friction",
)
"""Elements that are mistaken for one another: each alone stands for the others."""

_TIMING = ("delay", "acceleration", "slew", "derivative")
"""Parameters of the set-point, which few motions show."""

_FALLING = ("Stribeck friction", "stiction")
"""Elements of friction that falls off with speed."""

# Judgement: servos of one type, unless that explains clearly less.
ALIKE = 1.03
"""Error of servos taken to be like the others, of their own."""

# Judgement: where all but rounding is explained, a percent is chance.
_LEAST_WORTH = 0.02
"""The same, of half an encoder's step."""


# Judgement: a fifth of what an element must be worth.
_NOTHING = 0.001
"""Fraction by which errors on motions left out may grow where elements go."""


# Judgement: of elements that are not there one in six passes by chance.
_SURE = 1.0
"""Standard errors over windows by which an element must save on motions left out."""


_PASSES = 4
"""Times that elements are tried of one joint, at most."""


class Growth:
    """Adds elements to the servos of an arm.

    Args:
        roller: Of single joints.
        joints: Those that move, their core fitted; their models are what grows.
        motions: Of the whole arm.
        core: What every servo has.
        random: Generators of starting points, one per joint of the arm.
        progress: Called with what is being done.
        reload: Loads joints by what the models of the others do.

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
        random: Sequence[np.random.Generator],
        progress: Progress,
        reload: Callable[[], None] = lambda: None,
    ) -> None:
        self.roller, self.joints, self.motions = roller, joints, motions
        self.reload = reload
        self.core, self.random, self.progress = core, random, progress
        self.dof = motions[0].q.shape[1]
        # Few joints leave time for more of each fit.
        self.is_short = self.dof <= 2
        self.steps = {1: 10, 2: 6}.get(self.dof, 3)
        self.draws = 7 if self.is_short else 3
        self.errors: dict[int, float] = {}
        self.verdicts: dict[str, ServoElement] = {}

    def elements(self) -> tuple[ServoElement, ...]:
        """Find every joint's model; return what each element was worth."""
        report = part_of(self.progress, "set-points", 0.35, 0.4)
        self.roller.each(self._begin, self.joints, report)
        self.reload()
        self.lower_valleys("other servos", 0.4)
        self.roller.each(self._drop_idle, self.joints)
        # What an element is worth depends on the others: of few joints refused ones are
        # tried again, of one until none is added.
        shown = [n for n in ELEMENTS if n not in _FIRST and self._is_shown(n)]
        passes = {1: _PASSES, 2: 2}.get(self.dof, 1)
        for number in range(passes):
            before = [j.names for j in self.joints]
            for k, element in enumerate(shown):
                fraction = (number + k / len(shown)) / passes
                self.progress(element, 0.45 + 0.25 * fraction)
                self._try(element)
            if [j.names for j in self.joints] == before:
                break
            # What loads are put on askew by shows better beside the new elements.
            if self.dof == 1:
                self.reload()
                self._refit(self.joints)
        # Of many joints this is left for when contact is known, for time.
        if self.is_short:
            self.lower_valleys("other valleys", 0.7)
        # Elements may only have made up for wrong loads.
        if self.dof > 1:
            self.reload()
            self._refit(self.joints)
        self._shapes()
        self._prune()
        self._release()
        if len(self.joints) > 1:
            self.verdicts["shared values"] = self._share()
        self.roller.each(self._make_up, self.joints)
        return tuple(self.verdicts.values())

    def _make_up(self, joint: ServoJoint) -> None:
        """Let a model make up for what was taken away."""
        joint.best = self._lowest(joint, joint.names, joint.models, 2 * self.steps)

    def _begin(self, joint: ServoJoint) -> None:
        """Fit a joint's core, and all that other elements are mistaken for."""
        joint.core, joint.held = dict(joint.fits[0]), ()
        names = (*self.core, *joint.limits)
        bare = without(joint.core, names)
        fits = self._halved(joint, names, bare, 4)
        joint.bare_error = self._left_out(joint, fits)
        for element in filter(self._is_shown, _FIRST):
            names = _joined(names, ELEMENTS[element])
        joint.names, joint.held = names, _TIMING
        groups = profile_starts(joint.core, bare, joint.windows)
        if "bearing" in names:
            # Judgement: some percent of usual friction, as of the others' sizes.
            groups = [[start | {"bearing": 1e-3} for start in g] for g in groups]
        few = self._few(joint)
        starts = [best_starts(self.roller, few, group, 1)[0] for group in groups]
        self._descend(joint, starts, 3)

    def _release(self) -> None:
        """Let halves have set-points of their own, to tell how far apart they end."""

        def release(joint: ServoJoint) -> None:
            joint.held = ()
            joint.fits = [
                self._fitted(joint, side, [values], self.steps).values
                for side, values in enumerate(joint.fits)
            ]
            self.errors[joint.number] = self._left_out(joint, joint.fits)
            # What is new to a model may be its set-point, too.
            joint.left_out_ratio = self.left_out_ratio(joint)

        self.roller.each(release, self.joints)

    def _few(self, joint: ServoJoint) -> list[ServoMotion]:
        """Return windows that tell most starts to lead nowhere."""
        return joint.few(20 if self.is_short else 8)

    def _descend(
        self, joint: ServoJoint, starts: Sequence[Values], iterations: int
    ) -> None:
        """Take a joint to the lowest valley that some starts lead to.

        Valleys are chosen on all windows: halves in two of them would say nothing of
        each other. Both begin where that is lowest.
        """
        few = fit_servos(
            self.roller, self._few(joint), starts, joint.names,
            iterations=6, prior=joint.prior,
        )  # fmt: skip
        best = ranked(self.roller, self._few(joint), few, joint.prior)
        joint.passed = [fit.values for fit in best[2:]]
        fits = fit_servos(
            self.roller, joint.windows, [fit.values for fit in best[:2]], joint.names,
            iterations=iterations, prior=joint.prior,
        )  # fmt: skip
        ends = ranked(self.roller, joint.windows, fits, joint.prior)
        joint.valleys = [joint.model, *(fit.values for fit in ends[1:])]
        joint.best = dict(ends[0].values)
        joint.fits = self._halved(joint, joint.names, joint.best, self.steps)
        self.errors[joint.number] = self._left_out(joint, joint.fits)

    def _refitted(
        self,
        joint: ServoJoint,
        names: Sequence[str],
        starts: Sequence[Values],
        iterations: int,
    ) -> list[dict[str, float]]:
        """Return the fits of both halves from the best fit of all windows."""
        best = self._lowest(joint, names, starts, iterations)
        return self._halved(joint, names, best, self.steps)

    def _lowest(
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

    def _halved(
        self, joint: ServoJoint, names: Sequence[str], start: Values, iterations: int
    ) -> list[dict[str, float]]:
        """Return the fits of both halves from one start."""
        return [
            self._fitted(joint, side, [start], iterations, names).values
            for side in (0, 1)
        ]

    def lower_valleys(self, what: str, done: float) -> None:
        """Look for lower valleys of joints that are explained worse than rounding.

        Around their own, and where the other joints' servos are: those of one arm are
        of one type, and what shows clearly in one is a start for all. The others are
        fitted anew where they are, for loads may have changed.
        """
        self.errors = {j.number: self._left_out(j, j.fits) for j in self.joints}
        ratios = {j.number: self.errors[j.number] / j.bare_error for j in self.joints}
        models = {j.number: j.models for j in self.joints}
        best = sorted(self.joints, key=lambda j: ratios[j.number])
        exact = [j for j in self.joints if self._is_exact(j)]
        self._refit(exact)

        def descend(joint: ServoJoint) -> None:
            alike = [models[j.number][0] for j in best if j is not joint]
            own = models[joint.number]
            starts = [
                *own,
                *shaken(own[0], joint.names, self.random[joint.number], self.draws),
                *borrowed(own[0], joint.names, alike),
            ]
            if self.dof > 1:
                starts += evened(own[:1], joint.names)
            self._descend(joint, starts, 6)

        others = [j for j in self.joints if j not in exact]
        self.roller.each(
            descend, others, part_of(self.progress, what, done, done + 0.05)
        )
        self.lend_limits()

    def lend_limits(self) -> None:
        """Give joints the acceleration limit that two others agree on, if that will do.

        Few motions are so quick that they show it. Servos of one arm have one firmware:
        a joint whose own limit is higher by more than servos differ takes the others',
        unless that explains its windows plainly worse.
        """
        limited = [j for j in self.joints if "acceleration" in j.names]
        own = {j.number: float(np.log(j.model["acceleration"])) for j in limited}
        scatter = SCATTER["acceleration"]
        agreed = [
            j for j in limited
            if sum(abs(own[j.number] - x) < scatter for x in own.values()) > 1
        ]  # fmt: skip
        for joint in [j for j in limited if j not in agreed]:
            lenders = [j.model for j in agreed if own[j.number] < own[joint.number]]
            if lenders:
                self.progress("other servos", 0.4)
                self._borrow(joint, lenders)

    def _borrow(self, joint: ServoJoint, lenders: Sequence[Values]) -> None:
        """Hold a joint's acceleration limit to that of others, unless it does harm."""
        limit = float(np.median([np.log(v["acceleration"]) for v in lenders]))
        free = [n for n in joint.names if n != "acceleration"]
        starts = [
            start | {"acceleration": float(np.exp(limit))}
            for start in (joint.model, *borrowed(joint.model, free, lenders[:1]))
        ]
        near = self._lowest(joint, free, starts, 2 * self.steps)
        errors = errors_together(self.roller, joint.windows, [joint.model, near])
        before, after = np.nanmean(errors, axis=1)
        # As where servos are taken to be alike.
        if after > ALIKE * before:
            return
        prior = joint.prior or Prior({}, {})
        joint.prior = Prior(
            dict(prior.mean) | {"acceleration": limit},
            dict(prior.std) | {"acceleration": SCATTER["acceleration"]},
        )
        joint.best, joint.valleys, joint.passed = near, [], []
        joint.fits = self._halved(joint, joint.names, near, self.steps)
        self.errors[joint.number] = self._left_out(joint, joint.fits)

    def _prune(self) -> None:
        """Take away what models can do without, now that the other elements are there.

        Of the many elements tried some pass by chance, and some only stood for others
        that came later.
        """
        self.progress("what is not needed", 0.78)
        self.roller.each(self._drop_idle, self.joints)
        for element in _FIRST[:2]:
            self._drop_from_all(element)
        for element in reversed(_FIRST[2:]):
            self._reconsider(element)
        if any(joint.limits for joint in self.joints):
            self._reconsider("torque limit")
        report = part_of(self.progress, "what is not needed", 0.79, 0.8)
        self.roller.each(self._strip, self.joints, report)

    def _strip(self, joint: ServoJoint) -> None:
        """Take away what a joint's windows do not show."""
        self._drop_vague(joint)
        for element in reversed(ELEMENTS):
            self._drop_unshown(joint, element)
        self._drop_vague(joint)
        self._drop_idle(joint)

    def _refit(self, joints: Sequence[ServoJoint]) -> None:
        """Fit joints anew, whose loads are others now."""

        def refit(joint: ServoJoint) -> None:
            joint.best = self._lowest(joint, joint.names, joint.fits, 2 * self.steps)
            joint.fits = self._halved(joint, joint.names, joint.best, self.steps)
            self.errors[joint.number] = self._left_out(joint, joint.fits)

        self.roller.each(refit, joints)

    def _shapes(self) -> None:
        """Let the fall of Stribeck friction with speed take another shape.

        Where that predicts other motions better; before models are rid of what it was
        mistaken for.
        """

        def shape(joint: ServoJoint) -> None:
            names = _joined(joint.names, ["stribeck_shape"])
            starts = shape_starts(joint.fits[0])
            best = self._lowest(joint, names, starts, 2 * self.steps)
            fits = self._halved(joint, names, best, self.steps)
            old, new = self._window_errors(joint, joint.fits, fits)
            before, after = _mean(old), _mean(new)
            if before - after > max(WORTH * before, _SURE * doubt(old - new)):
                joint.names, joint.fits, joint.best = names, fits, best
                self.errors[joint.number] = after

        self.progress("Stribeck friction", 0.76)
        falling = [j for j in self.joints if "stribeck_speed" in j.names]
        self.roller.each(shape, falling)

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
        sizes = _sizes(added)
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

    def _drop_from_all(self, element: str) -> None:
        """Take an element of all servos' firmware from all joints, if none needs it."""
        name = ELEMENTS[element][0]
        own = [j for j in self.joints if name in j.names]

        def bare(
            joint: ServoJoint,
        ) -> tuple[tuple[str, ...], list[dict[str, float]], float, np.ndarray]:
            names = meaningful([n for n in joint.names if n != name])
            starts = [without_derivative(without(v, names), v)
                      for v in joint.fits]  # fmt: skip
            best = self._lowest(joint, names, starts, 2 * self.steps)
            fits = self._halved(joint, names, best, self.steps)
            errors = self._window_errors(joint, fits, joint.fits)
            return names, fits, self._evidence(joint, names, best), errors

        trials = self.roller.each(bare, own)
        evidence = sum(trial[2] for trial in trials)
        rows = [np.subtract(*trial[3]) for trial in trials]
        before = sum(self.errors[j.number] for j in own)
        errors = [_mean(trial[3][0]) for trial in trials]
        after = sum(errors)
        # Beyond doubt, too: it trades with delay and damping.
        sure = _SURE * doubt(np.concatenate(rows)) * len(own) if rows else 0.0
        is_needed = after - before > max(WORTH * before, sure) or evidence > 0.0
        mean = (self._mean_error() * len(self.joints) + after - before) / len(
            self.joints
        )
        self.verdicts[element] = ServoElement(
            element, mean, self._mean_error(), is_needed
        )
        if is_needed:
            return
        for joint, trial, error in zip(own, trials, errors, strict=True):
            joint.names, joint.fits = trial[:2]
            self.errors[joint.number] = error

    def reconsidered(self, element: str) -> tuple[ServoElement, ...]:
        """Judge an element that joints were given on other windows since."""
        self.errors = {j.number: self._left_out(j, j.fits) for j in self.joints}
        self._reconsider(element)
        return tuple(self.verdicts.values())

    def _reconsider(self, element: str) -> None:
        """Take an element away from the joints that do not need it."""
        added = set(ELEMENTS[element])
        errors = dict(self.errors)
        own = [j for j in self.joints if added & set(j.names)]
        dropped = self.roller.each(lambda j: self._drop(j, ELEMENTS[element]), own)
        errors |= {j.number: error for j, error in zip(own, dropped, strict=True)}
        is_needed = any(added & set(j.names) for j in self.joints)
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
        starts = [without(values, names) for values in joint.fits]
        for start in starts:
            # What it did is dry friction again.
            start["coulomb"] = max(start["coulomb"], joint.core["coulomb"])
        if set(added) & {*_TIMING, "saturation"}:
            fits = self._refitted(joint, names, starts, 2 * self.steps)
        else:
            fits = [
                self._fitted(joint, side, [start], 2 * self.steps, names).values
                for side, start in enumerate(starts)
            ]
        rows = self._window_errors(joint, joint.fits, fits)
        before, after = self.errors[joint.number], _mean(rows[1])
        more = max(WORTH * before, self._least(joint))
        if not self._is_plain(joint, added):
            # As where elements are added.
            more = max(more, _SURE * _by_chance(rows[1] - rows[0], added))
        if tolerance is not None:
            more = tolerance * before
        if after >= before + more:
            return after
        starts = [without(joint.model, names), *fits]
        best = self._lowest(joint, names, starts, 2 * self.steps)
        if tolerance is not None or self._is_cheap(joint, names, best):
            joint.names, joint.fits, joint.best = names, fits, best
            self.errors[joint.number] = after
        return after

    def _is_cheap(
        self, joint: ServoJoint, names: Sequence[str], simpler: Values
    ) -> bool:
        """Return whether all windows, too, let a model go for one of fewer parameters.

        Halves that both err in what they lack say nothing of an element that all
        windows plainly show.
        """
        return self._evidence(joint, names, simpler) < 0.0

    def _evidence(
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

    def _is_plain(self, joint: ServoJoint, added: Sequence[str]) -> bool:
        """Return whether all windows together show an element to be there.

        What windows left out lose without it is then its worth, and not chance.
        """
        sizes = [n for n in _sizes(added) if n in joint.names]
        is_limit = any(np.isinf(PARAMETERS[n].absent) for n in added)
        return bool(sizes) and not is_limit and is_shown(self._here(joint), sizes)

    def _try(self, element: str) -> None:
        """Add an element to the joints that it predicts better for."""
        added = ELEMENTS[element]
        lacking = [
            j for j in self.joints
            if not set(added) <= set(j.names)
            and len(j.names) != j.tried.get(element)
            and (element not in self.verdicts or not self._is_exact(j))
        ]  # fmt: skip
        if not lacking:
            return
        before = self._mean_error()
        numbers = [j.number for j in lacking]
        grown = self.roller.each(lambda j: self._with(j, added), lacking)
        trials = dict(zip(numbers, grown, strict=True))
        both = self.roller.each(
            lambda j: self._window_errors(j, j.fits, trials[j.number]), lacking
        )
        rows = dict(zip(numbers, both, strict=True))
        after = {number: _mean(new) for number, (_, new) in rows.items()}
        least = {
            j.number: max(
                self._least(j), _SURE * _by_chance(np.subtract(*rows[j.number]), added)
            )
            for j in lacking
        }
        willing = takers({n: self.errors[n] for n in after}, after, least)
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

    def _is_shown(self, element: str) -> bool:
        """Return whether an element can show in these motions."""
        if element == "winding temperature":
            warmth = np.array([m.warmth for m in self.motions])
            # Judgement: three kelvins are a hundredth of the torque.
            return bool((np.ptp(warmth, axis=0) > 3.0).any())
        if element == "bearing friction":
            # Judgement: loads that differ by less than a tenth show nothing else.
            carried = [m.carried for m in self.motions if m.carried is not None]
            return bool(carried) and bool(np.ptp(carried) > 0.1 * np.max(carried))
        if element.startswith("unpowered"):
            return any(bool((m.powered < 0.5).any()) for m in self.motions)
        if element == "feedback delay":
            # Under one gain it is damping that lacks so much.
            return len({m.gain for m in self.motions}) > 1
        # Zeros of several joints are sought together.
        return element != "joint zero" or self.dof == 1

    def _share(self) -> ServoElement:
        """Take all joints' servos to be alike, where that predicts as well."""
        before = self._mean_error()
        for joint, fits in zip(self.joints, self._sharing(), strict=True):
            error = self._left_out(joint, fits)
            # Servos of one arm are of one type as a rule, and alike they are known
            # where single joints say little: shared unless that predicts clearly worse.
            joint.is_alike = error < ALIKE * self.errors[joint.number]
            if joint.is_alike:
                joint.fits, self.errors[joint.number] = fits, error
        is_any = any(joint.is_alike for joint in self.joints)
        after = self._mean_error()
        return ServoElement("shared values", before, after, is_any)

    def _sharing(self) -> list[list[dict[str, float]]]:
        """Return the fits of both halves, all joints' servos taken to be alike."""
        sides = [self._alike(side) for side in (0, 1)]
        return [list(pair) for pair in zip(*sides, strict=True)]

    def _alike(self, side: int) -> list[dict[str, float]]:
        """Return the joints' fits of one half, their servos taken to be alike."""
        own = self.roller.each(
            lambda j: self._fitted(j, side, [j.fits[side]], 1), self.joints
        )
        prior = shared_values(own)
        return self.roller.each(
            lambda j: (
                fit_alike(
                    self.roller, j.halves[side], j.fits[side], j.names, 4, prior
                ).values
            ),
            self.joints,
        )

    def _fitted(
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

    def _with(self, joint: ServoJoint, added: Sequence[str]) -> list[dict[str, float]]:
        """Return the fits of both halves with an element added."""
        grown = _joined(joint.names, added)
        starts = [
            element_starts(values, added, windows)
            for values, windows in zip(joint.fits, joint.halves, strict=True)
        ]
        # Of one size, or at one limit, in both halves.
        costs = sum(
            start_costs(self.roller, windows, own)
            for own, windows in zip(starts, joint.halves, strict=True)
        )
        k = int(np.argmin(costs))
        if "saturation" in added:
            # A limit of torque delays, and the set-point makes room for it.
            own = [own[k] for own in starts]
            return self._refitted(joint, grown, own, self.steps)
        return [
            self._fitted(joint, side, [own[k]], self.steps, grown).values
            for side, own in enumerate(starts)
        ]

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


def _sizes(added: Sequence[str]) -> list[str]:
    """Return the parameters of an element that are zero where it is not there."""
    return [n for n in added if PARAMETERS[n].scale != "log" and n not in FALLS]


def _joined(names: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return names and those added that are not among them."""
    return (*names, *(name for name in added if name not in names))


def _by_chance(saved: Float[np.ndarray, " windows"], added: Sequence[str]) -> float:
    """Return what an element that is not there saves, as a standard deviation.

    A limit is met in few windows, and how much these save is no doubt that it is there:
    by chance windows save as much as they lose, and what they lose tells that.
    """
    if not any(np.isinf(PARAMETERS[name].absent) for name in added):
        return doubt(saved)
    saved = saved[np.isfinite(saved)]
    lost = np.minimum(saved, 0.0)
    return float(np.sqrt(2.0 * np.sum(lost**2)) / max(len(saved), 1))


def _mean(errors: Float[np.ndarray, " windows"]) -> float:
    """Return the mean over windows with rows that count; NaN where there are none."""
    errors = errors[np.isfinite(errors)]
    return float(np.mean(errors)) if len(errors) else np.nan


def takers(
    before: Mapping[int, float],
    after: Mapping[int, float],
    least: Mapping[int, float],
) -> set[int]:
    """Return the joints that take an element, by their errors on motions left out.

    A joint takes what predicts its own motions better, beyond doubt. What an arm's
    servos need on the whole is in the firmware of all of them: the others take it,
    too, but those it would harm, and how much it would harm those is not counted.
    """
    saved = {n: before[n] - after[n] for n in after}
    own = {n for n in after if saved[n] > max(WORTH * before[n], least[n])}
    # Judgement: a hundredth is within the scatter between halves of the motions.
    parts = {n: max(saved[n] / before[n], -0.01) for n in after}
    if own and float(np.mean(list(parts.values()))) > WORTH:
        return {n for n in after if parts[n] > -0.01}
    return own
