/* What goes into the network, and what is expected to come out: @ORIGIN@. */
#ifndef SAMPLE_H
#define SAMPLE_H

@INCLUDES@

@ARRAYS@

#endif /* SAMPLE_H */
