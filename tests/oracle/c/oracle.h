/* What every oracle shares: `PROGRAM MODE [ROUNDS] < input > output`.
 *
 * `run` codes the whole input once, from a fresh state, into `output`, and returns the bytes written. With ROUNDS it is
 * run that often and the CPU time of the quickest round, in nanoseconds, is printed on standard error. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No mode makes more than this many bytes of each byte of input (one of 24 bits a frame: 320 bytes of 3). */
#define GROWTH 110

typedef size_t (*oracle_run)(const char *mode, const uint8_t *input, size_t size, uint8_t *output);

static int64_t oracle_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int oracle_main(int count, char **words, oracle_run run) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODE [ROUNDS] < input > output\n", words[0]);
        return 2;
    }
    size_t size = 0, room = 1 << 20;
    uint8_t *input = malloc(room);
    for (size_t got; input && (got = fread(input + size, 1, room - size, stdin)) > 0;) {
        size += got;
        if (size == room) input = realloc(input, room *= 2);
    }
    uint8_t *output = calloc(size + 64, GROWTH);
    if (!input || !output) return 3;
    size_t made = 0;
    int64_t best = INT64_MAX;
    int rounds = count > 2 ? atoi(words[2]) : 1;
    for (int round = 0; round < rounds; round++) {
        int64_t start = oracle_nanoseconds();
        made = run(words[1], input, size, output);
        int64_t took = oracle_nanoseconds() - start;
        if (took < best) best = took;
    }
    if (count > 2) fprintf(stderr, "%lld\n", (long long)best);
    return fwrite(output, 1, made, stdout) == made && fflush(stdout) == 0 ? 0 : 4;
}
