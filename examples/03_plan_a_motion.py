"""03: motions are functions of time; check them against an arm's limits."""

import numpy as np

import armwise as aw
from armwise.errors import ArgumentError

arm = aw.load_arm("ddarm")
start, end = np.deg2rad([80.0, 269.1, -30.0]), np.deg2rad([330.0, 19.1, 220.0])
motion = aw.motions.Quintic(start, end, 1.3)  # from rest to rest with least jerk

t = np.linspace(0.0, motion.duration, 1301)
q, qd, qdd = motion.sample(t)
print(f"Peak speed {np.rad2deg(np.abs(qd).max()):.0f} °/s")
print(f"Peak acceleration {np.rad2deg(np.abs(qdd).max()):.0f} °/s²")
aw.motions.check_limits(motion, arm)
print("It stays within the arm's limits.")

try:
    aw.motions.check_limits(aw.motions.Quintic(start, end, 0.8), arm)
except ArgumentError as problem:
    print(f"In 0.8 s: {problem}")

there_and_back = aw.motions.Sequence(
    (motion, aw.motions.Hold(end, 0.5), aw.motions.Quintic(end, start, 1.3))
)
print(f"There, a rest, and back: {there_and_back.duration:.1f} s")
