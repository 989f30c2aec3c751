// Products of a few rows with packed matrices: which thread does what, and where results go.
#pragma once

#include "kernels.h"

namespace hk {

// Values of one block of outputs to their columns; silu(gate) · value where there is a gate.
struct Target {
    const Rows* y;
    const Rows* residual;
    int64_t low, high;
};

static void add_bias(const Matrix& m, int64_t block, int64_t rows, float* acc) {
    if (!m.bias) return;
    const float* bias = m.bias + block * BLOCK;
    for (int64_t row = 0; row < rows; row++)
        for (int i = 0; i < BLOCK; i += LANES)
            store(acc + row * BLOCK + i, load<vf>(acc + row * BLOCK + i) + load<vf>(bias + i));
}

static void write_block(const Target& t, int64_t block, int64_t rows, const float* acc) {
    int64_t first = std::max(t.low, block * BLOCK), last = std::min(t.high, (block + 1) * BLOCK);
    for (int64_t row = 0; row < rows; row++) {
        const float* from = acc + row * BLOCK + (first - block * BLOCK);
        int64_t at = row * t.y->stride + (first - t.low), n = last - first;
        float value[BLOCK];
        std::memcpy(value, from, n * 4);
        if (t.residual->data) {
            int64_t other = row * t.residual->stride + (first - t.low);
            if (t.residual->format == FLOAT32)
                for (int64_t i = 0; i < n; i++) value[i] += ((const float*)t.residual->data)[other + i];
            else
                for (int64_t i = 0; i < n; i++) value[i] += widen(((const uint16_t*)t.residual->data)[other + i]);
        }
        if (t.y->format == FLOAT32)
            std::memcpy((float*)t.y->data + at, value, n * 4);
        else
            for (int64_t i = 0; i < n; i++) ((uint16_t*)t.y->data)[at + i] = narrow(value[i]);
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

static void compute_block(const Product& p, const Prepared& x, int which, int64_t block) {
    const Rows none = {nullptr, 0, FLOAT32};
    float* acc = (float*)local().acc.get(2 * p.rows * BLOCK * 4);
    const Matrix& m = *p.matrices[which];
    multiply_block(m, block, x, p.rows, acc);
    add_bias(m, block, p.rows, acc);
    if (p.gated) {
        float* value = acc + p.rows * BLOCK;
        multiply_block(*p.matrices[1], block, x, p.rows, value);
        add_bias(*p.matrices[1], block, p.rows, value);
        for (int64_t i = 0; i < p.rows * BLOCK; i += LANES)
            store(acc + i, silu(load<vf>(acc + i)) * load<vf>(value + i));
    }
    Target target = {&p.y[which], which == 0 ? &p.residual : &none, p.low[which], p.high[which]};
    write_block(target, block, p.rows, acc);
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
