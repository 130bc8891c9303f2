"""Fitted constants of the rigs, from half of the numbers that the papers print.

`python -m papers.rig_constants` fits them anew and writes `rig_constants.toml`; a test
compares. Each fit stands with its rig and says which printed numbers it uses; the other
half of the printed numbers is judged by the gallery's rows, on both sides:

- `atkeson_control.fit_servos`: gains of the direct-drive arm's servos and the torque
  that its motors lose, from three of the six errors of the digital servos and one of
  the three of the analog ones.
- `atkeson_loads.fit_zero`: zero of the PUMA's wrist sensor, from two of Table 1's four
  dynamic lines and three of the six moments of Table 2's first column.
- `atkeson_loads.fit_resonance`: the load on the direct-drive arm's sensor, from the sum
  of its three moments.
- `puma_reduction.fit_torque_noise`: unrest of the PUMA 260's six torques, from every
  second standard deviation of Table 1.

No fit for the others. `astley1996` prints four standard deviations of ten calibrations;
they follow from masses of the links, tendons, stiction and waves, none of which is
printed, so there are more constants than numbers. `mitchell1997` and Rohrs' example are
simulations: nothing in them was measured.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from armwise.files import write_atomically

_FILE = Path(__file__).with_name("rig_constants.toml")

Constants = dict[str, list[float]]


@cache
def constants(rig: str) -> Constants:
    """Fitted constants of a rig, by name."""
    found = tomllib.loads(_FILE.read_text("utf-8"))[rig]
    return {name: [float(x) for x in values] for name, values in found.items()}


def fits() -> dict[str, Callable[[], Constants]]:
    """The functions that fit them."""
    from papers.atkeson_control import fit_servos
    from papers.atkeson_loads import fit_resonance, fit_zero
    from papers.puma_reduction import fit_torque_noise

    return {
        "servos": fit_servos,
        "puma": fit_zero,
        "ddarm": fit_resonance,
        "puma260": fit_torque_noise,
    }


def write() -> None:
    """Fit all constants anew and write them."""
    lines = ["# Written by python -m papers.rig_constants."]
    for rig, fit in fits().items():
        lines += ["", f"[{rig}]"]
        for name, values in fit().items():
            numbers = ", ".join(f"{x:.6g}" for x in values)
            lines.append(f"{name} = [{numbers}]")
    write_atomically(_FILE, "\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
