"""Scene to draw, as data: solids on frames, a motion to play, and the world around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters, pose
from armwise.errors import ArgumentError
from armwise.identification import Estimate, Tally, predict_torque
from armwise.recordings import Samples
from armwise.regression import Columns, FrictionTerm
from armwise.report import continued_time, envelope_rows
from armwise.view.forms import BONES, MODELS, Ball, Color, Solid, lowest_point
from armwise.view.geometry import (
    ArmGeometry,
    arm_length,
    axes_of,
    bones_of,
    geometry_of,
    joints_of,
)
from armwise.view.surroundings import Surroundings, row_before, surroundings_of
from armwise.worlds import ArticulatedBody, Run

if TYPE_CHECKING:
    from jaxtyping import Float

_SMALLEST_RADIUS = 2e-3
"""Least semi-axis of an ellipsoid in [m], so that a point mass stays visible."""


def equivalent_ellipsoid(inertia: InertialParameters) -> tuple[Ball, np.ndarray]:
    """Return the uniform solid ellipsoid with a body's inertia, and T_link_ball.

    Its principal moments I₁ = m (b² + c²) / 5 … give a² = 5 (I₂ + I₃ − I₁) / (2 m).
    """
    moments, axes = inertia.principal
    # On the edge of the physical set (a thin disc) rounding makes a square negative.
    squares = 2.5 * (moments.sum() - 2 * moments) / inertia.mass
    a, b, c = np.sqrt(np.maximum(squares, _SMALLEST_RADIUS**2)).tolist()
    return Ball((a, b, c)), pose(axes, inertia.center_of_mass)


def ellipsoids_of(
    arm: Arm, layer: str, color: Color
) -> tuple[list[Solid], dict[str, str]]:
    """Draw the links of an arm as ellipsoids.

    Returns:
        The ellipsoids, and the links that are not physically realisable, with why.
        Links without mass have none.
    """
    defects = arm.defects()
    solids = []
    for i, link in enumerate(arm.links):
        if link.name not in defects and link.inertia.has_mass:
            ball, T = equivalent_ellipsoid(link.inertia)
            solids.append(Solid(ball, i, T, color, layer, link.name))
    return solids, defects


@dataclass(frozen=True, eq=False)
class Scene:
    """An arm, a motion of it, and the world around it.

    Attributes:
        arm: The arm as described.
        mount: T_world_base.
        solids: The solids on its links; `frame` is a link's index, or BASE.
        models: The sets of parameters that are compared.
        playback: The motion to play, if there is one.
        surroundings: The world around it, if there is one.
        notes: Why something is not shown; one sentence each.
    """

    arm: Arm
    mount: Float[np.ndarray, "4 4"]
    solids: tuple[Solid, ...]
    models: tuple[ComparedModel, ...]
    playback: MotionPlayback | None
    surroundings: Surroundings | None
    notes: tuple[str, ...]

    @property
    def duration(self) -> float:
        """Length of the motion or the world's run, the longer one, in [s]."""
        played = 0.0 if self.playback is None else self.playback.duration
        around = self.surroundings
        return max(played, 0.0 if around is None else float(around.time[-1]))

    def poses(self, q: Float[np.ndarray, " dof"]) -> Float[np.ndarray, "links 4 4"]:
        """T_world_link of every link, the base's last (so that BASE finds it)."""
        poses: np.ndarray = self.mount @ self.arm.link_poses(q)
        return poses

    @property
    def start(self) -> Float[np.ndarray, " dof"]:
        """Joint positions to begin with: the motion's, or the description's."""
        return self.arm.rest if self.playback is None else self.playback.q[0]

    @property
    def bounds(self) -> Float[np.ndarray, "2 3"]:
        """Corners in [m] of a box around all frames, as far as they go."""
        q = self.start[None] if self.playback is None else self.playback.q
        # Fifty poses are enough to aim a camera, however long the log.
        origins = [self.poses(row)[:, :3, 3] for row in q[:: max(len(q) // 50, 1)]]
        if self.surroundings is not None:
            origins.append(self.surroundings.poses[..., :3, 3].reshape(-1, 3))
        points = np.concatenate(origins)
        return np.array([points.min(axis=0), points.max(axis=0)])

    @property
    def floor(self) -> float:
        """Height in [m] of the floor: the world's zero, or below the arm's lowest."""
        poses = self.poses(self.start)
        lowest = [
            float(lowest_point(solid.form, poses[solid.frame] @ solid.pose))
            for solid in self.solids
            if solid.layer in ("geometry", "skeleton") and solid.frame != BASE
        ]
        # A world around it has its own floor.
        return 0.0 if self.surroundings is not None else min([0.0, *lowest])

    @property
    def ranges(self) -> Float[np.ndarray, "dof 2"]:
        """Range of each joint's slider: its limits, widened to the motion."""
        turns = [self.arm.joints[i].is_revolute for i in self.arm.coordinates]
        # Joints without limits: half a turn, or the arm's own length, either way.
        free = np.where(turns, np.pi, arm_length(self.arm))
        lower, upper = self.arm.limits("lower"), self.arm.limits("upper")
        lower = np.where(np.isfinite(lower), lower, -free)
        upper = np.where(np.isfinite(upper), upper, free)
        q = self.start[None] if self.playback is None else self.playback.q
        lower, upper = (
            np.minimum(lower, q.min(axis=0)),
            np.maximum(upper, q.max(axis=0)),
        )
        # A slider needs some length, even for a locked joint.
        return np.column_stack([lower, np.maximum(upper, lower + 1e-3)])


def make_scene(
    arm: Arm,
    samples: Samples | None = None,
    estimates: Mapping[str, Estimate] | None = None,
    run: Run | None = None,
    *,
    description: Path | None = None,
    meshes: Sequence[Path] = (),
) -> Scene:
    """Build the scene of an arm.

    Args:
        arm: The arm.
        samples: A motion to play, with its torque.
        estimates: One or two estimates of this arm, by name.
        run: A simulated world around it. If the arm stands in it (by its name), it
            stands there here, and moves as it did unless there are samples.
        description: The file the arm was loaded from, for its meshes.
        meshes: Further folders that meshes may be read from.
    """
    if samples is not None and samples.dof != arm.dof:
        raise ArgumentError(
            f"The recording has {samples.dof} joints, but {arm.name} has {arm.dof}."
        )
    models = models_of(arm, estimates or {})
    geometry = geometry_of(arm, description, meshes)
    shown, defects = _inertias(models)
    notes = [*geometry.notes, *defects, *_skeleton_note(arm, geometry)]
    body = None if run is None else _body_in(run, arm)
    playback = _playback(samples, models, run, body)
    if run is not None and body is None and arm.joints:
        notes.append(
            f"{arm.name} does not stand in the world {run.world.name}: it is drawn at "
            "the world's origin."
        )
    return Scene(
        arm=arm,
        mount=np.eye(4) if body is None else body.pose,
        solids=(*_arm_solids(arm, geometry), *axes_of(arm), *shown),
        models=models,
        playback=playback,
        surroundings=None if run is None else _around(run, body),
        notes=tuple(notes),
    )


def make_world_scene(run: Run) -> Scene:
    """Build the scene of a world alone."""
    return make_scene(Arm(run.world.name, (), ()), run=run)


def _arm_solids(arm: Arm, geometry: ArmGeometry) -> list[Solid]:
    """Solids of every link: its geometry, else bones, with joints where these meet."""
    solids = []
    for i in range(BASE, len(arm.links)):
        name = arm.base if i == BASE else arm.links[i].name
        if i in geometry.forms:
            default = BONES[i % len(BONES)]
            solids += [
                Solid(form, i, T, color or default, "geometry", name)
                for form, T, color in geometry.forms[i]
            ]
        elif arm.joints:
            solids += bones_of(arm, i)
    return solids + [
        drum for drum in joints_of(arm) if drum.frame not in geometry.forms
    ]


def _skeleton_note(arm: Arm, geometry: ArmGeometry) -> list[str]:
    bare = [link.name for i, link in enumerate(arm.links) if i not in geometry.forms]
    if not bare:
        return []
    who = "All links are" if len(bare) == len(arm.links) else f"{', '.join(bare)}:"
    return [f"{who} drawn as bones between joints: there is no geometry to show."]


def _inertias(models: Sequence[ComparedModel]) -> tuple[list[Solid], list[str]]:
    solids: list[Solid] = []
    notes = []
    for k, model in enumerate(models):
        balls, defects = ellipsoids_of(model.arm, inertia_layer(k), model.color)
        solids += balls
        notes += [
            f"{name} ({model.name}) is not physically realisable, and its ellipsoid is "
            f"not drawn: {why}."
            for name, why in defects.items()
        ]
    return solids, notes


def inertia_layer(model: int) -> str:
    """Name the layer of a model's ellipsoids."""
    return f"inertia {model + 1}"


def _body_in(run: Run, arm: Arm) -> ArticulatedBody | None:
    for body in run.world.bodies:
        # On a base that floats it is drawn as part of what surrounds it.
        if not isinstance(body, ArticulatedBody) or body.base is not None:
            continue
        if body.arm.name == arm.name:
            return body
    return None


def _around(run: Run, body: ArticulatedBody | None) -> Surroundings:
    return surroundings_of(run, without=None if body is None else body.name)


def _playback(
    samples: Samples | None,
    models: Sequence[ComparedModel],
    run: Run | None,
    body: ArticulatedBody | None,
) -> MotionPlayback | None:
    if samples is not None:
        return MotionPlayback.from_samples(samples, models)
    if run is None or body is None:
        return None
    return MotionPlayback(run.time - run.time[0], run.position(body.name))


# Playback: joint positions, and torques measured and predicted.

DESCRIBED = "described"
"""Name of the parameters that came with the description."""


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One set of parameters to compare with another.

    Attributes:
        name: Its name in legends.
        color: Its colour in plots and ellipsoids.
        arm: The arm with these parameters.
        friction: Further friction terms, if it has any.
        parameters: The arm's parameters, friction terms last.
    """

    name: str
    color: Color
    arm: Arm
    friction: tuple[FrictionTerm, ...]
    parameters: np.ndarray

    def predict(self, samples: Samples) -> np.ndarray:
        """Return the torque of a motion in [N m], friction as the filter shows it."""
        if not samples.has_torque:  # the prediction has no use for it
            samples = replace(samples, tau=np.zeros(samples.q.shape))
        columns = Columns(self.arm, self.friction)
        return predict_torque(columns, self.parameters, samples)


def models_of(arm: Arm, estimates: Mapping[str, Estimate]) -> tuple[ComparedModel, ...]:
    """Select the one or two sets of parameters to show.

    Two estimates are compared with each other, one with the description, unless that
    has no mass at all.

    Args:
        arm: The description.
        estimates: Estimates by name, two at the most.
    """
    if len(estimates) > len(MODELS):
        raise ArgumentError(
            f"{len(estimates)} estimates are too many for one view: compare "
            f"{len(MODELS)} at a time."
        )
    sets: list[tuple[str, Arm, tuple[FrictionTerm, ...], np.ndarray]] = [
        (name, estimate.arm, estimate.columns.friction, estimate.all_parameters)
        for name, estimate in estimates.items()
    ]
    if len(sets) < len(MODELS) and any(link.inertia.has_mass for link in arm.links):
        sets.insert(0, (DESCRIBED, arm, (), arm.parameters))
    return tuple(
        ComparedModel(name, color, own, friction, parameters)
        for color, (name, own, friction, parameters) in zip(MODELS, sets, strict=False)
    )


def distinct_names(paths: Sequence[Path]) -> dict[str, Path]:
    """Name files by their stems, or by as much of their paths as makes them differ."""
    names: dict[str, Path] = {}
    for depth in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        names = {str(Path(*x.parts[-depth:]).with_suffix("")): x for x in paths}
        if len(names) == len(paths):
            break
    return names


@dataclass(frozen=True, eq=False)
class TorqueCurves:
    """Torques of one joint around a moment, thinned out to their envelope.

    Attributes:
        time: In [s], from the beginning of the motion.
        torque: In [N m] or [N]: the measured one first, if any, then each model's.
        past: The first of them up to the moment, and NaN after it.
    """

    time: Float[np.ndarray, " points"]
    torque: Float[np.ndarray, "curves points"]
    past: Float[np.ndarray, " points"]


@dataclass(frozen=True, eq=False)
class MotionPlayback:
    """A motion, and its torque as measured and as models predict it.

    Attributes:
        time: In [s], from zero; runs follow one another.
        q: Joint positions in [rad] or [m].
        measured: Torque in [N m] or [N], if it was measured.
        predicted: Torque by each model.
        relative_error: ‖τ − τ̂‖ / ‖τ‖ per model and joint, if torque was measured.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    measured: Float[np.ndarray, "samples dof"] | None = None
    predicted: Float[np.ndarray, "models samples dof"] | None = None
    relative_error: Float[np.ndarray, "models dof"] | None = None

    @classmethod
    def from_samples(
        cls, samples: Samples, models: Sequence[ComparedModel]
    ) -> MotionPlayback:
        """Predict the torque of samples with every model, and its relative error."""
        time = continued_time(samples)
        measured = samples.tau if samples.has_torque else None
        predicted = np.array([model.predict(samples) for model in models])
        errors = None
        if measured is not None and len(models):
            errors = np.array([_relative_error(measured, one) for one in predicted])
        shown = predicted if len(models) else None
        return cls(time - time[0], samples.q, measured, shown, errors)

    @property
    def duration(self) -> float:
        """In [s]."""
        return float(self.time[-1])

    @property
    def has_torque(self) -> bool:
        """Whether there is any torque to plot."""
        return self.measured is not None or self.predicted is not None

    def row_at(self, t: float) -> int:
        """Return the sample nearest before a time in [s]."""
        return row_before(self.time, t)

    def curves(
        self, joint: int, t: float, span: float, points: int = 400
    ) -> TorqueCurves:
        """Return the torques of a joint within `span` [s] around a time [s]."""
        # Centred, but at either end of the motion the window stays inside it.
        start = min(max(t - span / 2, 0.0), max(self.duration - span, 0.0))
        first, last = self.row_at(start), self.row_at(start + span) + 1
        shown = slice(first, max(last, first + 2))  # a line needs two points
        torque = self._torque(joint)[:, shown]
        # Rows of the first curve's envelope serve all: plots share their time axis.
        rows = envelope_rows(torque[0], points)
        time = self.time[shown][rows]
        past = np.where(time <= max(t, time[0]), torque[0, rows], np.nan)
        return TorqueCurves(time, torque[:, rows], past)

    def _torque(self, joint: int) -> Float[np.ndarray, "curves samples"]:
        """All torques of a joint, the measured one first."""
        measured = [] if self.measured is None else [self.measured[None, :, joint]]
        predicted = [] if self.predicted is None else [self.predicted[..., joint]]
        return np.concatenate([*measured, *predicted])


def _relative_error(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    tally = Tally(measured.shape[1])
    tally.add(measured, measured - predicted)
    return tally.result().relative_error
