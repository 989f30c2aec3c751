// Rows of x as the products want them: normalised, in float32, or rounded to int8 in groups of columns.
#pragma once

#include "pool.h"
#include "types.h"
#include "vec.h"

namespace hk {

static inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

static void read_row(const Rows& x, int64_t row, int64_t n, float* to) {
    if (x.format == FLOAT32) {
        std::memcpy(to, (const float*)x.data + row * x.stride, n * 4);
        return;
    }
    const uint16_t* from = (const uint16_t*)x.data + row * x.stride;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, load_bf16(from + i));
    for (; i < n; i++) to[i] = widen(from[i]);
}

// Sum of f(x) over a row that is padded with zeros to whole vectors; f(0) of the padding is subtracted by the caller.
template <class F>
static float sum_row(const float* x, int64_t n, F f) {
    vf total = {};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) total += f(load<vf>(x + i));
    float lane[LANES] = {};
    store(lane, total);
    for (; i < n; i++) {
        vf one = f(splat(x[i]));
        lane[i % LANES] += one[0];
    }
    return sum_lanes(load<vf>(lane));
}

template <class F>
static void map_row(float* x, int64_t n, F f) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(x + i, f(load<vf>(x + i)));
    for (; i < n; i++) x[i] = f(splat(x[i]))[0];
}

// (x − mean) / √(variance + eps), in place.
static void layer_norm(float* x, int64_t n, float eps) {
    float mean = sum_row(x, n, [](vf v) { return v; }) / n;
    float variance = sum_row(x, n, [=](vf v) { return (v - mean) * (v - mean); }) / n;
    float factor = 1.0f / std::sqrt(variance + eps);
    map_row(x, n, [=](vf v) { return (v - mean) * factor; });
}

// x / √(mean x² + eps) · weight, in place.
static void rms_norm(float* x, int64_t n, float eps, const float* weight) {
    float factor = 1.0f / std::sqrt(sum_row(x, n, [](vf v) { return v * v; }) / n + eps);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(x + i, load<vf>(x + i) * factor * load<vf>(weight + i));
    for (; i < n; i++) x[i] = x[i] * factor * weight[i];
}

// Rows rounded to int8: x ≈ scale · q per group of columns; `sum` is that of the q of a group.
struct Quantised {
    int64_t group = 0, columns = 0, groups = 0;
    int8_t* q = nullptr;
    float* scale = nullptr;
    int32_t* sum = nullptr;
};

// One group; `n` is a multiple of 16.
static void quantise_group(const float* x, int64_t n, int8_t* q, float* scale, int32_t* sum) {
    vi top = {};
    for (int64_t i = 0; i < n; i += LANES) {
        // As whole numbers, absolute values are ordered as they are as floats, and infinity and NaN are the largest.
        vi bits = load<vi>(x + i) & 0x7fffffff;
        top = bits > top ? bits : top;
    }
    int32_t largest = max_lanes(top);
    float amax;
    std::memcpy(&amax, &largest, 4);
    bool finite = largest < 0x7f800000;
    *scale = finite ? amax / 127.0f : NAN;
    // 127/amax overflows for denormals: such a group is 0.
    float inverse = finite && amax > 1e-30f ? 127.0f / amax : 0.0f;
    vi total = {};
    for (int64_t i = 0; i < n; i += LANES) {
        vf value = finite ? load<vf>(x + i) : vf{};
        vi rounded = __builtin_convertvector(round_even(value * inverse), vi);
        total += rounded;
        store(q + i, __builtin_convertvector(rounded, vi8));
    }
    *sum = sum_lanes(total);
}

// All forms of x that the matrices of a product ask for.
struct Prepared {
    // stride 0: no matrix reads them as floats.
    const float* x = nullptr;
    int64_t stride = 0, widest = 0;
    int num_quantised = 0;
    Quantised quantised[3];

    const Quantised& of(int64_t group) const {
        int i = 0;
        while (quantised[i].group != group) i++;
        return quantised[i];
    }
};

// Whether x can be read where it is.
static bool is_ready(const Product& p) {
    if (p.norm != NO_NORM || p.x.format != FLOAT32) return false;
    for (int i = 0; i < p.num; i++) {
        const Matrix& m = *p.matrices[i];
        if (m.format > BFLOAT16 || (m.format == BFLOAT16 && m.k % 2)) return false;
    }
    return true;
}

// Places for the prepared rows in an arena.
static Prepared lay_out(const Product& p, Arena& arena) {
    Prepared out;
    int64_t k = p.matrices[0]->k;
    if (is_ready(p)) {
        out.x = (const float*)p.x.data, out.stride = p.x.stride;
        return out;
    }
    out.widest = round_up(k, 16);
    bool floats = false;
    for (int i = 0; i < p.num; i++) {
        floats |= p.matrices[i]->format <= BFLOAT16;
        int64_t group = p.matrices[i]->format > BFLOAT16 ? p.matrices[i]->group : 0;
        bool known = !group;
        for (int j = 0; j < out.num_quantised; j++) known |= out.quantised[j].group == group;
        if (known) continue;
        Quantised& q = out.quantised[out.num_quantised++];
        q.group = group, q.columns = round_up(k, group), q.groups = q.columns / group;
        out.widest = std::max(out.widest, q.columns);
    }
    out.stride = floats ? out.widest : 0;
    size_t bytes = p.rows * out.stride * 4;
    for (int i = 0; i < out.num_quantised; i++)
        bytes += p.rows * round_up(out.quantised[i].columns + 8 * out.quantised[i].groups, 64);
    char* at = arena.get(bytes);
    out.x = (float*)at;
    at += p.rows * out.stride * 4;
    for (int i = 0; i < out.num_quantised; i++) {
        Quantised& q = out.quantised[i];
        q.q = (int8_t*)at, at += p.rows * q.columns;
        q.scale = (float*)at, at += p.rows * q.groups * 4;
        q.sum = (int32_t*)at, at += p.rows * q.groups * 4;
        at = (char*)round_up((int64_t)at, 64);
    }
    return out;
}

static void prepare_row(const Product& p, const Prepared& to, int64_t row) {
    int64_t k = p.matrices[0]->k;
    static thread_local Arena scratch;
    float* x = to.stride ? (float*)to.x + row * to.stride : (float*)scratch.get(to.widest * 4);
    // Where nothing is done to them, whole groups are rounded from where they are.
    bool as_is = !to.stride && p.norm == NO_NORM && p.x.format == FLOAT32 && k == to.widest;
    if (as_is) {
        x = (float*)p.x.data + row * p.x.stride;
    } else {
        read_row(p.x, row, k, x);
        std::memset(x + k, 0, (to.widest - k) * 4);
    }
    if (p.norm == LAYER_NORM) layer_norm(x, k, (float)p.eps);
    if (p.norm == RMS_NORM) rms_norm(x, k, (float)p.eps, p.norm_weight);
    if (p.norm == SILU) map_row(x, k, [](vf v) { return silu(v); });
    if (p.norm == GELU) map_row(x, k, [](vf v) { return gelu(v); });
    for (int i = 0; i < to.num_quantised; i++) {
        const Quantised& q = to.quantised[i];
        for (int64_t g = 0; g < q.groups; g++) {
            int64_t at = row * q.groups + g;
            quantise_group(x + g * q.group, q.group, q.q + row * q.columns + g * q.group, q.scale + at, q.sum + at);
        }
    }
}

}  // namespace hk
