/* A codec that anybody can check: 20 ms of samples with all bits but one turned over. A first argument makes it ill:
 * `mute` never greets, `deaf` never answers a frame, `mad` answers with nonsense, `mortal` dies of its fifth frame. */
#include "external.h"

static const char *illness = "";

static void *toy_open(int encode) { (void)encode; return calloc(1, sizeof(int)); }
static void toy_close(int encode, void *state) { (void)encode; free(state); }

static int toy_code(int encode, void *state, const uint8_t *input, size_t size, uint8_t *output) {
    (void)encode;
    int *frames = state;
    if (!strcmp(illness, "deaf")) for (;;) pause();
    if (!strcmp(illness, "mad")) memset(output, 0xee, 64), (void)!write(1, output, 64);
    if (!strcmp(illness, "mortal") && ++*frames == 5) exit(3);
    if (!input) { /* lost: silence */
        memset(output, 0, 320);
        return 320;
    }
    if (size != 320) return -1;
    for (size_t at = 0; at < size; at++) output[at] = input[at] ^ 0x7f;
    return size;
}

int main(int count, char **words) {
    static const struct codec toy = {8000, 160, 320, toy_open, toy_close, toy_code};
    if (count > 1) illness = words[1];
    if (!strcmp(illness, "mute")) for (;;) pause();
    return external_main(&toy);
}
