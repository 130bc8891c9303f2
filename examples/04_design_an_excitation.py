"""04: design the motion that determines most of an arm, within its limits."""

import numpy as np

import armwise as aw
from armwise.excitation import score_motion

arm = aw.load_arm("ddarm")
plan = aw.design_excitation(arm, duration=6.0, seed=0, budget_s=2.0, keep_out=None)
print(f"Designed: condition number {plan.condition_number:.1f}")
print(f"Base parameters it determines: {plan.information.shape[0]}")
for note in plan.notes:
    print(f"  {note}")

guess = aw.motions.Sinusoid(plan.start, 0.4, [1.0, 1.3, 1.7], 6.0)
print(
    f"A guess by hand: condition number {score_motion(arm, guess).condition_number:.1f}"
)

q, qd, _ = plan.sample(np.linspace(0.0, plan.duration, 601))
used = np.abs(qd).max(axis=0) / arm.limits("velocity")
print("Fraction of the speed limits it uses:", np.round(used, 2))
