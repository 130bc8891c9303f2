"""01: load an arm, see what it is made of, write it as URDF and read it back."""

import sys
from pathlib import Path

import numpy as np

import armwise as aw

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "armwise-examples")
folder.mkdir(parents=True, exist_ok=True)

arm = aw.load_arm("panda")  # or a path to URDF, MJCF or a DH table
print(f"{arm.name}: {arm.dof} joints, {arm.parameters.size} parameters")
for joint, link in zip(arm.joints, arm.links, strict=True):
    lower, upper = np.rad2deg([joint.limits.lower, joint.limits.upper])
    print(f"  {joint.name:8} {lower:7.1f}° … {upper:6.1f}°  {link.inertia.mass:.3f} kg")

base = aw.base_parameters(arm)
print(f"Motion can reveal {base.count} combinations, such as {base.expressions[0]}.")
print(f"No motion reveals {', '.join(base.unidentifiable[:4])}, …")

aw.save_arm(arm, folder / "panda.urdf")
again = aw.load_arm(folder / "panda.urdf")
q = np.array([0.1, -0.4, 0.3, -1.8, 0.2, 1.5, 0.6])
difference = aw.Dynamics(again).gravity_torque(q) - aw.Dynamics(arm).gravity_torque(q)
print(f"Read back, its gravity torque differs by {np.abs(difference).max():.1e} N m.")
