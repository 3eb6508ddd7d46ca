/* The samples of audio/stream.wav, in flash. */
    .syntax unified
    .section .rodata.stream_audio, "a"
    .global stream_audio
    .type stream_audio, %object
stream_audio:
    .incbin AUDIO, 46 /* the bytes of the header, as train.py writes it */
    .size stream_audio, . - stream_audio
