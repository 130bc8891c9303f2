"""A floor that links touch: where it is, found from joints that it holds back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, mechanism_of, potential_energy
from armwise.errors import ArgumentError
from armwise.servos.motions import windows_of
from armwise.servos.rollout import (
    LOST,
    MOST_POINTS,
    Roller,
    ServoMotion,
    ServoTables,
    least_scale,
    robust,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: long enough to come down and to go up again.
_WINDOW_S = 10.0
"""Length in [s] of windows a floor is fitted to."""

# Judgement: some hundred seconds tell four numbers a point.
_MOST_WINDOWS = 16
"""Windows that are fitted, at most."""

# Judgement: less is within what gears and links give way by.
_LEAST_DROP = 3e-3
"""How far in [m] a free run is below a link that a floor holds up, at least."""

_REACHES = (0.5, 1.0, 2.0, 3.0, 4.0)
"""Points tried on a link, of the way from its joint to its centre of mass."""

# Judgement: a wooden table under a hand of plastic, whose gears and brackets give way.
_STIFFNESS = 2e3
"""First stiffness in [N/m]."""

_STEPS = 3e-3, 1e-3, 0.3
"""Differences: of a point and of the height in [m], of the stiffness' logarithm."""

_DAMPINGS = (0.0, 0.1, 1.0, 10.0)
"""Of Levenberg and Marquardt, tried at once."""

_ROUNDS = 4
"""Times that a floor is refitted beside motions that it spoils, at most, less one."""

_ITERATIONS = 8
"""Steps of the fit, at most."""

# Judgement: as for walls, a tenth of the error where it touches.
_WORTH = 0.1
"""Fraction of the cost that a floor, or one more point that touches it, must save."""


@dataclass(frozen=True, eq=False)
class Floor:
    """A level floor, and the points of the links that it pushes up.

    Attributes:
        links: Number of every point's link.
        points: In the frames of their links, in [m].
        height: Above the base's origin in [m].
        stiffness: In [N/m].
    """

    links: tuple[int, ...]
    points: Float[np.ndarray, "points 3"]
    height: float
    stiffness: float

    def rows(self, arm: Arm) -> Float[np.ndarray, "points numbers"]:
        """Return the points as rollouts take them."""
        mechanism = mechanism_of(arm)
        pull = float(np.linalg.norm(arm.gravity))
        rows = []
        for number, point in zip(self.links, self.points, strict=True):
            columns = mechanism.group_matrix[:, mechanism.layout.link(number)]
            weight = columns @ np.concatenate([[1.0], point, np.zeros(6)]) / pull
            # Grouping moves masses between links, which moves energies by a constant.
            straight = mechanism.joints([0.0] * arm.dof, True)
            energy = potential_energy(
                mechanism.skeleton, straight, mechanism.bodies(list(weight))
            )
            there = heights(arm, np.zeros((1, arm.dof)), number) @ [*point, 1.0]
            level = self.height + float(energy) - float(there[0])
            rows.append([*weight, level, self.stiffness])
        return np.array(rows)


def heights(
    arm: Arm, q: Float[np.ndarray, "samples dof"], number: int
) -> Float[np.ndarray, "samples 4"]:
    """Return rows whose product with (point, 1) is how high a link's point is."""
    up = -np.asarray(arm.gravity) / np.linalg.norm(arm.gravity)
    pose = Dynamics(arm).link_pose(q, arm.links[number].name)
    return np.einsum("i,tik->tk", up, pose[:, :3])


def find_floor(
    arm: Arm,
    table: ServoTables,
    motions: Sequence[ServoMotion],
    held: Sequence[np.ndarray],
) -> Floor | None:
    """Find the floor that holds joints back, if it is one.

    Links are tried from the last one inwards; a point of them is moved, with the
    floor's height and stiffness, until the arm's free runs touch it as the arm did.

    Args:
        arm: The description.
        table: Of its servos, without a floor.
        motions: Of the whole arm.
        held: Of every motion, rows in which a joint is held back.
    """
    if not np.any(arm.gravity):
        return None
    search = _Search(arm, table, motions, held)
    floor = search.floor() if search.windows else None
    for _ in range(_ROUNDS):
        if floor is None or search.suits(floor):
            return floor
        # Where it holds up what was free tells more of it.
        floor = search.refitted(floor)
    return None


class _Search:
    """The windows in which something holds an arm back, and floors on trial."""

    def __init__(
        self,
        arm: Arm,
        table: ServoTables,
        motions: Sequence[ServoMotion],
        held: Sequence[np.ndarray],
    ) -> None:
        self.arm, self.table, self.roller = arm, table, Roller(arm)
        self.zero = table["zero"][0]
        self.motions = motions
        runs = self.roller.run(motions, table)
        self.q = np.concatenate([m.q for m in motions]) + self.zero
        self.free = np.concatenate([run[0] for run in runs]) + self.zero
        self.held = np.concatenate(held)
        windows, first = [], 0
        for m, rows in zip(motions, held, strict=True):
            for window in windows_of(m, _WINDOW_S):
                span = slice(first, first + len(window.time))
                windows.append((int(self.held[span].sum()), span, window))
                first = span.stop
            first += len(rows) - sum(len(w.time) for w in windows_of(m, _WINDOW_S))
        self.all_windows = windows
        windows = sorted(windows, key=lambda row: -row[0])
        # Judgement: half a second; less is chance.
        self.least = 0.5 / float(np.median(np.diff(motions[0].time)))
        touching = [w for count, _, w in windows if count >= self.least]
        self.windows = touching[:_MOST_WINDOWS]
        errors = np.abs(self._errors([None])[0]) if self.windows else np.ones((1, 1))
        self.scale = least_scale(np.median(errors, axis=0), motions[0].rounding)

    def floor(self) -> Floor | None:
        """Return the floor, its points added one at a time."""
        best, cost = None, self._costs([None])[0]
        for _ in range(MOST_POINTS):
            trials = self._candidates(best)
            if not trials:
                break
            near = _around(trials[int(np.argmin(self._costs(trials)))])
            fitted = self._fitted(near[int(np.argmin(self._costs(near)))])
            reached = self._costs([fitted])[0]
            if reached > (1.0 - _WORTH) * cost:
                break
            best, cost = fitted, reached
        return best

    def suits(self, floor: Floor) -> bool:
        """Return whether a floor leaves alone what moves freely, all but a little."""
        saved = self._saved(floor)
        # Judgement: a quarter of what it saves where joints are held, for rows around a
        # contact are not all told as held; a wall taken for a floor costs more.
        return bool(-saved[~self.held].sum() < 0.25 * saved[self.held].sum())

    def refitted(self, floor: Floor) -> Floor:
        """Fit a floor beside the windows, too, that it spoils most."""
        saved = self._saved(floor)
        worst = sorted(self.all_windows, key=lambda row: saved[row[1]].sum())
        fitted = {id(window) for window in self.windows}
        # Judgement: as much again as a quarter of those that touch.
        more = [w for _, _, w in worst if id(w) not in fitted][: _MOST_WINDOWS // 4]
        self.windows = [*self.windows, *more]
        return self._fitted(floor)

    def _saved(self, floor: Floor) -> Float[np.ndarray, " samples"]:
        """Return how much nearer a floor's free runs are, row by row, in [rad]."""
        floors = floor.rows(self.arm)[None]
        runs = self.roller.run(self.motions, self.table, floors=floors)
        pushed = np.concatenate([run[0] for run in runs]) + self.zero
        return (np.abs(self.free - self.q) - np.abs(pushed - self.q)).sum(axis=1)

    def _candidates(self, floor: Floor | None) -> list[Floor]:
        """Points at which free runs are far below where the arm was held."""
        trials = []
        for number in range(self.arm.dof):
            body = self.arm.links[number].inertia.vector
            center = body[1:4] / max(float(body[0]), 1e-9)
            rows, below = (heights(self.arm, q, number) for q in (self.q, self.free))
            for reach in _REACHES:
                point = np.append(reach * center, 1.0)
                z, free = rows @ point, below @ point
                low = self.held & (free < z - _LEAST_DROP)
                if low.sum() < self.least:
                    continue
                if floor is None:
                    level = float(np.median(z[low]))
                    one = Floor((number,), point[None, :3], level, _STIFFNESS)
                else:
                    one = Floor(
                        (*floor.links, number),
                        np.vstack([floor.points, point[:3]]),
                        floor.height, floor.stiffness,
                    )  # fmt: skip
                trials.append(one)
        return trials

    def _fitted(self, floor: Floor) -> Floor:
        """Move a floor and its points to where free runs touch as the arm did."""
        x, cost = _coordinates(floor), self._costs([floor])[0]
        sizes = np.array([_STEPS[0]] * (len(x) - 2) + [*_STEPS[1:]])
        damping = 1.0
        for _ in range(_ITERATIONS):
            moved = [_floor(floor.links, x + d) for d in np.diag(sizes)]
            errors = self._errors([_floor(floor.links, x), *moved])
            r = errors[0] / self.scale
            J = (errors[1:] - errors[0]) / self.scale / sizes[:, None, None]
            w = 1.0 / np.sqrt(1.0 + r**2)
            J, r, w = J.reshape(len(x), -1), r.ravel(), w.ravel()
            H, g = (J * w) @ J.T, (J * w) @ r
            own = np.diag(np.maximum(np.diag(H), 1e-9))
            steps = [np.linalg.solve(H + d * damping * own, g) for d in _DAMPINGS[1:]]
            steps.append(np.linalg.lstsq(H, g, rcond=1e-10)[0])
            # Judgement: a centimetre, a factor of e at most, for contact is no line.
            limits = sizes / [*[0.3] * (len(x) - 2), 0.1, 0.3]
            trials = [
                _floor(floor.links, x - np.clip(s, -limits, limits)) for s in steps
            ]
            costs = self._costs(trials)
            k = int(np.argmin(costs))
            # Judgement: a thousandth is far within what floors differ by. Contact
            # comes and goes, and shorter steps may lead where long ones do not.
            if costs[k] > 0.999 * cost:
                if damping > 1.0:
                    break
                damping = 30.0
                continue
            x, cost, damping = _coordinates(trials[k]), costs[k], 1.0
        return _floor(floor.links, x)

    def _errors(self, floors: Sequence[Floor | None]) -> Float[np.ndarray, "floors n"]:
        """Return errors of all windows' rows that count, joint by joint."""
        points = [np.zeros((0, 0)) if f is None else f.rows(self.arm) for f in floors]
        tables = {k: np.repeat(x, len(floors), axis=0) for k, x in self.table.items()}
        runs = self.roller.run(self.windows, tables, floors=np.array(points))
        errors = [
            np.where(m.mask, run - m.q, 0.0)
            for run, m in zip(runs, self.windows, strict=True)
        ]
        # A run that is lost is far off, and not all at once.
        return np.nan_to_num(np.concatenate(errors, axis=1), nan=LOST)

    def _costs(self, floors: Sequence[Floor | None]) -> Float[np.ndarray, " floors"]:
        errors = self._errors(floors)
        return (robust(errors, self.scale) / self.scale).sum(axis=(1, 2))


def floor_to_dict(floor: Floor, arm: Arm) -> dict[str, Any]:
    """Return a floor as JSON has it."""
    return {
        "links": [arm.links[number].name for number in floor.links],
        "points": floor.points.tolist(),
        "height": floor.height,
        "stiffness": floor.stiffness,
    }


def floor_from_dict(plain: Mapping[str, Any], arm: Arm) -> Floor:
    """Return a floor of `floor_to_dict`.

    Raises:
        ArgumentError: If its links are not the arm's, or its numbers cannot be.
    """
    names = [link.name for link in arm.links]
    if unknown := [name for name in plain["links"] if name not in names]:
        raise ArgumentError(f"its floor touches {unknown[0]!r}, which {arm.name} lacks")
    links = tuple(names.index(name) for name in plain["links"])
    points = np.array(plain["points"], float).reshape(-1, 3)
    height, stiffness = float(plain["height"]), float(plain["stiffness"])
    is_finite = np.isfinite([*points.ravel(), height, stiffness]).all()
    if not (is_finite and stiffness > 0.0 and 0 < len(links) <= MOST_POINTS):
        raise ArgumentError("its floor has numbers that cannot be")
    if len(points) != len(links):
        raise ArgumentError("its floor needs one point for each link that touches it")
    return Floor(links, points, height, stiffness)


def _around(floor: Floor) -> list[Floor]:
    """Return floors some millimetres higher and lower, softer and harder."""
    x = _coordinates(floor)
    return [
        _floor(floor.links, x + np.array([*np.zeros(len(x) - 2), up, np.log(factor)]))
        for up in (-4e-3, -2e-3, 0.0, 2e-3, 4e-3)
        for factor in (0.25, 0.5, 1.0, 2.0)
    ]


def _coordinates(floor: Floor) -> Float[np.ndarray, " numbers"]:
    return np.array([*floor.points.ravel(), floor.height, np.log(floor.stiffness)])


def _floor(links: tuple[int, ...], x: np.ndarray) -> Floor:
    return Floor(links, x[:-2].reshape(-1, 3), float(x[-2]), float(np.exp(x[-1])))
