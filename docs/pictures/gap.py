"""Picture of a gap: a real UR10 beside its simulation, before and after.

`python docs/pictures/gap.py FOLDER` writes gap.svg beside it, from the recording of
Petrone et al. (github.com/unisa-acg/inverse-dynamics-solver, BSD-3): FOLDER holds
ur10_robot.urdf and ur10_exciting_trajectory.db3. The first 60 % of it are fitted, and
what is drawn comes after them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.simulators import MotionGap, measure_gap

WIDTH, HEIGHT, LEFT, PANEL = 860, 330, 150, 84
JOINTS = (0, 1, 2)
SECONDS = (18.0, 25.0)
STYLE = """text{font:12px system-ui,sans-serif;fill:#1c1f23}.h{font-weight:600}
.soft{fill:#5c6670}.small{font-size:10px}.m{stroke:#2563a8;stroke-width:5;stroke-opacity:.4}
.d{stroke:#5c6670;stroke-width:1.5;stroke-dasharray:5 3}
.p{stroke:#d9650b;stroke-width:1.6}.m,.d,.p{fill:none;stroke-linejoin:round}"""


def picture(folder: Path) -> str:
    """Identify the arm from the first part of the bag; replay the rest."""
    arm = aw.load_arm(folder / "ur10_robot.urdf")
    log = aw.read_recording(folder / "ur10_exciting_trajectory.db3", arm=arm)
    fitted, unseen = log.split(0.6)
    gap = measure_gap(aw.identify(arm, fitted), [unseen])
    assert gap.described is not None
    (after,), (before,) = gap.motions.values(), gap.described.motions.values()
    size, was = (1e3 * x.position_error for x in (gap, gap.described))
    parts = [
        f'<text class="h" x="{LEFT}" y="22">A UR10 and its simulation, set free every '
        "half second under the torques that were logged</text>",
        *_legend(),
    ]
    for row, j in enumerate(JOINTS):
        top = 60 + row * (PANEL + 4)
        words = f"{size[j]:.1f} mrad; description {was[j]:.0f}"
        parts += _panel(
            gap.joints[j].removesuffix("_joint"), words, after, before, j, top
        )
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img"><title>A robot beside its simulation</title><style>{STYLE}</style>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#fff"/>\n'
        f"{inner}</svg>\n"
    )


def _legend() -> list[str]:
    parts = []
    kinds = (("m", "robot"), ("d", "simulated as described"), ("p", "as identified"))
    for k, (kind, words) in enumerate(kinds):
        x = LEFT + 190 * k
        parts.append(f'<path class="{kind}" d="M{x} 40h26"/>')
        parts.append(f'<text x="{x + 34}" y="44">{words}</text>')
    return parts


def _panel(
    name: str, words: str, after: MotionGap, before: MotionGap, j: int, top: float
) -> list[str]:
    robot = after.replay
    start = robot.time[0]
    shown = robot.time - start < SECONDS[1] - SECONDS[0]
    q = robot.q[shown, j]
    low, high = q.min() - 0.15 * np.ptp(q), q.max() + 0.15 * np.ptp(q)

    def path(kind: str, values: np.ndarray, starts: tuple[int, ...]) -> str:
        begins = set(starts)
        text = []
        # Every other sample is smooth enough; each free run's first is among them.
        for k in np.flatnonzero(shown):
            if k % 2 and k not in begins:
                continue
            x = LEFT + (WIDTH - LEFT - 20) * (robot.time[k] - start) / (
                SECONDS[1] - SECONDS[0]
            )
            # What leaves the panel stays at its edge.
            y = top + PANEL * (high - np.clip(values[k], low, high)) / (high - low)
            text.append(f"{'M' if k in begins or not text else 'L'}{x:.1f} {y:.1f}")
        return f'<path class="{kind}" d="{"".join(text)}"/>'

    return [
        f'<text x="14" y="{top + 30}">{name}</text>',
        f'<text class="soft small" x="14" y="{top + 48}">{words}</text>',
        path("m", robot.q[:, j], robot.starts[:1]),
        path("d", before.replay.simulated[:, j], before.replay.starts),
        path("p", robot.simulated[:, j], robot.starts),
    ]


if __name__ == "__main__":
    text = picture(Path(sys.argv[1]))
    Path(__file__).with_name("gap.svg").write_text(text, encoding="utf-8")
