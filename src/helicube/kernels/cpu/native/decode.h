// Whole steps of requests in slots, sampling included, without the host in between.
#pragma once

#include "sample.h"
#include "step.h"

namespace hk {

// The largest batch of rows that pass a block of weights together: their sums stay in the L2 cache.
constexpr int64_t MAX_BATCH = 128;

static Rows from_row(Rows rows, int64_t row) {
    if (rows.data) rows.data += row * rows.stride * (rows.format == FLOAT32 ? 4 : 2);
    return rows;
}

// A step of any number of rows, in batches of equal size.
static void run_rows(Team& team, const Step& step) {
    int64_t batches = (step.rows + MAX_BATCH - 1) / MAX_BATCH;
    for (int64_t i = 0; i < batches; i++) {
        int64_t row = step.rows * i / batches;
        Step s = step;
        s.rows = step.rows * (i + 1) / batches - row;
        s.ids += row, s.positions += row, s.cache_rows += row;
        s.logits = from_row(s.logits, row);
        run_step(team, s);
    }
}

// Slots under way, and the rows that they make.
struct Active {
    int64_t num = 0;
    int64_t *slots, *ids, *positions, *cache_rows;
    // All ids that may stand in any of them.
    int64_t low = INT64_MAX, high = 0;
    bool sound = true;

    static const int32_t* range(const Sampler& s, int64_t slot) {
        return s.ranges + 2 * std::min<int64_t>(s.steps[slot], s.num_ranges - 1);
    }

    Active(const Step& step, const Sampler& s, Arena& arena) {
        int64_t rows = s.slots * s.copies, n = 0;
        slots = (int64_t*)arena.get((s.slots + 3 * rows) * 8);
        ids = slots + s.slots, positions = ids + rows, cache_rows = positions + rows;
        for (int64_t slot = 0; slot < s.slots; slot++) {
            if (s.steps[slot] < 0 || s.steps[slot] >= s.num_tokens[slot] || s.failed[slot]) continue;
            slots[num++] = slot;
            low = std::min<int64_t>(low, range(s, slot)[0]), high = std::max<int64_t>(high, range(s, slot)[1]);
            for (int64_t row = slot * s.copies; row < (slot + 1) * s.copies; row++, n++) {
                ids[n] = s.tokens[row], positions[n] = s.positions[row], cache_rows[n] = row;
                sound &= ids[n] >= 0 && ids[n] < step.num_ids && positions[n] >= 0;
                sound &= positions[n] < step.num_positions && row < step.num_cache_rows;
            }
        }
        sound &= num == 0 || (low >= 0 && low < high && high <= step.head->n);
    }
};

// Books a chosen id; negative: the logits were not finite.
static void book(const Sampler& s, int64_t slot, int64_t chosen) {
    int32_t step = s.steps[slot];
    if (chosen < 0) {
        s.failed[slot] = step + 1;
        return;
    }
    int64_t given = s.forced[slot * s.max_tokens + step];
    if (given >= 0) chosen = given;
    s.ids[slot * s.max_tokens + step] = chosen;
    s.steps[slot] = step + 1;
    bool done = step + 1 >= s.num_tokens[slot];
    for (int64_t row = slot * s.copies; row < (slot + 1) * s.copies; row++) {
        s.tokens[row] = chosen;
        s.positions[row] = done ? -1 : s.positions[row] + 1;
        s.lengths[row] = done ? 0 : s.lengths[row] + 1;
    }
}

// Up to `count` steps; false where an index would reach beyond the memory that it was given.
static bool run_decode(Team& team, Step step, const Sampler& s, int64_t count) {
    static thread_local Arena lists, memory;
    for (int64_t i = 0; i < count; i++) {
        Active a(step, s, lists);
        if (!a.sound) return false;
        if (a.num == 0) return true;
        int64_t width = a.high - a.low, stride = spread(width);
        float* logits = (float*)memory.get(a.num * s.copies * stride * 4);
        step.rows = a.num * s.copies;
        step.ids = a.ids, step.positions = a.positions, step.cache_rows = a.cache_rows;
        step.low = a.low, step.high = a.high, step.logits = float_rows(logits, stride);
        run_rows(team, step);
        team.run((int)a.num, a.num * width < 4096, [&](int task, uint64_t) {
            const int32_t* range = Active::range(s, a.slots[task]);
            const float* cond = logits + task * s.copies * stride + range[0] - a.low;
            const float* uncond = s.copies == 2 ? cond + stride : nullptr;
            int64_t chosen = choose_id(s, a.slots[task], cond, uncond, range[0], range[1] - range[0]);
            book(s, a.slots[task], chosen < 0 ? chosen : range[0] + chosen);
        });
    }
    return true;
}

}  // namespace hk
