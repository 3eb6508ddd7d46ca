/* Images of handwritten digits that the network has never seen. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdint.h>

#define SAMPLES 10
#define SAMPLE_PIXELS 64

struct sample {
    uint8_t label;                 /* the digit that was written */
    uint8_t pixels[SAMPLE_PIXELS]; /* 8 rows of 8, 0 white to 16 black */
};

extern const struct sample samples[SAMPLES];

#endif /* SAMPLES_H */
