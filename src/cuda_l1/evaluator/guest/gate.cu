// The gate: one kernel that holds every thread slot of the GPU until the judge opens it, and two of one thread each.
//
// Generated from this file and committed beside it: gate.ptx
//     nvcc -ptx -arch=compute_75 gate.cu -o gate.ptx
// No header is included, so that NVRTC compiles the same text where a driver refuses that PTX.

// State of the one gate that may run at a time. It lives in the module, so nothing has to be allocated or cleared.
__device__ int arrived;                 // blocks of the running gate that are resident
__device__ volatile int released;       // the last sequence whose leaving time is fixed
__device__ volatile long long leave_ns;  // that time

static __device__ __forceinline__ long long now_ns() {
    long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

static __device__ __forceinline__ void pause() {
#if __CUDA_ARCH__ >= 700
    __nanosleep(50);
#endif
}

// Grid: as many blocks as fill the thread slots of all SMs. Only thread 0 of a block polls; the rest wait at the barrier.
// `open`, `resident`, `expired` and `release_ns` are words of the control pages in host memory; `sequence` only goes up.
// Block 0 alone reads host memory: a poll costs a trip over the bus, and all blocks must learn of the opening together.
extern "C" __global__ void __launch_bounds__(1024)
gate(const volatile int *open, volatile int *resident, volatile int *expired, volatile long long *release_ns,
     int sequence, long long limit_ns, long long margin_ns) {
    if (threadIdx.x == 0) {
        if (atomicAdd(&arrived, 1) == (int)gridDim.x - 1) {
            arrived = 0;
            __threadfence();
            *resident = sequence;
        }
        if (blockIdx.x == 0) {
            const long long start = now_ns();
            long long now = start;
            bool opened = *open >= sequence;
            while (!opened && now - start < limit_ns) {
                opened = *open >= sequence;
                now = now_ns();
            }
            // The margin lets every block read the leaving time before it comes, so that all leave at one device time.
            const long long leave = now_ns() + margin_ns;
            leave_ns = leave;
            __threadfence();
            released = sequence;
            *release_ns = leave;
            if (!opened) *expired = sequence;
        }
        while (released != sequence) pause();
        __threadfence();
        const long long leave = leave_ns;
        while (now_ns() < leave) {
        }
    }
    __syncthreads();
}

// Behind the work to be timed: notes the device's time, then tells the judge that all of that work is finished.
extern "C" __global__ void finish(volatile long long *out_ns, volatile int *finished, int sequence) {
    *out_ns = now_ns();
    __threadfence_system();
    *finished = sequence;
}

// Writes the smallest step seen between two different readings of the device's time.
extern "C" __global__ void timer_step(volatile long long *out_ns, int steps) {
    long long smallest = 1LL << 62;
    long long before = now_ns();
    for (int i = 0; i < steps; ++i) {
        long long after = now_ns();
        while (after == before) after = now_ns();
        if (after - before < smallest) smallest = after - before;
        before = after;
    }
    *out_ns = smallest;
}
