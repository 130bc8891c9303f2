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

import numpy as np

from armwise.progress import Progress, part_of
from armwise.servos.fit import (
    SCATTER,
    Prior,
    doubt,
    errors_together,
    fit_alike,
    fit_servos,
    ranked,
    shared_values,
)
from armwise.servos.halves import SURE, TIMING, WORTH, HalfFits, by_chance, mean_of
from armwise.servos.joints import ServoJoint
from armwise.servos.model import ELEMENTS, Values
from armwise.servos.pruning import FIRST, Pruning
from armwise.servos.rollout import ServoMotion
from armwise.servos.servo import ServoElement
from armwise.servos.starts import (
    best_starts,
    borrowed,
    element_starts,
    evened,
    profile_starts,
    shaken,
    shape_starts,
    start_costs,
    without,
)

# Judgement: servos of one type, unless that explains clearly less.
ALIKE = 1.03
"""Error of servos taken to be like the others, of their own."""

_PASSES = 4
"""Times that elements are tried of one joint, at most."""


class Growth:
    """Adds elements to the servos of an arm.

    Args:
        halves: Fits of the joints that move, their core fitted; these models grow.
        motions: Of the whole arm.
        core: What every servo has.
        random: Generators of starting points, one per joint of the arm.
        progress: Called with what is being done.
        reload: Loads joints by what the models of the others do.
    """

    def __init__(
        self,
        halves: HalfFits,
        motions: Sequence[ServoMotion],
        core: tuple[str, ...],
        random: Sequence[np.random.Generator],
        progress: Progress,
        reload: Callable[[], None] = lambda: None,
    ) -> None:
        self.halves, self.motions, self.reload = halves, motions, reload
        self.roller, self.joints = halves.roller, halves.joints
        self.core, self.random, self.progress = core, random, progress
        self.pruning = Pruning(halves, core, progress)
        self.draws = 7 if halves.is_short else 3

    def elements(self) -> tuple[ServoElement, ...]:
        """Find every joint's model; return what each element was worth."""
        report = part_of(self.progress, "set-points", 0.35, 0.4)
        self.roller.each(self._begin, self.joints, report)
        self.reload()
        self.lower_valleys("other servos", 0.4)
        self.roller.each(self.pruning.drop_idle, self.joints)
        # What an element is worth depends on the others: of few joints refused ones are
        # tried again, of one until none is added.
        shown = [n for n in ELEMENTS if n not in FIRST and self._is_shown(n)]
        passes = {1: _PASSES, 2: 2}.get(self.halves.dof, 1)
        for number in range(passes):
            before = [j.names for j in self.joints]
            for k, element in enumerate(shown):
                fraction = (number + k / len(shown)) / passes
                self.progress(element, 0.45 + 0.25 * fraction)
                self._try(element)
            if [j.names for j in self.joints] == before:
                break
            # What loads are put on askew by shows better beside the new elements.
            if self.halves.dof == 1:
                self.reload()
                self.halves.refit(self.joints)
        # Of many joints this is left for when contact is known, for time.
        if self.halves.is_short:
            self.lower_valleys("other valleys", 0.7)
        # Elements may only have made up for wrong loads.
        if self.halves.dof > 1:
            self.reload()
            self.halves.refit(self.joints)
        self._shapes()
        self.pruning.prune()
        self._release()
        if len(self.joints) > 1:
            self.halves.verdicts["shared values"] = self._share()
        self.roller.each(self._make_up, self.joints)
        return tuple(self.halves.verdicts.values())

    def _make_up(self, joint: ServoJoint) -> None:
        """Let a model make up for what was taken away."""
        joint.best = self.halves.lowest(
            joint, joint.names, joint.models, 2 * self.halves.steps
        )

    def _begin(self, joint: ServoJoint) -> None:
        """Fit a joint's core, and all that other elements are mistaken for."""
        joint.core, joint.held = dict(joint.fits[0]), ()
        names = (*self.core, *joint.limits)
        bare = without(joint.core, names)
        fits = self.halves.halved(joint, names, bare, 4)
        joint.bare_error = self.halves.left_out(joint, fits)
        for element in filter(self._is_shown, FIRST):
            names = _joined(names, ELEMENTS[element])
        joint.names, joint.held = names, TIMING
        groups = profile_starts(joint.core, bare, joint.windows)
        if "bearing" in names:
            # Judgement: some percent of usual friction, as of the others' sizes.
            groups = [[start | {"bearing": 1e-3} for start in g] for g in groups]
        few = self.halves.few(joint)
        starts = [best_starts(self.roller, few, group, 1)[0] for group in groups]
        self._descend(joint, starts, 3)

    def _release(self) -> None:
        """Let halves have set-points of their own, to tell how far apart they end."""

        def release(joint: ServoJoint) -> None:
            joint.held = ()
            joint.fits = [
                self.halves.fitted(joint, side, [values], self.halves.steps).values
                for side, values in enumerate(joint.fits)
            ]
            self.halves.errors[joint.number] = self.halves.left_out(joint, joint.fits)
            # What is new to a model may be its set-point, too.
            joint.left_out_ratio = self.halves.left_out_ratio(joint)

        self.roller.each(release, self.joints)

    def _descend(
        self, joint: ServoJoint, starts: Sequence[Values], iterations: int
    ) -> None:
        """Take a joint to the lowest valley that some starts lead to.

        Valleys are chosen on all windows: halves in two of them would say nothing of
        each other. Both begin where that is lowest.
        """
        few = fit_servos(
            self.roller, self.halves.few(joint), starts, joint.names,
            iterations=6, prior=joint.prior,
        )  # fmt: skip
        best = ranked(self.roller, self.halves.few(joint), few, joint.prior)
        joint.passed = [fit.values for fit in best[2:]]
        fits = fit_servos(
            self.roller, joint.windows, [fit.values for fit in best[:2]], joint.names,
            iterations=iterations, prior=joint.prior,
        )  # fmt: skip
        ends = ranked(self.roller, joint.windows, fits, joint.prior)
        joint.valleys = [joint.model, *(fit.values for fit in ends[1:])]
        joint.best = dict(ends[0].values)
        joint.fits = self.halves.halved(
            joint, joint.names, joint.best, self.halves.steps
        )
        self.halves.errors[joint.number] = self.halves.left_out(joint, joint.fits)

    def lower_valleys(self, what: str, done: float) -> None:
        """Look for lower valleys of joints that are explained worse than rounding.

        Around their own, and where the other joints' servos are: those of one arm are
        of one type, and what shows clearly in one is a start for all. The others are
        fitted anew where they are, for loads may have changed.
        """
        self.halves.judge()
        ratios = {
            j.number: self.halves.errors[j.number] / j.bare_error for j in self.joints
        }
        models = {j.number: j.models for j in self.joints}
        best = sorted(self.joints, key=lambda j: ratios[j.number])
        exact = [j for j in self.joints if self.halves.is_exact(j)]
        self.halves.refit(exact)

        def descend(joint: ServoJoint) -> None:
            alike = [models[j.number][0] for j in best if j is not joint]
            own = models[joint.number]
            starts = [
                *own,
                *shaken(own[0], joint.names, self.random[joint.number], self.draws),
                *borrowed(own[0], joint.names, alike),
            ]
            if self.halves.dof > 1:
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
        near = self.halves.lowest(joint, free, starts, 2 * self.halves.steps)
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
        joint.fits = self.halves.halved(joint, joint.names, near, self.halves.steps)
        self.halves.errors[joint.number] = self.halves.left_out(joint, joint.fits)

    def _shapes(self) -> None:
        """Let the fall of Stribeck friction with speed take another shape.

        Where that predicts other motions better; before models are rid of what it was
        mistaken for.
        """

        def shape(joint: ServoJoint) -> None:
            names = _joined(joint.names, ["stribeck_shape"])
            starts = shape_starts(joint.fits[0])
            best = self.halves.lowest(joint, names, starts, 2 * self.halves.steps)
            fits = self.halves.halved(joint, names, best, self.halves.steps)
            old, new = self.halves.window_errors(joint, joint.fits, fits)
            before, after = mean_of(old), mean_of(new)
            if before - after > max(WORTH * before, SURE * doubt(old - new)):
                joint.names, joint.fits, joint.best = names, fits, best
                self.halves.errors[joint.number] = after

        self.progress("Stribeck friction", 0.76)
        falling = [j for j in self.joints if "stribeck_speed" in j.names]
        self.roller.each(shape, falling)

    def reconsidered(self, element: str) -> tuple[ServoElement, ...]:
        """Judge an element that joints were given on other windows since."""
        self.halves.judge()
        self.pruning.reconsider(element)
        return tuple(self.halves.verdicts.values())

    def _try(self, element: str) -> None:
        """Add an element to the joints that it predicts better for."""
        added = ELEMENTS[element]
        lacking = [
            j for j in self.joints
            if not set(added) <= set(j.names)
            and len(j.names) != j.tried.get(element)
            and (element not in self.halves.verdicts or not self.halves.is_exact(j))
        ]  # fmt: skip
        if not lacking:
            return
        before = self.halves.mean_error()
        numbers = [j.number for j in lacking]
        grown = self.roller.each(lambda j: self._with(j, added), lacking)
        trials = dict(zip(numbers, grown, strict=True))
        both = self.roller.each(
            lambda j: self.halves.window_errors(j, j.fits, trials[j.number]), lacking
        )
        rows = dict(zip(numbers, both, strict=True))
        after = {number: mean_of(new) for number, (_, new) in rows.items()}
        least = {
            j.number: max(
                self.halves.least(j),
                SURE * by_chance(np.subtract(*rows[j.number]), added),
            )
            for j in lacking
        }
        willing = takers({n: self.halves.errors[n] for n in after}, after, least)
        taken = self.halves.errors | (
            {n: after[n] for n in willing} if willing else after
        )
        # What some joints took before is needed, whatever the others say now.
        if willing or not any(set(added) <= set(j.names) for j in self.joints):
            self.halves.verdicts.pop(element, None)
            mean = float(np.mean(list(taken.values())))
            self.halves.verdicts[element] = ServoElement(
                element, before, mean, bool(willing)
            )
        for joint in lacking:
            joint.tried[element] = len(joint.names)
            if joint.number in willing:
                joint.names = _joined(joint.names, added)
                joint.fits = trials[joint.number]
                self.halves.errors[joint.number] = after[joint.number]

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
        return element != "joint zero" or self.halves.dof == 1

    def _share(self) -> ServoElement:
        """Take all joints' servos to be alike, where that predicts as well."""
        before = self.halves.mean_error()
        for joint, fits in zip(self.joints, self._sharing(), strict=True):
            error = self.halves.left_out(joint, fits)
            # Servos of one arm are of one type as a rule, and alike they are known
            # where single joints say little: shared unless that predicts clearly worse.
            joint.is_alike = error < ALIKE * self.halves.errors[joint.number]
            if joint.is_alike:
                joint.fits, self.halves.errors[joint.number] = fits, error
        is_any = any(joint.is_alike for joint in self.joints)
        after = self.halves.mean_error()
        return ServoElement("shared values", before, after, is_any)

    def _sharing(self) -> list[list[dict[str, float]]]:
        """Return the fits of both halves, all joints' servos taken to be alike."""
        sides = [self._alike(side) for side in (0, 1)]
        return [list(pair) for pair in zip(*sides, strict=True)]

    def _alike(self, side: int) -> list[dict[str, float]]:
        """Return the joints' fits of one half, their servos taken to be alike."""
        own = self.roller.each(
            lambda j: self.halves.fitted(j, side, [j.fits[side]], 1), self.joints
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
            return self.halves.refitted(joint, grown, own, self.halves.steps)
        return [
            self.halves.fitted(joint, side, [own[k]], self.halves.steps, grown).values
            for side, own in enumerate(starts)
        ]


def _joined(names: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return names and those added that are not among them."""
    return (*names, *(name for name in added if name not in names))


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
