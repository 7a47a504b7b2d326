/* spandsp: CODEC-encode 16-bit samples to bytes and CODEC-decode the other way, for g722 (at 16 kHz, 64 kbit/s),
 * g726 (RFC 3551), g726aal2 and lpc10. */
#include "oracle.h"
#include <spandsp.h>

/* Twenty milliseconds, or a frame of LPC-10: packets as a call has them. */
static size_t run(const char *mode, const uint8_t *input, size_t size, uint8_t *output) {
    int encode = strstr(mode, "-encode") != NULL;
    size_t samples = 160, bytes = 80, made = 0;
    g722_encode_state_t *g722e = NULL;
    g722_decode_state_t *g722d = NULL;
    g726_state_t *g726 = NULL;
    lpc10_encode_state_t *lpce = NULL;
    lpc10_decode_state_t *lpcd = NULL;
    if (!strncmp(mode, "g722-", 5)) {
        samples = 320, bytes = 160;
        if (encode) g722e = g722_encode_init(NULL, 64000, 0);
        else g722d = g722_decode_init(NULL, 64000, 0);
    } else if (!strncmp(mode, "g726", 4)) {
        g726 = g726_init(NULL, 32000, G726_ENCODING_LINEAR,
                         strstr(mode, "aal2") ? G726_PACKING_LEFT : G726_PACKING_RIGHT);
    } else {
        samples = 180, bytes = 7;
        if (encode) lpce = lpc10_encode_init(NULL, 1);
        else lpcd = lpc10_decode_init(NULL, 1);
    }
    size_t step = encode ? 2 * samples : bytes;
    for (size_t at = 0; at + step <= size; at += step) {
        int16_t pcm[320];
        if (encode) {
            memcpy(pcm, input + at, step);
            if (g722e) made += g722_encode(g722e, output + made, pcm, samples);
            if (g726) made += g726_encode(g726, output + made, pcm, samples);
            if (lpce) made += lpc10_encode(lpce, output + made, pcm, samples);
        } else {
            int count = 0;
            if (g722d) count = g722_decode(g722d, pcm, input + at, bytes);
            if (g726) count = g726_decode(g726, pcm, input + at, bytes);
            if (lpcd) count = lpc10_decode(lpcd, pcm, input + at, bytes);
            memcpy(output + made, pcm, 2 * count);
            made += 2 * count;
        }
    }
    if (g722e) g722_encode_free(g722e);
    if (g722d) g722_decode_free(g722d);
    if (g726) g726_free(g726);
    if (lpce) lpc10_encode_free(lpce);
    if (lpcd) lpc10_decode_free(lpcd);
    return made;
}

int main(int count, char **words) { return oracle_main(count, words, run); }
