"""Armwise: a robot arm's knowledge of its own body.

The names are listed once, in the stub beside this file, which type checkers read too.
Each is imported when it is first used: `import armwise` alone loads none of them.
"""

from typing import Any

import lazy_loader

_import_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _import_public(name)
    from armwise.moved import import_moved

    return import_moved(name)
