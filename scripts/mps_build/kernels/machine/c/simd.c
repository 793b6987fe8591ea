/* Simdgroup operations: each lane waits with pointers to its operands; all are served at once. */
#include "runtime.h"
#include <string.h>

enum op { SUM, PRODUCT, MAXIMUM, MINIMUM, ANY, ALL, FIRST, PREFIX_EXCLUSIVE, PREFIX_INCLUSIVE, SHUFFLE, XOR, DOWN, UP,
          BROADCAST, BROADCAST_FIRST, FILL_UP, FILL_DOWN, MULTIPLY, BARRIER, BIT_AND, BIT_OR, BIT_XOR, BALLOT,
          ROTATE_DOWN, ROTATE_UP, PRODUCT_EXCLUSIVE, PRODUCT_INCLUSIVE };
/* Types of arithmetic: the low byte is the size of an element, the next its kind, the next the number of elements. */
enum kind { SIGNED, UNSIGNED, FLOAT, HALF, BFLOAT };

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023, bits;
    float f;
    if (exponent == 31) bits = sign | 0x7F800000 | fraction << 13;
    else if (exponent) bits = sign | (exponent + 112) << 23 | fraction << 13;
    else {
        f = (float)fraction * 0x1p-24f;
        memcpy(&bits, &f, 4);
        bits |= sign;
    }
    memcpy(&f, &bits, 4);
    return f;
}

uint16_t rt_double_to_half(double value);
uint16_t rt_double_to_bfloat(double value);

static double load_float(const char *p, int kind) {
    float f;
    uint16_t h;
    if (kind == FLOAT) return memcpy(&f, p, 4), f;
    memcpy(&h, p, 2);
    if (kind == HALF) return half_to_float(h);
    uint32_t bits = (uint32_t)h << 16;
    memcpy(&f, &bits, 4);
    return f;
}

static void store_float(char *p, int kind, double value) {
    if (kind == FLOAT) {
        float f = (float)value;
        memcpy(p, &f, 4);
    } else {
        uint16_t h = kind == HALF ? rt_double_to_half(value) : rt_double_to_bfloat(value);
        memcpy(p, &h, 2);
    }
}

static int64_t load_integer(const char *p, int size, int is_signed) {
    uint64_t v = 0;
    memcpy(&v, p, (size_t)size);
    int shift = 64 - 8 * size;
    return is_signed ? (int64_t)(v << shift) >> shift : (int64_t)v;
}

static double fold_float(int op, double a, double b) {
    switch (op) {
    case SUM: case PREFIX_EXCLUSIVE: case PREFIX_INCLUSIVE: return a + b;
    case PRODUCT: case PRODUCT_EXCLUSIVE: case PRODUCT_INCLUSIVE: return a * b;
    case MAXIMUM: return a != a ? b : b != b ? a : a > b ? a : b;
    default: return a != a ? b : b != b ? a : a < b ? a : b;
    }
}

static int64_t fold_integer(int op, int64_t a, int64_t b, int is_signed) {
    int less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
    switch (op) {
    case SUM: case PREFIX_EXCLUSIVE: case PREFIX_INCLUSIVE: return (int64_t)((uint64_t)a + (uint64_t)b);
    case PRODUCT: case PRODUCT_EXCLUSIVE: case PRODUCT_INCLUSIVE: return (int64_t)((uint64_t)a * (uint64_t)b);
    case MAXIMUM: return less ? b : a;
    case MINIMUM: return less ? a : b;
    case BIT_AND: return a & b;
    case BIT_OR: return a | b;
    default: return a ^ b;
    }
}

static int is_prefix(int op) {
    return op == PREFIX_EXCLUSIVE || op == PREFIX_INCLUSIVE || op == PRODUCT_EXCLUSIVE || op == PRODUCT_INCLUSIVE;
}

/* Reductions and prefix sums, lane after lane: Metal does not say in which order floats are added. */
static void fold(struct lane **who, int n, int op, int type) {
    int size = type & 255, kind = type >> 8 & 255, count = type >> 16 & 255;
    int exclusive = op == PREFIX_EXCLUSIVE || op == PRODUCT_EXCLUSIVE;
    for (int e = 0; e < count; e++) {
        double f = 0;
        int64_t v = 0;
        char held[8];
        for (int i = 0; i < n; i++) {
            const char *p = (const char *)who[i]->in + e * size;
            char *out = (char *)who[i]->out + e * size;
            if (is_prefix(op) && exclusive) {
                double neutral = op == PREFIX_EXCLUSIVE ? 0 : 1;
                if (kind >= FLOAT) store_float(out, kind, i ? f : neutral);
                else {
                    int64_t w = i ? v : (int64_t)neutral;
                    memcpy(out, &w, (size_t)size);
                }
            }
            if (kind >= FLOAT) {
                double x = load_float(p, kind);
                f = i ? fold_float(op, f, x) : x;
                store_float(held, kind, f);
                f = load_float(held, kind);
            } else {
                int64_t x = load_integer(p, size, kind == SIGNED);
                v = i ? fold_integer(op, v, x, kind == SIGNED) : x;
                memcpy(held, &v, (size_t)size);
                v = load_integer(held, size, kind == SIGNED);
            }
            if (is_prefix(op) && !exclusive) memcpy(out, held, (size_t)size);
        }
        if (!is_prefix(op))
            for (int i = 0; i < n; i++) memcpy((char *)who[i]->out + e * size, held, (size_t)size);
    }
}

/* Copies the value of lane `from`: zero from a lane that takes no part, which Metal leaves undefined. */
static void take(struct lane *group, struct lane *self, int from, const void *own, int size) {
    if (from < 0 || from >= SIMD) memcpy(self->out, own, (size_t)size);
    else if (group[from].state == AT_SIMD && group[from].op == self->op) memcpy(self->out, group[from].in, (size_t)size);
    else {
        memset(self->out, 0, (size_t)size);
        rt_said.inactive++;
    }
}

static void fill(struct lane *group, struct lane *self, int size) {
    int lane = (int)self->ids[LANE], delta = self->arg, modulo = self->arg2 > 0 ? self->arg2 : SIMD;
    int base = lane - lane % modulo, at = self->op == FILL_UP ? lane % modulo - delta : lane % modulo + delta;
    if (at >= 0 && at < modulo) {
        take(group, self, base + at, self->in, size);
        return;
    }
    int from = base + (at < 0 ? at + modulo : at - modulo);
    if (from < base || from >= base + modulo) {
        memcpy(self->out, self->in2, (size_t)size);
        return;
    }
    if (group[from].state == AT_SIMD && group[from].op == self->op) memcpy(self->out, group[from].in2, (size_t)size);
    else {
        memset(self->out, 0, (size_t)size);
        rt_said.inactive++;
    }
}

/* C + A B of 8 x 8: a lane holds two neighbours of a row; `in` has two of A, of B and of C, in float. */
static void multiply(struct lane *group) {
    float a[8][8] = {{0}}, b[8][8] = {{0}}, c[8][8] = {{0}};
    for (int l = 0; l < SIMD; l++) {
        if (group[l].state != AT_SIMD || group[l].op != MULTIPLY) {
            rt_said.inactive++;
            continue;
        }
        int row = (l / 4 & 4) + l / 2 % 4, col = (l / 4 & 2) * 2 + l % 2 * 2;
        const float *in = group[l].in;
        for (int i = 0; i < 2; i++) a[row][col + i] = in[i], b[row][col + i] = in[2 + i], c[row][col + i] = in[4 + i];
    }
    for (int l = 0; l < SIMD; l++) {
        if (group[l].state != AT_SIMD || group[l].op != MULTIPLY) continue;
        int row = (l / 4 & 4) + l / 2 % 4, col = (l / 4 & 2) * 2 + l % 2 * 2;
        float *out = group[l].out;
        for (int i = 0; i < 2; i++) {
            float sum = c[row][col + i];
            for (int k = 0; k < 8; k++) sum = __builtin_fmaf(a[row][k], b[k][col + i], sum);
            out[i] = sum;
        }
    }
}

int32_t rt_matrix_row(int32_t lane) { return (lane / 4 & 4) + lane / 2 % 4; }
int32_t rt_matrix_column(int32_t lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

static void move(struct lane *group, struct lane **who, int n, int op) {
    for (int i = 0; i < n; i++) {
        struct lane *self = who[i];
        int lane = (int)self->ids[LANE], size = self->type & 255;
        switch (op) {
        case SHUFFLE: take(group, self, self->arg, self->in, size); break;
        case BROADCAST: take(group, self, self->arg, self->in, size); break;
        case BROADCAST_FIRST: memcpy(self->out, who[0]->in, (size_t)size); break;
        case XOR: take(group, self, lane ^ self->arg, self->in, size); break;
        case DOWN: take(group, self, lane + self->arg, self->in, size); break;
        case UP: take(group, self, lane - self->arg, self->in, size); break;
        case ROTATE_DOWN: take(group, self, (lane + self->arg) & 31, self->in, size); break;
        case ROTATE_UP: take(group, self, (lane - self->arg) & 31, self->in, size); break;
        default: fill(group, self, size);
        }
    }
}

static void vote(struct lane **who, int n, int op) {
    uint64_t mask = 0;
    int any = 0, all = 1;
    for (int i = 0; i < n; i++) {
        int yes = op == FIRST ? 0 : *(const uint8_t *)who[i]->in & 1;
        any |= yes, all &= yes;
        mask |= (uint64_t)yes << who[i]->ids[LANE];
    }
    for (int i = 0; i < n; i++) {
        uint8_t said = (uint8_t)(op == FIRST ? i == 0 : op == ANY ? any : all);
        if (op == BALLOT) memcpy(who[i]->out, &mask, (size_t)(who[i]->type & 255));
        else *(uint8_t *)who[i]->out = said;
    }
}

/* Serves the operation at which the first waiting lane stands, for all lanes that wait at the same. */
void rt_complete_simd(struct lane *group, int count) {
    struct lane *who[SIMD];
    int n = 0, op = -1, type = 0;
    for (int i = 0; i < count; i++) {
        if (group[i].state != AT_SIMD) continue;
        if (op < 0) op = group[i].op, type = group[i].type;
        if (group[i].op == op && group[i].type == type) who[n++] = &group[i];
    }
    if (op == MULTIPLY) multiply(group);
    else if (op == ANY || op == ALL || op == FIRST || op == BALLOT) vote(who, n, op);
    else if ((op >= SHUFFLE && op <= FILL_DOWN) || op == ROTATE_DOWN || op == ROTATE_UP) move(group, who, n, op);
    else if (op != BARRIER) fold(who, n, op, type);
    for (int i = 0; i < n; i++) who[i]->state = READY;
}
