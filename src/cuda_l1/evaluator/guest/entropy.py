"""What parent and judge leave to chance, so that nobody can foresee it: the parent's stream follows from a secret of a
request, and the judge's for each operation from a key that the parent makes of that. No process that holds a candidate
is given any of these.

Under equal keys equal draws: a verdict that depends on them can be looked at again. Whoever has no key, as in a process
of a candidate's, draws from the operating system.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter


class Entropy(random.Random):
    """`random.Random` over SHAKE-256 of a key and a count; over `os.urandom` where there is no key."""

    def __init__(self) -> None:
        super().__init__()
        self.begin(b"")

    def begin(self, key: bytes) -> None:
        """Draw from the stream of `key`, from its beginning; empty: from the operating system."""
        self._key = self._stream = key
        self._drawn, self._keys = 0, Counter[str]()

    def key(self, label: str) -> bytes:
        """32 bytes for another stream: none like them since `begin`, and not dependent on how much was drawn."""
        if not self._key:
            return os.urandom(32)
        self._keys[label] += 1
        return hashlib.sha256(self._key + f"{label} {self._keys[label]}".encode()).digest()

    def turn(self, label: str) -> None:
        """Go on in a stream of its own, which does not depend on how much was drawn before."""
        if self._key:
            self._stream, self._drawn = self.key(label), 0

    def getrandbits(self, k: int, /) -> int:
        """`k` bits, as a whole number."""
        count = (k + 7) // 8
        return int.from_bytes(self._bytes(count), "little") >> (8 * count - k)

    def random(self) -> float:
        """A number from 0 to 1, 53 bits of it."""
        return self.getrandbits(53) * 2.0**-53

    def seed(self, *args: object, **fields: object) -> None:
        """Nothing: a key is what `begin` is given."""

    def _bytes(self, count: int) -> bytes:
        if not self._key:
            return os.urandom(count)
        self._drawn += 1
        return hashlib.shake_256(self._stream + self._drawn.to_bytes(8, "little")).digest(count)


ENTROPY = Entropy()
"""This process's."""
