/* Races: who wrote and who read each byte last, and how many barriers ago.

   Two accesses of one byte by different threads, one of them a write, need a barrier between them: of the
   threadgroup, or of the simdgroup where both threads are in it. Nothing orders two threadgroups. A write of the
   value that is there already is not reported (many threads set one flag). Two atomic operations may meet; an atomic one and a plain one may not. */
#include "runtime.h"
#include <stdlib.h>
#include <string.h>

struct mark { uint32_t thread, epoch, simd_epoch, is_atomic; };
struct cell { struct mark write, read, read2; };
struct area { char *begin; size_t size; int space; struct cell *cells; };

static struct area areas[128];
static int area_count;
static uint32_t group_number, epochs[4], simd_epochs[MOST_THREADS / SIMD];
static struct { char *at; uint32_t size; char old[64]; uint64_t address; uint32_t other, self, kind; int is_set; } pending;

void rt_shadow_clear(void) {
    for (int i = 0; i < area_count; i++) free(areas[i].cells);
    area_count = 0;
}

/* space: 1 device, 3 threadgroup. */
void rt_shadow_add(void *begin, size_t size, int space) {
    if (area_count < 128) areas[area_count++] = (struct area){begin, size, space, NULL};
}

void rt_shadow_begin(void) {
    for (int i = 0; i < area_count; i++) {
        free(areas[i].cells);
        areas[i].cells = calloc(areas[i].size + 1, sizeof(struct cell));
    }
    group_number = 0;
    pending.is_set = 0;
}

void rt_shadow_group(void) {
    rt_shadow_flush();
    group_number++;
    memset(epochs, 0, sizeof epochs);
    memset(simd_epochs, 0, sizeof simd_epochs);
    for (int i = 0; i < area_count; i++)
        if (areas[i].space == 3 && areas[i].cells) memset(areas[i].cells, 0, areas[i].size * sizeof(struct cell));
}

void rt_shadow_barrier(int device, int threadgroup) {
    epochs[1] += device != 0;
    epochs[3] += threadgroup != 0;
}
void rt_shadow_simd(int simdgroup) { simd_epochs[simdgroup]++; }

static void report(uint32_t kind, uint64_t address, uint32_t other, uint32_t self) {
    if (rt_said.races++) return;
    rt_said.race_kind = kind, rt_said.race_address = address;
    rt_said.race_threads[0] = other, rt_said.race_threads[1] = self;
}

void rt_shadow_flush(void) {
    if (!pending.is_set) return;
    pending.is_set = 0;
    if (memcmp(pending.at, pending.old, pending.size)) report(pending.kind, pending.address, pending.other, pending.self);
}

static int conflicts(const struct mark *old, const struct mark *now) {
    if (!old->thread || old->thread == now->thread || (old->is_atomic && now->is_atomic)) return 0;
    uint32_t a = old->thread - 1, b = now->thread - 1;
    if (a / MOST_THREADS != b / MOST_THREADS) return 1;
    if (old->epoch != now->epoch) return 0;
    return a / SIMD != b / SIMD || old->simd_epoch == now->simd_epoch;
}

static struct area *find(char *p) {
    static struct area *last;
    if (last >= areas && last < areas + area_count && p >= last->begin && p < last->begin + last->size) return last;
    for (int i = 0; i < area_count; i++)
        if (p >= areas[i].begin && p < areas[i].begin + areas[i].size) return last = &areas[i];
    return NULL;
}

/* Called before every load (0) and store (1) of device and threadgroup memory; 2 more if it is atomic. */
void rt_access(char *p, uint32_t size, uint32_t what) {
    if (!rt_job.track) return;
    rt_shadow_flush();
    struct area *area = find(p);
    if (!area || !area->cells || !rt_current) return;
    uint32_t index = rt_current->ids[INDEX];
    struct mark now = {(group_number - 1) * MOST_THREADS + index + 1, epochs[area->space], simd_epochs[index / SIMD],
                       what & 2};
    struct cell *cell = area->cells + (p - area->begin);
    for (uint32_t i = 0; i < size && p + i < area->begin + area->size; i++, cell++) {
        if (!(what & 1)) {
            if (area->space == 3 && !cell->write.thread) rt_said.unwritten++;
            if (conflicts(&cell->write, &now)) report(2, (uint64_t)(p + i), cell->write.thread, now.thread);
            if (cell->read.thread != now.thread) cell->read2 = cell->read;
            cell->read = now;
            continue;
        }
        struct mark *other = conflicts(&cell->write, &now) ? &cell->write
                           : conflicts(&cell->read, &now) ? &cell->read
                           : conflicts(&cell->read2, &now) ? &cell->read2 : NULL;
        if (other && !pending.is_set && size <= sizeof pending.old) {
            pending.is_set = 1, pending.at = p, pending.size = size, pending.address = (uint64_t)(p + i);
            pending.kind = other == &cell->write ? 1 : 3, pending.other = other->thread, pending.self = now.thread;
            memcpy(pending.old, p, size);
        }
        cell->write = now;
    }
}

int rt_shadow_ready(void) { return area_count; }
