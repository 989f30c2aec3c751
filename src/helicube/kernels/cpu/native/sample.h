// From logits to the next id of one slot: guidance, temperature, top-p, Gumbel-max; kernels/sampling.py has the same in
// PyTorch, and the same order of operations wherever that decides a rounding.
#pragma once

#include "prepare.h"

namespace hk {

static inline vu mix(vu x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}

// Gumbel noise of LANES ids from `id` on.
static inline vf gumbel(uint32_t row, int64_t id) {
    vu lane;
    for (int i = 0; i < LANES; i++) lane[i] = (uint32_t)i;
    vu bits = mix(((uint32_t)id + lane) * 0x85EBCA77u + row);
    vf uniform = (__builtin_convertvector((vi)(bits >> 9), vf) + 0.5f) * 1.1920928955078125e-07f;
    return -vlog(-vlog(uniform));
}

static uint32_t row_key(int64_t key, int64_t step) {
    vu start = {};
    start[0] = (uint32_t)key + (uint32_t)step * 0x9E3779B9u;
    return mix(start)[0];
}

// Sum of x over lanes where x > cut, and how many there are is of no interest: the mass of the likelier ids.
static double mass_above(const float* x, int64_t n, float cut) {
    double total = 0;
    for (int64_t start = 0; start < n; start += 64 * LANES) {
        vf sum = {};
        for (int64_t i = start; i < std::min(n, start + 64 * LANES); i += LANES) {
            vf v = load<vf>(x + i);
            sum += select(v > cut, v, vf{});
        }
        total += sum_lanes(sum);
    }
    return total;
}

// First place of the largest element; n is a multiple of LANES.
static int64_t argmax(const float* x, int64_t n) {
    vf top = splat(-INFINITY);
    for (int64_t i = 0; i < n; i += LANES) top = vmax(load<vf>(x + i), top);
    float best = max_lanes(top);
    for (int64_t i = 0; i < n; i++)
        if (x[i] == best) return i;
    return 0;
}

// Softmax of x; n is a multiple of LANES.
static void to_shares(const float* x, int64_t n, float top, float* share) {
    double total = 0;
    for (int64_t i = 0; i < n; i += LANES) {
        vf weight = vexp(load<vf>(x + i) - top);
        store(share + i, weight);
        total += sum_lanes(weight);
    }
    float factor = (float)(1 / total);
    map_row(share, n, [=](vf v) { return v * factor; });
}

// Takes the best score again and again until it belongs to an id of the nucleus (Holtzman et al., 2020): one of those
// before which the likelier ones have not reached top_p. Ids no likelier than one outside are outside too, so that
// few rounds pass, and nothing is sorted.
static int64_t best_in_nucleus(float* score, const float* share, int64_t n, float top_p) {
    for (;;) {
        int64_t best = argmax(score, n);
        // The likeliest of all always stays.
        float mine = share[best];
        double above = mass_above(share, n, mine);
        for (int64_t i = 0; i < best; i++)
            if (share[i] == mine) above += mine;
        if (above < (double)top_p || above == 0) return best;
        float cut = mine;
        for (int64_t i = 0; i < n; i += LANES) {
            vf s = load<vf>(share + i);
            store(score + i, select(s < cut, splat(-INFINITY), load<vf>(score + i)));
        }
        score[best] = -INFINITY;
    }
}

// Guided logits of the ids that may stand, padded with −∞; whether they are sound.
static bool guide(const float* cond, const float* uncond, float gamma, int64_t n, float* out) {
    int64_t padded = round_up(n, LANES);
    vi broken = {};
    vf top = splat(-INFINITY);
    float first[LANES], second[LANES];
    for (int64_t i = 0; i < padded; i += LANES) {
        vf c, u = {};
        if (i + LANES <= n) {
            c = load<vf>(cond + i);
            if (uncond) u = load<vf>(uncond + i);
        } else {
            for (int64_t l = 0; l < LANES; l++) {
                first[l] = i + l < n ? cond[i + l] : -INFINITY;
                second[l] = uncond && i + l < n ? uncond[i + l] : 0.0f;
            }
            c = load<vf>(first), u = load<vf>(second);
        }
        vf value = c;
        if (uncond) {
            vf lead = c * (1.0f + gamma), less = u * gamma;
            value = select(c == -INFINITY, c, lead - less);
        }
        broken |= value != value;
        top = vmax(value, top);
        store(out + i, value);
    }
    bool sound = true;
    for (int l = 0; l < LANES; l++) sound &= !broken[l];
    float best = max_lanes(top);
    return sound && best > -INFINITY && best < INFINITY;
}

// The id of a slot, counted from the first that may stand; −1 where logits are not finite.
static int64_t choose_id(const Sampler& s, int64_t slot, const float* cond, const float* uncond, int64_t first, int64_t n) {
    static thread_local Arena arena;
    int64_t padded = round_up(n, LANES), step = s.steps[slot], total = s.num_tokens[slot];
    float *score = (float*)arena.get(2 * padded * 4), *share = score + padded;
    float gamma = (float)(s.guidance[slot] * (double)(total - step) / (double)total);
    if (!guide(cond, uncond, gamma, n, score)) return -1;
    float temperature = s.temperature[slot], top_p = s.top_p[slot];
    if (!(temperature > 0)) return argmax(score, padded);
    map_row(score, padded, [=](vf v) { return v / temperature; });
    if (top_p < 1) to_shares(score, padded, score[argmax(score, padded)], share);
    uint32_t row = row_key(s.keys[slot], step);
    for (int64_t i = 0; i < padded; i += LANES) store(score + i, load<vf>(score + i) + gumbel(row, first + i));
    return top_p < 1 ? best_in_nucleus(score, share, padded, top_p) : argmax(score, padded);
}

}  // namespace hk
