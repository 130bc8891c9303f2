"""Search for friction terms on Gram matrices of stretches, each left out in turn.

Rounds of additions, exchanges of scales and removals; what other terms in place of
those selected would make of the other parameters; scales fitted beside all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.identification.friction_fits import RIDGE, StretchFits, Train
from armwise.identification.friction_guards import exceeds_pauses, worth_of_terms
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.problem import pose_problem
from armwise.regression import (
    FRICTION_WAVES,
    WAVES,
    Accumulator,
    Columns,
    FoldSums,
    FrictionTerm,
    student_tails,
)

if TYPE_CHECKING:
    from jaxtyping import Float


# Judgement: half of what a term does should be seen, not inferred.
_LEAST_FITTED = 0.5
"""Fraction of a term's squared torque that lies in rows that are fitted: a Stribeck
peak that shows only while friction reverses, in rows without weight, is not known."""

_OF_SPEED = ("stribeck", "root", "quadratic")
"""Forms that are functions of the speed's size, as Coulomb and viscous friction."""

_DRY = ("root", "stribeck", "hysteresis")
"""Forms that brake as Coulomb friction does, or in its place."""

_MOST_TERMS = 4
"""Terms per drive beyond viscous, Coulomb and offset; widths of hysteresis that enter
together are one."""

# Judgement: about as much as is often held out. Beside 40 %, the rest of short logs no
# longer shows what changes within a third of them.
_END = 0.3
"""Fraction of the stretches at either end of the log that what changes as the log goes
on must predict better, from the others: between neighbours any drift looks right."""

# A fifth of the least gain of a term: what was refused before would be so again.
_CHANGED = 0.02
"""Change of a joint's squared errors, stretch by stretch, from which on its drives are
tried again."""


class TermScale(NamedTuple):
    """A scale that columns depend on beyond their coefficients.

    Attributes:
        terms: Which of the selected terms have it: one, or sine and cosine of a ripple.
        shifted: These terms once more, of a scale a little larger.
        step: By how much: in wave numbers [1/rad] of ripples, in logarithms of widths.
    """

    terms: tuple[int, ...]
    shifted: tuple[FrictionTerm, ...]
    step: float


class FrictionSearch:
    """Forward selection on Gram matrices of the stretches, all drives at once.

    Its unknowns are the lag, the base parameters of links and drives, and the terms;
    the torque is the last column.

    Args:
        columns: What explains the torque, terms to select from among it.
        folds: Sums of the stretches.
        total: Sums of all of them.
        terms: What else is estimated.
        reversing: Which of the terms show while friction reverses: with them all rows
            of their joints are fitted.
        sticking: Which joints are seen to stick.
    """

    def __init__(
        self,
        columns: Columns,
        folds: FoldSums,
        total: Accumulator,
        terms: Sequence[str],
        reversing: frozenset[int] = frozenset(),
        sticking: frozenset[int] = frozenset(),
    ) -> None:
        self._terms, self._reversing = columns.friction, reversing
        self._sticking = sticking
        rows = columns.dynamics.mechanism.drive_rows
        self._joints = [np.flatnonzero(rows[term.joint]) for term in self._terms]
        waves: dict[tuple[int, float, int], list[int]] = {}
        for k, term in enumerate(self._terms):
            for kind, forms in enumerate(WAVES):
                if term.form in forms:
                    waves.setdefault((term.joint, term.scale, kind), []).append(k)
        self._waves = {k: both for both in waves.values() for k in both}
        # Noise from the fit without further terms, the same for every trial: errors
        # before and after are then in the same unit.
        linear = replace(columns, friction=())
        first = pose_problem(linear, (), terms, total.restrict(linear))
        std = WeightedLeastSquares().solve(first).torque_std
        problem = pose_problem(columns, (), terms, total)
        self._own = 1 + problem.base.count - len(self._terms)
        names = [problem.base.names[i] for i in problem.base.indices]
        self._plain = {
            term.joint: [
                1 + k
                for k, name in enumerate(names)
                if name in (f"{term.joint_name}.coulomb", f"{term.joint_name}.viscous")
            ]
            for term in columns.friction
        }
        self._coulomb = {
            term.joint: [
                1 + k
                for k, name in enumerate(names)
                if name == f"{term.joint_name}.coulomb"
            ]
            for term in columns.friction
        }
        bounded = np.isin(problem.base.indices, columns.non_negative)
        self._is_bounded = np.concatenate([[False], bounded])
        self._width = problem.base.count + 2
        self._stretches = StretchFits(problem, std, folds)
        self._is_seen = self._seen()
        grams = self._stretches.grams
        self._torque = np.stack([g[..., -1, -1].sum(axis=1) for g in grams], axis=1)
        self._friction = self._coulomb_torque()

    def _coulomb_torque(self) -> Float[np.ndarray, "rows joints"]:
        """Squared Coulomb friction of each joint, as fitted without terms.

        Where none is found it may be all of the torque.
        """
        x = self._stretches.fits(self._stretches.total(frozenset()), (), ())[0][0]
        squares = np.zeros(self._torque.shape)
        pairs = zip(self._stretches.moved, self._stretches.grams, strict=True)
        for j, (used, grams) in enumerate(pairs):
            own = np.isin(used, [c for some in self._coulomb.values() for c in some])
            size = np.maximum(x[used[own]], 0.0)
            parts = np.diagonal(grams.sum(axis=1), axis1=1, axis2=2)[:, own]
            squares[:, j] = parts @ size**2
        return np.where(squares > 0.0, squares, self._torque)

    def _seen(self) -> np.ndarray:
        """Whether enough of each term's torque lies in rows that are fitted."""
        squares = np.zeros((2, len(self._stretches.grams), self._width))
        for i, (used, grams) in enumerate(
            zip(self._stretches.moved, self._stretches.grams, strict=True)
        ):
            squares[:, i, used] = np.diagonal(grams.sum(axis=1), axis1=1, axis2=2)
        visible = []
        for k, joints in enumerate(self._joints, self._own):
            fitted, every = squares[:, joints, k].sum(axis=1)
            # Beside what is fitted of the joint's torque: a joint that often stands
            # still has few rows to fit, and all of its terms have.
            torque, all_torque = squares[:, joints, -1].sum(axis=1)
            part = torque / max(all_torque, 1e-300)
            visible.append(fitted / max(every, 1e-300) >= _LEAST_FITTED * part)
        # Of a ripple either wave: where it turns back is a matter of phase.
        waves = [self._waves_of(k) or [k] for k in range(len(visible))]
        return np.array([any(visible[m] for m in own) for own in waves], dtype=bool)

    def _is_shown(self, k: int, whole: frozenset[int]) -> bool:
        """Whether a term is seen in what is fitted, all rows of some joints."""
        fitted = whole | self._remembering([k])
        return bool(self._is_seen[k]) or fitted.issuperset(self._joints[k].tolist())

    def run(self) -> list[int]:
        """Take the best term of each drive, then the best beside it, and so on."""
        selection: list[int] = []
        refused: set[int] = set()
        drives = {term.joint for term in self._terms}
        errors = self._left_out(selection)
        for _ in range(_MOST_TERMS):
            additions = self._additions(selection, errors, refused, drives)
            if not additions:
                break
            selection += additions
            # Beside another, a term may no longer brake: it stood in for that one.
            wrong = self._reversed(selection)
            refused.update(wrong)
            selection = [k for k in selection if k not in wrong]
            before, errors = errors, self._left_out(selection)
            drives = self._touched(additions, before, errors)
        return sorted(self._needed(self._exchanged(selection)))

    def _exchanged(self, selection: Sequence[int]) -> list[int]:
        """Each term at the scale that predicts best beside the others.

        Its scale was chosen before these were there.
        """
        terms = list(selection)
        whole = self._remembering(terms)
        for i, k in enumerate(selection):
            term = self._terms[k]
            others = [
                other
                for other, one in enumerate(self._terms)
                if one.form == term.form and one.joint == term.joint
            ]
            is_fixed = term.kind.remembers or term.kind.repeats
            if len(others) == 1 or is_fixed or not self._is_seen[k]:
                continue
            errors = {}
            for other in others:
                trial = [*terms[:i], other, *terms[i + 1 :]]
                x = self._solutions(trial, whole, ())[0]
                # Of rows that are fitted and of all alike: a shape that is right is so
                # for both, and what sticks at reversals knows nothing of speeds.
                squares = self._errors(x, self._joints[k]).sum(axis=(1, 2))
                errors[other] = float(np.log(np.maximum(squares, 1e-300)).sum())
            terms[i] = min(errors, key=lambda other: errors[other])
        return terms

    def _needed(self, selection: Sequence[int]) -> list[int]:
        """Terms that still help beside all others; those selected last go first."""
        terms = list(selection)
        whole = self._remembering(terms)
        after = self._left_out(terms, whole)
        for k in reversed(selection):
            kind, joints = self._terms[k].kind, self._joints[k]
            group = {k, *self._waves_of(k)}
            others = [other for other in terms if other not in group]
            if kind.remembers or not others or k not in terms:
                continue
            before = self._left_out(others, whole)
            # What repeats with the position does so where friction reverses, too.
            everywhere = kind.repeats and whole.issuperset(joints.tolist())
            was, now = (x[:, :, joints].sum(axis=2) for x in (before, after))
            if not self._gain(was, now, joints, False, everywhere):
                terms, after = others, before
        lost = {self._terms[k].joint for k in selection if k not in terms}
        for drive in lost:
            terms = self._alone(terms, drive)
        return terms

    def _alone(self, terms: list[int], drive: int) -> list[int]:
        """Terms without a drive's hysteresis, if that helped beside another only."""
        own = [
            k
            for k in terms
            if self._terms[k].joint == drive and self._terms[k].kind.remembers
        ]
        if not own:
            return terms
        joints, others = self._joints[own[0]], [k for k in terms if k not in own]
        before, after = (self._left_out(some) for some in (others, terms))
        was, now = (x[:, :, joints].sum(axis=2) for x in (before, after))
        return terms if self._gain(was, now, joints, remembers=True) else others

    def _left_out(
        self, selection: Sequence[int], whole: frozenset[int] | None = None
    ) -> Float[np.ndarray, "rows folds joints"]:
        """Squared errors, as `_errors`, with some terms."""
        rows = self._remembering(selection) if whole is None else whole
        return self._errors(self._solutions(selection, rows, ())[0])

    def _touched(
        self, additions: Sequence[int], before: np.ndarray, after: np.ndarray
    ) -> set[int]:
        """Drives whose errors have changed: of others nothing new can be said."""
        change = np.abs(after - before).sum(axis=1) / before.sum(axis=1)
        changed = set(np.flatnonzero(np.any(change > _CHANGED, axis=0)).tolist())
        own = {self._terms[k].joint for k in additions}
        return own | {
            term.joint
            for k, term in enumerate(self._terms)
            if changed & set(self._joints[k].tolist())
        }

    def spread(
        self, selection: Sequence[int]
    ) -> Float[np.ndarray, "alternatives base"]:
        """What other terms in place of those selected would move the fit by.

        Shapes of friction that predict alike explain it with another Coulomb friction
        each: the one that happened to predict best is no surer than the others. Models
        are averaged, those with one term exchanged for another of the drive, and the
        odds of each beside the selected one are how often chance alone would make it
        predict that much worse (a t-test over the stretches). Rows are the changes of
        the base parameters, then of the selected terms, times the root of the weight.
        """
        whole = self._remembering(selection)
        before = self._left_out(selection, whole)
        x = self._stretches.fits(self._stretches.total(whole), selection, ())[0][0]
        rows = [np.zeros((0, self._width))]
        for t in selection:
            others = [k for k in selection if k != t]
            joint, groups = self._terms[t].joint, dict[frozenset[int], list[int]]()
            for k, term in enumerate(self._terms):
                is_open = self._is_seen[k] and term.joint == joint and k != t
                if is_open and not self._is_excluded(others, k):
                    groups.setdefault(self._remembering([*others, k]), []).append(k)
            odds, changes = [np.zeros(0)], [np.zeros((0, self._width))]
            for fitted, group in groups.items():
                solved = self._solutions(others, fitted, group)
                # Both kinds of rows are compared where one of the two has a memory.
                kinds = slice(0, 1) if fitted == whole else slice(0, 2)
                after = self._stretches.trial_errors(self._joints[t], solved)[kinds]
                was = before[kinds][:, :, self._joints[t]].sum(axis=2)[..., None]
                rises = np.log(np.maximum(after, 1e-300) / np.maximum(was, 1e-300))
                error = np.std(rises, axis=1, ddof=1) / np.sqrt(rises.shape[1])
                sureness = rises.mean(axis=1) / np.maximum(error, 1e-300)
                worst, freedom = np.maximum(sureness, 0.0).max(axis=0), len(was[0]) - 1
                tails = [student_tails(float(value), freedom) for value in worst]
                brakes = np.array([self._terms[k].kind.brakes for k in group])
                is_possible = ~brakes | np.all(solved[2] > 0.0, axis=0)
                odds.append(np.where(is_possible, tails, 0.0))
                total = self._stretches.total(fitted)
                start, moves, steps = self._stretches.fits(total, others, group)
                alternative = start + (moves[0] * steps).T
                # No more than the fit may friction that only brakes be negative.
                least = np.where(self._is_bounded, 0.0, -np.inf)
                alternative[:, :-1] = np.maximum(alternative[:, :-1], least)
                changes.append(alternative - x)
            weight = np.maximum(np.concatenate(odds), 0.0)
            weight = weight / (1.0 + weight.sum())
            rows.append(np.sqrt(weight)[:, None] * np.concatenate(changes))
        unit = np.concatenate(rows)[:, 1:-1] * (
            self._stretches.scale[-1] / self._stretches.scale[1:-1]
        )
        first = self._own - 1
        return unit[:, [*range(first), *(first + k for k in selection)]]

    def scales(
        self, count: int, scales: Sequence[TermScale]
    ) -> tuple[np.ndarray, np.ndarray, Float[np.ndarray, "scales base"]]:
        """Fit scales of terms beside all other unknowns.

        Args:
            count: Terms that are fitted; those after them are the scales' own, shifted.
            scales: The scales.

        Returns:
            What to add to each, its standard deviation, and what a unit of it moves the
            base parameters, and the terms, by.
        """
        whole = self._remembering(range(count))
        stretches = [slice(k, k + 1) for k in range(self._stretches.count)]
        grams, size = self._stretches.total(whole, *stretches).grams, self._own + count
        x = self._stretches.fits(self._stretches.total(whole), range(count), ())[0][0]
        change = np.zeros((self._width, size + len(scales) + 1))
        change[:size, :size], change[-1, -1] = np.eye(size), 1.0
        new = size
        for p, scale in enumerate(scales):
            for k in scale.terms:
                old = self._own + k
                ratio = self._stretches.scale[new] / self._stretches.scale[old]
                change[old, size + p] = -x[old] / scale.step
                change[new, size + p] = x[old] * ratio / scale.step
                new += 1
        grams = change.T @ grams @ change
        ridge = RIDGE * np.eye(size + len(scales))
        total = grams.sum(axis=0)
        fits = [
            np.linalg.solve(gram[:-1, :-1] + ridge, gram[:-1, -1])[size:]
            for gram in (total, *(total - grams))
        ]
        # Delete-a-fold jackknife.
        std = np.sqrt((len(grams) - 1) * np.var(np.stack(fits[1:]), axis=0))
        inner = total[:size, :size] + ridge[:size, :size]
        moves = -np.linalg.solve(inner, total[:size, size:-1]).T
        slopes = moves[:, 1:] * (
            self._stretches.scale[-1] / self._stretches.scale[1:size]
        )
        return fits[0], std, slopes

    def _reversed(self, selection: Sequence[int]) -> list[int]:
        """Terms that only brake, but whose coefficient is not positive.

        So are functions of speed, the last of several, beside which nothing is left of
        a drive's Coulomb or viscous friction: together they stand for these, as far as
        speeds were seen, and no further. Nor is there then anything that warmth could
        take away.
        """
        x = self._solutions(selection, self._remembering(selection), ())[0]
        mean = x.mean(axis=0)
        wrong = [
            k
            for k in selection
            if self._terms[k].kind.brakes and mean[self._own + k] <= 0.0
        ]
        for drive in {self._terms[k].joint for k in selection}:
            own = [k for k in selection if self._terms[k].joint == drive]
            remembers = any(self._terms[k].kind.remembers for k in own)
            if remembers or mean[self._plain[drive]].min() > 0.0:
                continue
            heated = [k for k in own if self._terms[k].kind.uses_heat]
            speeds = [k for k in own if self._terms[k].form in _OF_SPEED]
            wrong += heated or speeds[1:][-1:]
        return wrong + self._driving(selection, mean)

    def _driving(self, selection: Sequence[int], x: np.ndarray) -> list[int]:
        """Waves of friction that are larger than the friction they are part of.

        Where they are negative it would drive. Friction that grows with the root of the
        speed counts as it is at one radian, or metre, a second.
        """
        wrong: list[int] = []
        waves = [k for k in selection if self._terms[k].form == FRICTION_WAVES[0]]
        for k in waves:
            term, both = self._terms[k], self._waves_of(k)
            if len(both) < 2:
                continue
            dry = [
                self._own + m
                for m in selection
                if self._terms[m].joint == term.joint and self._terms[m].form in _DRY
            ]
            dry += self._coulomb[term.joint]
            size = x * (self._stretches.scale[-1] / self._stretches.scale)
            wave = size[[self._own + m for m in both]]
            if np.hypot(*wave) > np.maximum(size[dry], 0.0).sum():
                wrong += both
        return wrong

    def _remembering(self, selection: Sequence[int]) -> frozenset[int]:
        """Joints with terms that show while friction reverses: all rows are fitted."""
        return frozenset(
            int(j) for k in self._reversing & set(selection) for j in self._joints[k]
        )

    def _solutions(
        self,
        selection: Sequence[int],
        whole: frozenset[int],
        candidates: Sequence[int],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fit without each fold in turn: (β, −1), zero where not selected.

        Also returns, per fold and candidate, the direction in which adding it moves
        that fit, and how far.

        Args:
            selection: Terms that are fitted.
            whole: Joints of which all rows are fitted, not only trusted ones.
            candidates: Terms that may be added.
        """
        train = self._stretches.without_each(whole, [*selection, *candidates])
        return self._stretches.fits(train, selection, candidates)

    def _additions(
        self,
        selection: Sequence[int],
        before: Float[np.ndarray, "rows folds joints"],
        refused: set[int],
        open_drives: set[int],
    ) -> list[int]:
        """For each of some drives what helps most, if it helps enough."""
        own = self._remembering(selection)
        groups: dict[frozenset[int], dict[int, list[int]]] = {}
        for k, term in enumerate(self._terms):
            is_open = self._is_shown(k, own) and k not in refused
            is_open &= term.joint in open_drives
            if is_open and not self._is_excluded(selection, k):
                drives = groups.setdefault(own | self._remembering([k]), {})
                drives.setdefault(term.joint, []).append(k)
        best: dict[int, tuple[float, tuple[int, ...]]] = {}
        for whole, drives in groups.items():
            every = [k for candidates in drives.values() for k in candidates]
            refused = refused | self._drifting(selection, whole, every)
            falls = {drive: self._falls(drive, selection) for drive in drives}
            needed = [*selection, *every, *(k for some in falls.values() for k in some)]
            train = self._stretches.without_each(whole, needed)
            x, moves, steps = self._stretches.fits(train, selection, every)
            for drive, candidates in drives.items():
                candidates = [k for k in candidates if k not in refused]
                if not candidates:
                    continue
                columns = [every.index(k) for k in candidates]
                solved = (x, moves[..., columns], steps[:, columns])
                narrowest = self._narrowest(drive, selection)
                trial = self._best(before, candidates, solved, train, narrowest, whole)
                widths = [k for k in candidates if self._terms[k].kind.remembers]
                if whole != own and not trial[1] and widths:
                    solved = self._stretches.fits(
                        train, selection, [*falls[drive], *widths]
                    )
                    trial = self._beside_stribeck(
                        before, selection, (falls[drive], widths), solved, train
                    )
                best[drive] = max(best.get(drive, (0.0, ())), trial)
        return [k for _, terms in best.values() for k in terms]

    def _drifting(
        self, selection: Sequence[int], whole: frozenset[int], candidates: Sequence[int]
    ) -> set[int]:
        """Which candidates that change as the log goes on do not go on like that.

        Friction falls as work warms a drive up, and each end of the log must be
        predicted better from the rest of it.
        """
        heated = [k for k in candidates if self._terms[k].kind.uses_heat]
        if not heated:
            return set()
        folds = self._stretches.count
        count = round(_END * folds)
        ends = (slice(folds - count, folds), slice(0, count))
        others = (slice(0, folds - count), slice(count, folds))
        x, moves, steps = self._stretches.fits(
            self._stretches.total(whole, *others), selection, heated
        )
        drifting = set()
        for i, k in enumerate(heated):
            change = np.zeros(len(ends))
            for j in self._joints[k]:
                used = self._stretches.moved[j]
                for e, end in enumerate(ends):
                    gram = self._stretches.grams[j][1, end].sum(axis=0)
                    step = steps[e, i] * moves[e, used, i]
                    change[e] += step @ gram @ (2.0 * x[e, used] + step)
            if np.any(change >= 0.0) or np.any(steps[:, i] >= 0.0):
                drifting.add(k)
        return drifting

    def _best(
        self,
        before: np.ndarray,
        candidates: Sequence[int],
        solved: tuple[np.ndarray, np.ndarray, np.ndarray],
        train: Train,
        narrowest: int | None,
        whole: frozenset[int],
    ) -> tuple[float, tuple[int, ...]]:
        """Gain and indices of what helps a drive most; gain 0: nothing does."""
        x, moves, steps = solved
        joints = self._joints[candidates[0]]
        was = before[:, :, joints].sum(axis=2)
        together = self._together(was, candidates, (x, moves, train), narrowest)
        trial = self._stretches.trial_errors(joints, solved)
        best = together
        for i, k in enumerate(candidates):
            kind = self._terms[k].kind
            both = [candidates.index(m) for m in self._waves_of(k) if m in candidates]
            if len(both) > 1:
                _, after = self._beside((x, moves, train), candidates, both)
                is_whole = whole.issuperset(joints.tolist())
                gain = self._gain(was, after, joints, False, is_whole)
                best = max(best, (gain, tuple(candidates[m] for m in both)))
                continue
            # Whether the sign of its coefficient is one that the form can have.
            if kind.brakes and np.any(steps[:, i] <= 0.0):
                continue
            # The best of several widths owes that to chance as well.
            if kind.remembers and together[1]:
                continue
            gain = self._gain(was, trial[..., i], joints, kind.remembers)
            if k != narrowest or self._exceeds_pauses(gain, was, joints):
                best = max(best, (gain, (k,)))
        return best if best[0] > 0.0 else (0.0, ())

    def _together(
        self,
        was: Float[np.ndarray, "rows folds"],
        candidates: Sequence[int],
        solved: tuple[np.ndarray, np.ndarray, Train],
        narrowest: int | None,
    ) -> tuple[float, tuple[int, ...]]:
        """Gain of a drive's hysteresis of several widths at once, and which they are.

        What builds up over a distance seldom does so as one spring that slips at once:
        it is a sum of stop operators, of which one alone may not help.
        """
        forms = [self._terms[k].form for k in candidates]
        widths = [i for i, form in enumerate(forms) if form == "hysteresis"]
        wider = [i for i in widths if candidates[i] != narrowest]
        best = self._braking(was, candidates, wider, solved)
        if wider != widths:
            every = self._braking(was, candidates, widths, solved)
            joints = self._joints[candidates[0]]
            if best[1] or self._exceeds_pauses(every[0], was, joints):
                best = max(best, every)
        return best

    def _exceeds_pauses(
        self, gain: float, was: Float[np.ndarray, "rows folds"], joints: np.ndarray
    ) -> bool:
        """Whether hysteresis with the narrowest width explains more than pauses do."""
        torque = float(self._torque[1, joints].sum())
        return exceeds_pauses(gain, float(was[1].sum()), torque)

    def _falls(self, drive: int, selection: Sequence[int]) -> list[int]:
        """Some Stribeck speeds of a drive, if it has none."""
        speeds = [
            k
            for k, term in enumerate(self._terms)
            if term.form == "stribeck" and term.joint == drive
        ]
        # Every other one: the best beside the rest is taken in the end.
        return [k for k in speeds[::2] if not self._is_excluded(selection, k)]

    def _beside_stribeck(
        self,
        before: np.ndarray,
        selection: Sequence[int],
        candidates: tuple[Sequence[int], Sequence[int]],
        solved: tuple[np.ndarray, np.ndarray, np.ndarray],
        train: Train,
    ) -> tuple[float, tuple[int, ...]]:
        """Gain of a drive's hysteresis and friction's fall with speed, as both at once.

        Friction that builds up over a distance and then falls with speed is less than
        Coulomb's right after a reversal, and more before and later: each of the two
        alone spoils rows that the other would mend.

        Args:
            before: Errors until now.
            selection: Terms until now.
            candidates: Stribeck speeds, and widths of hysteresis.
            solved: Fits with each of these candidates, as `_solutions` has them.
            train: Gram matrices that were fitted.
        """
        speeds, widths = candidates
        x, moves, steps = solved
        joints = self._joints[widths[0]]
        was = before[:, :, joints].sum(axis=2)
        narrowest = self._narrowest(self._terms[widths[0]].joint, selection)
        best: tuple[float, tuple[int, ...]] = (0.0, ())
        for i, k in enumerate(speeds):
            # With that speed in the fit: a step of Gauss's elimination.
            own, others = moves[..., i : i + 1], moves[..., len(speeds) :]
            column = train.grams[:, None, :, train.at(np.array(self._own + k))]
            held = [np.matmul(column, one[:, train.columns]) for one in (own, others)]
            free = np.maximum(held[0], 1e-6)
            fitted = x + steps[:, i : i + 1] * own[..., 0]
            freed = others - own * (held[1] / free)
            gain, terms = self._together(was, widths, (fitted, freed, train), narrowest)
            if gain > best[0] and not self._reversed([*selection, *terms, k]):
                best = gain, (*terms, k)
        return best

    def _narrowest(self, drive: int, selection: Sequence[int]) -> int | None:
        """A drive's narrowest hysteresis, unless it has one already.

        A pause too short for the encoder to show moves a reversal as a spring of that
        width would: alone, they are not to be told apart, unless it takes plainly more
        away than pauses do.
        """
        own = [
            k
            for k, term in enumerate(self._terms)
            if term.form == "hysteresis" and term.joint == drive
        ]
        narrowest = min(own, key=lambda k: self._terms[k].scale, default=None)
        return None if set(own) & set(selection) else narrowest

    def _braking(
        self,
        was: Float[np.ndarray, "rows folds"],
        candidates: Sequence[int],
        widths: Sequence[int],
        solved: tuple[np.ndarray, np.ndarray, Train],
    ) -> tuple[float, tuple[int, ...]]:
        """Gain of those of some widths that brake beside each other; and which."""
        widths = list(widths)
        # Those with the most negative coefficient go first, until all of them brake.
        while len(widths) > 1:
            steps, after = self._beside(solved, candidates, widths)
            worst = int(np.argmin(steps.mean(axis=0)))
            if steps.mean(axis=0)[worst] > 0.0:
                terms = tuple(candidates[i] for i in widths)
                joints = self._joints[terms[0]]
                gain = self._gain(was, after, joints, remembers=True)
                return (gain, terms) if gain > 0.0 else (0.0, ())
            widths.pop(worst)
        return 0.0, ()

    def _beside(
        self,
        solved: tuple[np.ndarray, np.ndarray, Train],
        candidates: Sequence[int],
        several: Sequence[int],
    ) -> tuple[Float[np.ndarray, "folds several"], np.ndarray]:
        """Coefficients of several candidates at once, and errors of their joints."""
        x, moves, train = solved
        added = self._own + np.array([candidates[i] for i in several])
        own, columns = moves[..., several], train.grams.take(train.at(added), axis=2)
        held = own[:, train.columns].transpose(0, 2, 1)
        free = np.matmul(held, columns) + RIDGE * np.eye(len(added))
        slope = np.matmul(x[:, None, train.columns], columns)[:, 0]
        steps = -np.linalg.solve(free, slope[..., None])
        x = x + np.matmul(own, steps)[..., 0]
        joints = self._joints[candidates[several[0]]]
        return steps[..., 0], self._errors(x, joints).sum(axis=2)

    def _waves_of(self, k: int) -> list[int]:
        """Sine and cosine of a ripple, whose phase is free; of other terms nothing."""
        return self._waves.get(k, [])

    def _errors(
        self, x: np.ndarray, joints: Sequence[int] | np.ndarray | None = None
    ) -> Float[np.ndarray, "rows folds joints"]:
        """Squared error of fitted rows and of all, per stretch left out and joint."""
        return self._stretches.errors(x, joints)

    def _gain(
        self,
        before: np.ndarray,
        after: np.ndarray,
        joints: np.ndarray,
        remembers: bool,
        everywhere: bool = False,
    ) -> float:
        """Worth of terms that act on some joints, as `worth_of_terms` has it.

        Args:
            before: Errors without them.
            after: Errors with them.
            joints: The joints.
            remembers: Whether they have a memory.
            everywhere: Whether all rows are fitted though they have none.
        """
        torque = self._torque[:, joints].sum(axis=1)
        friction = self._friction[:, joints].sum(axis=1) if remembers else None
        sticks = not self._sticking.isdisjoint(joints.tolist())
        is_whole = remembers or everywhere
        return worth_of_terms(before, after, torque, is_whole, sticks, friction)

    def _is_excluded(self, selection: Sequence[int], k: int) -> bool:
        """Whether a drive has the term, or its form: Stribeck speeds exclude others."""
        term, selected = self._terms[k], [self._terms[c] for c in selection]
        return k in selection or (
            term.form != "hysteresis"
            and any(t.joint == term.joint and t.form == term.form for t in selected)
        )
