"""First section: the arm, what was gained over its description, what to do next."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm
from armwise.identification import Validation
from armwise.recordings import Samples
from armwise.report.report import (
    Block,
    BulletList,
    Drawing,
    Figure,
    KeyNumber,
    KeyNumbers,
    Section,
    Series,
    Verdict,
    finite,
)
from armwise.report.sections.fit import torque_figure
from armwise.report.subject import FIT, Judgement, PredictedRun, Subject, graded, judge

if TYPE_CHECKING:
    from jaxtyping import Float


# Judgement: more would not leave room for the figures on the first screen.
_STEPS = 4
"""Most steps named; the others are under Warnings."""


def story_section(subject: Subject) -> Section:
    """Show the arm, the five numbers that matter, what was gained, what to do next."""
    run = subject.runs[0] if subject.runs else None
    checked = subject.validation
    is_unseen = checked is not None and checked.samples > 0
    errors = checked if checked is not None and is_unseen else subject.estimate.fit
    own = _moving(errors)
    described = None
    if run is not None and len(run.samples):
        described = _moving(run.description_errors)
    # No joint moved: nothing is the worst.
    worst = int(np.nanargmax(own)) if np.isfinite(own).any() else None
    numbers = _numbers(subject, own, described, worst, is_unseen)
    steps = _steps(subject, is_unseen)
    posture = subject.arm.rest if run is None else _typical(run.samples)
    picture = Drawing(
        f"{subject.arm.name}, its joints in a posture of the data",
        arm_drawing(subject.arm, posture, worst),
    )
    blocks: list[Block] = [picture, numbers, BulletList(steps, "What to do next")]
    if described is not None and run is not None and worst is not None:
        blocks += [
            _gain(subject, own, described, is_unseen),
            _trace(subject, worst, run, is_unseen),
        ]
    data = {
        "numbers": [
            {"label": n.label, "value": n.value, "remark": n.remark}
            for n in numbers.numbers
        ],
        "on": "validation" if is_unseen else "fit",
        "identified_error": finite(own),
        "described_error": None if described is None else finite(described),
        "next": list(steps),
    }
    return Section("story", "In short", tuple(blocks), data)


def _moving(errors: Validation) -> Float[np.ndarray, " dof"]:
    """Relative errors while a joint moves; of all rows where they are not apart."""
    part = errors.moving
    return errors.relative_error if part is None else part.relative_error


# The five numbers.


def _numbers(
    subject: Subject,
    own: Float[np.ndarray, " dof"],
    described: Float[np.ndarray, " dof"] | None,
    worst: int | None,
    is_unseen: bool,
) -> KeyNumbers:
    where = "on unseen data" if is_unseen else "on data of the fit"
    std = subject.estimate.base_std
    determined = int(np.isfinite(std).sum())
    warnings = subject.estimate.warnings
    return KeyNumbers(
        (
            KeyNumber(
                f"error while moving, {where}",
                _percent(_median(own)),
                "median of the joints"
                + (
                    f"; the description's was {_percent(_median(described))}"
                    if described is not None
                    else ""
                ),
                # What was fitted is no proof.
                graded(_median(own), FIT) if is_unseen else "not evaluated",
            ),
            KeyNumber(
                "worst joint",
                _percent(float(own[worst])) if worst is not None else "–",
                subject.arm.coordinate_names[worst]
                if worst is not None
                else "no joint moved",
                graded(float(own[worst]), FIT) if worst is not None else "fail",
            ),
            KeyNumber(
                "parameters known",
                f"{determined} of {std.size}",
                "combinations with a finite uncertainty",
                "pass" if determined == std.size else "look" if determined else "fail",
            ),
            _clock(subject),
            KeyNumber(
                "warnings",
                str(len(warnings)) if subject.fitted is not None else "–",
                ", ".join(dict.fromkeys(w.code for w in warnings))
                or ("none" if subject.fitted is not None else "no data were given"),
                _of_warnings(subject),
            ),
        )
    )


def _of_warnings(subject: Subject) -> Verdict:
    if subject.estimate.warnings:
        return "look"
    return "not evaluated" if subject.fitted is None else "pass"


def _clock(subject: Subject) -> KeyNumber:
    """Lag of the torque where a recording was prepared, else the condition number."""
    fitted = subject.fitted
    if fitted is not None and fitted.preparation.rows_read:
        whole = subject.estimate.torque_lag
        lag = 1e3 * (fitted.preparation.lag if whole is None else whole.seconds)
        if whole is not None and abs(lag) < 1e3 * whole.std:
            known = f"{lag:.1f}\u00a0±\u00a0{1e3 * whole.std:.1f}\u00a0ms"
            return KeyNumber("lag of the torque", known, "hardly determined")
        if lag == 0.0:
            remark = "torque and motion are of the same instant"
            return KeyNumber("lag of the torque", "none", remark)
        return KeyNumber("lag of the torque", f"{lag:.1f}\u00a0ms", "taken out")
    number = subject.estimate.condition_number
    return KeyNumber(
        "condition number",
        f"{number:.3g}" if np.isfinite(number) else "none",
        "of the motion; below 100 is good",
    )


def _median(errors: Float[np.ndarray, " dof"]) -> float:
    finite = errors[np.isfinite(errors)]
    return float(np.median(finite)) if finite.size else float("nan")


def _percent(fraction: float) -> str:
    if not np.isfinite(fraction):
        return "–"
    # Two digits below ten; the space does not break.
    digits = f"{100 * fraction:.2g}" if fraction < 0.1 else f"{100 * fraction:.0f}"
    return f"{digits}\u00a0%"


# What to do next.


def _steps(subject: Subject, is_unseen: bool) -> tuple[str, ...]:
    """Say what the warnings ask for, then what nobody has looked at, then its use."""
    steps = [warning.text for warning in subject.estimate.warnings]
    if len(steps) > _STEPS:
        more = f"See {len(steps) - _STEPS + 1} more under Warnings."
        steps = [*steps[: _STEPS - 1], more]
    poor = [j for j in judge(subject) if j.verdict in ("fail", "look")]
    if poor and not steps:
        steps.append(f"Look at what did not pass, under Summary: {_questions(poor)}")
    if not is_unseen:
        steps.append(
            "Validate: nothing here was predicted before it was seen. Record another "
            "motion and give it with --validate LOG."
        )
    if not steps:
        steps.append(
            "Use it: identified.urdf in your simulator and planner, armwise generate "
            "for a controller, armwise feedforward for torques with their interval."
        )
    return tuple(steps)


def _questions(judgements: list[Judgement]) -> str:
    return " ".join(f"“{j.question}”" for j in judgements)


# What was gained.


def _gain(
    subject: Subject,
    own: Float[np.ndarray, " dof"],
    described: Float[np.ndarray, " dof"],
    is_unseen: bool,
) -> Figure:
    joints = np.arange(own.size, dtype=float)
    curves = (
        Series("description", joints, 100 * described, "described"),
        Series("identified", joints, 100 * own, "predicted"),
    )
    what = "unseen data" if is_unseen else "data of the fit"
    return Figure(
        f"What was gained: error while moving, {what}",
        "",
        "error [%]",
        curves,
        is_logarithmic=True,
        is_stems=True,
        is_small=True,
        x_names=subject.arm.coordinate_names,
    )


def _trace(subject: Subject, joint: int, run: PredictedRun, is_unseen: bool) -> Figure:
    """Draw the joint with the largest error: the others look better than that."""
    name = subject.arm.coordinate_names[joint]
    what = "unseen data" if is_unseen else "data of the fit"
    return torque_figure(
        subject, joint, f"{name}, the worst joint: torque, {what}", run
    )


# The arm, drawn.

_WIDTH, _HEIGHT, _MARGIN = 300.0, 300.0, 30.0
"""Size of the drawing, and what stays free around the arm, in units of its own."""


def _typical(samples: Samples) -> Float[np.ndarray, " dof"]:
    """A posture of the data, as near as any to the median of every joint."""
    # Not the median itself: an arm may never have been there.
    spread = samples.q.std(axis=0) + 1e-9
    away = (np.abs(samples.q - np.median(samples.q, axis=0)) / spread).sum(axis=1)
    posture: np.ndarray = samples.q[int(away.argmin())]
    return posture


def arm_drawing(
    arm: Arm, q: Float[np.ndarray, " dof"], marked: int | None = None
) -> str:
    """Draw an arm's joints and the links between them as an `svg` element.

    Args:
        arm: The arm.
        q: Its posture in [rad] or [m].
        marked: Coordinate to draw in another colour and to name.
    """
    strokes, points = _bones(arm, q)
    flat = _projected(np.concatenate([strokes.reshape(-1, 3), points]), arm)
    lines = flat[: 2 * len(strokes)].reshape(len(strokes), -1)
    # The first joint is on the base.
    foot_x, foot_y = lines[0, :2].tolist()
    # Thick enough for a few joints, thin enough for a hand's.
    size = float(np.clip(16.0 - 0.4 * len(points), 4.0, 13.0))
    parts = [
        f'<path class="base" d="M{foot_x - 22:.1f} {foot_y:.1f}h44"/>',
        *(
            f'<path class="link" stroke-width="{0.8 * size:.1f}" '
            f'd="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"/>'
            for a, b, c, d in lines.tolist()
        ),
    ]
    names = dict(zip(arm.coordinates, arm.coordinate_names, strict=True))
    tail = flat[2 * len(strokes) :].tolist()
    last = None if marked is None else arm.coordinates[marked]
    # The marked one on top: joints of a shoulder or a wrist lie on each other.
    for i in sorted(range(len(tail)), key=lambda i: i == last):
        x, y = tail[i]
        is_marked = i == last
        kind = "joint worst" if is_marked else "joint"
        title = f"<title>{escape(names.get(i, arm.joints[i].name))}</title>"
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{0.6 * size:.1f}" '
            f'stroke-width="{0.3 * size:.1f}">{title}</circle>'
        )
    if marked is not None and last is not None:
        x, y = tail[last]
        # On the side that has more room.
        side = "start" if x < _WIDTH / 2 else "end"
        x += size if side == "start" else -size
        name = escape(arm.coordinate_names[marked])
        parts.append(
            f'<text x="{x:.1f}" y="{y - size:.1f}" text-anchor="{side}">{name}: '
            "largest error</text>"
        )
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}">{inner}</svg>'


def _bones(
    arm: Arm, q: Float[np.ndarray, " dof"]
) -> tuple[Float[np.ndarray, "strokes 2 3"], Float[np.ndarray, "joints 3"]]:
    """Strokes from joint to joint and to what the last ones carry; the joints, [m]."""
    poses = arm.link_poses(q)

    def seen(link: int, point: np.ndarray) -> np.ndarray:
        placed: np.ndarray = (poses[link] @ np.append(point, 1.0))[:3]
        return placed

    points = np.stack([seen(i, joint.anchor) for i, joint in enumerate(arm.joints)])
    strokes = [
        (np.zeros(3) if joint.parent == BASE else points[joint.parent], points[i])
        for i, joint in enumerate(arm.joints)
    ]
    parents = {joint.parent for joint in arm.joints}
    for i, link in enumerate(arm.links):
        if i in parents:
            continue
        # The furthest of its frames is its tool; without one, its centre of mass.
        ends = [seen(i, frame.pose[:3, 3]) for frame in arm.frames if frame.link == i]
        if not ends and link.inertia.has_mass:
            ends = [seen(i, link.inertia.center_of_mass)]
        if ends:
            reach = [float(np.linalg.norm(end - points[i])) for end in ends]
            strokes.append((points[i], ends[int(np.argmax(reach))]))
    return np.array(strokes), points


def _projected(points: np.ndarray, arm: Arm) -> Float[np.ndarray, "points 2"]:
    """Look at points from the side where they spread most, gravity pointing down."""
    down = arm.gravity / max(float(np.linalg.norm(arm.gravity)), 1e-9)
    up = -down if np.linalg.norm(down) > 0.5 else np.array([0.0, 0.0, 1.0])
    level = points - np.outer(points @ up, up)
    # The widest horizontal direction; a little from above, so that planes open.
    axis = np.linalg.svd(level - level.mean(axis=0), full_matrices=False)[2][0]
    axis = axis - (axis @ up) * up
    axis = axis / max(float(np.linalg.norm(axis)), 1e-9)
    across = np.cross(up, axis)
    # 20 degrees above the horizon: judgement.
    tilt = np.deg2rad(20.0)
    flat = np.stack(
        [
            points @ axis,
            -(points @ up) * np.cos(tilt) + (points @ across) * np.sin(tilt),
        ],
        axis=1,
    )
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = np.array([_WIDTH, _HEIGHT]) - 2 * _MARGIN
    scale = float((room / np.maximum(high - low, 1e-6)).min())
    middle = np.array([_WIDTH, _HEIGHT]) / 2
    placed: np.ndarray = (flat - (low + high) / 2) * scale + middle
    return placed
