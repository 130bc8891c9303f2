"""A controller's state on disk: stop today, go on tomorrow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armwise.control.controller import ResumableController
from armwise.errors import ArgumentError
from armwise.files import replacing


def save_state(controller: ResumableController, path: str | Path) -> None:
    """Write a controller's state to an .npz file, all at once or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **controller.to_dict())  # type: ignore[arg-type]


def load_state(controller: ResumableController, path: str | Path) -> None:
    """Put a state from `save_state` back into a controller that was reset.

    Raises:
        ArgumentError: If the file is damaged or belongs to another controller.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            state = {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ArgumentError(f"{path} holds no controller's state ({error}).") from error
    try:
        controller.restore(state)
    except KeyError as error:
        raise ArgumentError(
            f"{path} has no {error} and belongs to another controller."
        ) from error
