"""Fresh names of values and nodes."""

from __future__ import annotations

from reducelower.model.document import Document

__all__ = ["Names"]


class Names:
    """Makes names that neither occur in the model nor were made before."""

    def __init__(self, model: Document) -> None:
        """Take the model, without reading its names yet."""
        self._model = model
        self._taken: set[bytes] | None = None
        self._last: dict[str, int] = {}

    def fresh(self, stem: str, tail: str) -> str:
        """A fresh name made of a stem, such as a node name, and a tail, such as ``/ReduceL2/square``."""
        if self._taken is None:
            self._taken = self._model.columns.names()
        taken, name = self._taken, stem + tail
        coded = name.encode()
        if coded in taken:
            # Names are never released, so no candidate that was taken once is tried again.
            number = self._last.get(name, 1) + 1
            while (coded := f"{name}_{number}".encode()) in taken:
                number += 1
            self._last[name] = number
            name = f"{name}_{number}"
        taken.add(coded)
        return name
