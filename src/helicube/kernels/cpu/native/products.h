// Products of a few rows with packed matrices: which thread does what, and where results go.
#pragma once

#include "kernels.h"

namespace hk {

// Distance of rows of n values: a cache line more than a row, for a power of two would bring a column's rows into one set
// of the L1 cache.
static inline int64_t spread(int64_t n) { return round_up(n, BLOCK) + 16; }

static inline Rows float_rows(float* data, int64_t stride) { return {(char*)data, stride, FLOAT32}; }

// y = x Wᵀ + b of whole matrices, in float32.
static inline Product product_of(int64_t rows, Rows x) {
    Product p = {};
    p.x = x, p.rows = rows;
    return p;
}

static inline void add_matrix(Product& p, const Matrix& m, Rows y) {
    p.matrices[p.num] = &m, p.low[p.num] = 0, p.high[p.num] = m.n, p.y[p.num] = y;
    p.num++;
}

// Scale and bias of one block of outputs, or null.
struct Affine {
    const float *scale, *bias;

    Affine(const Matrix& m, int64_t block)
        : scale(m.format == INT8 ? (const float*)m.scale + block * BLOCK : nullptr),
          bias(m.bias ? m.bias + block * BLOCK : nullptr) {}

    vf operator()(const float* acc, int64_t i) const {
        vf v = load<vf>(acc + i);
        if (scale) v *= load<vf>(scale + i);
        return bias ? v + load<vf>(bias + i) : v;
    }
};

// Values of one row from column `column` of y on, with the residual.
static void write_values(const Rows& y, const Rows& residual, int64_t row, int64_t column, int64_t n, float* value) {
    if (residual.data) {
        int64_t at = row * residual.stride + column;
        if (residual.format == FLOAT32)
            for (int64_t i = 0; i < n; i++) value[i] += ((const float*)residual.data)[at + i];
        else
            for (int64_t i = 0; i < n; i++) value[i] += widen(((const uint16_t*)residual.data)[at + i]);
    }
    int64_t at = row * y.stride + column;
    if (y.format == FLOAT32)
        std::memcpy((float*)y.data + at, value, n * 4);
    else
        for (int64_t i = 0; i < n; i++) ((uint16_t*)y.data)[at + i] = narrow(value[i]);
}

// A whole block of one row in float32, with the residual.
static void write_block(const Affine& affine, const float* acc, const float* residual, float* to) {
    for (int i = 0; i < BLOCK; i += LANES) {
        vf value = affine(acc, i);
        store(to + i, residual ? value + load<vf>(residual + i) : value);
    }
}

// One block of sums to its columns; silu(gate) · value where there is a gate.
static void finish_block(const Product& p, int which, int64_t block, int64_t from, int64_t rows, const float* acc,
                         const float* gated) {
    Affine affine(*p.matrices[which], block), other(*p.matrices[gated ? 1 : which], block);
    int64_t low = p.low[which], start = block * BLOCK;
    int64_t first = std::max(low, start), last = std::min(p.high[which], start + BLOCK);
    const Rows none = {nullptr, 0, FLOAT32}, &residual = which == 0 ? p.residual : none, &y = p.y[which];
    bool whole = !gated && first == start && last == start + BLOCK && y.format == FLOAT32 && residual.format == FLOAT32;
    for (int64_t row = from; row < from + rows; row++, acc += BLOCK, gated += gated ? BLOCK : 0) {
        if (whole) {
            const float* more = (const float*)residual.data;
            if (more) more += row * residual.stride + first - low;
            write_block(affine, acc, more, (float*)y.data + row * y.stride + first - low);
            continue;
        }
        float value[BLOCK];
        for (int i = 0; i < BLOCK; i += LANES) {
            vf v = affine(acc, i);
            if (gated) v = silu(v) * other(gated, i);
            store(value + i, v);
        }
        write_values(y, residual, row, first - low, last - first, value + (first - start));
    }
}

// The prepared rows of the phase that a thread is in.
struct Local {
    Arena prepared, acc;
    Prepared rows;
    uint64_t phase = 0;
};

static Local& local() {
    static thread_local Local mine;
    return mine;
}

// A block that stays in the L1 cache is passed by a few rows after the other, whose sums stay there too.
static void compute_block(const Product& p, const Prepared& x, int which, int64_t block) {
    const Matrix& m = *p.matrices[which];
    int64_t together = units_of(m) * BLOCK * 4 <= STRETCH ? 4 * MAX_ROWS : p.rows;
    float* acc = (float*)local().acc.get(2 * together * BLOCK * 4);
    float* gated = p.gated ? acc + together * BLOCK : nullptr;
    for (int64_t row = 0; row < p.rows; row += together) {
        int64_t rows = std::min(together, p.rows - row);
        multiply_block(m, block, x, row, rows, acc);
        if (gated) multiply_block(*p.matrices[1], block, x, row, rows, gated);
        finish_block(p, which, block, row, rows, acc, gated);
    }
}

// Blocks of all matrices in one row.
struct Blocks {
    int num;
    int64_t first[3], end[3];  // first block of each matrix; running number of the one after its last

    explicit Blocks(const Product& p) : num(p.gated ? 1 : (int)p.num) {
        int64_t total = 0;
        for (int i = 0; i < num; i++) {
            first[i] = p.low[i] / BLOCK;
            total += (p.high[i] + BLOCK - 1) / BLOCK - first[i];
            end[i] = total;
        }
    }
    int64_t total() const { return end[num - 1]; }
};

static int64_t block_bytes(const Product& p) { return units_of(*p.matrices[0]) * BLOCK * 4 * (p.gated ? 2 : 1); }

static void run_product(Team& team, const Product& p) {
    if (p.rows == 0) return;
    Blocks blocks(p);
    if (blocks.total() == 0) return;
    static thread_local Arena mine;
    Prepared shared;
    // Each thread prepares a few rows for itself: sharing them would cost a phase. Many rows are shared.
    bool share = is_ready(p) || team.threads() == 1 || p.rows * p.matrices[0]->k > 16384;
    if (share) {
        shared = lay_out(p, mine);
        if (!is_ready(p)) {
            bool small = p.rows * p.matrices[0]->k < 16384;
            team.run((int)p.rows, small, [&](int row, uint64_t) { prepare_row(p, shared, row); });
        }
    }
    // Stretches of 96 KiB or more, but a few per thread.
    int64_t bytes = std::max<int64_t>(block_bytes(p), 1);
    int64_t per_task = std::min((98304 + bytes - 1) / bytes, blocks.total() / (4 * team.threads()));
    per_task = std::max<int64_t>(per_task, 1);
    int tasks = (int)((blocks.total() + per_task - 1) / per_task);
    bool small = blocks.total() * bytes * std::max<int64_t>(p.rows / 4, 1) < 49152;
    team.run(tasks, small, [&](int task, uint64_t phase) {
        const Prepared* x = &shared;
        if (!share) {
            Local& mine = local();
            if (mine.phase != phase) {
                mine.rows = lay_out(p, mine.prepared);
                for (int64_t row = 0; row < p.rows; row++) prepare_row(p, mine.rows, row);
                mine.phase = phase;
            }
            x = &mine.rows;
        }
        int64_t last = std::min((task + 1) * per_task, blocks.total());
        for (int64_t i = task * per_task; i < last; i++) {
            int which = 0;
            while (i >= blocks.end[which]) which++;
            int64_t start = which ? blocks.end[which - 1] : 0;
            compute_block(p, *x, which, blocks.first[which] + i - start);
        }
    });
}

}  // namespace hk
