"""`izaguirre1992` §6–7.1: from 78 parameters of the PUMA 260 to the 23 that matter.

The arm with the 23 parameters of Table 2 is simulated on ten trajectories, sampled at
28 ms, and all 52 independent parameters are identified; the 1 % rule then has to find
the 23 again. The figures show the paper's central differences; for identification
torque and motion pass one low-pass first (`puma_trajectories.filtered_samples`).
"""

from __future__ import annotations

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.identification import Estimate, significance
from armwise.recordings import Recording, Samples
from armwise.report import Figure, Series
from papers.drawings import Drawing, joint_names, line, lines, tics
from papers.puma_reduction import (
    Reduction,
    both_fits,
    condition_falls,
    extreme_singular_values,
    full_samples,
    gravity_coefficients,
    predicted_spread,
    reduction,
    restored_fit,
    table_1_std,
    ten_fits,
)
from papers.puma_trajectories import (
    central_differences,
    named_like,
    order_of_search,
)
from papers.rig_constants import constants
from papers.rows import (
    Row,
    agrees,
    claim,
    explained,
    not_comparable,
    recovered,
    slip,
)

# Figures.

SHOWN = 0
"""Which of the ten trajectories the figures show."""


def figures() -> list[Drawing]:
    """One trajectory, its differences, its torques under both models, all averages."""
    return [*_motion_drawings(), *_torque_drawings(), _table_1_drawing()]


def _motion_drawings() -> list[Drawing]:
    data = _differences(reduction().recordings[SHOWN])
    shown = (
        ("Fig. 1", "Joint positions", "position [°]", data.q),
        ("Fig. 2", "Velocities by central differences", "velocity [°/s]", data.qd),
        ("Fig. 3", "Accelerations by central differences", "acceleration [°/s²]",
         data.qdd),
    )  # fmt: skip
    return [
        Drawing(
            name,
            Figure(
                title, "time [s]", unit, lines(joint_names(6), data.time, np.rad2deg(y))
            ),
            "one of ten polynomials through random points; the paper's are not printed",
        )
        for name, title, unit, y in shown
    ]


def _differences(log: Recording) -> Samples:
    q, tau = (
        np.stack([log[f"{s}_{j}"].values for j in range(1, 7)], axis=1)
        for s in ("q", "tau")
    )
    return central_differences(log["q_1"].time, q, tau)


def _torque_drawings() -> list[Drawing]:
    data = full_samples()[SHOWN]
    shown = zip(("Fig. 4", "Fig. 5"), both_fits(), strict=True)
    return [
        Drawing(
            name,
            Figure(
                f"Torque of joint {j + 1}", "time [s]", "torque [N m]",
                (
                    line("measured", data.time, data.tau[:, j], "measured"),
                    line("estimated", data.time, fit.predict(data)[:, j], "predicted"),
                ),
            ),
        )
        for name, fit in shown
        for j in range(6)
    ]  # fmt: skip


def _table_1_drawing() -> Drawing:
    fits = ten_fits()
    index = np.arange(len(fits.names), dtype=float)
    scale = table_1_std(fits.names)
    away = (fits.values.mean(axis=0) - fits.truth) / scale
    spread = fits.values.std(axis=0, ddof=1) / scale
    figure = Figure(
        "Average of ten fits, from the printed one",
        "",
        "in printed standard deviations",
        (
            Series("ours", index, away, "series"),
            tics("our own standard deviation", index, away, spread),
        ),
        is_stems=True,
        x_names=fits.names,
    )
    return Drawing("Table 1", figure)


# Tables: our numbers beside the paper's.

__all__ = ["figures", "rows"]

LLOYD = (0.760, 1.620, 0.850, 0.175, 0.178, 0.140, 0.71, 0.55, 0.50, 0.05, 0.030, 0.065)
"""Table 3: Coulomb, then viscous friction as Lloyd (1984) measured them."""


def rows() -> list[Row]:
    """Tables 1 to 3 and the condition numbers, ours beside the paper's."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):  # small matrices: one is faster
        return _rows(reduction())


def _rows(found: Reduction) -> list[Row]:
    return [
        *_counting_rows(found),
        *_condition_rows(found),
        *_table_2_rows(found),
        *_table_3_rows(found),
        *_gravity_rows(found),
        *_table_1_rows(),
        *_fit_rows(),
    ]


def _counting_rows(found: Reduction) -> list[Row]:
    every = len(order_of_search(found.arm))
    independent = found.full.base.count
    same_note = "motor inertias first, then links 6 to 1; the text once says 53"
    return [
        agrees("§6", "parameters of the model", "78", every, absolute=0.5),
        agrees("Table 1", "independent parameters", "52", independent, absolute=0.5,
               note=same_note),
        *_kept_rows(found, found.significant, "significant at 1 % of a joint's torque"),
        *_kept_rows(found, found.small, "of these, known to better than 30 %"),
    ]  # fmt: skip


def _kept_rows(found: Reduction, selection: Estimate, quantity: str) -> list[Row]:
    """How many remain, and how many of them are among the paper's 23."""
    names, printed = set(_leaders(selection)), set(_table_2(found.arm))
    missing, added = sorted(printed - names), sorted(names - printed)
    note = f"beside the paper's: {', '.join(added) or 'none'}"
    if missing:
        note += f"; not found: {', '.join(missing)}"
    index = {name: k for k, name in enumerate(_leaders(found.full))}
    full = found.full
    doubts = [abs(full.base_values[index[n]] / full.base_std[index[n]]) for n in added]
    return [
        explained(
            agrees("Table 2", f"{quantity}: how many", "23", len(names), absolute=0.5,
                   note=note),
            "the arm simulated has exactly the 23: what else remains is noise that "
            "happens to reach 1 %, at most {:.1f} of its standard deviations from zero",
            max(doubts, default=np.inf), below=3.0,
        ),
        recovered("Table 2", f"{quantity}: of the paper's 23", "23",
                  len(names & printed), absolute=0.5, note=note),
    ]  # fmt: skip


def _condition_rows(found: Reduction) -> list[Row]:
    before = extreme_singular_values(found.full, found.data)
    after = extreme_singular_values(found.small, found.data)
    gain = (before[0] / before[1]) / (after[0] / after[1])
    leaders = list(found.full.base.indices)
    same = [leaders.index(i) for i in found.small.base.indices]
    narrower = found.full.base_std[same] / found.small.base_std
    why = (
        "the paper weighs its joints but does not say how, and the values depend on "
        "the trajectories, which it does not give; ours is not weighted"
    )
    falls = condition_falls(constants("puma260")["noise"])
    return [
        not_comparable("§6", "largest / smallest singular value, 52 parameters",
                       "828.8 / 0.033", f"{before[0]:.1f} / {before[1]:.3g}", why),
        not_comparable("§6", "largest / smallest singular value, reduced", "146 / 0.35",
                       f"{after[0]:.1f} / {after[1]:.3g}", why),
        explained(
            agrees("§6", "fall of the condition number by a factor", "60", gain,
                   note="ours on ten trajectories together, not weighted"),
            "it depends on the trajectory, and none is printed: single ones of ours, "
            "weighted as the spreads of Table 1 ask for, give {:.0f} to {:.0f}",
            (falls.min(), falls.max()), above=(0.0, 60.0), below=(60.0, 600.0),
        ),
        claim("Table 2", "standard deviations, full over reduced model, median",
              "the reduced model's are smaller", float(np.median(narrower)), above=1.01,
              why="smaller"),
    ]  # fmt: skip


def _table_2_rows(found: Reduction) -> list[Row]:
    made = []
    index = {name: k for k, name in enumerate(_leaders(found.small))}
    full = {name: k for k, name in enumerate(_leaders(found.full))}
    for name, true in _table_2(found.arm).items():
        if name not in index:
            made.append(
                recovered("Table 2", name, true, np.nan, shown="dropped",
                          note="taken to be noise by the rule")
            )  # fmt: skip
            continue
        value = float(found.small.base_values[index[name]])
        std = float(found.small.base_std[index[name]])
        # Three standard deviations, but never so many that zero would do as well.
        width = min(3 * std, 0.5 * abs(true))
        k = full[name]
        off = (found.full.base_values[k] - true) / found.full.base_std[k]
        row = recovered("Table 2", name, f"{true:.6f}", value, absolute=width,
                        shown=f"{value:.6f} ± {std:.6f}")  # fmt: skip
        made.append(
            explained(row, "the reduced model's interval does not know of what was "
                      "left out: in the full one it is {:.1f} of its standard "
                      "deviations off", abs(off), below=2.0)
        )  # fmt: skip
    return made


def _table_3_rows(found: Reduction) -> list[Row]:
    """Table 3: the paper's friction (Table 2) beside Lloyd's measurement."""
    names = found.arm.parameter_names
    columns = [*named_like(names, ".coulomb"), *named_like(names, ".viscous")]
    printed = _table_2(found.arm)
    return [
        not_comparable(
            "Table 3", f"{name} beside Lloyd's", f"{printed[name]:g}; Lloyd {lloyd:g}",
            f"{printed[name] / lloyd:.2f} of Lloyd's",
            "two measurements of two arms by others: nothing of ours is judged by it",
        )
        for name, lloyd in zip(columns, LLOYD, strict=True)
    ]  # fmt: skip


def _gravity_rows(found: Reduction) -> list[Row]:
    c12, c13, c15 = (float(x) for x in gravity_coefficients(found.arm))
    again = gravity_coefficients(found.small.arm)
    notes = [f"identified again {b:.3f}" for b in again]
    m6, y4, d4 = 2.768114, -0.382190, 0.2032
    return [
        agrees("§7.1, gravity", "c12 [N m]", "5.51792", c12, within=0.001,
               note=f"Lloyd 5.509; {notes[0]}"),
        slip("§7.1, gravity", "c13 [N m]", "-1.176644", c13,
             corrected=-9.81 * (y4 + d4 * m6),
             argument="its own m6, d4 and y4 give −9.81 (y4 + d4 m6) = {} (Lloyd "
             f"−1.1762; {notes[1]})"),
        agrees("§7.1, gravity", "c15 [N m]", "-0.13743", c15, within=0.005,
               note=f"Lloyd −0.192; z6 rounded; {notes[2]}"),
    ]  # fmt: skip


def _fit_rows() -> list[Row]:
    full, few = (fit.fit.relative_error for fit in both_fits())
    note = "Table 1's averages simulated: torques by inverse dynamics, with noise"
    added, better_fit = restored_fit()
    return [
        claim("Fig. 4", "unexplained torque with 52 parameters, joints 1 to 6 [of rms]",
              "very accurate for all joints", full, below=0.05,
              why="on the plot one cannot tell it from the measured curve", note=note),
        claim("Fig. 5", "unexplained torque with 23 parameters, joints 1 to 3 [of rms]",
              "still very accurate for joints 1 to 3", few[:3], below=0.1,
              why="a tenth of the torque, barely visible on the plot", note=note),
        explained(
            claim("Fig. 5", "unexplained torque with 23 parameters, joints 4 to 6 [of "
                  "rms]", "small differences for 4 to 6", few[3:], below=0.2,
                  why="a fifth, a difference one sees and calls small", note=note),
            f"what the 23 leave out of joint 5 is mostly {added}: with it they leave "
            "{:.3f} of joint 5's", float(better_fit), below=0.2,
        ),
    ]  # fmt: skip


def _table_1_rows() -> list[Row]:
    """What the rule says of Table 1's own values."""
    data = list(full_samples())
    full, _ = both_fits()
    fits = ten_fits()
    spread = fits.values.std(axis=0, ddof=1)
    miss = np.abs(fits.values.mean(axis=0) - fits.truth)
    printed = table_1_std(fits.names)
    back = int(np.sum(miss <= printed))
    noise = constants("puma260")["noise"]
    predicted = predicted_spread(noise)
    theirs, ours = (_geometric_mean(x[1::2]) for x in (printed, predicted))
    apart = float(np.exp(np.std(np.log(predicted / printed)[1::2])))
    table_2 = set(_table_2(load_arm("puma260")))
    names = np.array(_leaders(full))
    made = [
        recovered("Table 1", "averages of ten fits within the paper's standard "
                  "deviations", "52", back, absolute=2.5,
                  note="each trajectory fitted alone, as in the paper"),
        agrees("Table 1", "standard deviations of ten fits, geometric mean of the 26 "
               "that were not fitted", theirs, ours, at="every second one printed",
               note="unrest of the six torques fitted to the other 26: "
               + " ".join(f"{x:.2g}" for x in noise) + " N m; single ones differ by a "
               f"factor of {apart:.1f} (standard deviation). Noise and finite "
               f"differences alone give {np.median(spread / printed):.2f} of the "
               "printed ones"),
    ]  # fmt: skip
    for rule, compared in (
        ("the joint's largest", significance(full, data)),
        ("the largest of all", significance(full, data, "arm")),
    ):
        kept = set(names[compared >= 0.01])
        wrong = _fewest_wrong(names, compared, table_2)
        missing = ", ".join(sorted(table_2 - kept)) or "none"
        sentence = (
            "no threshold on it gives the 23 of Table 2: at the best one {:.0f} of the "
            "52 parameters are on the wrong side"
        )
        rows = (
            agrees("Table 1", f"its averages simulated: significant, by {rule}", "23",
                   len(kept), absolute=0.5, note="torques by inverse dynamics: no body "
                   "has Table 1's averages"),
            agrees("Table 1", f"of these, among the paper's 23, by {rule}", "23",
                   len(kept & table_2), absolute=0.5,
                   note=f"not among them: {missing}"),
        )  # fmt: skip
        made += [explained(row, sentence, wrong, above=0.5) for row in rows]
    return made


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _fewest_wrong(names: np.ndarray, compared: np.ndarray, wanted: set[str]) -> int:
    """Parameters on the wrong side of the threshold that serves `wanted` best."""
    belongs = np.isin(names, list(wanted))
    return min(
        int(np.sum((compared >= threshold) != belongs))
        for threshold in (*compared, np.inf)
    )


def _table_2(arm: Arm) -> dict[str, float]:
    """The 23 parameters and their values: all that are not zero."""
    named = zip(arm.parameter_names, arm.parameters.tolist(), strict=True)
    return {name: value for name, value in named if value != 0.0}


def _leaders(estimate: Estimate) -> list[str]:
    return [estimate.base.names[index] for index in estimate.base.indices]
