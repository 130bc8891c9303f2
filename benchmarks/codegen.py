"""Generated C against CasADi, Pinocchio and MuJoCo: time and instructions per call.

python benchmarks/codegen.py [--repeat 20] [--no-pinocchio] [--exchanges 100000000]

Everything runs in this process, compiled with the same flags, over the same 4,000
states of `panda`, within its limits. Instructions are counted by callgrind where
valgrind is.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import casadi
import mujoco
import numpy as np

import armwise as aw
from armwise.codegen.accuracy import random_states
from armwise.codegen.realtime import run_stress
from armwise.plants.mujoco_arm import model_from_arm

HERE = Path(__file__).parent
FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]
STATES = 4000


def rigid_panda() -> aw.Arm:
    """The bundled Panda without drives: what all peers can represent alike."""
    arm = aw.load_arm("panda")
    vector = arm.parameters.copy()
    vector[arm.layout.drives] = 0.0
    return replace(arm, name="panda").with_parameters(vector)


def plain_newton_euler(arm: aw.Arm) -> casadi.Function:
    """Textbook recursive Newton–Euler over CasADi symbols: about centres of mass."""
    q, qd, qdd = (casadi.SX.sym(name, arm.dof) for name in ("q", "qd", "qdd"))
    w, dw = casadi.SX.zeros(3), casadi.SX.zeros(3)
    a = casadi.SX(-arm.gravity)
    frames, forces, moments = [], [], []
    for i, joint in enumerate(arm.joints):
        z = casadi.SX(joint.axis)
        skew = casadi.skew(z)
        spin = casadi.SX.eye(3) + casadi.sin(q[i]) * skew
        spin = spin + (1 - casadi.cos(q[i])) * skew @ skew
        R = casadi.sparsify(casadi.SX(_clean(joint.origin[:3, :3]))) @ spin
        p = casadi.SX(joint.origin[:3, 3])
        a = R.T @ (a + casadi.cross(dw, p) + casadi.cross(w, casadi.cross(w, p)))
        w, dw = R.T @ w, R.T @ dw
        dw = dw + casadi.cross(w, z * qd[i]) + z * qdd[i]
        w = w + z * qd[i]
        inertia = arm.links[i].inertia
        c, I = casadi.SX(inertia.center_of_mass), casadi.SX(inertia.central_inertia)
        centre = a + casadi.cross(dw, c) + casadi.cross(w, casadi.cross(w, c))
        force = inertia.mass * centre
        moment = I @ dw + casadi.cross(w, I @ w) + casadi.cross(c, force)
        frames.append((R, p))
        forces.append(force)
        moments.append(moment)
    tau = [casadi.SX(0)] * arm.dof
    for i in reversed(range(arm.dof)):
        tau[i] = casadi.dot(casadi.SX(arm.joints[i].axis), moments[i])
        if i:
            R, p = frames[i]
            force = R @ forces[i]
            forces[i - 1] = forces[i - 1] + force
            moments[i - 1] = moments[i - 1] + R @ moments[i] + casadi.cross(p, force)
    return casadi.Function("casadi_inverse", [q, qd, qdd], [casadi.vertcat(*tau)])


def _clean(matrix: np.ndarray) -> np.ndarray:
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < 1e-12, nearest, matrix)


def build(folder: Path, arm: aw.Arm) -> ctypes.CDLL:
    """Compile our code, CasADi's and the loops into one library."""
    generator = casadi.CodeGenerator("casadi_code.c")
    generator.add(plain_newton_euler(arm))
    generator.generate(f"{folder}/")
    root = Path(mujoco.__file__).parent
    library = next(root.glob("libmujoco.so*"))
    product = folder / "harness.so"
    sources = [folder / "panda.c", folder / "casadi_code.c", HERE / "codegen_harness.c"]
    subprocess.run(
        ["cc", *FLAGS, "-shared", "-fPIC", "-w", "-I", str(folder), "-I",
         str(root / "include"), "-o", str(product), *map(str, sources), str(library),
         f"-Wl,-rpath,{root}", "-lm"], check=True)  # fmt: skip
    return ctypes.CDLL(str(product))


def least(function: Callable[[], float], repeat: int) -> float:
    """Least mean time of many rounds in [ns]: others share this machine."""
    return 1e9 * min(function() for _ in range(repeat))


def pinocchio_times(
    folder: Path, arm: aw.Arm, x: np.ndarray, repeat: int
) -> tuple[float, float, float] | None:
    """Time Pinocchio in C++ and return its sum of torques, if it compiles here."""
    import pinocchio

    prefix = Path(pinocchio.__file__).parents[4]
    eigen = Path(casadi.__file__).parent / "include" / "eigen3"
    product = folder / "pinocchio.so"
    limits = ["-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
              "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
              "-DBOOST_FUSION_INVOKE_MAX_ARITY=12"]  # fmt: skip
    command = ["g++", "-O3", "-std=c++17", "-DNDEBUG", "-shared", "-fPIC", "-w",
               *limits, "-I", str(prefix / "include"), "-I", str(eigen),
               "-o", str(product), str(HERE / "codegen_pinocchio.cpp"),
               "-L", str(prefix / "lib"), "-lpinocchio_default",
               f"-Wl,-rpath,{prefix / 'lib'}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print("Pinocchio C++ does not compile here:", done.stderr.splitlines()[:3])
        return None
    numbers = np.concatenate([_joint_numbers(arm, i) for i in range(arm.dof)])
    library = ctypes.CDLL(str(product))
    times, sums = (ctypes.c_double * 2)(), (ctypes.c_double * 2)()
    found = []
    for _ in range(repeat):
        library.time_pinocchio(
            ctypes.c_void_p(numbers.ctypes.data), ctypes.c_void_p(x.ctypes.data),
            ctypes.c_long(len(x)), times, sums)  # fmt: skip
        found.append(tuple(times))
    inverse, forward = (1e9 * min(t[k] for t in found) for k in range(2))
    return inverse, forward, sums[0]


def _joint_numbers(arm: aw.Arm, i: int) -> np.ndarray:
    joint, inertia = arm.joints[i], arm.links[i].inertia
    assert np.allclose(joint.axis, [0, 0, 1])
    return np.concatenate(
        [joint.origin[:3, :3].ravel(), joint.origin[:3, 3], [inertia.mass],
         inertia.center_of_mass, inertia.central_inertia.ravel()])  # fmt: skip


def instructions(folder: Path) -> dict[str, float]:
    """Count instructions per call with callgrind (AVX2: it knows no AVX-512)."""
    if shutil.which("valgrind") is None:
        return {}
    program = folder / "instructions"
    sources = [
        folder / "panda.c",
        folder / "casadi_code.c",
        HERE / "codegen_instructions.c",
    ]
    subprocess.run(
        ["cc", "-O3", "-march=x86-64-v3", "-fno-math-errno", "-fno-trapping-math", "-w",
         "-I", str(folder), "-o", str(program), *map(str, sources), "-lm"],
        check=True)  # fmt: skip
    found = {}
    for name in ("call_ours", "call_ours_forward", "call_casadi"):
        log = folder / f"{name}.callgrind"
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--toggle-collect={name}",
             f"--callgrind-out-file={log}", str(program)],
            check=True, capture_output=True)  # fmt: skip
        summary = next(
            line for line in log.read_text().splitlines() if line.startswith("summary:")
        )
        found[name] = float(summary.split()[1]) / 100
    return found


def stress(exchanges: int) -> None:
    """Hand values between two threads and count torn reads."""
    with tempfile.TemporaryDirectory() as scratch:
        arm = aw.load_arm("puma260")
        code = aw.generate(arm, Path(scratch) / "code", runtime=True, tries=1)
        begun = time.perf_counter()
        found = run_stress(code, exchanges)
        print(f"{found}, {time.perf_counter() - begun:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--no-pinocchio", action="store_true")
    parser.add_argument("--exchanges", type=int, default=0)
    options = parser.parse_args()
    if options.exchanges:
        stress(options.exchanges)
        return
    arm = rigid_panda()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "code"
        chosen = ["inverse_dynamics", "forward_dynamics"]
        code = aw.generate(arm, folder, chosen, name="panda")
        library = build(folder, arm)
        states = random_states(arm, STATES, 0)
        x = np.ascontiguousarray(np.hstack([states.q, states.qd, states.qdd]))
        report(code, library, arm, x, folder, options)


def report(
    code: aw.codegen.GeneratedCode,
    library: ctypes.CDLL,
    arm: aw.Arm,
    x: np.ndarray,
    folder: Path,
    options: argparse.Namespace,
) -> None:
    """Time everything, check that all agree, and print ratios."""
    model = model_from_arm(arm, None, None)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    place, count = ctypes.c_void_p(x.ctypes.data), ctypes.c_long(len(x))
    sums: dict[str, float] = {}
    times: dict[str, float] = {}
    heads = {"time_mujoco": True, "time_mujoco_forward": True}
    for name in ("time_ours", "time_casadi", "time_mujoco", "time_ours_forward",
                 "time_mujoco_forward"):  # fmt: skip
        function = getattr(library, name)
        function.restype = ctypes.c_double
        first = (
            [ctypes.c_void_p(model._address), ctypes.c_void_p(data._address)]
            if name in heads
            else []
        )

        def once(function=function, first=first, name=name) -> float:  # type: ignore[no-untyped-def]
            total = ctypes.c_double()
            took = function(*first, place, count, ctypes.byref(total))
            sums[name] = total.value
            return float(took)

        times[name] = least(once, options.repeat)
    for a, b in (("time_ours", "time_casadi"), ("time_ours", "time_mujoco"),
                 ("time_ours_forward", "time_mujoco_forward")):  # fmt: skip
        assert abs(sums[a] - sums[b]) <= 1e-6 * abs(sums[a]) + 1e-6, (a, b, sums)
    peers = None if options.no_pinocchio else pinocchio_times(folder, arm, x, 5)
    if peers:
        assert abs(peers[2] - sums["time_ours"]) <= 1e-6 * abs(peers[2]) + 1e-6
    show(code, times, peers, instructions(folder))


def show(
    code: aw.codegen.GeneratedCode,
    times: dict[str, float],
    peers: tuple[float, float, float] | None,
    counted: dict[str, float],
) -> None:
    ours, forward = times["time_ours"], times["time_ours_forward"]
    print(f"panda, one call, least of many rounds, flags {' '.join(FLAGS)}")
    for name, counts in code.counts.items():
        print(f"  {name}: {counts}")
    print(f"inverse dynamics: ours {ours:.0f} ns")
    print(f"  CasADi C, Newton-Euler  {times['time_casadi']:6.0f} ns   "
          f"ours / theirs {ours / times['time_casadi']:.2f} (bar 0.80)")  # fmt: skip
    print(f"  MuJoCo mj_inverse       {times['time_mujoco']:6.0f} ns   "
          f"ours / theirs {ours / times['time_mujoco']:.3f} (bar 0.20)")  # fmt: skip
    if peers:
        print(f"  Pinocchio C++ rnea      {peers[0]:6.0f} ns   "
              f"ours / theirs {ours / peers[0]:.3f}")  # fmt: skip
    print(f"forward dynamics: ours {forward:.0f} ns")
    smooth = times["time_mujoco_forward"]
    print(f"  MuJoCo, smooth forward  {smooth:6.0f} ns   "
          f"ours / theirs {forward / smooth:.3f} (bar 0.20)")  # fmt: skip
    if peers:
        print(f"  Pinocchio C++ aba       {peers[1]:6.0f} ns   "
              f"ours / theirs {forward / peers[1]:.3f}")  # fmt: skip
    if counted:
        ratio = counted["call_ours"] / counted["call_casadi"]
        print(
            f"instructions (callgrind, AVX2): inverse {counted['call_ours']:.0f}, "
            f"CasADi {counted['call_casadi']:.0f}, ratio {ratio:.2f}; forward "
            f"{counted['call_ours_forward']:.0f}"
        )


if __name__ == "__main__":
    main()
