"""From logits to the next id without leaving the device: guidance, top-p, Gumbel-max, and the step's book-keeping.

A requests, C rows of logits each (1, or 2 with guidance: conditioned, then unconditioned), V vocabulary, N ids per
request at most, P entries of the plan. One program per request holds all its logits in registers.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from helicube.kernels.sampling_state import SamplingState

__all__ = ["sample_ids"]


@triton.jit
def _mix(x):
    """A 32-bit hash with low bias (constants: "lowbias32" of the hash-prospector survey)."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _gumbel(key, step, ids):
    """The noise of kernels.sampling.gumbel, bit for bit up to the logarithms."""
    row = _mix(key.to(tl.uint32) + step.to(tl.uint32) * 0x9E3779B9)
    bits = _mix(row + ids.to(tl.uint32) * 0x85EBCA77)
    uniform = ((bits >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07
    return -tl.log(-tl.log(uniform))


@triton.jit
def _nucleus(scores, top_p):
    """Which ids stay: those before which the likelier ones have not reached top_p; equals count in order of id."""
    likely = tl.exp(scores - tl.max(scores, axis=0))
    share = likely / tl.sum(likely, axis=0)
    # Bits of floats that are not negative are ordered as the floats. Bisection for the least `cut` with
    # Σ share over bits > cut below top_p: 31 sums instead of a sort.
    bits = share.to(tl.int32, bitcast=True)
    low = -1
    cut = 0x3F800000
    for _ in tl.range(0, 31):
        middle = low + (cut - low) // 2
        enough = tl.sum(tl.where(bits > middle, share, 0.0), axis=0) < top_p
        cut = tl.where(enough, middle, cut)
        low = tl.where(enough, low, middle)
    above = tl.sum(tl.where(bits > cut, share, 0.0), axis=0)
    tie = bits == cut
    earlier = tl.cumsum(tie.to(tl.int32), axis=0) - 1
    return (bits > cut) | (tie & (above + earlier.to(tl.float32) * share < top_p))


@triton.jit
def _sample_kernel(
    logits_ptr, step_ptr, total_ptr, guidance_ptr, temperature_ptr, top_p_ptr, key_ptr, range_ptr, forced_ptr,
    id_ptr, token_ptr, position_ptr, length_ptr, failed_ptr, num_ranges, max_tokens, logits_stride,
    C: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    request = tl.program_id(0)
    step = tl.load(step_ptr + request)
    total = tl.load(total_ptr + request)
    if (step >= 0) & (step < total):
        entry = tl.minimum(step, num_ranges - 1)
        first = tl.load(range_ptr + 2 * entry)
        end = tl.load(range_ptr + 2 * entry + 1)
        ids = first + tl.arange(0, BLOCK_V)
        allowed = ids < end
        row = logits_ptr + request.to(tl.int64) * C * logits_stride + ids
        logits = tl.load(row, mask=allowed, other=float("-inf")).to(tl.float32)
        if C == 2:
            plain = tl.load(row + logits_stride, mask=allowed, other=0.0).to(tl.float32)
            gamma = (tl.load(guidance_ptr + request) * (total - step).to(tl.float64) / total.to(tl.float64)).to(
                tl.float32
            )
            # An id masked out is −∞ in both, and must stay so.
            guided = (1.0 + gamma) * logits - gamma * plain
            logits = tl.where(logits == float("-inf"), logits, guided)
        best = tl.max(logits, axis=0)
        num_nan = tl.sum((logits != logits).to(tl.int32), axis=0)  # noqa: PLR0124 - true of NaN alone
        sound = (num_nan == 0) & (best > float("-inf")) & (best < float("inf"))

        temperature = tl.load(temperature_ptr + request)
        scores = logits
        if temperature > 0:
            scores = tl.div_rn(logits, temperature)
            noisy = scores + _gumbel(tl.load(key_ptr + request), step, ids)
            top_p = tl.load(top_p_ptr + request)
            if top_p < 1:
                noisy = tl.where(_nucleus(scores, top_p), noisy, float("-inf"))
            scores = tl.where(allowed, noisy, float("-inf"))
        chosen = first + tl.argmax(scores, axis=0, tie_break_left=True)
        # NaN compares with nothing: whatever came out must still be an id.
        chosen = tl.minimum(tl.maximum(chosen, first), end - 1).to(tl.int64)
        given = tl.load(forced_ptr + request.to(tl.int64) * max_tokens + step)
        chosen = tl.where(given >= 0, given, chosen)

        if (sound == 0) & (tl.load(failed_ptr + request) == 0):
            tl.store(failed_ptr + request, step + 1)
        tl.store(id_ptr + request.to(tl.int64) * max_tokens + step, chosen)
        done = step + 1 >= total
        tl.store(step_ptr + request, step + 1)
        for copy in tl.static_range(C):
            place = request * C + copy
            tl.store(token_ptr + place, chosen)
            position = tl.load(position_ptr + place) + 1
            tl.store(position_ptr + place, tl.where(done, -1, position))
            tl.store(length_ptr + place, tl.where(done, 0, tl.load(length_ptr + place) + 1))


def sample_ids(logits_RV: Tensor, state: SamplingState, *, max_width: int) -> None:
    """Choose one id per request, and advance `state` in place; the twin is kernels.sampling.advance.

    Args:
        logits_RV: (A·C, V), the rows of a request together.
        max_width: the most ids that any entry of `state.ranges` allows.
    """
    num_requests = len(state.steps)
    _sample_kernel[(num_requests,)](
        logits_RV, state.steps, state.num_tokens, state.guidance, state.temperature, state.top_p, state.keys,
        state.ranges, state.forced, state.ids, state.tokens, state.positions, state.lengths, state.failed,
        len(state.ranges), state.ids.shape[1], logits_RV.stride(0),
        C=len(logits_RV) // num_requests, BLOCK_V=triton.next_power_of_2(max_width),
        # A fused multiply-add would round guidance otherwise than the twin.
        num_warps=16 if max_width > 4096 else 4, enable_fp_fusion=False,
    )  # fmt: skip
