"""Folder of generated code: written, checked, compiled and loaded."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm
from armwise.codegen.accuracy import random_states, reference_values
from armwise.errors import ArgumentError, ArmwiseError, FileError
from armwise.files import exchange, scratch_folder
from armwise.programs import Compiler, cached_object, find_compiler
from armwise.tables import read_json

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


MANIFEST = "armwise.json"
"""Says what was generated, with a hash of every file."""


def write_folder(
    folder: Path, files: Mapping[str, str], about: Mapping[str, object]
) -> list[Path]:
    """Write files into a folder that is new, empty, or holds what was generated before.

    Raises:
        ArgumentError: If the folder holds anything else; nothing is changed then.
    """
    folder = folder.resolve()
    _require_own(folder)
    hashes = {name: digest(text) for name, text in files.items()}
    manifest = json.dumps({**about, "files": hashes}, indent=2) + "\n"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder, so that renaming works: a crash leaves the old code whole.
        with scratch_folder(folder.parent) as scratch:
            fresh = scratch / folder.name
            fresh.mkdir()
            for name, text in {**files, MANIFEST: manifest}.items():
                (fresh / name).write_text(text, encoding="utf-8")
            fresh.chmod(folder.stat().st_mode & 0o777 if folder.exists() else 0o755)
            _put_in_place(fresh, folder)
    except OSError as problem:
        raise FileError(f"{folder} cannot be written: {problem.strerror}.") from problem
    return [folder / name for name in (*files, MANIFEST)]


def _put_in_place(fresh: Path, folder: Path) -> None:
    """Give a finished folder its name: the old one, or the whole new one, is there."""
    if not folder.exists() or not any(folder.iterdir()):
        os.replace(fresh, folder)  # an empty folder may be replaced
    elif not exchange(fresh, folder):
        # Where two folders cannot swap names, a kill between the two lines leaves none,
        # and the next run writes it.
        os.replace(folder, fresh.with_name("replaced"))
        os.replace(fresh, folder)


def digest(text: str) -> str:
    """Return the SHA-256 of a file's text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_manifest(folder: Path) -> dict[str, object]:
    """Read what a folder of generated code says of itself.

    Raises:
        ArgumentError: If it is not such a folder, or a file was changed since.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ArgumentError(
            f"{folder} holds no generated code: it has no {MANIFEST}. "
            "Make it with armwise generate."
        )
    about = read_json(path, "a description of generated code", ArgumentError)
    try:
        json.dumps(about, allow_nan=False)
    except ValueError:
        raise ArgumentError(f"{path} holds a number that is not finite.") from None
    hashes = about.get("files")
    if not isinstance(hashes, dict):
        raise ArgumentError(f"{path} cannot be read: it names no files.")
    for name, expected in hashes.items():
        # A manifest may come from anywhere: it must not name files elsewhere.
        if Path(name).name != name:
            raise ArgumentError(f"{path} names a file outside its folder: {name!r}.")
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ArgumentError(
                f"{folder / name} is missing or unreadable. Generate the code again."
            ) from None
        if digest(text) != expected:
            raise ArgumentError(
                f"{folder / name} was changed after it was generated. "
                "Generate into another folder, or restore the file."
            )
    return dict(about)


def _require_own(folder: Path) -> None:
    """Refuse a folder that holds anything but code that was generated before."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ArgumentError(
            f"{folder} is a file. Name a folder for the generated code."
        )
    present = {entry.name for entry in folder.iterdir()}
    if not present:
        return
    own: set[str] = set()
    if MANIFEST in present:
        about = read_manifest(folder)
        own = {MANIFEST, *about["files"]}  # type: ignore[misc]
    foreign = sorted(present - own)
    if foreign:
        raise ArgumentError(
            f"{folder} holds other files ({', '.join(foreign[:3])}). "
            "Name a new or empty folder; nothing was written."
        )


# Calling generated code from Python.


class GeneratedLibrary:
    """Generated C, compiled on this machine and called from Python.

    Every generated function is a method: arrays (..., n) in, arrays out, one sample or
    many; several results come as a tuple.

    Args:
        folder: Where `generate` wrote the code.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.about: dict[str, Any] = read_manifest(self.folder)
        compiler = find_compiler()
        if compiler is None:
            raise ArgumentError(
                "No C compiler was found to build the generated code with. "
                "Install gcc or clang, or set CC."
            )
        self._library = ctypes.CDLL(str(_compiled(self.folder, self.name, compiler)))
        self._type = np.float32 if self.about["precision"] == "float" else np.float64
        self._struct = self._made_struct()

    @property
    def name(self) -> str:
        """Prefix of its C names."""
        return str(self.about["name"])

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions it has."""
        return tuple(self.about["functions"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.about["functions"]:
            raise AttributeError(
                f"The code in {self.folder} has no function {name!r}. "
                f"It has: {', '.join(self.about['functions'])}."
            )
        return lambda *inputs: self.call(name, *inputs)

    def set_load(self, load: ArrayLike) -> None:
        """Give the load's ten inertial parameters, in the frame of the manifest."""
        self.set_parameters(load=load)

    def set_parameters(self, **arrays: ArrayLike) -> None:
        """Change fields of the struct (`body`, `drive`, `load`) and prepare."""
        if self._struct is None:
            raise ArgumentError(
                "The parameters of this code are constants. Generate it with "
                'parameters="struct" or load="arbitrary".'
            )
        for name, values in arrays.items():
            # What `prepare` works out is not for callers to set.
            fields = self.about["struct"]
            sizes = {key: size for key, size in fields if key != "prepared"}
            vector = np.asarray(values, dtype=float)
            if vector.shape != (sizes.get(name),) or not np.all(np.isfinite(vector)):
                raise ArgumentError(
                    f"{name} must be one of {sizes}, as many finite numbers as stated; "
                    f"got shape {vector.shape}."
                )
            field = getattr(self._struct, name)
            field[:] = [float(x) for x in vector]
        self._function("prepare")(ctypes.byref(self._struct))

    def call(
        self, name: str, *inputs: ArrayLike
    ) -> Float[np.ndarray, ...] | tuple[Float[np.ndarray, ...], ...]:
        """Call a function by name over one sample or many."""
        entry = self.about["functions"][name]
        arrays = self._inputs(name, entry["inputs"], inputs)
        shape = np.broadcast_shapes(*[a.shape[:-1] for a in arrays])
        rows = [
            np.ascontiguousarray(
                np.broadcast_to(a, (*shape, a.shape[-1])).reshape(-1, a.shape[-1])
            )
            for a in arrays
        ]
        count = int(np.prod(shape, dtype=int))
        outputs = [
            np.zeros((count, *size), self._type) for size in entry["outputs"].values()
        ]
        self._loop(name, entry["takes_struct"], rows, outputs)
        results = tuple(o.reshape((*shape, *o.shape[1:])) for o in outputs)
        return results[0] if len(results) == 1 else results

    def check_against(self, arm: Arm, states: int = 200, seed: int = 0) -> float:
        """Compare every function with `Dynamics(arm)`; return the worst difference.

        The difference is relative to each function's largest result.

        Raises:
            ArmwiseError: If it is more than rounding explains.
        """
        worst = 0.0
        drawn = random_states(arm, states, seed)
        for name, entry in self.about["functions"].items():
            inputs, expected = reference_values(name, arm, self.about["frame"], drawn)
            flat = [v.reshape(states, -1) for v in inputs.values()]
            results = self.call(name, *flat)
            results = results if isinstance(results, tuple) else (results,)
            for got, (key, want) in zip(results, expected.items(), strict=True):
                # 1e-12: results that are all zero are compared absolutely.
                scale = max(float(np.abs(want).max(initial=0.0)), 1e-12)
                gap = float(np.abs(got.reshape(want.shape) - want).max(initial=0.0))
                # Far above rounding, far below what another arm's numbers change.
                slack = 1e-9 if self._type is np.float64 else 1e-3
                if not gap <= slack * scale + 4 * entry["rounding_bound"]:
                    raise ArmwiseError(
                        f"{self.name}_{name} differs from {arm.name} by {gap:.3g} in "
                        f"{key}: it was generated for other parameters."
                    )
                worst = max(worst, gap / scale)
        return worst

    def _function(self, name: str) -> Any:
        function = getattr(self._library, f"{self.name}_{name}")
        function.restype = None
        return function

    def _loop(
        self,
        name: str,
        takes_struct: bool,
        rows: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
    ) -> None:
        function = self._function(name)
        first = [ctypes.byref(self._struct)] if takes_struct else []  # type: ignore[arg-type]
        steps = [(a.ctypes.data, a.strides[0]) for a in (*rows, *outputs)]
        for k in range(len(outputs[0])):
            arguments = [ctypes.c_void_p(start + k * stride) for start, stride in steps]
            function(*first, *arguments)

    def _inputs(
        self, name: str, sizes: dict[str, int], inputs: Sequence[ArrayLike]
    ) -> list[np.ndarray]:
        if len(inputs) != len(sizes):
            raise ArgumentError(f"{name} takes {', '.join(sizes)}.")
        arrays = []
        for (key, size), values in zip(sizes.items(), inputs, strict=True):
            array = np.asarray(values, dtype=self._type)
            if array.ndim == 0 or array.shape[-1] != size:
                raise ArgumentError(
                    f"{name}: {key} must end in {size} values, not {array.shape}."
                )
            arrays.append(array)
        return arrays

    def _made_struct(self) -> ctypes.Structure | None:
        if not self.about["struct"]:
            return None
        kind = ctypes.c_float if self._type is np.float32 else ctypes.c_double
        fields = [(name, kind * size) for name, size in self.about["struct"]]
        instance = type("Parameters", (ctypes.Structure,), {"_fields_": fields})()
        self._function("defaults")(ctypes.byref(instance))
        return instance


def load_generated(folder: str | Path, arm: Arm | None = None) -> GeneratedLibrary:
    """Compile generated code and load it; check it against the arm if one is given."""
    library = GeneratedLibrary(folder)
    if arm is not None:
        library.check_against(arm)
    return library


def _compiled(folder: Path, name: str, compiler: Compiler) -> Path:
    """Compile the model's one source file, header included in place."""
    header = (folder / f"{name}.h").read_text(encoding="utf-8")
    source = (folder / f"{name}.c").read_text(encoding="utf-8")
    text = source.replace(f'#include "{name}.h"', header, 1)
    # Without -ffast-math: the rounding bounds are those of IEEE arithmetic.
    return cached_object(text, compiler, ("-std=c99", "-O3"))
