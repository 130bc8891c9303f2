"""Picture of what Armwise does: torques before and after identification.

`python docs/pictures/gain.py` writes gain.svg beside it, always the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import armwise as aw
from armwise.plants import perturbed
from armwise.report.sections.story import arm_drawing

WIDTH, HEIGHT, LEFT, PANEL = 860, 330, 330, 88
JOINTS = (0, 3, 4)
STYLE = """text{font:12px system-ui,sans-serif;fill:#1c1f23}.h{font-weight:600}
.soft{fill:#5c6670}.m{stroke:#2563a8;stroke-width:5;stroke-opacity:.4}
.d{stroke:#5c6670;stroke-width:1.5;stroke-dasharray:5 3}
.p{stroke:#d9650b;stroke-width:1.6}.m,.d,.p{fill:none;stroke-linejoin:round}
.base{stroke:#1c1f23;stroke-width:5;stroke-linecap:round}
.link{stroke:#8a949e;stroke-linecap:round;fill:none}
.joint{fill:#fff;stroke:#2563a8}"""


def motion(arm: aw.Arm, seed: int) -> aw.Samples:
    """Twelve seconds of sinusoids, with noise on the torque."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 12.0, 0.02)
    w, phase = rng.uniform(0.6, 2.4, arm.dof), rng.uniform(0.0, 6.0, arm.dof)
    angle = w * t[:, None] + phase
    # A Panda's elbow bends one way only.
    middle = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.6, 0.0])
    q, qd, qdd = (
        middle + 0.8 * np.sin(angle),
        0.8 * w * np.cos(angle),
        -0.8 * w**2 * np.sin(angle),
    )
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    return aw.Samples(t, q, qd, qdd, tau + rng.normal(0.0, 0.05, tau.shape))


def picture() -> str:
    """Identify a Panda whose description is half wrong, and draw unseen data."""
    arm = aw.load_arm("panda")
    described = perturbed(arm, 0.5, 3)
    unseen = motion(arm, 2)
    estimate = aw.identify(described, motion(arm, 1), friction="linear")
    identified = estimate.predict(unseen)
    before = aw.Dynamics(described).inverse_dynamics(unseen.q, unseen.qd, unseen.qdd)
    drawn = arm_drawing(arm, unseen.q[0])
    parts = [
        # Its own size, or it would take the whole picture's.
        drawn.replace("<svg ", '<svg x="10" y="20" width="290" height="290" ', 1),
        f'<text class="h" x="{LEFT}" y="22">Joint torques of a motion that was not '
        "used to identify</text>",
        *_legend(),
    ]
    for row, j in enumerate(JOINTS):
        curves = {"m": unseen.tau[:, j], "d": before[:, j], "p": identified[:, j]}
        top = 56 + row * (PANEL + 2)
        parts += _panel(arm.coordinate_names[j], unseen, j, curves, top)
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img"><title>Torque measured, described and identified</title>'
        f"<style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#fff"/>\n'
        f"{inner}</svg>\n"
    )


def _legend() -> list[str]:
    parts = []
    for k, (kind, words) in enumerate(
        (("m", "measured"), ("d", "the description's"), ("p", "identified"))
    ):
        x = LEFT + 150 * k
        parts.append(f'<path class="{kind}" d="M{x} 40h26"/>')
        parts.append(f'<text x="{x + 32}" y="44">{words}</text>')
    return parts


def _panel(
    name: str, unseen: aw.Samples, j: int, curves: dict[str, np.ndarray], top: float
) -> list[str]:
    low = min(float(y.min()) for y in curves.values())
    high = max(float(y.max()) for y in curves.values())
    x = LEFT + 70 + (WIDTH - LEFT - 240) * unseen.time / unseen.time[-1]
    parts = [f'<text x="{LEFT}" y="{top + PANEL / 2:.0f}">{name}</text>']
    for kind, y in curves.items():
        row = top + 6 + (PANEL - 12) * (high - y) / (high - low)
        # Every third sample: 17 a second, for motions below 0.4 Hz.
        points = " ".join(
            f"{a:.0f},{b:.1f}" for a, b in zip(x[::3], row[::3], strict=True)
        )
        parts.append(f'<polyline class="{kind}" points="{points}"/>')
    size = float(np.linalg.norm(curves["m"]))
    errors = [100 * float(np.linalg.norm(curves["m"] - curves[k])) / size for k in "dp"]
    middle, edge = top + PANEL / 2, WIDTH - 158
    parts.append(
        f'<text x="{edge}" y="{middle - 6:.0f}" class="soft">error {errors[0]:.0f} %'
        f'</text><text x="{edge}" y="{middle + 12:.0f}" class="h">now {errors[1]:.1f} '
        "%</text>"
    )
    return parts


if __name__ == "__main__":
    Path(__file__).with_name("gain.svg").write_text(picture(), encoding="utf-8")
