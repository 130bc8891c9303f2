"""02: equations of motion, for one sample or a million, and what they obey."""

import numpy as np

import armwise as aw

arm = aw.load_arm("panda")
dyn = aw.Dynamics(arm)  # traced for this arm, compiled where a C compiler is found

rng = np.random.default_rng(0)
q, qd, qdd = rng.uniform(-1, 1, (3, 100_000, arm.dof))
tau = dyn.inverse_dynamics(q, qd, qdd)
print(f"Inverse dynamics of {len(q)} samples: {tau.shape}, N m")

M, h, g = dyn.mass_matrix(q), dyn.velocity_torque(q, qd), dyn.gravity_torque(q)
rebuilt = np.einsum("nij,nj->ni", M, qdd) + h + g
print(f"M q̈ + h + g is the same to {np.abs(rebuilt - tau).max():.1e} N m")

Y = dyn.regressor(q[:1000], qd[:1000], qdd[:1000])
linear = Y @ arm.parameters
print(f"Y π is the same to {np.abs(linear - tau[:1000]).max():.1e} N m")

back = dyn.forward_dynamics(q, qd, tau)
print(f"Forward dynamics returns q̈ to {np.abs(back - qdd).max():.1e} rad/s²")
