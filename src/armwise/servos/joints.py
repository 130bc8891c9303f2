"""Joints of an arm on their way to a servo model: windows, contact, zeros, loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.progress import Progress
from armwise.servos.fit import Prior, fit_servo, fit_servos, mean_errors, ranked
from armwise.servos.floor import Floor, find_floor
from armwise.servos.model import (
    ELEMENTS,
    LIMITS,
    PARAMETERS,
    Values,
    encode,
    stacked,
    tables_of,
)
from armwise.servos.motions import (
    LEAST_TRAVEL,
    cut_window,
    dense,
    held_back,
    joint_loads,
    rested_spans,
    rested_windows,
    sharpness_of,
    simulated_loads,
    travel_of,
)
from armwise.servos.rollout import Roller, ServoMotion, ServoTables, threads
from armwise.servos.starts import best_starts, element_starts, without
from armwise.servos.zeros import mounting_zeros, zero_step

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# Judgement: long enough for several reversals, short enough that many motions count.
WINDOW_S = 10.0
"""Length in [s] of the windows that structure is chosen on."""

# Judgement: some hundred reversals, beside what a joint holds still for.
_WINDOWS_S = 125.0
"""Length in [s] of all windows of a joint, in each half of the motions."""

# Judgement: less is within what a fit makes up for.
_SHARPER = 0.98
"""Error of a joint under better loads, of that under those before."""

# Judgement: models err slowly, and above some hertz an encoder's steps outweigh that.
# Below one hertz always: gravity pulls as in the measured pose.
CORRECTED_HZ = (4.0, 1.0)
"""Up to where simulated motions that load joints are brought to the measured ones."""

_ZERO_STEPS = 5
"""Gauss-Newton steps of the joints' zeros."""


SimulatedMotion = tuple[np.ndarray, np.ndarray]
"""Stamps in [s], and positions of all joints at them."""

Spans = list[tuple[int, tuple[int, int]]]
"""Windows: the number of a motion, and the rows from and to which they go."""


# Judgement: how far a joint goes in some tenths of a second, on its way there and back.
_NEAR_WALL = 0.1
"""Distance in [rad] of rows that are held from the farthest that a joint goes, within
which they are those of a wall."""


@dataclass
class ServoJoint:
    """One joint on its way: its motions, windows in two halves, and fits so far.

    `names` are the parameters its model has by now, `core` is the first fit of what
    every servo has, `best` the last of all windows, `valleys` those that it was last
    chosen from and what was there before, `passed` what few windows led to beside them,
    `tried` how many there were when an element was refused, `bare_error` the core's
    error in [rad] on motions left out, `prior` holds its torques to those of the other
    servos, `held` are parameters that halves take from all windows; `apart` is what
    intervals of its values reach beyond their information, `alternatives` the same in
    fitted coordinates, one for each servo that motions do not tell from it, and
    `left_out_ratio` the error of the two halves' fits on each other's motions over that
    on their own; `limits` are parameters beside the core's that contact was told apart
    by; `has_scale` is whether its own motions show how large its torques are; `spans`
    are the rows of its windows.
    """

    number: int
    motions: list[ServoMotion]
    halves: tuple[list[ServoMotion], list[ServoMotion]]
    fits: list[dict[str, float]]
    moves: bool
    core: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    valleys: list[dict[str, float]] = field(default_factory=list)
    passed: list[dict[str, float]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    tried: dict[str, int] = field(default_factory=dict)
    bare_error: float = np.inf
    prior: Prior | None = None
    held: tuple[str, ...] = ()
    is_alike: bool = False
    apart: dict[str, float] = field(default_factory=dict)
    alternatives: list[dict[str, float]] = field(default_factory=list)
    left_out_ratio: float = 1.0
    limits: tuple[str, ...] = ()
    has_scale: bool = True
    spans: tuple[Spans, Spans] | None = None

    @property
    def windows(self) -> list[ServoMotion]:
        """Both halves' windows."""
        return [*self.halves[0], *self.halves[1]]

    def few(self, number: int) -> list[ServoMotion]:
        """Return about so many windows, which tell most starts to lead nowhere."""
        return self.windows[:: max(1, len(self.windows) // number)]

    @property
    def models(self) -> list[dict[str, float]]:
        """Its fits so far: that of all windows first, if it has all that halves have.

        What contact was told apart by came later; what was taken away, earlier.
        """
        is_whole = self.best and np.isfinite([self.best[n] for n in self.names]).all()
        best = [without(self.best, self.names)] if is_whole else []
        return [*best, *self.fits]

    def allow(
        self,
        values: Values,
        others: Sequence[Values],
        names: Sequence[str] | None = None,
        part: float = 0.5,
    ) -> None:
        """Let intervals and draws reach servos that motions do not tell from its own.

        Args:
            values: Its own.
            others: Those that do as well; draws reach the farthest.
            names: In which parameters; its own by default.
            part: Of the way there: a half, which two standard deviations make whole.
        """
        if not others:
            return
        names = self.names if names is None else tuple(names)
        for name in names:
            apart = [part * abs(other[name] - values[name]) for other in others]
            finite = [x for x in apart if np.isfinite(x)]
            self.apart[name] = max([self.apart.get(name, 0.0), *finite])
        with np.errstate(invalid="ignore"):
            own, *coordinates = encode(stacked([values, *others]), names)
            # A limit that there is not is no distance.
            ways = part * np.nan_to_num(np.array(coordinates) - own, posinf=0, neginf=0)
        farthest = ways[int(np.argmax(np.abs(ways).sum(axis=1)))]
        # Judgement: a factor of e either way; beyond, draws would run away.
        clipped = np.clip(farthest, -1.0, 1.0)
        self.alternatives.append(dict(zip(names, clipped.tolist(), strict=True)))

    @property
    def model(self) -> dict[str, float]:
        """The best of its fits so far: of all windows, if there is one."""
        return self.models[0]


def _errors(joint: ServoJoint, runs: Sequence[np.ndarray]) -> np.ndarray:
    """Return how far free runs of a joint are off in [rad], over all its rows."""
    pairs = zip(runs, joint.motions, strict=True)
    return np.concatenate([np.abs(run - m.q[:, 0]) for run, m in pairs])


def _held_rows(
    joint: ServoJoint, runs: Sequence[np.ndarray], median: float, *, is_sure: bool
) -> list[np.ndarray]:
    """Return of every motion the rows in which a joint stays behind its free run."""
    return [
        held_back(m, run, median, is_sure=is_sure)
        for run, m in zip(runs, joint.motions, strict=True)
    ]


class JointMotions:
    """An arm's motions joint by joint, each under the load of the others' motion.

    Args:
        arms: The description in every motion.
        motions: Of the whole arm.
        roller: Of single joints.
        progress: Called with what is being done.

    Attributes:
        zeros: What the description's positions are beyond the measured, in [rad].
        zero_std: Their standard deviations; infinite where gravity shows nothing.
        refined: Zeros in [rad] by models that had grown, and those beside all others'.
        notes: What was found, in sentences.
        floor: That the links touch, once it is found.
        measured: Of every motion its joints, loaded by the others' measured motion.
        mountings: Loads, and the numbers of the motions with each.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        motions: list[ServoMotion],
        roller: Roller,
        progress: Progress,
    ) -> None:
        self.arms, self.motions, self.roller = arms, motions, roller
        self.progress, self.dof = progress, arms[0].dof
        self.whole = Roller(arms[0])
        # Not the caller's seed: starts are compared on the same halves and windows.
        # Motions in an order that no file name decides.
        self.half = np.random.default_rng(0).permutation(len(motions)) % 2
        # Few joints leave time for more windows.
        self.windows_s = _WINDOWS_S * (3.2 if self.dof <= 2 else 1.0)
        self.zeros, self.zero_std = np.zeros(self.dof), np.zeros(self.dof)
        self.refined: list[np.ndarray] = []
        self.notes: list[str] = []
        self.floor: Floor | None = None
        self.held: list[np.ndarray] = []
        self.measured: list[list[ServoMotion]] = []
        self.mountings: dict[bytes, list[int]] = {}
        for k, arm in enumerate(arms):
            key = np.array([link.inertia.vector for link in arm.links]).tobytes()
            self.mountings.setdefault(key, []).append(k)

    def joints(self) -> list[ServoJoint]:
        """Split the motions into joints."""
        self.measured = self._measured_loads(self.zeros)
        joints = []
        for j in range(self.dof):
            motions = [split[j] for split in self.measured]
            joints.append(ServoJoint(j, motions, ([], []), [], self._moves(motions)))
        return joints

    def _moves(self, motions: Sequence[ServoMotion]) -> bool:
        """Return whether a joint goes where it is commanded to, or falls.

        What the others' motion pushes about a goal that stands shows no set-point.
        """
        travel = max(float(np.ptp(m.q)) for m in motions)
        led = max(float(np.ptp(m.goals)) for m in motions)
        falls = any(bool((m.powered < 0.5).any()) for m in motions)
        # Nothing but its own servo moves a joint that is alone.
        is_led = led > LEAST_TRAVEL or falls or self.dof == 1
        return travel > LEAST_TRAVEL and is_led

    def _measured_loads(self, zeros: np.ndarray) -> list[list[ServoMotion]]:
        """Return of every motion its joints, the others moving as was measured."""
        pairs = zip(self.motions, self.arms, strict=True)
        return [joint_loads(motion, arm, zeros) for motion, arm in pairs]

    def windows(self, joint: ServoJoint) -> tuple[list[ServoMotion], list[ServoMotion]]:
        """Return the windows that a joint is fitted to, in two halves."""
        if not joint.spans:
            joint.spans = self._picked(joint, 0), self._picked(joint, 1)
        first, second = (
            [cut_window(joint.motions[k], span) for k, span in spans]
            for spans in joint.spans
        )
        return first, second

    def _picked(self, joint: ServoJoint, side: int) -> Spans:
        """Pick windows of one half: by what was commanded and measured, once for all.

        The quickest, and others evenly from all motions: how a joint holds still under
        the others' motion is most of what it does, and tells its dry friction. Of one
        joint alone, by chance, those that move more often.
        """
        if len(joint.motions) == 1:
            # One motion: every other of its quarters, or tens of seconds.
            length = min(WINDOW_S, float(joint.motions[0].time[-1]) / 4.5)
            spans = [(0, s) for s in rested_spans(joint.motions[0], length)[side::2]]
        else:
            spans = [
                (int(k), span)
                for k in np.flatnonzero(self.half == side)
                for span in rested_spans(joint.motions[k], WINDOW_S)
            ]
        windows = [cut_window(joint.motions[k], span) for k, span in spans]
        if not windows:
            return []
        length = float(np.mean([w.time[-1] for w in windows]))
        count = min(int(np.ceil(self.windows_s / length)), len(windows))
        # Limits of the set-point show only where commands are quick, which may be
        # in few windows. Judgement: a quarter of the windows are the quickest.
        order = np.argsort([-sharpness_of(w) for w in windows], kind="stable")
        quick = order[: count // 4]
        number = count - len(quick)
        if self.dof > 1:
            others = np.setdiff1d(np.arange(len(windows)), quick)
            evenly = (np.arange(number) + 0.5) * len(others) / max(number, 1)
            picked = others[evenly.astype(int)]
        else:
            travel = np.array([travel_of(w) for w in windows])
            weight = np.sqrt(travel) + 1e-3 * (travel.max() + 1e-9)
            weight[quick] = 0.0
            # The same ones from whatever start they are drawn.
            picked = np.random.default_rng([joint.number, side]).choice(
                len(windows), number, replace=False, p=weight / weight.sum()
            )
        return [spans[k] for k in (*quick, *picked)]

    def mask_contact(self, joints: list[ServoJoint], first: Sequence[str] = ()) -> bool:
        """Leave out rows that no free arm explains, and draw windows anew.

        Args:
            joints: Those of the arm.
            first: Parameters of a first model; none, if it is a finished one.

        Returns:
            Whether a limit of torque explains rows that seemed to be held.
        """
        self.progress("contact", 0.3)

        def mask(joint: ServoJoint) -> bool:
            runs, is_limited = self._free_runs(joint, joint.model), False
            median = float(np.nanmedian(_errors(joint, runs)))
            held = _held_rows(joint, runs, median, is_sure=not first)
            if any(rows.any() for rows in held):
                held, is_limited = self._beside_limit(joint, held, first, runs)
            for k, m in enumerate(joint.motions):
                sound = self.motions[k].mask[:, [joint.number]]
                joint.motions[k] = replace(m, mask=sound & ~held[k][:, None])
            joint.halves = self.windows(joint)
            return is_limited

        return any(self.roller.each(mask, [j for j in joints if j.moves]))

    def _free_runs(self, joint: ServoJoint, values: Values) -> list[np.ndarray]:
        tables = tables_of(stacked([values]))
        return [run[0, :, 0] for run in self.roller.run(joint.motions, tables)]

    def _beside_limit(
        self,
        joint: ServoJoint,
        held: list[np.ndarray],
        first: Sequence[str],
        unlimited: list[np.ndarray],
    ) -> tuple[list[np.ndarray], bool]:
        """Return rows that no servo of limited torque explains either.

        A motor at its limit stays behind its command like one that something holds. If
        that explains rows, the joint has a limit from now on; whether it is needed is
        judged later, as of any element.

        Args:
            joint: Its model fitted.
            held: Rows that seem to be held in every motion.
            first: Parameters of a first model; none, if it is a finished one.
            unlimited: Its free runs.
        """
        median = float(np.nanmedian(_errors(joint, unlimited)))
        suspect = [
            pair
            for m, rows in zip(joint.motions, held, strict=True)
            for pair in zip(
                rested_windows(m, WINDOW_S),
                rested_windows(replace(m, mask=rows[:, None]), WINDOW_S),
                strict=True,
            )
        ]
        suspect.sort(key=lambda pair: -int(pair[1].mask.sum()))
        # Judgement: some ten windows tell one number, half of them not suspect.
        windows = [window for window, _ in suspect[:6]]
        windows += joint.windows[:: max(1, len(joint.windows) // 6)]
        added = ELEMENTS["torque limit"]
        starts = element_starts(joint.model, added, windows)
        best = best_starts(self.roller, windows, starts, 2)
        limits = [name for name in LIMITS if np.isfinite(joint.model[name])]
        # Of a finished model only what the limit is mistaken for is fitted again.
        own = (*first, *limits) if first else ("damping",)
        fits = fit_servos(self.roller, windows, best, (*own, *added), iterations=6)
        values = ranked(self.roller, windows, fits)[0].values
        runs = self._free_runs(joint, values)
        # Judgement: a tenth. A limit that is not there explains a table, and makes
        # errors of free rows half as large again, or three times as large.
        free = np.concatenate([~rows for rows in held])
        before, after = (
            np.nanmean(_errors(joint, one)[free]) for one in (unlimited, runs)
        )
        if after > 1.1 * before:
            return held, False
        beside = _held_rows(joint, runs, median, is_sure=not first)
        both = [one & other for one, other in zip(held, beside, strict=True)]
        # Judgement: most of them in a first model, where a limit that is not there
        # frees up to two in five of a table's, for that is wrong in other things; a
        # tenth in a finished one, where it frees none.
        if sum(map(np.sum, both)) > (0.5 if first else 0.9) * sum(map(np.sum, held)):
            return both, False
        if first:
            joint.fits, joint.limits = [dict(values)] * 2, added
        else:
            limit = {name: values[name] for name in added}
            joint.best = joint.model | limit
            joint.fits = [dict(fit) | limit for fit in joint.fits]
            joint.names = (*joint.names, *(n for n in added if n not in joint.names))
        return both, True

    def _held(self, joint: ServoJoint) -> list[np.ndarray]:
        """Return of every motion the rows in which something holds a joint back."""
        return [
            ~m.mask[:, 0] & self.motions[k].mask[:, joint.number]
            for k, m in enumerate(joint.motions)
        ]

    def find_walls(
        self, joint: ServoJoint, values: Values, joints: Sequence[ServoJoint]
    ) -> dict[str, float]:
        """Return where something stops a joint at one position, whatever the command.

        Args:
            joint: Its contact known.
            values: Of its servo.
            joints: All of them: what holds others at the same time is no wall.
        """
        walls = {}
        q = np.concatenate([m.q[:, 0] for m in joint.motions])
        others = np.zeros(len(q), bool)
        for other in joints:
            if other is not joint:
                others |= np.concatenate(self._held(other))
        for name, side in (("upper", 1.0), ("lower", -1.0)):
            held = [
                rows & (side * (m.goals[:, 0] - m.q[:, 0]) > 0.0)
                for rows, m in zip(self._held(joint), joint.motions, strict=True)
            ]
            # A wall stops its own joint; what the hand touches holds several at once.
            there = q[np.concatenate(held) & ~others]
            # No joint goes beyond its wall: what holds it elsewhere, for however long,
            # says nothing of that. Judgement: a thousandth of the rows may be spikes.
            farthest = side * float(np.percentile(side * q, 99.9))
            there = there[np.abs(there - farthest) < _NEAR_WALL]
            # Judgement: half a second against it.
            rows = round(0.5 / float(np.median(np.diff(joint.motions[0].time))))
            if len(there) < rows:
                continue
            # Rows around a contact are among them, on their way there and back.
            wall = side * float(np.percentile(side * there, 90.0))
            # Judgement: ten milliradians are what gears and parts give way by. What
            # stops a joint here and there is no wall of its own.
            is_near = np.abs(there - wall) < 0.01
            if np.mean(is_near) < 0.25 or np.mean(side * (q - wall) > 0.01) > 1e-3:
                continue
            if np.sum(is_near) < rows:
                continue
            met = [
                m for m, h in zip(joint.motions, held, strict=True)
                if (np.abs(m.q[h, 0] - wall) < 0.01).any()
            ]  # fmt: skip
            whole = [replace(m, mask=np.ones_like(m.mask)) for m in met]
            free, stopped = (
                np.mean(mean_errors(self.roller, whole, dict(values) | extra))
                for extra in ({}, {name: wall})
            )
            # Judgement: a tenth, in the motions that meet it.
            if stopped < 0.9 * free:
                walls[name] = wall
        return walls

    def find_zeros(self, joints: list[ServoJoint], core: Sequence[str]) -> None:
        """Find how far joints stand from the description's zeros.

        One joint alone has its zero as an element of its own model.
        """
        if self.dof == 1:
            return
        moving = [joint for joint in joints if joint.moves]
        states = [(list(joint.motions), joint.halves, joint.fits) for joint in joints]
        measured = self.measured
        names = {
            joint.number: [
                *core, *(n for n in LIMITS if np.isfinite(joint.fits[0][n]))
            ]
            for joint in moving
        }  # fmt: skip
        every = np.ones(self.dof, bool)
        zeros, std, beside_all = self._off_zeros(joints, names, every)
        # Not told from none: the description's, and as far off as it might be.
        wide = np.hypot(*beside_all)
        # Judgement: no joint is put together ten degrees off unseen.
        self.zero_std = np.where(wide > 0.17, np.inf, wide)
        if zeros.any():
            self.zeros = zeros
            own = np.hypot(std, zeros - beside_all[0])
            self.zero_std = np.where(zeros != 0.0, own, self.zero_std)
            return
        self.measured = measured
        for joint, (motions, halves, fits) in zip(joints, states, strict=True):
            joint.motions, joint.halves, joint.fits = motions, halves, fits

    def refine_zeros(self, joints: list[ServoJoint]) -> None:
        """Find zeros that are off once more, by models that have grown since.

        What friction a first model lacks looks like a zero, and other joints' zeros
        make up for it.
        """
        if self.dof == 1:
            return
        states = [(list(j.motions), j.halves, j.fits) for j in joints]
        measured, before = self.measured, self.zeros
        names = {joint.number: joint.names for joint in joints if joint.moves}
        for joint in [joint for joint in joints if joint.moves]:
            joint.fits = [joint.model] * 2
        every = np.ones(self.dof, bool)
        zeros, _, beside_all = self._off_zeros(joints, names, every)
        zeros, wide = self._told_zeros(joints, names, zeros, beside_all)
        # Judgement: as where they are first sought.
        is_open = (zeros == 0.0) & (wide > 0.17)
        self.zero_std = np.where(is_open, np.inf, wide)
        self.zeros = zeros
        if not (zeros.any() or before.any()):
            self.measured = measured
            for joint, (motions, halves, fits) in zip(joints, states, strict=True):
                joint.motions, joint.halves, joint.fits = motions, halves, fits
            return
        self._load(joints, zeros)

        def again(joint: ServoJoint) -> None:
            joint.best = fit_servo(
                self.roller, joint.windows, joint.fits[0], joint.names,
                iterations=4, prior=joint.prior,
            ).values  # fmt: skip
            joint.fits = [joint.best] * 2

        self.roller.each(again, [joint for joint in joints if joint.moves])

    def _told_zeros(
        self,
        joints: list[ServoJoint],
        names: Mapping[int, Sequence[str]],
        zeros: Float[np.ndarray, " dof"],
        beside_all: tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]],
    ) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
        """Return zeros that their own intervals tell from none, and deviations of all.

        Args:
            joints: Those of the arm.
            names: What each is fitted in.
            zeros: Those that are off by the information alone.
            beside_all: Zeros and deviations with all of them free.
        """
        while True:
            every = [*self.refined, zeros, beside_all[0]]
            # That the others stand as described is a doubt, too, what models that grew
            # on made of it (two standard deviations hold all of that), and how far it
            # still moves.
            models = 0.5 * np.ptp(every, axis=0)
            is_off = np.abs(zeros) > 1.96 * np.hypot(beside_all[1], models)
            if not ((zeros != 0.0) & ~is_off).any():
                self.refined = every
                # One that is not taken may be what it came out as.
                least = np.where(zeros == 0.0, np.abs(beside_all[0]), 0.0)
                spread = np.maximum(np.hypot(models, zeros - self.zeros), least)
                return zeros, np.hypot(beside_all[1], spread)
            zeros = np.where(is_off, zeros, 0.0)
            self._load(joints, zeros)
            if is_off.any():
                stepped, _ = self._stepped_zeros(joints, names, zeros, is_off)
                zeros = np.where(is_off, stepped, 0.0)

    def zero_notes(self) -> list[str]:
        """Say which joints stand elsewhere than described."""
        return [
            f"{self.arms[0].joints[j].name} stands {np.degrees(self.zeros[j]):.1f}° "
            f"± {np.degrees(1.96 * self.zero_std[j]):.1f}° beyond the description's "
            "zero, as gravity pulls; a centre of mass that is off looks the same."
            for j in np.flatnonzero(self.zeros)
        ]

    def _off_zeros(
        self,
        joints: list[ServoJoint],
        names: Mapping[int, Sequence[str]],
        free: Bool[np.ndarray, " dof"],
    ) -> tuple[
        Float[np.ndarray, " dof"],
        Float[np.ndarray, " dof"],
        tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]],
    ]:
        """Return the zeros that are surely off, none for the others, and deviations.

        And zeros and deviations beside all that are free: without those that may be
        none the others are others, which is doubt, too.
        """
        zeros, std = self._stepped_zeros(joints, names, self.zeros, free)
        beside_all = zeros, std
        is_off, was_off = np.abs(zeros) > 3.0 * std, free
        while is_off.any() and (is_off != was_off).any():
            start = np.where(is_off, zeros, 0.0)
            self._load(joints, start)
            zeros, std = self._stepped_zeros(joints, names, start, is_off)
            is_off, was_off = is_off & (np.abs(zeros) > 3.0 * std), is_off
        return np.where(is_off, zeros, 0.0), std, beside_all

    def _stepped_zeros(
        self,
        joints: list[ServoJoint],
        names: Mapping[int, Sequence[str]],
        zeros: Float[np.ndarray, " dof"],
        free: Bool[np.ndarray, " dof"],
    ) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
        """Step some joints' zeros, and servos, to where they explain most.

        Returns:
            Zeros and their standard deviations in [rad]; infinite where gravity shows
            nothing.
        """
        moving = [joint for joint in joints if joint.moves]
        std = np.full(self.dof, np.inf)
        # A first model fits badly far from its zeros, and deviations are wide then.
        is_grown = bool(self.refined)
        for number in range(_ZERO_STEPS):
            self.progress("joint zeros", 0.31)
            step = zero_step(
                self.roller, self.arms, self.motions,
                {j.number: (j.motions, j.fits[0], names[j.number]) for j in moving},
                zeros, free,
            )  # fmt: skip
            std = step.std
            # Judgement: beyond ten degrees the linear picture says little.
            clipped = np.where(np.isfinite(std), np.clip(step.step, -0.2, 0.2), 0.0)
            is_none = not (np.abs(zeros + step.step) > 3.0 * std).any()
            if is_none and (number or is_grown):
                # Where they might be, with the servos that none were found by.
                zeros = zeros if number else zeros + clipped
                break
            # Judgement: a tenth of what is not known.
            if number and (np.abs(step.step) <= 0.1 * std).all():
                break
            zeros = zeros + clipped
            self._load(joints, zeros)
            # Not pulled to other servos, which had wrong zeros: that converges worse.
            fits = self.roller.each(
                lambda joint: fit_servo(
                    self.roller, joint.windows, joint.fits[0], names[joint.number],
                    iterations=4,
                ),
                moving,
            )  # fmt: skip
            for joint, fit in zip(moving, fits, strict=True):
                joint.fits = [fit.values] * 2
        return zeros, std

    def _load(self, joints: list[ServoJoint], zeros: np.ndarray) -> None:
        """Load every joint by the others' measured motion, and cut windows anew."""
        self.measured = self._measured_loads(zeros)
        for k, loaded in enumerate(self.measured):
            self._take(joints, k, loaded)
        for joint in joints:
            joint.halves = self.windows(joint)

    def _take(
        self, joints: Sequence[ServoJoint], k: int, loaded: list[ServoMotion]
    ) -> None:
        for joint, one in zip(joints, loaded, strict=True):
            joint.motions[k] = replace(one, mask=joint.motions[k].mask)

    def reload(
        self, joints: list[ServoJoint], corrected: Sequence[float] = CORRECTED_HZ[-1:]
    ) -> None:
        """Load joints by the others' simulated motion, where that explains more.

        Each joint takes what explains it best.

        Args:
            joints: Those of the arm.
            corrected: Frequencies in [Hz] up to which simulated motions are brought to
                the measured ones.
        """
        if self.dof == 1:
            self._mount(joints[0])
            return
        self.progress("loads", 0.33)
        runs = self._simulated(self._table(joints))
        best = {j.number: (self._unexplained(j), j.motions) for j in joints if j.moves}
        for corrected_hz in corrected:
            self._load_by(joints, runs, corrected_hz)
            for joint in [joint for joint in joints if joint.moves]:
                error = self._unexplained(joint)
                if error < _SHARPER * best[joint.number][0]:
                    best[joint.number] = error, joint.motions
        for joint in [joint for joint in joints if joint.moves]:
            joint.motions = best[joint.number][1]
            joint.halves = self.windows(joint)

    def _simulated(self, table: ServoTables) -> list[SimulatedMotion]:
        """Return the whole arm's free runs: stamps in [s] and positions."""
        runs = self.whole.run([dense(m) for m in self.motions], table)
        return [
            (np.arange(run.shape[1]) * m.clock[0], run[0])
            for run, m in zip(runs, self.motions, strict=True)
        ]

    def _load_by(
        self,
        joints: Sequence[ServoJoint],
        runs: Sequence[SimulatedMotion],
        corrected_hz: float,
    ) -> None:
        """Load joints by the others' free runs, brought to what was measured below."""
        for joint in joints:
            joint.motions = list(joint.motions)
        loads = threads().map(
            partial(simulated_loads, zeros=self.zeros, corrected_hz=corrected_hz),
            self.motions, self.arms, runs, self.measured,
        )  # fmt: skip
        for k, loaded in enumerate(loads):
            self._take(joints, k, loaded)

    def load_by(self, joints: Sequence[ServoJoint], servos: Sequence[Values]) -> None:
        """Load joints by the free runs of the whole arm, one servo for each joint."""
        runs = self._simulated(self._arm_table(servos))
        self._load_by(joints, runs, CORRECTED_HZ[-1])
        for joint in joints:
            joint.halves = self.windows(joint)

    def whole_errors(
        self, joints: Sequence[ServoJoint], arms: Sequence[Sequence[Values]]
    ) -> Float[np.ndarray, "arms dof"]:
        """Return the mean errors in [rad] of the whole arm's free runs.

        In rows that count: up to eight arms take no longer than one. NaN of a joint
        that has none.

        Args:
            joints: All of them.
            arms: One servo for each joint of every arm.
        """
        tables = [self._arm_table(servos) for servos in arms]
        table = {k: np.concatenate([t[k] for t in tables]) for k in tables[0]}
        floors = None
        if self.floor is not None:
            floors = np.repeat(self.floor.rows(self.arms[0])[None], len(arms), axis=0)
        runs = self.whole.run(self.motions, table, floors=floors)
        sums, counts = np.zeros((len(arms), self.dof)), np.zeros(self.dof)
        for k, (run, motion) in enumerate(zip(runs, self.motions, strict=True)):
            used = np.hstack([joint.motions[k].mask for joint in joints])
            sums += np.where(used, np.abs(run - motion.q), 0.0).sum(axis=1)
            counts += used.sum(axis=0)
        return sums / np.where(counts > 0.0, counts, np.nan)

    def _arm_table(self, servos: Sequence[Values]) -> ServoTables:
        """Return one servo for each joint as those of one arm."""
        table = {k: x.T for k, x in tables_of(stacked(servos)).items()}
        return table | {"zero": self.zeros[None]}

    def _mount(self, joint: ServoJoint) -> None:
        """Give every load of one joint alone the zero that it was put on with."""
        if len(self.mountings) < 2 or not joint.moves:
            return
        self.progress("mountings", 0.33)
        groups = [[joint.motions[k] for k in rows] for rows in self.mountings.values()]
        zeros = mounting_zeros(self.roller, groups, joint.model)
        # The servo's own zero is that of most, whatever one load is put on by.
        zeros -= np.median(zeros)
        for zero, rows in zip(zeros, self.mountings.values(), strict=True):
            mounted = np.array([zero])
            for k in rows:
                joint.motions[k] = replace(joint.motions[k], mounted=mounted)
                self.motions[k] = replace(self.motions[k], mounted=mounted)
        joint.halves = self.windows(joint)

    def _table(self, joints: Sequence[ServoJoint]) -> ServoTables:
        """Return the joints' fits so far as those of one arm."""
        resting = at_rest([joint.model for joint in joints if joint.moves])
        fits = [joint.model if joint.moves else resting for joint in joints]
        return self._arm_table(fits)

    def mask_floor(self, joints: Sequence[ServoJoint]) -> None:
        """Find a floor that holds the arm back, and leave out rows in which it does."""
        # One joint alone has no other pose to tell a floor from a wall.
        if self.dof == 1:
            return
        self.progress("floor", 0.8)
        table = self._table(joints)
        for joint in [joint for joint in joints if joint.moves]:
            for name, wall in self.find_walls(joint, joint.model, joints).items():
                table[name][0, joint.number] = wall
        every = zip(*(self._held(joint) for joint in joints), strict=True)
        self.held = [np.any(rows, axis=0) for rows in every]
        self.floor, reason = find_floor(self.arms[0], table, self.motions, self.held)
        if reason:
            self.notes.append(
                "A floor was looked for in what holds joints back, and not taken: "
                f"{reason}."
            )
        if self.floor is None:
            return
        floors = self.floor.rows(self.arms[0])[None]
        pairs = zip(
            self.whole.run(self.motions, table),
            self.whole.run(self.motions, table, floors=floors),
            strict=True,
        )
        for k, (free, pushed) in enumerate(pairs):
            # Less is no contact that a fit would notice.
            touches = np.abs(free[0] - pushed[0]) > self.motions[k].rounding
            errors = [np.abs(x[0] - self.motions[k].q) for x in (free, pushed)]
            # Where the arm went as if there were none, there was none.
            if (errors[0] - errors[1])[touches].sum() < 0.0:
                continue
            for joint in joints:
                m = joint.motions[k]
                used = m.mask & ~touches[:, [joint.number]]
                joint.motions[k] = replace(m, mask=used)
        for joint in joints:
            joint.halves = self.windows(joint)

    def _unexplained(self, joint: ServoJoint) -> float:
        """Return the mean error of a joint's fit in windows of its motions."""
        first, second = self.windows(joint)
        errors = mean_errors(self.roller, [*first, *second], joint.model)
        return float(np.nanmean(errors))


def at_rest(others: Sequence[Values]) -> dict[str, float]:
    """Return a usual servo for a joint that never moved."""
    values = {
        name: float(np.median([other[name] for other in others])) for name in PARAMETERS
    }
    return values | {"offset": 0.0}
