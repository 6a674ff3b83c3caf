"""Stores a network's weights, with a version and a checksum, and a bank's fit as bytes: safetensors, never pickle.

Format: https://huggingface.co/docs/safetensors.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from policy.agreement import Rarity
from policy.fit import Fit
from policy.network import Head
from policy.orders import ORDERS, START


class WeightsError(ValueError):
    """Raised for stored bytes that are no weights which this version of casebank can serve."""


class WeightsCorrupt(WeightsError):
    """Raised for stored bytes that were changed, or that are no weights at all."""


class WrongFeatureVersion(WeightsError):
    """Raised for weights that were trained on another version of the features."""


class WrongNetwork(WeightsError):
    """Raised for weights of a network with other parts than this version's, such as hidden units."""


def pack(head: Head, feature_version: int) -> tuple[bytes, bytes]:
    """Returns a head's weights as bytes, and the sha256 of the bytes; equal weights give equal bytes."""
    blob = _packed(head.arrays() | {"feature_version": np.array([feature_version], np.int64)})
    return blob, hashlib.sha256(blob).digest()


def unpack(blob: bytes, checksum: bytes, feature_version: int) -> Head:
    """Returns the head whose weights ``pack`` turned into these bytes.

    Raises:
        WeightsCorrupt: the bytes are not those that were packed.
        WrongFeatureVersion: the weights were trained on another version of the features.
        WrongNetwork: the network has other parts than this version's.
    """
    if hashlib.sha256(blob).digest() != checksum:
        raise WeightsCorrupt("the checksum does not match")
    try:
        arrays = load(blob)
        trained_on = int(arrays.pop("feature_version")[0])
        if trained_on != feature_version:
            raise WrongFeatureVersion(f"trained on features {trained_on}, serving {feature_version}")
        names = [field.name for field in fields(Head)]
        if others := sorted(arrays.keys() - set(names)):
            raise WrongNetwork(f"unknown parts: {', '.join(others)}")
        return Head(**{name: arrays[name] for name in names})
    except (SafetensorError, KeyError, IndexError, TypeError) as error:
        raise WeightsCorrupt(f"no weights: {type(error).__name__}") from error


def pack_fit(fit: Fit) -> bytes:
    """Returns a bank's fit as bytes; equal fits give equal bytes."""
    return _packed(
        {
            "order": np.frombuffer(fit.order.encode(), np.uint8),
            "weights": fit.weights,
            "terms": fit.terms,
            "having": fit.having,
            "gains": fit.gains,
            "moves": fit.moves.moves,
            "rarities": fit.moves.weights,
            "unknown": np.array([fit.moves.unknown], np.float64),
            "mostly_proven": np.array([fit.mostly_proven], np.bool_),
            "times": fit.times,
        }
    )


def unpack_fit(blob: bytes) -> Fit:
    """Returns the bank's fit that ``pack_fit`` turned into these bytes.

    Raises:
        WeightsCorrupt: the bytes are no fit of this version.
    """
    try:
        has = load(blob)
        if has["weights"].shape != START.shape:
            raise WeightsCorrupt(f"{has['weights'].size} channels where this version has {START.size}")
        if not all(np.isfinite(each).all() for each in has.values()):
            raise WeightsCorrupt("a number is not finite")
        if (order := has["order"].tobytes().decode(errors="replace")) not in ORDERS:
            raise WeightsCorrupt(f"no order of this version: {order}")
        return Fit(
            order=order,
            weights=has["weights"],
            runs=len(has["times"]),
            terms=has["terms"],
            having=has["having"],
            gains=has["gains"],
            moves=Rarity(has["moves"], has["rarities"], float(has["unknown"][0])),
            mostly_proven=bool(has["mostly_proven"][0]),
            times=has["times"],
        )
    except (SafetensorError, KeyError, IndexError) as error:
        raise WeightsCorrupt(f"no fit: {type(error).__name__}") from error


def _packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
