from dataclasses import dataclass, field


@dataclass(frozen=True)
class Account:
    name: str
    role: str = "reader"
    suspended: bool = False


@dataclass(frozen=True)
class Document:
    owner: str
    public: bool = False
    shared_with: frozenset[str] = field(default_factory=frozenset)
