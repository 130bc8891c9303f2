"""Elements that servo models can do without, once the others are there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.progress import Progress, part_of
from armwise.servos.fit import doubt, idle, is_shown, undetermined
from armwise.servos.halves import SURE, TIMING, WORTH, HalfFits, by_chance, mean_of
from armwise.servos.joints import ServoJoint
from armwise.servos.model import (
    ELEMENTS,
    FALLS,
    LIMITS,
    PARAMETERS,
    Values,
    meaningful,
)
from armwise.servos.rollout import count_doubt
from armwise.servos.servo import ServoElement
from armwise.servos.starts import beyond_servos, without, without_derivative

FIRST = (
    "acceleration limit",
    "derivative gain",
    "slew limit",
    "load friction",
    "bearing friction",
    "Stribeck friction",
)
"""Elements that are mistaken for one another: each alone stands for the others."""

_FALLING = ("Stribeck friction", "stiction")
"""Elements of friction that falls off with speed."""

# Judgement: a fifth of what an element must be worth.
_NOTHING = 0.001
"""Fraction by which errors on motions left out may grow where elements go."""


class Pruning:
    """Takes elements away from the servos of an arm.

    Args:
        halves: Their fits, which change.
        core: What every servo has.
        progress: Called with what is being done.
    """

    def __init__(
        self, halves: HalfFits, core: tuple[str, ...], progress: Progress
    ) -> None:
        self.halves, self.core, self.progress = halves, core, progress
        self.roller, self.joints = halves.roller, halves.joints

    def prune(self) -> None:
        """Take away what models can do without, now that the other elements are there.

        Of the many elements tried some pass by chance, and some only stood for others
        that came later.
        """
        self.progress("what is not needed", 0.78)
        self.roller.each(self.drop_idle, self.joints)
        for element in FIRST[:2]:
            self._drop_from_all(element)
        for element in reversed(FIRST[2:]):
            self.reconsider(element)
        if any(joint.limits for joint in self.joints):
            self.reconsider("torque limit")
        report = part_of(self.progress, "what is not needed", 0.79, 0.8)
        self.roller.each(self._strip, self.joints, report)

    def _strip(self, joint: ServoJoint) -> None:
        """Take away what a joint's windows do not show."""
        self._drop_vague(joint)
        for element in reversed(ELEMENTS):
            self._drop_unshown(joint, element)
        self._drop_vague(joint)
        self.drop_idle(joint)

    def _drop_vague(self, joint: ServoJoint) -> None:
        """Take away what is so high that a factor of e higher is the same.

        It only stands for a little more delay, or for dry friction.
        """
        for name in set.intersection(*map(beyond_servos, joint.fits)):
            self._drop(joint, [name], tolerance=np.inf)
        vague = undetermined(self.roller, joint.windows, self.halves.here(joint))
        for added in (*([n] for n in LIMITS), *(ELEMENTS[e] for e in _FALLING)):
            if vague & set(added):
                self._drop(joint, added, tolerance=_NOTHING)

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
            sizes and not is_limit and not is_shown(self.halves.here(joint), sizes)
        ):
            gone = [n for n in added if n != "saturation"]
            self._drop(joint, gone, tolerance=_NOTHING)

    def drop_idle(self, joint: ServoJoint) -> None:
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
            best = self.halves.lowest(joint, names, starts, 2 * self.halves.steps)
            fits = self.halves.halved(joint, names, best, self.halves.steps)
            errors = self.halves.window_errors(joint, fits, joint.fits)
            return names, fits, self.halves.evidence(joint, names, best), errors

        trials = self.roller.each(bare, own)
        evidence = sum(trial[2] for trial in trials)
        rows = [np.subtract(*trial[3]) for trial in trials]
        before = sum(self.halves.errors[j.number] for j in own)
        errors = [mean_of(trial[3][0]) for trial in trials]
        after = sum(errors)
        # Beyond doubt, too: it trades with delay and damping.
        sure = SURE * doubt(np.concatenate(rows)) * len(own) if rows else 0.0
        is_needed = after - before > max(WORTH * before, sure) or evidence > 0.0
        mean = (self.halves.mean_error() * len(self.joints) + after - before) / len(
            self.joints
        )
        self.halves.verdicts[element] = ServoElement(
            element, mean, self.halves.mean_error(), is_needed
        )
        if is_needed:
            return
        for joint, trial, error in zip(own, trials, errors, strict=True):
            joint.names, joint.fits = trial[:2]
            self.halves.errors[joint.number] = error

    def reconsider(self, element: str) -> None:
        """Take an element away from the joints that do not need it."""
        added = set(ELEMENTS[element])
        errors = dict(self.halves.errors)
        own = [j for j in self.joints if added & set(j.names)]
        dropped = self.roller.each(lambda j: self._drop(j, ELEMENTS[element]), own)
        errors |= {j.number: error for j, error in zip(own, dropped, strict=True)}
        is_needed = any(added & set(j.names) for j in self.joints)
        self.halves.verdicts[element] = ServoElement(
            element,
            float(np.mean(list(errors.values()))),
            self.halves.mean_error(),
            is_needed,
        )

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
        if set(added) & {*TIMING, "saturation"}:
            fits = self.halves.refitted(joint, names, starts, 2 * self.halves.steps)
        else:
            fits = [
                self.halves.fitted(
                    joint, side, [start], 2 * self.halves.steps, names
                ).values
                for side, start in enumerate(starts)
            ]
        rows = self.halves.window_errors(joint, joint.fits, fits)
        before, after = self.halves.errors[joint.number], mean_of(rows[1])
        more = max(WORTH * before, self.halves.least(joint))
        if not self._is_plain(joint, added):
            # As where elements are added.
            more = max(more, SURE * by_chance(rows[1] - rows[0], added))
        if tolerance is not None:
            more = tolerance * before
        if after >= before + more:
            return after
        starts = [without(joint.model, names), *fits]
        best = self.halves.lowest(joint, names, starts, 2 * self.halves.steps)
        if tolerance is not None or self._is_cheap(joint, names, best):
            joint.names, joint.fits, joint.best = names, fits, best
            self.halves.errors[joint.number] = after
        return after

    def _is_cheap(
        self, joint: ServoJoint, names: Sequence[str], simpler: Values
    ) -> bool:
        """Return whether all windows, too, let a model go for one of fewer parameters.

        Halves that both err in what they lack say nothing of an element that all
        windows plainly show.
        """
        return self.halves.evidence(joint, names, simpler) < 0.0

    def _is_plain(self, joint: ServoJoint, added: Sequence[str]) -> bool:
        """Return whether all windows together show an element to be there.

        What windows left out lose without it is then its worth, and not chance.
        """
        sizes = [n for n in _sizes(added) if n in joint.names]
        is_limit = any(np.isinf(PARAMETERS[n].absent) for n in added)
        return bool(sizes) and not is_limit and is_shown(self.halves.here(joint), sizes)


def _sizes(added: Sequence[str]) -> list[str]:
    """Return the parameters of an element that are zero where it is not there."""
    return [n for n in added if PARAMETERS[n].scale != "log" and n not in FALLS]
