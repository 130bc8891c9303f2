"""`aah1986` Figures 3, 4, 5 and 9, Eq. 23–27: signals of the wrist and the encoders.

The rigs of Tables 1 and 2 move the bar with two end masses; their signals, what the
estimated load says they should be, and what spoils them.
"""

from __future__ import annotations

import numpy as np

from armwise.report import Figure, Series
from papers.drawings import Drawing, line
from papers.rows import Row, claim
from papers.wrist_signals import (
    JOINT,
    TAP,
    axis_errors,
    integral_errors,
    joint_4,
    moved_wrench,
    prediction,
    tapped,
    whole_rig_errors,
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
    noise = [
        float(np.std(have[:, JOINT] - want) / np.abs(want).max())
        for have, want in zip(derived, plan, strict=True)
    ]
    return claim(
        "Fig. 3",
        "noise of the acceleration over that of the velocity, each of its peak",
        "the acceleration is greatly contaminated", noise[2] / noise[1], above=3.0,
        why="a differentiation that multiplies the relative noise by three",
        shown=f"{noise[2] / noise[1]:.1f} "
        f"({', '.join(f'{100 * x:.2g}' for x in noise)} % of angle, velocity and "
        "acceleration)",
        note="joint 4; counts of 0.1 mrad, a shaking arm, 33 Hz",
    )  # fmt: skip


def _match_row(is_puma: bool) -> Row:
    left = 1.0 - prediction(is_puma).explained
    return claim(
        "Fig. 4" if is_puma else "Fig. 5",
        f"fraction of the variance of {', '.join(CHANNELS)} left unexplained",
        "match very well even in the mechanical vibrations"
        if is_puma
        else "a very good match",
        left,
        below=0.1,
        why="nine tenths explained in every channel",
        note="plain least squares as in the paper, on "
        + ("the test motions" if is_puma else "another run of the same motion")
        + "; the wrench of the original motion is predicted",
    )


def _tap_row() -> Row:
    bare, washers = (tapped(damped).ringing for damped in (False, True))
    return claim(
        "Fig. 9", "ringing after a tap, bare over with washers",
        "with washers the oscillations decay rapidly", bare / washers, above=2.0,
        why="half the time",
        shown=f"{bare / washers:.1f} ({1e3 * bare:.0f} and {1e3 * washers:.0f} ms to a "
        "tenth)",
        note="30 Hz, damping 5 % bare and 50 % with washers are ours; no numbers are "
        "printed",
    )  # fmt: skip


def _moved_row() -> Row:
    bare, washers = (moved_wrench(damped).unrest for damped in (False, True))
    return claim(
        "Fig. 9, movement",
        "vibration of the reading during a movement, bare over with washers",
        "the effect of movement would be reduced", bare / washers, above=1.2,
        why="more than the tenth by which two such movements differ",
        shown=f"{bare / washers:.2f} ({bare:.2f} and {washers:.2f} N root mean square)",
        note="vertical force; a shaking direct-drive arm carries the bar",
    )  # fmt: skip


def _integral_rows() -> list[Row]:
    sentences = {
        "noise": "integration avoids differentiated noise",
        "bias": "integration amplifies bias",
        "drift": "integration amplifies drift",
    }
    made = []
    for (name, sentence), (plain, integrated) in zip(
        sentences.items(), integral_errors().values(), strict=True
    ):
        ratio = integrated / plain
        made.append(
            claim(
                "App. II", f"sensor with {name}: inertia error, integrated over "
                "differentiated", sentence, ratio,
                above=None if name == "noise" else 1.1,
                below=0.9 if name == "noise" else None, why="a tenth at least",
                shown=f"{ratio:.2f} ({1e3 * integrated:.1f} and {1e3 * plain:.1f} "
                "10⁻³ kg m²)",
                note="PUMA, all joints, 12 runs; no shaking, no kinematic errors",
            )
        )  # fmt: skip
    made.append(_puma_integral_row())
    return made


def _puma_integral_row() -> Row:
    """§4.1.2: on the PUMA, with all that ails it, integration was no help."""
    plain, integrated = whole_rig_errors()
    return claim(
        "App. II", "PUMA with noise, bias, drift and shaking: inertia error, "
        "integrated over differentiated",
        "integration gave worse results with the PUMA (§4.1.2)", integrated / plain,
        above=1.0, why="worse",
        shown=f"{integrated / plain:.2f} ({1e3 * integrated:.1f} and "
        f"{1e3 * plain:.1f} 10⁻³ kg m²)",
        note="the rig of Table 2, all joints, 12 runs",
    )  # fmt: skip


def _axes_row() -> Row:
    far, near = axis_errors(np.array([2e-2, 2e-4]))[0]
    return claim(
        "Eq. 23–24",
        "error of an axis when moments differ by 0.2 over that when by 20 [10⁻³ kg m²]",
        "increasingly difficult to recover", near / far, above=10.0,
        why="first order: the error goes with the inverse difference, 100-fold here",
        shown=f"{near / far:.0f} ({near:.1f}° and {far:.2f}°)",
        note="each entry off by 0.1·10⁻³ kg m² (standard deviation)",
    )  # fmt: skip


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
