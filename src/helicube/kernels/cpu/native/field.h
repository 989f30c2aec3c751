// Occupancy logits of points: embedding, cross-attention to the latents, MLP and head for one tile of points after the
// other, each by one thread, so that what lies between stays in its L2 cache. Points do not depend on one another.
#pragma once

#include "products.h"

namespace hk {

// Points of a tile: whole passes of rows, and few reads of the weights, which lie in the L3 cache.
constexpr int64_t TILE = 96;

// What a tile needs: what two layers make of the embedded points, queries (then what was attended), and a place that
// embedded points, scores and the middle of the MLP have in turn.
struct FieldScratch {
    Arena arena, rounded, sums;
    float *x, *query, *wide;
    int64_t stride, wide_stride;

    void lay_out(const Field& f) {
        int64_t embedded = 3 + 6 * f.num_freqs;
        stride = spread(f.width), wide_stride = spread(std::max({embedded, f.up.n, f.num_latents}));
        x = (float*)arena.get(TILE * (2 * stride + wide_stride) * 4);
        query = x + TILE * stride, wide = query + TILE * stride;
    }
};

// [p, cos fm + cos pm, sin fm + sin pm] by coordinate: fm = p · frequency, pm = p · π/2 + carrier.
static void embed_point(const Field& f, const float* point, float* to) {
    std::memcpy(to, point, 12);
    float *cosines = to + 3, *sines = cosines + 3 * f.num_freqs;
    for (int64_t axis = 0; axis < 3; axis++) {
        float shift = point[axis] * 1.5707963f;
        const float* frequency = f.frequencies + axis * f.num_freqs;
        float *to_cosines = cosines + axis * f.num_freqs, *to_sines = sines + axis * f.num_freqs;
        auto embed = [=](vf turns, vf fixed, vf& cosine, vf& sine) {
            vf other_sine, other_cosine;
            sine_cosine(turns * point[axis], sine, cosine);
            sine_cosine(fixed + shift, other_sine, other_cosine);
            sine += other_sine, cosine += other_cosine;
        };
        int64_t i = 0;
        vf cosine, sine;
        for (; i + LANES <= f.num_freqs; i += LANES) {
            embed(load<vf>(frequency + i), load<vf>(f.carrier + i), cosine, sine);
            store(to_cosines + i, cosine), store(to_sines + i, sine);
        }
        for (; i < f.num_freqs; i++) {
            embed(splat(frequency[i]), splat(f.carrier[i]), cosine, sine);
            to_cosines[i] = cosine[0], to_sines[i] = sine[0];
        }
    }
}

// y = norm(x) Wᵀ + b of a tile by the calling thread, added to y where it is a residual.
static void tile_product(int64_t rows, const Matrix& m, Rows x, int64_t norm, double eps, Rows y, bool residual = false) {
    Product p = product_of(rows, x);
    p.norm = norm, p.eps = eps;
    add_matrix(p, m, y);
    if (residual) p.residual = y;
    Team alone(1);
    run_product(alone, p);
}

// Scores of one row (in units of ln 2) to weights 2^(score − top), rounded to int8 in groups; their sum after rounding.
// The largest weight of a group is 127, so that its scale alone needs the top.
static float round_weights(float* score, const Field& f, const Quantised& q, int64_t row) {
    int8_t* to = q.q + row * q.columns;
    float* scale = q.scale + row * q.groups;
    int32_t* sum = q.sum + row * q.groups;
    float top = -INFINITY, total = 0;
    for (int64_t i = f.num_latents; i < q.columns; i++) score[i] = -INFINITY;
    for (int64_t g = 0; g < q.groups; g++) {
        const float* from = score + g * q.group;
        vf high = load<vf>(from);
        for (int64_t i = LANES; i < q.group; i += LANES) high = vmax(load<vf>(from + i), high);
        float highest = max_of_numbers(high);
        vi count = {};
        for (int64_t i = 0; i < q.group; i += LANES) {
            vf power = rough_exp2(vmax(load<vf>(from + i) - highest, splat(-126.0f)));
            vi rounded = __builtin_convertvector(round_even(power * 127.0f), vi);
            count += rounded;
            store(to + g * q.group + i, __builtin_convertvector(rounded, vi8));
        }
        scale[g] = highest, sum[g] = sum_lanes(count);
        top = std::max(top, highest);
    }
    for (int64_t g = 0; g < q.groups; g++) {
        scale[g] = std::exp2(scale[g] - top) / 127.0f;
        total += scale[g] * (float)sum[g];
    }
    return total;
}

// Attention of a tile to one head's latents; the result takes the place of the queries.
static void attend_latents(const Field& f, FieldScratch& s, int64_t rows, int64_t head) {
    const Matrix &keys = f.keys[head], &values = f.values[head];
    Rows query = float_rows(s.query + head * values.n, s.stride);
    tile_product(rows, keys, query, NO_NORM, 0, float_rows(s.wide, s.wide_stride));
    Product p = product_of(rows, float_rows(s.wide, s.wide_stride));
    add_matrix(p, values, query);
    Prepared weights = lay_out(p, s.rounded);
    const Quantised& q = weights.of(values.group);
    float totals[TILE], value[BLOCK];
    for (int64_t row = 0; row < rows; row++) totals[row] = round_weights(s.wide + row * s.wide_stride, f, q, row);
    float* acc = (float*)s.sums.get(rows * BLOCK * 4);
    for (int64_t start = 0; start < values.n; start += BLOCK) {
        multiply_block(values, start / BLOCK, weights, 0, rows, acc);
        Affine scaled(values, start / BLOCK);
        int64_t n = std::min<int64_t>(BLOCK, values.n - start);
        for (int64_t row = 0; row < rows; row++) {
            for (int i = 0; i < BLOCK; i += LANES) store(value + i, scaled(acc + row * BLOCK, i) / totals[row]);
            std::memcpy((float*)query.data + row * s.stride + start, value, n * 4);
        }
    }
}

static void field_tile(const Field& f, int64_t first, int64_t rows) {
    static thread_local FieldScratch s;
    s.lay_out(f);
    Rows x = float_rows(s.x, s.stride), query = float_rows(s.query, s.stride), wide = float_rows(s.wide, s.wide_stride);
    for (int64_t row = 0; row < rows; row++) embed_point(f, f.points + 3 * (first + row), s.wide + row * s.wide_stride);
    tile_product(rows, f.in_layer, wide, NO_NORM, 0, query);
    tile_product(rows, f.out_layer, query, SILU, 0, x);
    tile_product(rows, f.query, x, LAYER_NORM, f.eps, query);
    for (int64_t head = 0; head < f.heads; head++) attend_latents(f, s, rows, head);
    tile_product(rows, f.proj, query, NO_NORM, 0, x, true);
    tile_product(rows, f.up, x, LAYER_NORM, f.eps, wide);
    tile_product(rows, f.down, wide, GELU, 0, x, true);
    for (int64_t row = 0; row < rows; row++) {
        float *values = s.x + row * s.stride, sum = 0;
        layer_norm(values, f.width, (float)f.eps);
        int64_t i = 0;
        vf total = {};
        for (; i + LANES <= f.width; i += LANES) total = fma(load<vf>(values + i), load<vf>(f.head_weight + i), total);
        for (; i < f.width; i++) sum += values[i] * f.head_weight[i];
        f.logits[first + row] = sum_lanes(total) + sum + (float)f.head_bias;
    }
}

static void run_field(Team& team, const Field& f) {
    int64_t tiles = (f.num_points + TILE - 1) / TILE;
    team.run((int)tiles, false, [&](int task, uint64_t) {
        int64_t first = task * TILE;
        field_tile(f, first, std::min(TILE, f.num_points - first));
    });
}

}  // namespace hk
