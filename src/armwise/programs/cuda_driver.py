"""Just enough of CUDA's driver and run-time compiler, through ctypes."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from armwise.errors import ArmwiseError


class CudaError(ArmwiseError):
    """The GPU cannot do what was asked; the message says what to do instead."""


_FALLBACK = 'Use backend="c", which needs no GPU.'

_DEVICE = b"--device-as-default-execution-space"
"""Functions without a mark are the GPU's, so that C text serves it unchanged."""


@cache
def device() -> Device:
    """Return the first GPU of this machine.

    Raises:
        CudaError: If there is none, or driver and compiler are missing or do not match.
    """
    return Device()


class Device:
    """A GPU: compiles CUDA C, holds arrays, launches kernels."""

    def __init__(self) -> None:
        self._driver = _library(("libcuda.so.1", "libcuda.so"), "the NVIDIA driver")
        self._compiler = _library(
            _compiler_names(), "NVRTC (pip install 'armwise[cuda]' brings it)"
        )
        self._check(self._driver.cuInit(0), "start the driver")
        count = ctypes.c_int()
        self._check(self._driver.cuDeviceGetCount(ctypes.byref(count)), "count GPUs")
        if not count.value:
            raise CudaError(f"This machine has no GPU. {_FALLBACK}")
        self._device = ctypes.c_int()
        self._check(self._driver.cuDeviceGet(ctypes.byref(self._device), 0), "find it")
        context = ctypes.c_void_p()
        self._check(
            self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), self._device),
            "take it",
        )
        self._check(self._driver.cuCtxSetCurrent(context), "use it")

    def attribute(self, number: int) -> int:
        """Return one of the driver's device attributes."""
        value = ctypes.c_int()
        self._check(
            self._driver.cuDeviceGetAttribute(
                ctypes.byref(value), number, self._device
            ),
            "ask the GPU about itself",
        )
        return value.value

    @property
    def multiprocessors(self) -> int:
        """Number of multiprocessors."""
        return self.attribute(16)

    @property
    def free_bytes(self) -> int:
        """Memory that can still be had, in bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        code = self._driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        self._check(code, "say how much memory it has")
        return free.value

    def compile(self, source: str) -> Module:
        """Compile CUDA C for this GPU and load it."""
        arch = f"{self.attribute(75)}{self.attribute(76)}"
        program = ctypes.c_void_p()
        text = source.encode()
        nvrtc = self._compiler
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), text, b"armwise.cu", 0, None, None
        )
        flags = [f"--gpu-architecture=sm_{arch}".encode(), b"--std=c++17", _DEVICE]
        options = (ctypes.c_char_p * len(flags))(*flags)
        if nvrtc.nvrtcCompileProgram(program, len(flags), options):
            raise CudaError(f"NVRTC refused a generated program: {self._log(program)}")
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, image)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        module = ctypes.c_void_p()
        self._check(
            self._driver.cuModuleLoadData(ctypes.byref(module), image),
            "load a compiled program (driver older than the compiler?)",
        )
        return Module(self, module)

    def _log(self, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self._compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self._compiler.nvrtcGetProgramLog(program, log)
        return log.value.decode(errors="replace").strip()[:400]

    def empty(self, bytes_: int) -> Memory:
        """Reserve memory on the GPU."""
        pointer = ctypes.c_uint64()
        if self._driver.cuMemAlloc_v2(
            ctypes.byref(pointer), ctypes.c_size_t(max(8, bytes_))
        ):
            raise CudaError(
                f"The GPU has no {bytes_ / 1e9:.2f} GB left. Work on shorter blocks. "
                f"{_FALLBACK}"
            )
        return Memory(self, pointer, bytes_)

    def upload(self, array: np.ndarray) -> Memory:
        """Copy an array of doubles, or of 32-bit integers, to the GPU."""
        kind = np.int32 if np.issubdtype(array.dtype, np.integer) else np.float64
        data = np.ascontiguousarray(array, dtype=kind)
        memory = self.empty(data.nbytes)
        self._check(
            self._driver.cuMemcpyHtoD_v2(
                memory.pointer,
                ctypes.c_void_p(data.ctypes.data),
                ctypes.c_size_t(data.nbytes),
            ),
            "copy to the GPU",
        )
        return memory

    def download(self, memory: Memory, shape: Sequence[int]) -> np.ndarray:
        """Copy an array from the GPU."""
        array = np.empty(tuple(shape))
        self._check(
            self._driver.cuMemcpyDtoH_v2(
                ctypes.c_void_p(array.ctypes.data),
                memory.pointer,
                ctypes.c_size_t(array.nbytes),
            ),
            "copy from the GPU",
        )
        return array

    def clear(self, memory: Memory) -> None:
        """Fill with zeros."""
        self._check(
            self._driver.cuMemsetD8_v2(
                memory.pointer, 0, ctypes.c_size_t(memory.bytes)
            ),
            "clear memory",
        )

    def wait(self) -> None:
        """Wait until all that was launched is done."""
        self._check(self._driver.cuCtxSynchronize(), "finish a kernel")

    def _check(self, code: int, what: str) -> None:
        if code:
            name = ctypes.c_char_p()
            self._driver.cuGetErrorName(code, ctypes.byref(name))
            said = (name.value or b"unknown error").decode()
            raise CudaError(f"The GPU could not {what} ({said}). {_FALLBACK}")


class Memory:
    """Memory on the GPU, given back when no one holds it.

    Args:
        owner: The GPU.
        pointer: Where it begins.
        bytes_: Its size in bytes.
        whole: What it is a part of, if it is.
    """

    def __init__(
        self,
        owner: Device,
        pointer: ctypes.c_uint64,
        bytes_: int,
        whole: Memory | None = None,
    ) -> None:
        self._owner, self.pointer, self.bytes = owner, pointer, bytes_
        self._whole = whole

    def part(self, start: int, bytes_: int) -> Memory:
        """Return a part of it, which begins so many bytes later."""
        place = ctypes.c_uint64(self.pointer.value + start)
        return Memory(self._owner, place, bytes_, self)

    def __del__(self) -> None:
        if self._whole is None:
            self._owner._driver.cuMemFree_v2(self.pointer)


class Module:
    """A compiled program on the GPU."""

    def __init__(self, owner: Device, handle: ctypes.c_void_p) -> None:
        self._owner, self._handle = owner, handle

    def launch(
        self,
        name: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Memory | int],
        shared_bytes: int = 0,
    ) -> None:
        """Start a kernel; integers are passed as 64 bits."""
        driver = self._owner._driver
        function = ctypes.c_void_p()
        self._owner._check(
            driver.cuModuleGetFunction(
                ctypes.byref(function), self._handle, name.encode()
            ),
            f"find the kernel {name}",
        )
        if shared_bytes > 48_000:
            driver.cuFuncSetAttribute(function, 8, shared_bytes)
        values: list[Any] = [
            x.pointer if isinstance(x, Memory) else ctypes.c_int64(x) for x in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(
            *[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values]
        )
        self._owner._check(
            driver.cuLaunchKernel(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared_bytes,
                None,
                pointers,
                None,
            ),
            f"start the kernel {name}",
        )


def _compiler_names() -> tuple[str, ...]:
    found = glob.glob("/usr/local/cuda*/lib64/libnvrtc.so*")
    wheels = [
        p for d in _site_folders() for p in glob.glob(f"{d}/nvidia/*/lib/libnvrtc.so*")
    ]
    return ("libnvrtc.so", *sorted(found), *sorted(wheels))


def _site_folders() -> list[str]:
    import site

    return site.getsitepackages()


def _library(names: Sequence[str], what: str) -> ctypes.CDLL:
    for name in names:
        if "builtins" in name or name.endswith(".alt"):
            continue
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError(f"{what[0].upper()}{what[1:]} was not found. {_FALLBACK}")
