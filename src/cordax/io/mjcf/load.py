"""MuJoCo models, compiled by MuJoCo from a file or a text."""

from pathlib import Path
from typing import Any

import numpy as np

from ..._base.checks import require
from ..._base.lazy_imports import of_extra


def mujoco_module() -> Any:
    """Import the package `mujoco`; the error names the extra that installs it."""
    return of_extra("mujoco", "mjcf")


def compiled(source: str | Path) -> tuple[Any, str]:
    """Compile a model; return it (`MjModel`) and a name for messages."""
    mujoco = mujoco_module()
    text = isinstance(source, str) and "<" in source
    where = "MJCF text" if text else str(source)
    if not text:
        path = Path(source)
        require(path.is_file(), "path", repr(where), "an existing MJCF or URDF file, or its text")
    try:
        if text:
            return mujoco.MjModel.from_xml_string(source), where
        return mujoco.MjModel.from_xml_path(where), where
    except ValueError as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{where}: MuJoCo cannot compile the model: {message}") from error


def flag(model, name: str) -> bool:
    """Whether the options of the model set a disable flag, such as "spring"."""
    bit = getattr(mujoco_module().mjtDisableBit, f"mjDSBL_{name.upper()}", None)
    return bit is not None and bool(model.opt.disableflags & int(bit))


def names_of(model, kind: str, count: int) -> list[str]:
    """Names of all elements of a kind, such as "joint". Elements without a name get their kind and
    index, "joint3"."""
    mujoco = mujoco_module()
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    return [mujoco.mj_id2name(model, code, i) or f"{kind}{i}" for i in range(count)]


def given_name(model, kind: str, index: int) -> str | None:
    """Name of an element in the file; None if it has none."""
    mujoco = mujoco_module()
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    return mujoco.mj_id2name(model, code, index) or None


def unique(names: list[str], taken: set[str]) -> list[str]:
    """Make names unique: append underscores to names that are in `taken` or appear twice."""
    result = []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        result.append(name)
    return result


def rotation(quaternion) -> np.ndarray:
    """Rotation matrix (3, 3) of a quaternion (w, x, y, z)."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quadratic(linear, higher) -> np.ndarray:
    """Coefficients (n, 3) of polynomial forces: the `linear` ones (n,), then the `higher` ones
    (n, 2)."""
    higher = np.zeros((len(linear), 2)) if higher is None else np.asarray(higher)
    return np.concatenate([np.asarray(linear)[:, None], higher], axis=1)
