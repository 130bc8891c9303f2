"""`aah1986` Figures 3, 4, 5 and 9, Eq. 23–27: signals of the wrist and the encoders.

The rigs of Tables 1 and 2 move the bar with two end masses; their signals, what the
estimated load says they should be, and what spoils them.
"""

from __future__ import annotations

import numpy as np

from armwise.report import Figure, Series
from papers.drawings import Drawing, line
from papers.rows import Row, row
from papers.wrist_signals import (
    JOINT,
    TAP,
    axis_errors,
    integral_errors,
    joint_4,
    moved_wrench,
    prediction,
    tapped,
)

CHANNELS = ("fx", "fy", "fz", "nx", "ny", "nz")


def rows() -> list[Row]:
    """Figures 3, 4, 5, 9 and the remarks of §4.1, ours beside the paper's."""
    return [
        _contamination_row(),
        *(_match_row(is_puma) for is_puma in (True, False)),
        _tap_row(),
        _moved_row(),
        *_integral_rows(),
        _axes_row(),
    ]


def figures() -> list[Drawing]:
    """What the sensors said."""
    return [
        *_joint_4_drawings(),
        *_wrench_drawings(True),
        *_wrench_drawings(False),
        *_vibration_drawings(),
        _integral_drawing(),
        _axes_drawing(),
    ]


def _contamination_row() -> Row:
    samples, plan = joint_4()
    derived = (samples.q, samples.qd, samples.qdd)
    shares = [
        float(np.std(have[:, JOINT] - want) / np.abs(want).max())
        for have, want in zip(derived, plan, strict=True)
    ]
    return row(
        "Fig. 3",
        "noise of angle, velocity and acceleration, of their peaks [%]",
        "the acceleration is greatly contaminated",
        ", ".join(f"{100 * share:.2g}" for share in shares),
        shares[2] > 10.0 * shares[1] > 100.0 * shares[0],
        "joint 4; counts of 0.1 mrad, a shaking arm, 33 Hz",
    )


def _match_row(is_puma: bool) -> Row:
    explained = prediction(is_puma).explained
    return row(
        "Fig. 4" if is_puma else "Fig. 5",
        f"variance of {', '.join(CHANNELS)} that the estimate explains [%]",
        "match very well even in the mechanical vibrations"
        if is_puma
        else "a very good match",
        ", ".join(f"{100 * share:.1f}" for share in explained),
        bool(explained.min() > 0.9),
        "plain least squares as in the paper, on "
        + ("the test motions" if is_puma else "another run of the same motion")
        + "; the wrench of the original motion is predicted",
    )


def _tap_row() -> Row:
    bare, washers = (tapped(damped).ringing for damped in (False, True))
    return row(
        "Fig. 9",
        "time for the oscillation after a tap to fall to a tenth [ms]",
        "with washers the oscillations decay rapidly",
        f"{1e3 * bare:.0f} bare, {1e3 * washers:.0f} with washers",
        bare > 5.0 * washers,
        "30 Hz, damping 5 % bare and 50 % with washers; the paper prints no numbers",
    )


def _moved_row() -> Row:
    bare, washers = (moved_wrench(damped).unrest for damped in (False, True))
    return row(
        "Fig. 9, movement",
        "vibration of the reading during a movement [N, root mean square]",
        "the effect of movement would be reduced",
        f"{bare:.2f} bare, {washers:.2f} with washers",
        bare > 1.5 * washers,
        "vertical force; a shaking direct-drive arm carries the bar",
    )


def _integral_rows() -> list[Row]:
    told = {
        "noise": "avoids differentiated noise",
        "bias": "amplifies bias",
        "drift": "amplifies drift",
    }
    return [
        row(
            "App. II",
            f"sensor with {name}: inertia error, differentiated and integrated "
            "[10⁻³ kg m²]",
            paper,
            f"{1e3 * plain:.1f}, {1e3 * integrated:.1f}",
            (integrated > plain) == paper.startswith("amplifies"),
            "PUMA, all joints, 12 runs; no shaking, no kinematic errors",
        )
        for (name, paper), (plain, integrated) in zip(
            told.items(), integral_errors().values(), strict=True
        )
    ]


def _axes_row() -> Row:
    far, near = axis_errors(np.array([2e-2, 2e-4]))[0]
    return row(
        "Eq. 23–24",
        "error of an axis when moments differ by 20 and 0.2 [10⁻³ kg m²], [°]",
        "increasingly difficult to recover",
        f"{far:.2f}, {near:.1f}",
        near > 30.0 * far,
        "each entry off by 0.1·10⁻³ kg m² (standard deviation)",
    )


def _joint_4_drawings() -> list[Drawing]:
    samples, plan = joint_4()
    shown = (
        ("Angle", "[rad]", samples.q),
        ("Velocity", "[rad/s]", samples.qd),
        ("Acceleration", "[rad/s²]", samples.qdd),
    )
    return [
        Drawing(
            "Fig. 3",
            Figure(
                f"{name} of joint 4",
                "time [s]",
                f"{name.lower()} {unit}",
                (
                    line("derived", samples.time, have[:, JOINT]),
                    line("commanded", samples.time, want, "level"),
                ),
            ),
        )
        for (name, unit, have), want in zip(shown, plan, strict=True)
    ]


def _wrench_drawings(is_puma: bool) -> list[Drawing]:
    found = prediction(is_puma)
    time, made = found.data.time, []
    for what, unit, part in (
        ("Force", "[N]", (0, 1, 2)),
        ("Torque", "[N m]", (3, 4, 5)),
    ):
        curves: list[Series] = []
        for k in part:
            curves += [
                line(CHANNELS[k], time, found.measured[:, k]),
                line("computed", time, found.wrench[:, k], "level"),
            ]
        figure = Figure(
            f"{what} at the wrist, measured and computed", "time [s]",
            f"{what.lower()} {unit}", tuple(curves),
        )  # fmt: skip
        made.append(Drawing("Fig. 4" if is_puma else "Fig. 5", figure))
    return made


def _vibration_drawings() -> list[Drawing]:
    taps = {damped: tapped(damped) for damped in (False, True)}
    moves = {damped: moved_wrench(damped) for damped in (False, True)}
    names = {False: "bare", True: "with washers"}
    return [
        Drawing(
            "Fig. 9",
            Figure(
                title, "time [s]", "force [N]",
                tuple(line(names[d], x.time, x.force) for d, x in records.items()),
            ),
            note,
        )
        for title, records, note in (
            ("Response to a tap", taps, f"a tap of {TAP:g} N for 5 ms"),
            ("Response to a movement", moves, ""),
        )
    ]  # fmt: skip


def _integral_drawing() -> Drawing:
    errors = 1e3 * np.array(list(integral_errors().values()))
    index = np.arange(len(errors), dtype=float)
    curves = tuple(
        Series(name, index, column, "series")
        for name, column in zip(("differentiated", "integrated"), errors.T, strict=True)
    )
    figure = Figure(
        "Inertia error by what ails the sensor", "", "error [10⁻³ kg m²]", curves,
        is_stems=True, x_names=tuple(integral_errors()),
    )  # fmt: skip
    return Drawing("App. II", figure)


def _axes_drawing() -> Drawing:
    gaps = np.geomspace(1e-4, 3e-2, 25)
    found, theory = axis_errors(gaps)
    figure = Figure(
        "Error of a principal axis", "difference of the moments [10⁻³ kg m²]",
        "error [°]",
        (
            Series("found", 1e3 * gaps, found, "series"),
            Series("first order: noise / difference", 1e3 * gaps, theory, "level"),
        ),
        is_logarithmic=True, is_x_logarithmic=True,
    )  # fmt: skip
    return Drawing("Eq. 23–24", figure, "entries off by 0.1·10⁻³ kg m²")
