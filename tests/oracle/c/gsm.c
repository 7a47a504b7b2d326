/* libgsm: `encode` 16-bit samples at 8 kHz to frames of 33 bytes, `decode` the other way. */
#include "oracle.h"
#include <gsm.h>

#define SAMPLES 160
#define BYTES 33

static size_t run(const char *mode, const uint8_t *input, size_t size, uint8_t *output) {
    size_t made = 0;
    gsm state = gsm_create();
    if (!strcmp(mode, "encode")) {
        for (size_t at = 0; at + 2 * SAMPLES <= size; at += 2 * SAMPLES, made += BYTES) {
            gsm_signal pcm[SAMPLES];
            memcpy(pcm, input + at, sizeof pcm);
            gsm_encode(state, pcm, output + made);
        }
    } else {
        for (size_t at = 0; at + BYTES <= size; at += BYTES, made += 2 * SAMPLES) {
            gsm_byte frame[BYTES];
            gsm_signal pcm[SAMPLES];
            memcpy(frame, input + at, sizeof frame);
            gsm_decode(state, frame, pcm);
            memcpy(output + made, pcm, sizeof pcm);
        }
    }
    gsm_destroy(state);
    return made;
}

int main(int count, char **words) { return oracle_main(count, words, run); }
