/* libopus at 48 kHz, mono: `encode` 16-bit samples to packets of 20 ms, each after its length in two bytes (low first),
 * `decode` the other way. A length of zero is a packet that was lost. */
#include "oracle.h"
#include <opus/opus.h>

#define SAMPLES 960

static size_t run(const char *mode, const uint8_t *input, size_t size, uint8_t *output) {
    size_t made = 0, at = 0;
    int error;
    opus_int16 pcm[SAMPLES * 6];
    if (!strcmp(mode, "encode")) {
        OpusEncoder *state = opus_encoder_create(48000, 1, OPUS_APPLICATION_VOIP, &error);
        opus_encoder_ctl(state, OPUS_SET_COMPLEXITY(5));
        for (; at + 2 * SAMPLES <= size; at += 2 * SAMPLES) {
            memcpy(pcm, input + at, 2 * SAMPLES);
            int bytes = opus_encode(state, pcm, SAMPLES, output + made + 2, 1275);
            output[made] = bytes & 255, output[made + 1] = bytes >> 8;
            made += 2 + bytes;
        }
        opus_encoder_destroy(state);
    } else {
        OpusDecoder *state = opus_decoder_create(48000, 1, &error);
        while (at + 2 <= size) {
            int bytes = input[at] | input[at + 1] << 8;
            at += 2;
            if (at + bytes > size) break;
            int samples = opus_decode(state, bytes ? input + at : NULL, bytes, pcm, bytes ? SAMPLES * 6 : SAMPLES, 0);
            if (samples < 0) memset(pcm, 0, sizeof pcm), samples = SAMPLES;
            memcpy(output + made, pcm, 2 * samples);
            made += 2 * samples, at += bytes;
        }
        opus_decoder_destroy(state);
    }
    return made;
}

int main(int count, char **words) { return oracle_main(count, words, run); }
