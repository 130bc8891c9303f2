"""Generated files: they compile without a warning anywhere, and test themselves."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import armwise as aw
from armwise.codegen import FUNCTIONS
from armwise.codegen.generate import prune
from armwise.codegen.model import CodeModel

STRICT = [
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-Wshadow",
    "-Wconversion",
]

CHOSEN = [name for name in FUNCTIONS if name != "slotine_li_regressor"]

VARIANTS = {
    "constants": {"runtime": True},
    "load": {"load": "arbitrary", "runtime": True},
    "struct_load_float": {
        "parameters": "struct",
        "load": "arbitrary",
        "precision": "float",
    },
}


@pytest.fixture(scope="module", params=VARIANTS)
def code(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "out"
    arm = aw.load_arm("puma260")
    options = VARIANTS[request.param]
    return aw.generate(arm, folder, CHOSEN, tries=1, **options)


def compiled(code, tmp_path, compiler, *flags):
    """Compile the model and its self-test; return the program."""
    program = tmp_path / "selftest"
    sources = [f"{code.name}_selftest.c", f"{code.name}.c"]
    command = [
        compiler,
        "-std=c99",
        *STRICT,
        *flags,
        "-o",
        str(program),
        *sources,
        "-lm",
    ]
    done = subprocess.run(command, cwd=code.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run_selftest(program):
    done = subprocess.run([str(program)], capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compiles_and_passes_its_self_test(code, tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    status, text = run_selftest(compiled(code, tmp_path, compiler))
    assert status == 0, text
    assert text.count(": ok") == len(CHOSEN)


def test_32_bit(code, tmp_path):
    probe = "int main(void) { return 0; }"
    command = ["gcc", "-m32", "-x", "c", "-", "-o", "/dev/null"]
    if (
        shutil.which("gcc") is None
        or subprocess.run(
            command, input=probe, text=True, capture_output=True
        ).returncode
    ):
        pytest.skip("gcc -m32 cannot link here")
    status, text = run_selftest(compiled(code, tmp_path, "gcc", "-m32"))
    assert status == 0, text


def test_arm(code, tmp_path):
    compiler = shutil.which("arm-linux-gnueabihf-gcc") or shutil.which(
        "aarch64-linux-gnu-gcc"
    )
    if compiler is None:
        pytest.skip("no ARM cross compiler is installed")
    compiled(code, tmp_path, compiler)


def test_a_wrong_number_fails_the_self_test(tmp_path):
    folder = tmp_path / "out"
    code = aw.generate(aw.load_arm("puma260"), folder, ["gravity_torque"], tries=1)
    path = folder / f"{code.name}.c"
    text = path.read_text()
    path.write_text(
        text.replace("K1 = 5.", "K1 = 6.", 1).replace("K1 = 0.", "K1 = 1.", 1)
    )
    assert path.read_text() != text
    status, said = run_selftest(compiled(code, tmp_path, "gcc"))
    assert status == 1
    assert "WRONG" in said


def test_example_wrapper_and_runtime_compile(code, tmp_path):
    name = code.name
    jobs = [["gcc", "-std=c99", *STRICT, f"{name}_example.c", f"{name}.c", "-lm"]]
    if (code.folder / f"{name}_runtime.c").exists():
        sources = [f"{name}_realtime.c", f"{name}_runtime.c", f"{name}.c"]
        jobs.append(["gcc", "-std=c11", *STRICT[:5], "-pthread", *sources, "-lm"])
    if shutil.which("g++"):
        test = tmp_path / "use.cpp"
        test.write_text(
            f'#include "{name}.hpp"\nint main() {{ return {name}::dof != 6; }}\n'
        )
        jobs.append(["g++", "-std=c++11", *STRICT[:5], "-I.", str(test), f"{name}.o"])
        subprocess.run(["gcc", "-c", f"{name}.c"], cwd=code.folder, check=True)
    for job in jobs:
        command = [*job, "-o", str(tmp_path / "program")]
        done = subprocess.run(command, cwd=code.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if "realtime" not in job[-4]:
            assert subprocess.run([str(tmp_path / "program")]).returncode == 0
    (code.folder / f"{name}.o").unlink(missing_ok=True)


def test_cmake_builds_and_tests(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    folder = tmp_path / "out"
    aw.generate(aw.load_arm("two_link_uno"), folder, runtime=True, tries=1)
    build = str(tmp_path / "build")
    for command in (
        ["cmake", "-S", str(folder), "-B", build],
        ["cmake", "--build", build],
        ["ctest", "--test-dir", build],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_no_allocation_no_globals(code):
    text = (code.folder / f"{code.name}.c").read_text()
    for word in ("malloc", "calloc", "alloca", "static double ", "static float "):
        assert word not in text.replace("static double sign_of", "").replace(
            "static float sign_of", ""
        )


def test_pruning_keeps_its_bound(tmp_path):
    arm = aw.load_arm("panda")
    found = prune(CodeModel(arm, "link_7"), 0.02)
    assert len(found.left_out) > 5
    code = aw.generate(
        arm, tmp_path / "out", ["inverse_dynamics"], tolerance=0.02, tries=1
    )
    exact = aw.generate(arm, tmp_path / "exact", ["inverse_dynamics"], tries=1)
    fewer = code.counts["inverse_dynamics"]["multiplications"]
    assert fewer < exact.counts["inverse_dynamics"]["multiplications"]
    from armwise.codegen.accuracy import random_states

    states = random_states(arm, 300, seed=11)
    motion = (states.q, states.qd, states.qdd)
    there = aw.codegen.load_generated(tmp_path / "out").inverse_dynamics(*motion)
    gap = abs(there - aw.Dynamics(arm).inverse_dynamics(*motion)).max(axis=0)
    assert (gap <= 1.1 * code.pruning.bound + 1e-9).all()
    assert (code.pruning.bound <= 0.02 * code.pruning.peak).all()
    header = (tmp_path / "out" / f"{code.name}.h").read_text()
    assert "small parameters are left out" in header
