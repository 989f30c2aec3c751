// Products of a few rows with one block of 64 packed outputs. A block is read in stretches that stay in the L1 cache
// while all rows pass; each output is summed in the order of k, so that it depends neither on
// how many rows there are nor on who computes it.
#pragma once

#include "prepare.h"

namespace hk {

// Rows at once, and vectors of outputs at once: their accumulators fill the registers.
#if defined(HK_AVX512)
constexpr int MAX_ROWS = 6, NV = 4;
#elif defined(__aarch64__)
constexpr int MAX_ROWS = 4, NV = 4;
#else
constexpr int MAX_ROWS = 4, NV = 2;
#endif
constexpr int SPAN = NV * LANES;

// Bytes of a block that are read before the next rows pass.
constexpr int64_t STRETCH = 32768;
// Sums of `units` units of 32 bits per output: acc[r][64] += x[r] · w.
struct Stretch {
    const char* w;       // first unit, first output of the span
    int64_t units;
    const float* x;      // first column, first row
    int64_t x_stride;
    const int8_t* q;     // quantised: first column, first row
    int64_t q_stride;
    const float* scale;  // first group, first row
    const int32_t* sum;
    int64_t groups;      // stride of scale and sum
    int64_t group;
    const uint16_t* w_scale;
    float* acc;          // first output of the span, first row
    // What to fetch meanwhile: four places that lie `ahead_line` apart for each unit, `ahead_unit` from those of the last.
    const char* ahead;
    int64_t ahead_unit, ahead_line;
};

HK_INLINE void fetch(const Stretch& s, int64_t unit) {
    const char* at = s.ahead + unit * s.ahead_unit;
    for (int i = 0; i < 4; i++) __builtin_prefetch(at + i * s.ahead_line, 0, 2);
}

// Each stretch is summed apart: shorter chains round less.
static inline void add_to(float* acc, vf sum) { store(acc, load<vf>(acc) + sum); }

#define HK_EACH                      \
    for (int v = 0; v < NV; v++)     \
        for (int r = 0; r < R; r++)

template <int R>
static void float32_stretch(const Stretch& s) {
    vf acc[NV][R] = {};
    for (int64_t u = 0; u < s.units; u++) {
        const char* w = s.w + u * BLOCK * 4;
        fetch(s, u);
        vf weight[NV];
        for (int v = 0; v < NV; v++) weight[v] = load<vf>(w + v * LANES * 4);
        for (int r = 0; r < R; r++) {
            vf x = splat(s.x[r * s.x_stride + u]);
            for (int v = 0; v < NV; v++) acc[v][r] = fma(weight[v], x, acc[v][r]);
        }
    }
    HK_EACH add_to(s.acc + r * BLOCK + v * LANES, acc[v][r]);
}

template <int R>
static void bfloat16_stretch(const Stretch& s) {
    vf acc[NV][R] = {};
    for (int64_t u = 0; u < s.units; u++) {
        const char* w = s.w + u * BLOCK * 4;
        fetch(s, u);
        vf low[NV], high[NV];
        for (int v = 0; v < NV; v++) {
            vu pair = load<vu>(w + v * LANES * 4);
            low[v] = low_bf16(pair), high[v] = high_bf16(pair);
        }
        for (int r = 0; r < R; r++) {
            const float* x = s.x + r * s.x_stride + 2 * u;
            vf first = splat(x[0]), second = splat(x[1]);
            for (int v = 0; v < NV; v++) acc[v][r] = fma(low[v], first, acc[v][r]);
            for (int v = 0; v < NV; v++) acc[v][r] = fma(high[v], second, acc[v][r]);
        }
    }
    HK_EACH add_to(s.acc + r * BLOCK + v * LANES, acc[v][r]);
}

template <int R>
static void int8_stretch(const Stretch& s) {
    int64_t per_group = s.group / 4;
    for (int64_t g = 0; g < s.units / per_group; g++) {
        vi dot[NV][R];
        HK_EACH dot[v][r] = splat(-128 * s.sum[r * s.groups + g]);
        for (int64_t u = g * per_group; u < (g + 1) * per_group; u++) {
            const char* w = s.w + u * BLOCK * 4;
            fetch(s, u);
            vi weight[NV];
            for (int v = 0; v < NV; v++) weight[v] = load<vi>(w + v * LANES * 4);
            for (int r = 0; r < R; r++) {
                vi x = splat(load<int32_t>(s.q + r * s.q_stride + 4 * u));
                for (int v = 0; v < NV; v++) dot[v][r] = dot4(dot[v][r], weight[v], x);
            }
        }
        HK_EACH {
            float* acc = s.acc + r * BLOCK + v * LANES;
            vf x_scale = splat(s.scale[r * s.groups + g]);
            store(acc, fma(__builtin_convertvector(dot[v][r], vf), x_scale, load<vf>(acc)));
        }
    }
}

template <int R>
static void int4_stretch(const Stretch& s) {
    int64_t per_group = s.group / 8;
    for (int64_t g = 0; g < s.units / per_group; g++) {
        vi dot[NV][R];
        HK_EACH dot[v][r] = splat(-8 * s.sum[r * s.groups + g]);
        for (int64_t u = g * per_group; u < (g + 1) * per_group; u++) {
            const char* w = s.w + u * BLOCK * 4;
            fetch(s, u);
            vi low[NV], high[NV];
            for (int v = 0; v < NV; v++) {
                vu eight = load<vu>(w + v * LANES * 4);
                low[v] = (vi)(eight & 0x0f0f0f0fu), high[v] = (vi)((eight >> 4) & 0x0f0f0f0fu);
            }
            for (int r = 0; r < R; r++) {
                const int8_t* q = s.q + r * s.q_stride + 8 * u;
                vi first = splat(load<int32_t>(q)), second = splat(load<int32_t>(q + 4));
                for (int v = 0; v < NV; v++) dot[v][r] = dot4(dot[v][r], low[v], first);
                for (int v = 0; v < NV; v++) dot[v][r] = dot4(dot[v][r], high[v], second);
            }
        }
        for (int v = 0; v < NV; v++) {
            vf w_scale = load_bf16(s.w_scale + g * BLOCK + v * LANES);
            for (int r = 0; r < R; r++) {
                float* acc = s.acc + r * BLOCK + v * LANES;
                vf scaled = __builtin_convertvector(dot[v][r], vf) * w_scale;
                store(acc, fma(scaled, splat(s.scale[r * s.groups + g]), load<vf>(acc)));
            }
        }
    }
}

using Kernel = void (*)(const Stretch&);

template <int R>
static Kernel kernel_of(int64_t format) {
    constexpr Kernel kernels[] = {float32_stretch<R>, bfloat16_stretch<R>, int8_stretch<R>, int4_stretch<R>};
    return kernels[format];
}

static Kernel kernel_for(int64_t format, int rows) {
    switch (rows) {
        case 1: return kernel_of<1>(format);
        case 2: return kernel_of<2>(format);
        case 3: return kernel_of<3>(format);
#if defined(HK_AVX512)
        case 5: return kernel_of<5>(format);
        case 6: return kernel_of<6>(format);
#endif
        default: return kernel_of<4>(format);
    }
}

// Weights per 32 bits.
static inline int64_t unit_of(int64_t format) { return format == INT4 ? 8 : format == INT8 ? 4 : format == BFLOAT16 ? 2 : 1; }

static inline int64_t units_of(const Matrix& m) {
    int64_t unit = unit_of(m.format);
    return m.format > BFLOAT16 ? round_up(m.k, m.group) / unit : round_up(m.k, unit) / unit;
}

// One pass over a stretch fetches its share of what the next stretch reads, so that memory is busy while later passes
// read from the cache. A single pass fetches a little ahead of itself.
static void plan_ahead(Stretch& s, const char* w, int64_t turn, int64_t turns) {
    int64_t share = BLOCK * 4 / turns;
    s.ahead = turns == 1 ? w + AHEAD : w + s.units * BLOCK * 4 + turn * share * s.units;
    s.ahead_unit = share, s.ahead_line = share / 4;
}

// acc[rows][64] = x · block of rows from `first` on, before the bias and, for int8, the scales of the outputs.
static void multiply_block(const Matrix& m, int64_t block, const Prepared& p, int64_t first, int64_t rows, float* acc) {
    std::memset(acc, 0, rows * BLOCK * 4);
    int64_t units = units_of(m), unit = unit_of(m.format);
    // Whole groups: 128 units hold 512 or more columns of every quantised format.
    int64_t stretch = STRETCH / (BLOCK * 4);
    int64_t passes = (rows + MAX_ROWS - 1) / MAX_ROWS, turns = passes * (BLOCK / SPAN);
    const char* data = m.data + block * units * BLOCK * 4;
    const Quantised none, &q = m.format > BFLOAT16 ? p.of(m.group) : none;
    for (int64_t u = 0; u < units; u += stretch) {
        int64_t column = u * unit, g = q.group ? column / q.group : 0;
        const char* w = data + u * BLOCK * 4;
        for (int64_t pass = 0; pass < passes; pass++) {
            int64_t row = rows * pass / passes, next = rows * (pass + 1) / passes;
            Kernel kernel = kernel_for(m.format, (int)(next - row));
            Stretch s;
            s.units = std::min(stretch, units - u);
            int64_t from = first + row;
            s.x = p.x + from * p.stride + column, s.x_stride = p.stride;
            s.q = q.q + from * q.columns + column, s.q_stride = q.columns;
            s.scale = q.scale + from * q.groups + g, s.sum = q.sum + from * q.groups + g;
            s.groups = q.groups, s.group = q.group;
            for (int span = 0; span < BLOCK; span += SPAN) {
                plan_ahead(s, w, pass * (BLOCK / SPAN) + span / SPAN, turns);
                s.w = w + span * 4;
                s.w_scale = (const uint16_t*)m.scale + (block * q.groups + g) * BLOCK + span;
                s.acc = acc + row * BLOCK + span;
                kernel(s);
            }
        }
    }
}

}  // namespace hk
