"""GPU device through `cuda.core`: arrays, compilation and kernel launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from armwise.errors import ArmwiseError

_FALLBACK = 'Use backend="c", which needs no GPU.'

_STATIC_SHARED_BYTES = 48_000
"""Shared memory beyond which a kernel must be allowed more: 48 KiB, rounded down."""


class CudaError(ArmwiseError):
    """The GPU cannot do what was asked; the message says what to do instead."""


@contextmanager
def _attempt(action: str) -> Iterator[None]:
    """Turn whatever `cuda.core` raises into one sentence."""
    try:
        yield
    except CudaError:
        raise
    # cuda.core has no public base class of its errors, and a missing driver shows as
    # RuntimeError, CUDAError or a loader's own error, depending on what is missing.
    except Exception as failure:
        reason = (str(failure).strip() or type(failure).__name__).splitlines()[0]
        raise CudaError(f"The GPU could not {action} ({reason}). {_FALLBACK}") from None


@cache
def device() -> Device:
    """Return the first GPU of this machine.

    Raises:
        CudaError: If there is none, or driver and compiler are missing or do not match.
    """
    return Device()


class Device:
    """A GPU: compiles CUDA C, holds arrays, launches kernels on its default stream."""

    def __init__(self) -> None:
        try:
            from cuda import core
            from cuda.bindings import driver
        except ImportError:
            raise CudaError(
                f"cuda.core was not found: pip install 'armwise[cuda]'. {_FALLBACK}"
            ) from None
        self._core, self._driver = core, driver
        with _attempt("be found"):
            self._gpu = core.Device(0)
            self._gpu.set_current()
            self.stream = self._gpu.default_stream

    @property
    def multiprocessors(self) -> int:
        """Number of multiprocessors."""
        return int(self._gpu.properties.multiprocessor_count)

    @property
    def free_bytes(self) -> int:
        """Memory that can still be allocated, in bytes."""
        with _attempt("say how much memory it has"):
            _, free, _ = self._driver.cuMemGetInfo()
            # Freed arrays stay reserved by the memory pool, which hands them out again.
            pool = getattr(self._gpu.memory_resource, "attributes", None)
            idle = pool.reserved_mem_current - pool.used_mem_current if pool else 0
            return int(free) + int(idle)

    def compile(self, source: str) -> Module:
        """Compile CUDA C for this GPU and load it."""
        options = self._core.ProgramOptions(
            std="c++17",
            arch=f"sm_{self._gpu.arch}",
            # Functions without a mark are the GPU's, so that C text serves unchanged.
            device_as_default_execution_space=True,
        )
        with _attempt("compile a generated program"):
            program = self._core.Program(source, code_type="c++", options=options)
            return Module(self, program.compile("cubin"))

    def empty(self, size: int) -> Memory:
        """Reserve so many bytes on the GPU."""
        try:
            # Eight bytes at least: an allocation of none has no valid address.
            buffer = self._gpu.allocate(max(8, size), stream=self.stream)
        except Exception:
            raise CudaError(
                f"The GPU has no {size / 1e9:.2f} GB left. Work on shorter blocks. "
                f"{_FALLBACK}"
            ) from None
        return Memory(buffer, size)

    def upload(self, array: np.ndarray) -> Memory:
        """Copy an array of doubles, or of 32-bit integers, to the GPU."""
        kind = np.int32 if np.issubdtype(array.dtype, np.integer) else np.float64
        data = np.ascontiguousarray(array, dtype=kind)
        memory = self.empty(data.nbytes)
        with _attempt("copy to the GPU"):
            # An empty array needs no copy. The wait below: the host array may be freed
            # as soon as this returns.
            if data.nbytes:
                target = memory.part(0, data.nbytes).buffer
                target.copy_from(self._host(data), stream=self.stream)
                self.stream.sync()
        return memory

    def download(self, memory: Memory, shape: Sequence[int]) -> np.ndarray:
        """Copy an array of doubles from the GPU."""
        array = np.empty(tuple(shape))
        with _attempt("copy from the GPU"):
            if array.nbytes:
                source = memory.part(0, array.nbytes).buffer
                self._host(array).copy_from(source, stream=self.stream)
                self.stream.sync()
        return array

    def _host(self, array: np.ndarray) -> Any:
        """An array of this process as a buffer that copies can read and write."""
        return self._core.Buffer.from_handle(
            array.ctypes.data, array.nbytes, owner=array
        )

    def clear(self, memory: Memory) -> None:
        """Fill with zeros."""
        with _attempt("clear memory"):
            memory.buffer.fill(0, stream=self.stream)

    def wait(self) -> None:
        """Wait until all launched kernels are done."""
        with _attempt("finish a kernel"):
            self.stream.sync()


@dataclass(frozen=True, eq=False)
class Memory:
    """Memory on the GPU, freed when no one refers to it.

    Attributes:
        buffer: The `cuda.core.Buffer`.
        bytes: Its size in bytes.
    """

    buffer: Any
    bytes: int

    def part(self, start: int, size: int) -> Memory:
        """Return `size` bytes of it from byte `start` on; they keep the whole alive."""
        pointer = int(self.buffer.handle) + start
        return Memory(
            type(self.buffer).from_handle(pointer, size, owner=self.buffer), size
        )


class Module:
    """A compiled program on the GPU."""

    def __init__(self, owner: Device, code: Any) -> None:
        self._owner, self._code = owner, code

    def launch(
        self,
        name: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Memory | int],
        shared_bytes: int = 0,
    ) -> None:
        """Start a kernel; integers are passed as 64 bits."""
        core, owner = self._owner._core, self._owner
        with _attempt(f"start the kernel {name}"):
            kernel = self._code.get_kernel(name)
            # CUDA grants more than 48 KiB only to kernels that opt in.
            if shared_bytes > _STATIC_SHARED_BYTES:
                self._allow(kernel, shared_bytes)
            config = core.LaunchConfig(
                grid=blocks, block=threads, shmem_size=shared_bytes
            )
            values = [
                x.buffer if isinstance(x, Memory) else np.int64(x) for x in arguments
            ]
            core.launch(owner.stream, config, kernel, *values)

    def _allow(self, kernel: Any, shared_bytes: int) -> None:
        """Let a kernel have more shared memory; `cuda.core` only reads this number."""
        driver, gpu = self._owner._driver, self._owner._gpu
        attribute = driver.CUfunction_attribute
        (code,) = driver.cuKernelSetAttribute(
            attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            shared_bytes,
            kernel.handle,
            gpu.device_id,
        )
        if code != driver.CUresult.CUDA_SUCCESS:
            raise CudaError(
                f"A block needs {shared_bytes} bytes of shared memory, more than this "
                f"GPU has. {_FALLBACK}"
            )
