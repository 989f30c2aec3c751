// The C interface that Python calls through ctypes. Every function returns 0, or 1 where memory ran
// out, or 2 where an index would reach beyond the memory that it was given.

#include "decode.h"
#include "field.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace hk;

static bool all_below(const int64_t* numbers, int64_t count, int64_t limit) {
    for (int64_t i = 0; numbers && i < count; i++)
        if (numbers[i] < 0 || numbers[i] >= limit) return false;
    return true;
}

template <class F>
static int guarded(int64_t threads, F f) {
    try {
        Team team((int)threads);
        f(team);
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

extern "C" {

// Hash of these files, so that a library built from others is never called with the wrong structures.
const char* hk_source() { return HK_SOURCE; }

int hk_lanes() { return LANES; }

int hk_has_vnni() {
#if defined(HK_AVX512) && defined(__AVX512VNNI__)
    return 1;
#else
    return 0;
#endif
}

int hk_product(const Product* product, int64_t threads) {
    return guarded(threads, [&](Team& team) {
        for (int64_t row = 0; row < product->rows; row += MAX_BATCH) {
            Product p = *product;
            p.rows = std::min(MAX_BATCH, product->rows - row);
            p.x = from_row(p.x, row), p.residual = from_row(p.residual, row);
            for (int i = 0; i < p.num; i++) p.y[i] = from_row(p.y[i], row);
            run_product(team, p);
        }
    });
}

int hk_attention(const Attention* attention, int64_t threads) {
    if (!all_below(attention->lengths, attention->rows, attention->num_slots + 1)) return 2;
    return guarded(threads, [&](Team& team) { run_attention(team, *attention); });
}

int hk_new_token(const NewToken* token, const Attention* attention, int64_t threads) {
    if (!all_below(token->positions, attention->rows, token->num_positions)) return 2;
    if (!token->cache_rows && attention->rows > token->num_cache_rows) return 2;
    if (!all_below(token->cache_rows, attention->rows, token->num_cache_rows)) return 2;
    return guarded(threads, [&](Team& team) { run_new_token(team, *token, *attention); });
}

int hk_step(const Step* step, int64_t threads) {
    if (!all_below(step->ids, step->rows, step->num_ids)) return 2;
    if (!all_below(step->positions, step->rows, step->num_positions)) return 2;
    if (!step->cache_rows && step->rows > step->num_cache_rows) return 2;
    if (!all_below(step->cache_rows, step->rows, step->num_cache_rows)) return 2;
    return guarded(threads, [&](Team& team) {
        // Rows of the cache follow the rows of the step unless they are given.
        static thread_local Arena arena;
        int64_t* cache_rows = (int64_t*)arena.get(step->rows * 8);
        for (int64_t i = 0; i < step->rows; i++) cache_rows[i] = step->cache_rows ? step->cache_rows[i] : i;
        Step s = *step;
        s.cache_rows = cache_rows;
        run_rows(team, s);
    });
}

// `count` whole steps of the requests in `sampler`; those of `step` that depend on the rows are filled in here.
int hk_decode(const Step* step, const Sampler* sampler, int64_t count, int64_t threads) {
    bool sound = true;
    int status = guarded(threads, [&](Team& team) { sound = run_decode(team, *step, *sampler, count); });
    return status || sound ? status : 2;
}

int hk_field(const Field* field, int64_t threads) {
    return guarded(threads, [&](Team& team) { run_field(team, *field); });
}

// Asks for huge pages under memory that has not been touched yet: with small ones, reading weights waits for the page
// table.
int hk_huge_pages(char* data, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t page = 2 << 20;
    uintptr_t first = ((uintptr_t)data + page - 1) & ~(page - 1), last = ((uintptr_t)data + bytes) & ~(page - 1);
    if (first < last) madvise((void*)first, last - first, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
    return 0;
}

// Sum of all 32-bit words, read by all threads: a probe of the read bandwidth.
int hk_read(const char* data, int64_t bytes, int64_t threads, uint64_t* total) {
    return guarded(threads, [&](Team& team) {
        const int64_t piece = 1 << 20;
        std::atomic<uint64_t> sum{0};
        team.run((int)(bytes / piece), false, [&](int task, uint64_t) {
            const char* at = data + task * piece;
            vi acc[8] = {};
            for (int64_t i = 0; i < piece; i += sizeof acc) {
                for (int j = 0; j < 8; j += 64 / (int)sizeof(vi)) __builtin_prefetch(at + i + AHEAD + j * (int)sizeof(vi), 0, 2);
                for (int j = 0; j < 8; j++) acc[j] += load<vi>(at + i + j * sizeof(vi));
            }
            uint64_t mine = 0;
            for (int j = 0; j < 8; j++)
                for (int l = 0; l < LANES; l++) mine += (uint32_t)acc[j][l];
            sum += mine;
        });
        *total = sum;
    });
}

// Phases of one trivial task per thread: a probe of what sharing work costs.
int hk_phases(int64_t count, int64_t threads) {
    return guarded(threads, [&](Team& team) {
        for (int64_t i = 0; i < count; i++) team.run((int)threads, false, [](int, uint64_t) {});
    });
}

}  // extern "C"
