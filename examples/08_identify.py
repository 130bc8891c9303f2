"""08: identify an arm from a log, ask how far to trust it, and write a report."""

import sys
from dataclasses import replace
from pathlib import Path

import armwise as aw
from armwise.arms import Drive

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "armwise-examples")
folder.mkdir(parents=True, exist_ok=True)

described = aw.load_arm("ddarm")
real = aw.plants.perturbed(described, 0.15, seed=2)  # the arm is not as described,
friction = (Drive(viscous=0.8, coulomb=2.0),) * 3  # and it has friction
real = replace(
    real,
    joints=tuple(
        replace(j, drive=d) for j, d in zip(real.joints, friction, strict=True)
    ),
)

sensors = (
    aw.plants.Encoder(resolution=1e-5),
    aw.plants.TorqueSensor(noise_std=[1.0, 0.5, 0.3]),
)
plant = aw.SimulatedArm(described, true_arm=real, sensors=sensors, seed=0)
controller = aw.control.ComputedTorque(described, 400.0, 40.0)
first = aw.motions.Sinusoid([3.0, 2.0, 1.0], 0.8, [2.0, 3.1, 4.3], 8.0)
second = aw.motions.Sinusoid([2.5, 2.5, 1.5], 0.7, [2.6, 1.9, 3.7], 6.0)
fit, other = (aw.run(plant, controller, motion) for motion in (first, second))

estimate = aw.identify(described, fit, validation=other)
checked = estimate.validation
print(f"{estimate.base.count} combinations, condition {estimate.condition_number:.0f}")
truth = estimate.base.values(
    [*real.parameters, *[0.0] * len(estimate.columns.friction)]
)
rows = zip(
    estimate.base.expressions,
    estimate.base_values,
    estimate.base_std,
    truth,
    strict=True,
)
for text, value, std, true in rows:
    print(f"  {value:9.4f} ± {std:.4f}  (true {true:9.4f})  {text}")
print("Unexplained torque, data left out:", checked.relative_error.round(3))
for warning in estimate.warnings:
    print("Warning:", warning)

aw.save_arm(estimate.arm, folder / "identified.urdf")
print(f"Open {aw.write_report(estimate, folder / 'report.html')}")
