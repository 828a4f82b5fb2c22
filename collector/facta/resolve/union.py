"""Union-find whose representative is the smallest name, so that it does not depend on order."""

from collections.abc import Iterable


class Union:
    """Disjoint sets of names."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._parent = {name: name for name in names}

    def find(self, name: str) -> str:
        """The smallest name of the set that `name` is in (a set of its own if it is new)."""
        parent = self._parent
        root = parent.setdefault(name, name)
        while parent[root] != root:
            root = parent[root]
        while parent[name] != root:
            parent[name], name = root, parent[name]
        return root

    def join(self, one: str, other: str) -> str:
        """Put two sets together; the representative of the result."""
        a, b = sorted((self.find(one), self.find(other)))
        self._parent[b] = a
        return a
