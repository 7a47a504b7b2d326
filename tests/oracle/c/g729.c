/* G.729A by bcg729, in a process of its own because its licence (GPL-3) asks for one. */
#include "external.h"
#include <bcg729/decoder.h>
#include <bcg729/encoder.h>

static void *g729_open(int encode) {
    return encode ? (void *)initBcg729EncoderChannel(0) : (void *)initBcg729DecoderChannel();
}

static void g729_close(int encode, void *state) {
    if (encode) closeBcg729EncoderChannel(state);
    else closeBcg729DecoderChannel(state);
}

static int g729_code(int encode, void *state, const uint8_t *input, size_t size, uint8_t *output) {
    int16_t pcm[80];
    if (encode) {
        uint8_t bytes = 0;
        if (!input || size != sizeof pcm) return -1;
        memcpy(pcm, input, sizeof pcm);
        bcg729Encoder(state, pcm, output, &bytes);
        return bytes;
    }
    /* Two bytes are a description of silence (Annex B). */
    if (input && size != 10 && size != 2) return -1;
    bcg729Decoder(state, input, size, input == NULL, size == 2, 0, pcm);
    memcpy(output, pcm, sizeof pcm);
    return sizeof pcm;
}

int main(void) {
    static const struct codec g729 = {8000, 80, 10, g729_open, g729_close, g729_code};
    return external_main(&g729);
}
