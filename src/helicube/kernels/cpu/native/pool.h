// A pool of threads for work of a few microseconds to a few milliseconds.
//
// The calling thread does the work and the workers help it: each takes the next task of a phase until none is left, and
// a phase is over when all of its tasks are done, whoever did them. A worker that the system does not schedule is thus
// never waited for unless it holds a task, which matters on busy machines; results cannot depend on who did what.
// Workers spin for a moment after a job and then sleep. A forked child starts with an empty pool.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#endif

namespace hk {

static inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

static inline void give_way() {
#if defined(__unix__) || defined(__APPLE__)
    sched_yield();
#else
    std::this_thread::yield();
#endif
}

// Memory that grows and stays, for one thread's intermediate values.
class Arena {
  public:
    ~Arena() { std::free(data_); }
    // At least `bytes`, aligned to a cache line; what it held before is lost.
    char* get(size_t bytes) {
        if (bytes > size_) {
            std::free(data_);
            size_ = 0;
            // 64 bytes more than asked for: vectors may be read past the end of the last row.
            bytes = (bytes + 64 + 4095) & ~(size_t)4095;
            data_ = (char*)std::aligned_alloc(64, bytes);
            if (!data_) throw std::bad_alloc();
            size_ = bytes;
        }
        return data_;
    }

  private:
    char* data_ = nullptr;
    size_t size_ = 0;
};

using TaskFunction = void (*)(void* context, int task, uint64_t phase);

class Pool {
  public:
    static Pool& get() {
        static std::once_flag once;
        std::call_once(once, [] {
#if defined(__unix__) || defined(__APPLE__)
            // The child has none of the threads, and locks in whatever state they were in.
            pthread_atfork(nullptr, nullptr, [] { current() = new Pool; });
#endif
            current() = new Pool;
        });
        return *current();
    }

    static uint64_t next_phase() {
        static std::atomic<uint64_t> counter{1};
        return counter.fetch_add(1, std::memory_order_relaxed);
    }

    bool try_begin() { return busy_.try_lock(); }

    // Invites workers to the phases that follow.
    void open(int threads) {
        grow(threads - 1);
        invited_.store(threads - 1, std::memory_order_relaxed);
        job_.fetch_add(1);  // odd: open
        if (sleepers_.load() > 0) {
            std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
    }

    void end(bool opened) {
        if (opened) job_.fetch_add(1);
        busy_.unlock();
    }

    void run(int total, TaskFunction function, void* context, uint64_t phase) {
        function_ = function, context_ = context, phase_ = phase;
        done_.store(0, std::memory_order_relaxed);
        word_.store((uint64_t)total << 32, std::memory_order_release);
        help();
        for (int spins = 0; done_.load(std::memory_order_acquire) < (uint32_t)total; spins++)
            spins < 2000 ? relax() : give_way();
        if (failed_.exchange(false)) throw std::bad_alloc();
    }

  private:
    static Pool*& current() {
        static Pool* pool = nullptr;
        return pool;
    }

    // Tasks of the present phase, until none is left; whether there was any.
    bool help() {
        bool any = false;
        for (;;) {
            uint64_t seen = word_.load(std::memory_order_acquire);
            if ((uint32_t)seen >= seen >> 32) return any;
            // The number of tasks comes with the claim: a phase whose last claim failed may be over by now.
            uint64_t claim = word_.fetch_add(1, std::memory_order_acq_rel);
            if ((uint32_t)claim >= claim >> 32) return any;
            any = true;
            // These three cannot change before this task is done.
            try {
                function_(context_, (int)(uint32_t)claim, phase_);
            } catch (const std::bad_alloc&) {
                failed_.store(true);
            }
            done_.fetch_add(1, std::memory_order_release);
        }
    }

    bool invited(int id, uint32_t last) {
        uint32_t job = job_.load();
        return (job & 1) && job != last && id < invited_.load(std::memory_order_relaxed);
    }

    void work(int id) {
        uint32_t last = 0;
        for (;;) {
            wait(id, last);
            // The job that was open a moment ago, also if it has been closed since.
            last = (job_.load(std::memory_order_acquire) - 1) | 1;
            for (int spins = 0; job_.load(std::memory_order_acquire) == last; spins++) {
                if (help()) spins = 0;
                spins < 2000 ? relax() : give_way();
            }
        }
    }

    void wait(int id, uint32_t last) {
        using clock = std::chrono::steady_clock;
        // About what the host needs between two calls of a decode loop.
        auto until = clock::now() + std::chrono::microseconds(50);
        do {
            for (int i = 0; i < 32; i++) {
                if (invited(id, last)) return;
                relax();
            }
        } while (clock::now() < until);
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return invited(id, last); });
        sleepers_.fetch_sub(1);
    }

    void grow(int workers) {
        if (workers <= workers_) return;
#if defined(__unix__) || defined(__APPLE__)
        // Signals belong to the threads of the program.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
        try {
            for (; workers_ < workers; workers_++) std::thread(&Pool::work, this, workers_).detach();
        } catch (const std::system_error&) {
            // Fewer helpers; the work is done all the same.
        }
#if defined(__unix__) || defined(__APPLE__)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    }

    std::mutex busy_, mutex_;
    std::condition_variable wake_;
    int workers_ = 0;
    TaskFunction function_ = nullptr;
    void* context_ = nullptr;
    uint64_t phase_ = 0;
    std::atomic<bool> failed_{false};
    std::atomic<int> invited_{0}, sleepers_{0};
    alignas(64) std::atomic<uint32_t> job_{0};
    // Number of tasks of the phase in the upper half, next one in the lower.
    alignas(64) std::atomic<uint64_t> word_{0};
    alignas(64) std::atomic<uint32_t> done_{0};
};

// One call's share of the pool. Where another thread has it, the call does its work alone.
class Team {
  public:
    explicit Team(int threads) : threads_(threads > 1 && Pool::get().try_begin() ? threads : 1) {}
    ~Team() {
        if (threads_ > 1) Pool::get().end(opened_);
    }
    Team(const Team&) = delete;

    int threads() const { return threads_; }

    // f(task, phase) for all tasks; on the calling thread alone where that is quicker than to share.
    template <class F>
    void run(int total, bool small, F&& f) {
        uint64_t phase = Pool::next_phase();
        if (threads_ == 1 || total == 1 || small) {
            for (int task = 0; task < total; task++) f(task, phase);
            return;
        }
        if (!opened_) Pool::get().open(threads_);
        opened_ = true;
        auto call = [](void* context, int task, uint64_t id) { (*(std::remove_reference_t<F>*)context)(task, id); };
        Pool::get().run(total, call, &f, phase);
    }

    // f(item) for all items, in runs of consecutive ones, a few runs per thread.
    template <class F>
    void run_runs(int64_t total, bool small, F&& f) {
        int64_t length = std::max<int64_t>(1, total / (8 * threads_));
        run((int)((total + length - 1) / length), small, [&](int task, uint64_t) {
            int64_t end = std::min(total, (task + 1) * length);
            for (int64_t item = task * length; item < end; item++) f(item);
        });
    }

  private:
    int threads_;
    bool opened_ = false;
};

}  // namespace hk
