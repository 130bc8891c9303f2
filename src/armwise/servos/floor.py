"""A floor that links touch: where it is, found from joints that it holds back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
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
_MOST_WINDOWS = 12
"""Windows that are fitted, at most."""

# Judgement: less is an encoder's step at the end of a small arm.
_LEAST_DROP = 1e-3
"""How far in [m] a free run is below a link that a floor holds up, at least."""

_REACHES = (0.5, 1.0, 2.0, 3.0, 4.0)
"""Points tried on a link, of the way from its joint to its centre of mass."""

# Judgement: a wooden table under a hand of plastic, whose gears and brackets give way.
_STIFFNESS = 2e3
"""First stiffness in [N/m]."""

_TIE = 0.05
"""Part of what a floor explains by which another is as good."""

# Judgement: points near and far along a link are valleys of their own.
_VALLEYS = 3
"""Floors on trial that are fitted, the best of many."""

# Judgement: what gives way by a centimetre under a newton is no floor, but an error of
# the servos' model.
_SOFTEST = 100.0
"""Stiffness in [N/m], at least."""

_STEPS = 3e-3, 1e-3, 0.3, 0.1
"""Differences: of a point and of the height in [m], of the stiffness' logarithm, of
friction."""

_SLIDES = (0.1, 0.2, 0.4, 0.8)
"""Coefficients of friction that are tried: of smooth tables and of rubber feet."""

_USUAL_SLIDE = 0.4
"""Coefficient of friction that floors start from where a smooth one knows of none."""

# Judgement: rubber on rubber.
_MOST_FRICTION = 1.5
"""Coefficient of friction, at most."""

_DAMPINGS = (0.0, 0.1, 1.0, 10.0)
"""Of Levenberg and Marquardt, tried at once."""

# Judgement: a tenth of what a floor must explain; it is known by now that there is one.
_FINER = 0.01
"""Fraction of all errors in motions that touch that another floor must save."""

_ROUNDS = 4
"""Times that a floor is refitted beside motions that it spoils, at most, less one."""

_ITERATIONS = 8
"""Steps of the fit, at most."""

_FIRST_ITERATIONS = 3
"""Steps after which the best of some valleys is chosen."""

# Judgement: as for walls, a tenth of the error where it touches.
_WORTH = 0.1
"""Fraction of the cost that a floor, one more point of it, or friction must save."""


@dataclass(frozen=True, eq=False)
class Floor:
    """A level floor, and the points of the links that it pushes up.

    Attributes:
        links: Number of every point's link.
        points: In the frames of their links, in [m].
        height: Above the base's origin in [m].
        stiffness: In [N/m].
        friction: Coulomb's coefficient of points that slide on it; 0 where it does not
            show.
        points_std: Standard deviations of the points in [m]; infinite where motions say
            nothing.
        height_std: That of the height.
        friction_std: That of the friction.
    """

    links: tuple[int, ...]
    points: Float[np.ndarray, "points 3"]
    height: float
    stiffness: float
    friction: float = 0.0
    points_std: Float[np.ndarray, "points 3"] | None = None
    height_std: float = np.inf
    friction_std: float = np.inf

    def statement(self, arm: Arm) -> str:
        """Say in plain words where it is."""
        names = sorted({arm.links[number].name for number in self.links})
        height = _in_mm(self.height, self.height_std)
        spread = self.points_std
        points = [
            f"({', '.join(_in_mm(x, s) for x, s in zip(row, stds, strict=True))})"
            for row, stds in zip(
                self.points,
                np.full_like(self.points, np.inf) if spread is None else spread,
                strict=True,
            )
        ]
        friction = "without friction that shows"
        if self.friction > 0.0:
            friction = f"of friction {self.friction:.2f} ± {2 * self.friction_std:.2f}"
        return (
            f"Something level, such as a table, holds {' and '.join(names)} up, "
            f"{height} mm above the base's origin, {friction}, where "
            f"{' and '.join(points)} mm of the link's frame touches it (± if just that "
            "does; a round tip trades height for where it touches)"
        )

    def rows(self, arm: Arm) -> Float[np.ndarray, "points numbers"]:
        """Return the points as rollouts take them."""
        mechanism = mechanism_of(arm)
        pull = float(np.linalg.norm(arm.gravity))
        rows = []
        for number, point in zip(self.links, self.points, strict=True):
            columns = mechanism.group_matrix[:, mechanism.layout.link(number)]
            weight = columns @ np.concatenate([[1.0], point, np.zeros(6)]) / pull
            level = self.height + float(_energy_shift(arm, number) @ [*point, 1.0])
            # Of every link a weight and its moment, in its internal frame.
            moments = np.zeros((arm.dof, 4))
            inner = mechanism.skeleton.segments[number].from_user @ [*point, 1.0]
            moments[number] = 1.0, *inner[:3]
            own = level, self.stiffness, self.friction
            rows.append([*weight, *own, *moments.ravel()])
        return np.array(rows)


@lru_cache(maxsize=64)
def _energy_shift(arm: Arm, number: int) -> Float[np.ndarray, " 4"]:
    """Return what (point, 1) times is the energy of its unit weight beyond its height.

    Grouping moves masses between links, which moves energies by a constant, linear in
    where the weight is; floors are tried by the thousand.
    """
    mechanism = mechanism_of(arm)
    columns = mechanism.group_matrix[:, mechanism.layout.link(number)]
    straight = mechanism.joints([0.0] * arm.dof, True)
    moments = columns[:, [1, 2, 3, 0]] / float(np.linalg.norm(arm.gravity))
    energies = [
        float(
            potential_energy(
                mechanism.skeleton, straight, mechanism.bodies(list(weight))
            )
        )
        for weight in moments.T
    ]
    return np.asarray(energies - heights(arm, np.zeros((1, arm.dof)), number)[0])


def _in_mm(value: float, std: float) -> str:
    """Return a length in [mm] with two standard deviations, if they are known."""
    text = f"{1e3 * value:.0f}"
    return f"{text} ± {max(2e3 * std, 1.0):.0f}" if np.isfinite(std) else f"{text} ± ?"


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
) -> tuple[Floor | None, str]:
    """Find the floor that holds joints back, if it is one; or say why none is taken.

    Links are tried from the last one inwards; a point of them is moved, with the
    floor's height and stiffness, until the arm's free runs touch it as the arm did.

    Args:
        arm: The description.
        table: Of its servos, without a floor.
        motions: Of the whole arm.
        held: Of every motion, rows in which a joint is held back.

    Returns:
        The floor, or None and the reason; that is empty where nothing is held for long.
    """
    if not np.any(arm.gravity):
        return None, ""
    search = _Search(arm, table, motions, held)
    if not search.windows:
        return None, ""
    floor, part = search.floor()
    if floor is None:
        return None, "free runs are nowhere below where links were held"
    if part < _WORTH:
        return None, (
            f"the best, {search.place(floor)}, explains {100 * part:.0f} % of the "
            f"errors there, and {100 * _WORTH:.0f} % is asked"
        )
    for _ in range(_ROUNDS):
        if floor.stiffness < _SOFTEST:
            return None, (
                f"the best, {search.place(floor)}, gives way by {floor.stiffness:.0f} "
                "N/m, as no floor does"
            )
        if floor.friction == 0.0:
            floor = search.sliding(floor)
        if search.suits(floor):
            return search.with_std(floor), ""
        # Where it holds up what was free tells more of it.
        floor = search.refitted(floor)
    return None, (f"the best, {search.place(floor)}, is where links also moved freely")


def settled_floor(
    floor: Floor,
    arm: Arm,
    table: ServoTables,
    motions: Sequence[ServoMotion],
    held: Sequence[np.ndarray],
) -> Floor:
    """Return a floor fitted anew under servos that were fitted since it was found.

    Args:
        floor: Where it was found.
        arm: The description.
        table: Of its servos now.
        motions: Of the whole arm.
        held: Of every motion, rows in which a joint is held back.
    """
    search = _Search(arm, table, motions, held)
    if not search.windows:
        return floor
    near = search.settled(floor)
    # From stiffer floors, and with friction, fits end elsewhere.
    ends = [near, search.settled(replace(near, stiffness=4.0 * near.stiffness))]
    if near.friction == 0.0:
        ends.append(search.settled(replace(near, friction=_USUAL_SLIDE)))
    if len(near.links) < MOST_POINTS:
        known = replace(near, points_std=floor.points_std)
        ends.append(search.settled(_split(known)))
    before, *after = search._unexplained([floor, *ends])
    # What is as good as the nearest is not worth moving for, nor is friction.
    farther = (1.0 - _FINER) * min(before, after[0])
    for k in np.argsort(after, kind="stable"):
        asked = farther if k else before
        if after[k] < asked and search.suits(ends[k]):
            return search.with_std(ends[k])
    return floor


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
        pairs = zip(motions, held, strict=True)
        self.touching = [m for m, rows in pairs if rows.any()]
        # What something must explain, row by row.
        open_errors = self.held * np.abs(self.free - self.q).sum(axis=1)
        windows, first = [], 0
        for m, rows in zip(motions, held, strict=True):
            for window in windows_of(m, _WINDOW_S):
                span = slice(first, first + len(window.time))
                size = float(open_errors[span].sum())
                windows.append((int(self.held[span].sum()), span, window, size))
                first = span.stop
            first += len(rows) - sum(len(w.time) for w in windows_of(m, _WINDOW_S))
        self.all_windows = [(span, window) for _, span, window, _ in windows]
        windows = sorted(windows, key=lambda row: -row[3])
        # Judgement: half a second; less is chance.
        self.least = 0.5 / float(np.median(np.diff(motions[0].time)))
        touching = [w for count, _, w, _ in windows if count >= self.least]
        self.windows = touching[:_MOST_WINDOWS]
        errors = np.abs(self._errors([None])[0]) if self.windows else np.ones((1, 1))
        self.scale = least_scale(np.median(errors, axis=0), motions[0].rounding)

    def only(self, windows: list[ServoMotion]) -> _Search:
        """Return the search on some windows."""
        part = copy(self)
        part.windows = windows
        return part

    def place(self, floor: Floor) -> str:
        """Say what of the arm a floor is under, and how high it is."""
        name = self.arm.links[floor.links[-1]].name
        return f"under {name} {1e3 * floor.height:.0f} mm above the base's origin"

    def floor(self) -> tuple[Floor | None, float]:
        """Return the best floor, its points added one at a time.

        Returns:
            None where there is none to try; and the part of the cost it explains.
        """
        best: Floor | None = None
        whole = cost = float(self._costs([None])[0])
        for _ in range(MOST_POINTS):
            trials = self._candidates(best)
            if not trials:
                break
            fitted = self._lowest(trials, _VALLEYS if best is None else 1)
            reached = self._costs([fitted])[0]
            if best is None and reached > (1.0 - _WORTH) * cost:
                fitted = self._sticking(trials)
                reached = self._costs([fitted])[0]
            if best is not None and reached > (1.0 - _WORTH) * cost:
                break
            best, cost = fitted, float(reached)
            if best.friction > 0.0 or cost > (1.0 - _WORTH) * whole:
                break
        return best, 1.0 - cost / whole

    def _sticking(self, trials: list[Floor]) -> Floor:
        """Return the best floor with friction, where none without it explains much.

        A point that sticks stays where no smooth floor would leave it.
        """
        ends = [
            self._lowest(
                [replace(one, friction=mu) for one in trials], _VALLEYS, is_rough=True
            )
            for mu in _SLIDES[1:]
        ]
        return ends[int(np.argmin(self._costs(ends)))]

    def suits(self, floor: Floor) -> bool:
        """Return whether a floor leaves alone what moves freely, all but a little."""
        saved = self._saved(floor)
        # Judgement: a quarter of what it saves where joints are held, for rows around a
        # contact are not all told as held; a wall taken for a floor costs more.
        return bool(-saved[~self.held].sum() < 0.25 * saved[self.held].sum())

    def refitted(self, floor: Floor) -> Floor:
        """Fit a floor beside the windows, too, that it spoils most."""
        saved = self._saved(floor)
        worst = sorted(self.all_windows, key=lambda row: saved[row[0]].sum())
        fitted = {id(window) for window in self.windows}
        # Judgement: as much again as a quarter of those that touch.
        more = [w for _, w in worst if id(w) not in fitted][: _MOST_WINDOWS // 4]
        self.windows = [*self.windows, *more]
        return self.settled(floor)

    def settled(self, floor: Floor) -> Floor:
        """Fit a floor that is near."""
        return self._fitted(floor, is_rough=floor.friction > 0.0)

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
                    # No floor is where the point moves freely. Judgement: but for a
                    # hundredth of rows, in which nobody noticed that it was held.
                    free_to = np.quantile(z[~self.held], 0.01)
                    level = float(min(np.median(z[low]), free_to))
                    one = Floor((number,), point[None, :3], level, _STIFFNESS)
                else:
                    one = Floor(
                        (*floor.links, number),
                        np.vstack([floor.points, point[:3]]),
                        floor.height, floor.stiffness,
                    )  # fmt: skip
                trials.append(one)
        return trials

    def _lowest(
        self, trials: list[Floor], count: int, *, is_rough: bool = False
    ) -> Floor:
        """Return the best fit of the most promising floors on trial."""
        # Lower and softer: a floor that is a little too high costs more than none.
        lower = [
            replace(one, height=one.height - down, stiffness=0.25 * one.stiffness)
            for one in trials
            for down in (0.0, 2e-3, 4e-3)
        ]
        # Judgement: every other window tells most of them.
        some = self.only(self.windows[::2])
        costs = some._costs(lower)
        costs = costs.reshape(len(trials), -1).min(axis=1)
        order = [int(k) for k in np.argsort(costs)]
        last = max(one.links[-1] for one in trials)
        outermost = next(k for k in order if trials[k].links[-1] == last)
        ends = []
        for k in dict.fromkeys([*order[:count], outermost]):
            near = _around(trials[k])
            start = near[int(np.argmin(some._costs(near)))]
            ends.append(self._fitted(start, _FIRST_ITERATIONS, is_rough=is_rough))
        best = self._outermost(ends) if count > 1 else self._cheapest(ends)
        return self._fitted(best, is_rough=is_rough)

    def _cheapest(self, floors: list[Floor]) -> Floor:
        return floors[int(np.argmin(self._costs(floors)))]

    def _outermost(self, floors: list[Floor]) -> Floor:
        """Return the best floor of the outermost link that explains as much.

        Few poses do not tell links apart, and hands touch more often than elbows.
        """
        costs = self._unexplained(floors)
        best = float(costs.min())
        # Nothing, where every floor is worse than none.
        explained = max(float(self._unexplained([None])[0]) - best, 0.0)
        # Judgement: a twentieth of what it explains.
        as_good = [k for k, cost in enumerate(costs) if cost <= best + _TIE * explained]
        return floors[max(as_good, key=lambda k: (floors[k].links[-1], -costs[k]))]

    def _unexplained(
        self, floors: Sequence[Floor | None]
    ) -> Float[np.ndarray, " floors"]:
        """Return what is left of all errors in motions that touch, in [rad]."""
        return np.abs(self.only(self.touching)._errors(floors)).sum(axis=(1, 2))

    def sliding(self, floor: Floor) -> Floor:
        """Return the floor with friction, if touching rows ask for it."""
        # As far along its valley as the other will be.
        floor = self._fitted(floor)
        trials = [replace(floor, friction=mu) for mu in _SLIDES]
        near = trials[int(np.argmin(self._costs(trials)))]
        near = self._fitted(near, is_rough=True)
        # What friction does the points and the height did in its place, often by far.
        slides = near.friction or _USUAL_SLIDE
        starts = [replace(c, friction=slides) for c in self._candidates(None)]
        far = self._lowest(starts, _VALLEYS, is_rough=True) if starts else near
        rough = min(near, far, key=lambda end: float(self._costs([end])[0]))
        # Friction and heights make one long valley, in which steps are short.
        rough = self._fitted(rough, is_rough=True)
        before, after = self._costs([floor, rough])
        return rough if after < (1.0 - _WORTH) * before else floor

    def _fitted(
        self, floor: Floor, iterations: int = _ITERATIONS, *, is_rough: bool = False
    ) -> Floor:
        """Move a floor and its points to where free runs touch as the arm did."""
        x, cost = _coordinates(floor), self._costs([floor])[0]
        # Judgement: a centimetre, a factor of e at most, for contact is no line.
        limits = _sizes(len(x)) / [*[0.3] * (len(x) - 3), 0.1, 0.3, 0.3]
        free = len(x) if is_rough else len(x) - 1
        damping = 1.0
        for _ in range(iterations):
            J, rows = self._slopes(floor.links, x, free)
            H, g = J @ J.T, J @ rows
            own = np.diag(np.maximum(np.diag(H), 1e-9))
            steps = [np.linalg.solve(H + d * damping * own, g) for d in _DAMPINGS[1:]]
            steps.append(np.linalg.lstsq(H, g, rcond=1e-10)[0])
            steps = [np.append(s, np.zeros(len(x) - free)) for s in steps]
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

    def _slopes(
        self, links: tuple[int, ...], x: np.ndarray, free: int
    ) -> tuple[Float[np.ndarray, "free n"], Float[np.ndarray, " n"]]:
        """Return errors and how they change with a floor's first numbers, weighted."""
        sizes = _sizes(len(x))
        moved = [_floor(links, x + d) for d in np.diag(sizes)[:free]]
        errors = self._errors([_floor(links, x), *moved]) / self.scale
        w = (1.0 + errors[0] ** 2) ** -0.25
        J = w * (errors[1:] - errors[0]) / sizes[:free, None, None]
        return J.reshape(free, -1), (w * errors[0]).ravel()

    def with_std(self, floor: Floor) -> Floor:
        """Return a floor that knows how far to trust its numbers."""
        from scipy.stats import t

        x = _coordinates(floor)
        free = len(x) if floor.friction > 0.0 else len(x) - 1
        J, rows = self._slopes(floor.links, x, free)
        edges = np.cumsum([0, *(m.q.size for m in self.windows)])[:-1]
        scores = np.add.reduceat(J * rows, edges, axis=1)
        weight = np.repeat(
            [m.weight for m in self.windows], [m.q.size for m in self.windows]
        )
        # In units of the steps, so that one tolerance suits metres and logarithms.
        size = _sizes(len(x))[:free]
        unit = np.outer(size, size)
        values, vectors = np.linalg.eigh((J * weight) @ J.T * unit)
        # Judgement: ten steps, some centimetres, is not known.
        is_known = values > 1e-2
        half = vectors[:, is_known] / np.sqrt(values[is_known])
        inverse, count = half @ half.T, len(self.windows)
        # Rows within half a second are alike, and windows, too, within themselves.
        between = (scores @ scores.T) * unit * count / max(count - 1, 1)
        bread = inverse @ between @ inverse * np.median(weight) ** 2
        variance = np.maximum(np.diag(inverse), np.diag(bread))
        hidden = (np.abs(vectors[:, ~is_known]) > 0.1).any(axis=1)
        std = np.sqrt(variance) * size
        # Halves of the windows also know of long valleys, and of what no floor is.
        halves = [self.windows[side::2] for side in (0, 1)]
        if all(halves):
            one, other = (
                _coordinates(self.only(half)._fitted(floor, is_rough=free == len(x)))
                for half in halves
            )
            std = np.hypot(std, 0.5 * np.abs(one - other)[:free])
        # Few windows scatter little by chance: a normal's two deviations are Student's.
        few = t.ppf(0.975, max(count - 1, 2)) / 1.96
        std = np.where(hidden, np.inf, few * std)
        number = 3 * len(floor.links)
        return replace(
            floor,
            points_std=std[:number].reshape(-1, 3),
            height_std=float(std[number]),
            friction_std=float(std[-1]) if floor.friction > 0.0 else np.inf,
        )

    def _errors(self, floors: Sequence[Floor | None]) -> Float[np.ndarray, "floors n"]:
        """Return errors of all windows' rows that count, joint by joint."""
        rows = [None if f is None else f.rows(self.arm) for f in floors]
        sizes = [own.shape for own in rows if own is not None]
        points = np.zeros((len(floors), *np.max(sizes or [(0, 0)], axis=0)))
        # A point without stiffness, of floors that have fewer, pushes nothing.
        for padded, own in zip(points, rows, strict=True):
            if own is not None:
                padded[: len(own)] = own
        tables = {k: np.repeat(x, len(floors), axis=0) for k, x in self.table.items()}
        runs = self.roller.run(self.windows, tables, floors=points)
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
    """Return a floor as JSON has it; what is not known of it as null."""
    stds = {name: _finite(getattr(floor, name)) for name in _STDS}
    return {
        "links": [arm.links[number].name for number in floor.links],
        "points": floor.points.tolist(),
        "height": floor.height,
        "stiffness": floor.stiffness,
        "friction": floor.friction,
        **stds,
    }


_STDS = ("points_std", "height_std", "friction_std")
"""Standard deviations of a floor's numbers."""


def _finite(x: np.ndarray | float | None) -> Any:
    if x is None:
        return None
    if isinstance(x, np.ndarray):
        return [_finite(one) for one in x]
    return float(x) if np.isfinite(x) else None


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
    # Files of before had no friction.
    numbers = plain["height"], plain["stiffness"], plain.get("friction", 0.0)
    height, stiffness, friction = (float(x) for x in numbers)
    is_finite = np.isfinite([*points.ravel(), height, stiffness, friction]).all()
    is_floor = stiffness > 0.0 and friction >= 0.0 and 0 < len(links) <= MOST_POINTS
    if not (is_finite and is_floor):
        raise ArgumentError("its floor has numbers that cannot be")
    if len(points) != len(links):
        raise ArgumentError("its floor needs one point for each link that touches it")
    rows, *single = (plain.get(name) for name in _STDS)
    return Floor(
        links, points, height, stiffness, friction,
        # NumPy reads null as NaN.
        None if rows is None else np.nan_to_num(np.array(rows, float), nan=np.inf),
        *(np.inf if x is None else float(x) for x in single),
    )  # fmt: skip


def _around(floor: Floor) -> list[Floor]:
    """Return floors some millimetres higher and lower, softer and harder."""
    return [
        replace(floor, height=floor.height + up, stiffness=floor.stiffness * factor)
        for up in (-4e-3, -2e-3, 0.0, 2e-3, 4e-3)
        for factor in (0.25, 0.5, 1.0, 2.0)
    ]


# Judgement: a finger and a palm, on either side.
_APART = 0.06
"""Distance in [m] of two points from one that stands for both, between them."""


def _split(floor: Floor) -> Floor:
    """Return a floor whose last point is two, where motions know least of it.

    A point between two that touch in turn is known worst along the line through them.
    """
    spread = floor.points_std
    # Where nothing is known of it, it moves nothing.
    known = np.zeros(3) if spread is None else np.nan_to_num(spread[-1], posinf=0.0)
    point, apart = floor.points[-1], np.zeros(3)
    apart[int(np.argmax(known))] = _APART
    points = [*floor.points[:-1], point - apart, point + apart]
    links = (*floor.links, floor.links[-1])
    return replace(floor, links=links, points=np.array(points), points_std=None)


def _sizes(count: int) -> Float[np.ndarray, " numbers"]:
    """Return the differences of a floor's numbers."""
    return np.array([_STEPS[0]] * (count - 3) + [*_STEPS[1:]])


def _coordinates(floor: Floor) -> Float[np.ndarray, " numbers"]:
    own = floor.height, np.log(floor.stiffness), floor.friction
    return np.array([*floor.points.ravel(), *own])


def _floor(links: tuple[int, ...], x: np.ndarray) -> Floor:
    height, stiffness, friction = x[-3:]
    friction = float(np.clip(friction, 0.0, _MOST_FRICTION))
    points = x[:-3].reshape(-1, 3)
    return Floor(links, points, float(height), float(np.exp(stiffness)), friction)
