/* A stand-in for libcuda.so.1 on machines without a GPU: "device memory" is host memory behind memfds, a launch is a
 * thread, and arguments that the real driver would refuse are refused. Only what the harness calls, with the ABI of
 * cuda.h. It also plays the kernels of gate.cu, from the arguments that they would get. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, UNSUPPORTED_PTX = 222 };
enum { GRANULARITY = 2 << 20, DEVICES = 2, CONTEXT = 0x1000 };

typedef struct { int type, handle_types, location_type, location_id; void *meta; unsigned char flags[8]; } Prop;
typedef struct { int location_type, location_id, flags; } Access;
typedef struct { int (*run)(void **); void *copies[8]; pthread_t thread, before; int has_before; } Launch;

int fake_refuse_ptx;                    /* tests set these */
int fake_blocks_per_sm = 2;
int fake_calls_to_unmap, fake_calls_to_release, fake_links_destroyed;
unsigned fake_last_register_flags, fake_last_grid, fake_last_block;
void *fake_last_stream;
static uint64_t current_context;
static pthread_t last_thread;
static int has_last;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int cuGetErrorName(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return OK;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "out of memory" : "refused by the stand-in";
    return OK;
}
int cuInit(unsigned flags) { return flags ? INVALID_VALUE : OK; }
int cuDriverGetVersion(int *version) { *version = 12080; return OK; }
int cuDeviceGet(int *device, int index) {
    if (index < 0 || index >= DEVICES) return INVALID_DEVICE;
    *device = index;
    return OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (device >= DEVICES) return INVALID_DEVICE;
    switch (attribute) {
    case 1: *value = 1024; return OK;
    case 16: *value = 132; return OK;
    case 38: *value = 50 << 20; return OK;
    case 39: *value = 2048; return OK;
    case 75: *value = 9; return OK;
    case 76: *value = 0; return OK;
    case 103: case 113: *value = 1; return OK;
    }
    return INVALID_VALUE;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(uintptr_t)(CONTEXT + device); return OK; }
int cuCtxSetCurrent(void *context) { current_context = (uintptr_t)context; return OK; }
int cuCtxSynchronize(void) {
    if (has_last) pthread_join(last_thread, NULL);
    has_last = 0;
    return current_context ? OK : INVALID_CONTEXT;
}
int cuStreamSynchronize(void *stream) { (void)stream; return cuCtxSynchronize(); }

static int good(const Prop *p) {
    static const unsigned char none[8];
    return p->type == 1 && p->handle_types == 1 && p->location_type == 1 && p->location_id < DEVICES && !p->meta &&
           !memcmp(p->flags, none, 8);
}
int cuMemGetAllocationGranularity(size_t *granularity, const Prop *prop, int option) {
    if (!good(prop) || option) return INVALID_VALUE;
    *granularity = GRANULARITY;
    return OK;
}
int cuMemCreate(uint64_t *handle, size_t size, const Prop *prop, uint64_t flags) {
    if (!good(prop) || flags || size % GRANULARITY) return INVALID_VALUE;
    if (size > 1ULL << 40) return OUT_OF_MEMORY;
    int fd = memfd_create("device", MFD_CLOEXEC);
    if (ftruncate(fd, (off_t)size)) return OUT_OF_MEMORY;
    *handle = 1000 + (uint64_t)fd;
    return OK;
}
int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, uint64_t flags) {
    if (type != 1 || flags) return INVALID_VALUE;
    *(int *)out = dup((int)handle - 1000);
    return OK;
}
int cuMemImportFromShareableHandle(uint64_t *handle, void *fd, int type) {
    int own = dup((int)(intptr_t)fd);
    if (type != 1 || own < 0) return INVALID_VALUE;
    *handle = 1000 + (uint64_t)own;
    return OK;
}
int cuMemAddressReserve(uint64_t *address, size_t size, size_t alignment, uint64_t wanted, uint64_t flags) {
    if (size % GRANULARITY || alignment || wanted || flags) return INVALID_VALUE;
    *address = (uintptr_t)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return OK;
}
int cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags) {
    int fd = (int)handle - 1000;
    if (flags || offset || lseek(fd, 0, SEEK_END) != (off_t)size) return INVALID_VALUE;
    mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
    return OK;
}
int cuMemSetAccess(uint64_t address, size_t size, const Access *access, size_t count) {
    if (count != 1 || access->location_type != 1 || access->location_id >= DEVICES) return INVALID_VALUE;
    if (access->flags != 1 && access->flags != 3) return INVALID_VALUE;
    return mprotect((void *)address, size, access->flags) ? INVALID_VALUE : OK; /* the same bits as PROT_* */
}
int cuMemUnmap(uint64_t address, size_t size) {
    ++fake_calls_to_unmap;
    mmap((void *)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return OK;
}
int cuMemAddressFree(uint64_t address, size_t size) { return munmap((void *)address, size) ? INVALID_VALUE : OK; }
int cuMemRelease(uint64_t handle) {
    ++fake_calls_to_release;
    return close((int)handle - 1000) ? INVALID_VALUE : OK;
}
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags) {
    fake_last_register_flags = flags;
    return address && size && !(flags & ~11u) ? OK : INVALID_VALUE;
}
int cuMemHostGetDevicePointer_v2(uint64_t *out, void *address, unsigned flags) {
    *out = (uintptr_t)address;
    return flags ? INVALID_VALUE : OK;
}
int cuMemHostUnregister(void *address) { return address ? OK : INVALID_VALUE; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void *stream) {
    fake_last_stream = stream;
    memset((void *)to, value, size);
    return OK;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    fake_last_stream = stream;
    memcpy((void *)to, (void *)from, size);
    return OK;
}

int cuEventCreate(void **event, unsigned flags) { *event = calloc(1, 8); return flags ? INVALID_VALUE : OK; }
int cuEventRecord(void *event, void *stream) { fake_last_stream = stream; *(int64_t *)event = now_ns(); return OK; }
int cuEventSynchronize(void *event) { return *(int64_t *)event ? OK : INVALID_VALUE; }
int cuEventElapsedTime(float *ms, void *start, void *end) {
    if (!*(int64_t *)start || !*(int64_t *)end) return INVALID_VALUE;
    *ms = (float)(*(int64_t *)end - *(int64_t *)start) / 1e6f;
    return OK;
}
int cuEventDestroy_v2(void *event) { free(event); return OK; }

static int gate(void **a) {
    volatile int *open = a[0], *resident = a[1], *expired = a[2];
    volatile int64_t *release = a[3];
    int sequence = (int)(intptr_t)a[4];
    int64_t limit = (int64_t)a[5], margin = (int64_t)a[6], start = now_ns();
    *resident = sequence;
    while (*open < sequence && now_ns() - start < limit) usleep(50);
    if (*open < sequence) *expired = sequence;
    *release = now_ns() + margin;
    while (now_ns() < *release) {
    }
    return OK;
}
static int finish(void **a) {
    *(volatile int64_t *)a[0] = now_ns();
    *(volatile int *)a[1] = (int)(intptr_t)a[2];
    return OK;
}
static int timer_step(void **a) { *(volatile int64_t *)a[0] = (intptr_t)a[1] == 64 ? 32 : -1; return OK; }

int cuLinkCreate_v2(unsigned count, void *options, void *values, void **state) {
    *state = (void *)0x88;
    return count || options || values ? INVALID_VALUE : OK;
}
int cuLinkAddData_v2(void *state, int type, const char *data, size_t size, const char *name, unsigned count,
                     void *options, void *values) {
    if (state != (void *)0x88 || type != 1 || data[size - 1] || strlen(data) != size - 1) return INVALID_VALUE;
    if (!name || count || options || values) return INVALID_VALUE;
    return fake_refuse_ptx ? UNSUPPORTED_PTX : OK;
}
int cuLinkComplete(void *state, void **cubin, size_t *size) {
    static char linked[] = "\177ELF linked\0here";
    *cubin = linked, *size = sizeof linked;
    return state == (void *)0x88 ? OK : INVALID_VALUE;
}
int cuLinkDestroy(void *state) { ++fake_links_destroyed; return state == (void *)0x88 ? OK : INVALID_VALUE; }

/* `narrow` is the place of the one argument of 32 bits. */
static const struct { const char *name; int (*run)(void **); int arguments, narrow; } kernels[] = {
    {"gate", gate, 7, 4}, {"finish", finish, 3, 2}, {"timer_step", timer_step, 2, 1}};

int cuModuleLoadData(void **module, const char *image) {
    if (memcmp(image, "\177ELF", 4)) return INVALID_IMAGE;
    *module = (void *)0x77;
    return OK;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    if (module != (void *)0x77) return INVALID_VALUE;
    for (int i = 0; i < 3; ++i)
        if (!strcmp(name, kernels[i].name)) {
            *function = (void *)&kernels[i];
            return OK;
        }
    return INVALID_VALUE;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int block, size_t shared) {
    *blocks = fake_blocks_per_sm;
    return function && block && !shared ? OK : INVALID_VALUE;
}
static void *play(void *argument) { /* after the launch before it, as in one stream */
    Launch *launch = argument;
    if (launch->has_before) pthread_join(launch->before, NULL);
    launch->run(launch->copies);
    free(launch);
    return NULL;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    const int kernel = (int)(((uintptr_t)function - (uintptr_t)kernels) / sizeof kernels[0]);
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra || !gx || bx > 1024) return INVALID_VALUE;
    Launch *launch = calloc(1, sizeof *launch);
    launch->run = kernels[kernel].run;
    for (int i = 0; i < kernels[kernel].arguments; ++i)
        launch->copies[i] = i == kernels[kernel].narrow ? (void *)(intptr_t) * (int *)arguments[i] : *(void **)arguments[i];
    fake_last_grid = gx, fake_last_block = bx, fake_last_stream = stream;
    launch->before = last_thread, launch->has_before = has_last;
    has_last = 1;
    return pthread_create(&last_thread, NULL, play, launch) ? OUT_OF_MEMORY : OK;
}
