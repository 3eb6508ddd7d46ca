/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * A debug monitor on a serial line: the host reads and writes memory while the firmware has stopped, and lets it run to
 * its next stop. It needs no probe, no interrupt and no heap, about 300 bytes of RAM, and two functions that you write:
 *
 *   int mlf_serial_get(void)           return the next received byte, or -1 if there is none
 *   void mlf_serial_put(uint8_t byte)  send a byte, and wait until there is room for it
 *
 * A main loop that runs a model for the host:
 *
 *   for (;;) {
 *       if (mlf_serial_serve()) {                      // the host has written the input, and let the firmware go
 *           (void)tvmgen_digits_run(&inputs, &outputs); // the next call reports that the outputs are ready
 *       }
 *   }
 *
 * Everything else that is printed on the line reaches the host as text, as long as it contains no zero byte. Whoever
 * can write to the line controls the device, as with a probe: do not ship it in products.
 *
 * Frames. 0x00, a body in COBS, 0x00. COBS removes zero bytes from the body (Cheshire and Baker, "Consistent Overhead
 * Byte Stuffing", IEEE/ACM Transactions on Networking 7(2), 1999), so that a receiver finds the next frame after lost
 * or damaged bytes. The body is a kind, a sequence number, a payload, and the CRC-32 of all three (CRC-32 of IEEE 802.3
 * and zlib); numbers have their low byte first. The host repeats a request, with the same sequence number, until it is
 * answered. The number decides whether the firmware performs a request or has already done so.
 *
 *   request         payload                  answer         payload
 *   H  HELLO        session                  h              struct of mlf_serial.c: hello()
 *   Q  QUERY                                 s  STOPPED     session, place, address of the block, block
 *   R  PEEK         address, size            r              bytes
 *   W  POKE         address, bytes           w
 *   C  CHECK        address, size            c              CRC-32 of the memory
 *   G  GO                                    g, later s     s as above
 *   X  RESET                                 x
 *                                            e  REFUSED     1 byte: enum mlf_serial_refusal
 *                                            n  DAMAGED     the frame that arrived was not valid
 *
 * The session is a number that the host chooses. It is 0 after a reset, and requests other than HELLO are then answered
 * with STOPPED and session 0, so that the host notices a reset.
 */
#ifndef MLF_SERIAL_H_
#define MLF_SERIAL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of memory in a frame: a multiple of 16 up to 240. The RAM of the monitor follows from it. */
#ifndef MLF_SERIAL_DATA
#define MLF_SERIAL_DATA 240
#endif

/* The host can write to addresses from MLF_SERIAL_RAM_BEGIN up to, but not including, MLF_SERIAL_RAM_END. The default
 * is the region of Armv7-M and Armv8-M for internal RAM. */
#ifndef MLF_SERIAL_RAM_BEGIN
#define MLF_SERIAL_RAM_BEGIN 0x20000000u
#endif
#ifndef MLF_SERIAL_RAM_END
#define MLF_SERIAL_RAM_END 0x40000000u
#endif

enum mlf_serial_refusal {
    MLF_SERIAL_UNKNOWN = 1,     /* no such request, or a payload of a wrong size */
    MLF_SERIAL_NOT_RAM = 2,     /* POKE outside RAM */
    MLF_SERIAL_CANNOT_RESET = 3 /* define MLF_SERIAL_RESET */
};

/* Functions that you write. */
int mlf_serial_get(void);
void mlf_serial_put(uint8_t byte);

/*
 * Answer the requests that have arrived. Returns 1 if the host lets the firmware go, otherwise 0. After a 1, the next
 * call stops again and reports it.
 */
int mlf_serial_serve(void);

/*
 * Stop until the host lets the firmware go. `place` is the address by which the host knows this stop, and the report
 * contains `size` bytes (at most 64) at `block`, which saves the host a request.
 */
void mlf_serial_stop(uintptr_t place, const void *block, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* MLF_SERIAL_H_ */
