"""The compile cache: private, verified, and safe when processes race."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys

import pytest

from armwise.errors import ArmwiseError
from armwise.programs import compiler as cache
from armwise.programs.compiler import Compiler, find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

SOURCE = "int answer(void) { return 42; }\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARMWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def answer(path):
    return ctypes.CDLL(str(path)).answer()


def test_entries_are_private_and_reused(folder):
    path = cache.cached_object(SOURCE, find_compiler())
    first = path.stat().st_mtime_ns
    assert answer(path) == 42
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert cache.cached_object(SOURCE, find_compiler()).stat().st_mtime_ns == first


def test_a_broken_entry_is_rebuilt(folder):
    path = cache.cached_object(SOURCE, find_compiler())
    path.write_bytes(b"not an object")
    assert answer(cache.cached_object(SOURCE, find_compiler())) == 42


def test_a_foreign_entry_is_rebuilt(folder):
    """Someone swaps in another object: its bytes do not have the recorded hash."""
    path = cache.cached_object(SOURCE, find_compiler())
    other = cache.cached_object("int answer(void) { return 7; }", find_compiler())
    path.write_bytes(other.read_bytes())
    assert answer(cache.cached_object(SOURCE, find_compiler())) == 42


def test_a_link_is_not_followed(folder):
    path = cache.cached_object(SOURCE, find_compiler())
    other = cache.cached_object("int answer(void) { return 7; }", find_compiler())
    path.unlink()
    path.symlink_to(other)
    rebuilt = cache.cached_object(SOURCE, find_compiler())
    assert not rebuilt.is_symlink()
    assert answer(rebuilt) == 42


def test_an_entry_others_can_write_is_rebuilt(folder):
    path = cache.cached_object(SOURCE, find_compiler())
    path.chmod(0o777)
    rebuilt = cache.cached_object(SOURCE, find_compiler())
    assert stat.S_IMODE(rebuilt.stat().st_mode) & 0o022 == 0


def test_an_open_folder_is_closed(folder):
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    cache.cached_object(SOURCE, find_compiler())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_many_processes_at_once(folder):
    code = (
        "from armwise.programs import compiler as cache\n"
        "from armwise.programs.compiler import find_compiler\n"
        "import ctypes\n"
        f"p = cache.cached_object({SOURCE!r}, find_compiler())\n"
        "assert ctypes.CDLL(str(p)).answer() == 42\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=os.environ.copy())
        for _ in range(6)
    ]
    assert [run.wait() for run in runs] == [0] * 6
    assert not list(folder.glob("build-*"))


def test_a_failing_compiler_is_named(folder):
    with pytest.raises(ArmwiseError, match="could not compile"):
        cache.cached_object("this is not C", find_compiler())
    assert not list(folder.glob("*.so"))


def test_another_compiler_is_another_entry(folder):
    real = find_compiler()
    first = cache.cached_object(SOURCE, real)
    second = cache.cached_object(SOURCE, Compiler(real.command, "another version"))
    assert first != second


def test_without_a_cache_numpy_does_the_work(tmp_path, monkeypatch):
    """A file in place of the folder: not even root can make a cache there."""
    from armwise.programs import kernel

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARMWISE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(kernel, "_noticed", False)
    with pytest.warns(kernel.NoCompilerNotice, match="compile cache"):
        assert kernel.resolve_backend("auto") == "numpy"
    assert kernel.resolve_backend("auto") == "numpy"  # a second warning is an error
    with pytest.raises(ArmwiseError, match="ARMWISE_CACHE"):
        kernel.resolve_backend("c")


def test_a_disk_that_fills_up_later_is_one_sentence(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.subprocess, "run", full)
    with pytest.raises(ArmwiseError, match="No space left on device"):
        cache.cached_object("int full(void) { return 1; }", find_compiler())
    assert not list(folder.glob("build-*"))


def test_what_killed_compilations_left_is_swept(folder):
    cache.cached_object(SOURCE, find_compiler())
    (folder / "build-abandoned").mkdir()
    (folder / "build-abandoned" / "program.c").write_text("")
    cache.cached_object("int other(void) { return 1; }", find_compiler())
    assert not list(folder.glob("build-*"))
