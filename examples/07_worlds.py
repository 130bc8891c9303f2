"""07: bodies nailed together: constraints by force, and every joule accounted for."""

import numpy as np

import armwise as aw

body = aw.worlds.ArticulatedBody("arm", aw.worlds.planar_chain(3), q=(0.3, 0.5, 0.4))
tip = aw.worlds.Point("arm", link="tip")
nail = aw.worlds.PointToNail("nail", tip, (1.5, 0.0, 1.0))
world = aw.worlds.World((body,), (nail,), gravity=(0.0, 0.0, -9.81))

run = aw.simulate(world, 5.0)
distance = np.linalg.norm(run.deviation("nail"), axis=1)
force = np.linalg.norm(run.force("nail"), axis=1)
print(f"The tip starts {distance[0]:.2f} m away and ends {distance[-1]:.1e} m away")
print(f"The nail pulls with up to {force.max():.0f} N")
print(f"Energy and work balance to {run.ledger.relative_balance:.1e}")
