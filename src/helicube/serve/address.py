"""Whom the limits per client address hold."""

from __future__ import annotations

import ipaddress

__all__ = ["household"]

# A host of IPv6 has at least this many leading bits to itself, and all addresses behind them.
PREFIX = 64


def household(address: str) -> str:
    """An IPv4 address, or the /64 of an IPv6 one, since one host has all of it; other names as they are."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, PREFIX), strict=False))
    return str(found)
