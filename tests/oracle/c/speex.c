/* libspeex, narrowband at constant rate, complexity 2: `encode-qN` 16-bit samples at 8 kHz to frames of quality N,
 * `decode-qN` the other way. After `-enhanced` the decoder's perceptual enhancer is on; after `-lossy` frames are
 * concealed: those for which (number * 2654435761 mod 2^32) >> 24 is divisible by five. */
#include "oracle.h"
#include <speex/speex.h>

#define SAMPLES 160

/* Bytes of a frame by quality. */
static const size_t BYTES[11] = {6, 10, 15, 20, 20, 28, 28, 38, 38, 46, 62};

static size_t encode(int quality, const uint8_t *input, size_t size, uint8_t *output) {
    size_t made = 0;
    SpeexBits bits;
    speex_bits_init(&bits);
    void *state = speex_encoder_init(&speex_nb_mode);
    int complexity = 2;
    speex_encoder_ctl(state, SPEEX_SET_QUALITY, &quality);
    speex_encoder_ctl(state, SPEEX_SET_COMPLEXITY, &complexity);
    for (size_t at = 0; at + 2 * SAMPLES <= size; at += 2 * SAMPLES) {
        spx_int16_t pcm[SAMPLES];
        memcpy(pcm, input + at, sizeof pcm);
        speex_bits_reset(&bits);
        speex_encode_int(state, pcm, &bits);
        made += (size_t)speex_bits_write(&bits, (char *)output + made, 64);
    }
    speex_encoder_destroy(state);
    speex_bits_destroy(&bits);
    return made;
}

static size_t decode(int quality, int enhanced, int lossy, const uint8_t *input, size_t size, uint8_t *output) {
    size_t made = 0, bytes = BYTES[quality];
    SpeexBits bits;
    speex_bits_init(&bits);
    void *state = speex_decoder_init(&speex_nb_mode);
    speex_decoder_ctl(state, SPEEX_SET_ENH, &enhanced);
    for (uint32_t number = 0; (number + 1) * bytes <= size; number++, made += 2 * SAMPLES) {
        spx_int16_t pcm[SAMPLES];
        speex_bits_read_from(&bits, (const char *)input + number * bytes, (int)bytes);
        int lost = lossy && (number * 2654435761u >> 24) % 5 == 0;
        speex_decode_int(state, lost ? NULL : &bits, pcm);
        memcpy(output + made, pcm, sizeof pcm);
    }
    speex_decoder_destroy(state);
    speex_bits_destroy(&bits);
    return made;
}

static size_t run(const char *mode, const uint8_t *input, size_t size, uint8_t *output) {
    const char *q = strstr(mode, "-q");
    int quality = q ? atoi(q + 2) : 8;
    if (quality < 0 || quality > 10) return 0;
    if (!strncmp(mode, "encode", 6)) return encode(quality, input, size, output);
    return decode(quality, strstr(mode, "-enhanced") != NULL, strstr(mode, "-lossy") != NULL, input, size, output);
}

int main(int count, char **words) { return oracle_main(count, words, run); }
