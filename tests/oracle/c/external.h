/* The protocol of docs/codecs.md, "Codecs in another process", for a program that codes on its standard input and output.
 *
 * The codec fills `codec` and calls `external_main`. Streams are numbered by the server; each has a state of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS 1024
#define DATA_MAX 3840

struct codec {
    uint32_t rate;
    uint16_t samples, bytes;
    void *(*open)(int encode);
    void (*close)(int encode, void *state);
    /* Bytes written, or -1 when it cannot be coded. `input` is NULL for a frame that was lost. */
    int (*code)(int encode, void *state, const uint8_t *input, size_t size, uint8_t *output);
};

static struct { uint32_t number; int encode; void *state; } external_streams[STREAMS];

static void external_read(uint8_t *into, size_t count) {
    while (count) {
        ssize_t got = read(0, into, count);
        if (got <= 0) exit(0); /* the server is gone */
        into += got, count -= got;
    }
}

static void external_write(char kind, uint32_t stream, uint32_t sequence, const uint8_t *data, size_t size) {
    static uint8_t message[11 + DATA_MAX];
    uint16_t length = 9 + size; /* both sides are little-endian, as the protocol is */
    memcpy(message, &length, 2);
    message[2] = kind;
    memcpy(message + 3, &stream, 4);
    memcpy(message + 7, &sequence, 4);
    memcpy(message + 11, data, size);
    for (size_t at = 0; at < 11 + size;) {
        ssize_t put = write(1, message + at, 11 + size - at);
        if (put <= 0) exit(0);
        at += put;
    }
}

static int external_main(const struct codec *codec) {
    static uint8_t body[9 + DATA_MAX], output[DATA_MAX];
    for (;;) {
        uint16_t length;
        uint32_t stream, sequence;
        external_read((uint8_t *)&length, 2);
        if (length < 9 || length > sizeof body) return 1;
        external_read(body, length);
        memcpy(&stream, body + 1, 4);
        memcpy(&sequence, body + 5, 4);
        size_t size = length - 9, slot = 0;
        const uint8_t *data = body + 9;
        while (slot < STREAMS && external_streams[slot].number != stream) slot++;
        switch (body[0]) {
        case 'H': {
            uint8_t hello[9] = {1};
            memcpy(hello + 1, &codec->rate, 4);
            memcpy(hello + 5, &codec->samples, 2);
            memcpy(hello + 7, &codec->bytes, 2);
            external_write('H', 0, 0, hello, 9);
            break;
        }
        case 'O':
            for (slot = 0; slot < STREAMS && external_streams[slot].number; slot++) {}
            if (slot == STREAMS || size < 1) break;
            external_streams[slot].number = stream;
            external_streams[slot].encode = data[0] == 'e';
            external_streams[slot].state = codec->open(data[0] == 'e');
            break;
        case 'C':
            if (slot == STREAMS) break;
            codec->close(external_streams[slot].encode, external_streams[slot].state);
            external_streams[slot].number = 0;
            break;
        case 'F':
        case 'L': {
            int made = slot == STREAMS ? -1
                                       : codec->code(external_streams[slot].encode, external_streams[slot].state,
                                                     body[0] == 'F' ? data : NULL, size, output);
            external_write(made < 0 ? 'E' : 'F', stream, sequence, output, made < 0 ? 0 : made);
        }
        }
    }
}
