/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
#include "mlf_serial.h"

/* The body of a frame: kind, sequence number, payload, CRC-32. With at most 254 bytes, COBS adds a single byte. */
enum { HEAD = 2, ADDRESS = 4, CRC = 4, BLOCK = 64, STATE = 12 };
#define LARGEST_PAYLOAD (ADDRESS + (MLF_SERIAL_DATA > STATE + BLOCK ? MLF_SERIAL_DATA : STATE + BLOCK))
#define LARGEST_BODY (HEAD + LARGEST_PAYLOAD + CRC)

typedef char data_is_a_multiple_of_16[MLF_SERIAL_DATA % 16 == 0 && MLF_SERIAL_DATA >= 16 ? 1 : -1];
typedef char body_is_one_block_of_cobs[LARGEST_BODY <= 254 ? 1 : -1];

/* Of the protocol. */
#ifndef MLF_SERIAL_VERSION
#define MLF_SERIAL_VERSION 1
#endif

static struct {
    uint32_t session;  /* 0: the host has not connected since the reset */
    uint32_t previous; /* the session before this one */
    uint32_t place;
    uint32_t block;
    uint8_t block_size;
    uint8_t stopped;
    uint8_t sequence; /* of the last request that was performed */
    uint8_t overlong; /* more bytes than the largest frame have arrived since the last zero byte */
    uint16_t filled;
    uint8_t frame[1 + LARGEST_BODY]; /* received or sent, in COBS or as a body that begins at frame[1] */
} monitor;

/* ---- Bytes --------------------------------------------------------------------------------------------------- */

static uint32_t word_at(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void put_word(uint8_t *bytes, uint32_t word)
{
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(word >> (8 * i));
    }
}

/* CRC-32 by half bytes: polynomial 0x04C11DB7, reflected. */
static uint32_t crc32(const volatile uint8_t *bytes, uint32_t size)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };
    uint32_t crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 0xFu];
        crc = crc >> 4 ^ table[crc & 0xFu];
    }
    return ~crc;
}

/* Copy memory word by word if it is aligned, so that it can be a peripheral's register. */
static void copy_from(uint8_t *to, uint32_t address, uint32_t size)
{
    if ((address | size) % 4 == 0) {
        const volatile uint32_t *words = (const volatile uint32_t *)(uintptr_t)address;
        for (uint32_t i = 0; i < size / 4; i++) {
            put_word(to + 4 * i, words[i]);
        }
    } else {
        const volatile uint8_t *bytes = (const volatile uint8_t *)(uintptr_t)address;
        for (uint32_t i = 0; i < size; i++) {
            to[i] = bytes[i];
        }
    }
}

static void copy_to(uint32_t address, const uint8_t *from, uint32_t size)
{
    volatile uint8_t *bytes = (volatile uint8_t *)(uintptr_t)address;
    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = from[i];
    }
}

/* ---- Frames -------------------------------------------------------------------------------------------------- */

#define BODY (monitor.frame + 1)
#define PAYLOAD (BODY + HEAD)

/* Send the payload of `size` bytes that is in the frame. */
static void send(char kind, uint8_t sequence, uint32_t size)
{
    uint32_t end = HEAD + size; /* of the body */
    uint8_t distance = 1;
    BODY[0] = (uint8_t)kind;
    BODY[1] = sequence;
    put_word(BODY + end, crc32(BODY, end));
    end += CRC;
    monitor.frame[0] = 0;
    for (uint32_t i = end + 1; i-- > 0;) { /* each zero byte becomes the distance to the next one or to the end */
        if (monitor.frame[i] == 0) {
            monitor.frame[i] = distance;
            distance = 1;
        } else {
            distance++;
        }
    }
    mlf_serial_put(0);
    for (uint32_t i = 0; i <= end; i++) {
        mlf_serial_put(monitor.frame[i]);
    }
    mlf_serial_put(0);
    monitor.filled = 0;
}

/* Put the zero bytes back; the body then begins at BODY. Returns its size, or 0 if the frame is damaged. */
static uint32_t decode(void)
{
    uint32_t at = 0;
    while (at < monitor.filled) {
        const uint32_t distance = monitor.frame[at];
        monitor.frame[at] = 0;
        at += distance;
    }
    if (monitor.overlong || at != monitor.filled || at < 1 + HEAD + CRC) {
        return 0;
    }
    const uint32_t size = at - 1, end = size - CRC;
    return word_at(BODY + end) == crc32(BODY, end) ? size : 0;
}

/* ---- Requests ------------------------------------------------------------------------------------------------ */

static void send_stopped(void)
{
    put_word(PAYLOAD, monitor.session);
    put_word(PAYLOAD + 4, monitor.place);
    put_word(PAYLOAD + 8, monitor.block);
    copy_from(PAYLOAD + STATE, monitor.block, monitor.block_size);
    send('s', monitor.sequence, (uint32_t)(STATE + monitor.block_size));
}

static void refuse(enum mlf_serial_refusal refusal, uint8_t sequence)
{
    PAYLOAD[0] = (uint8_t)refusal;
    send('e', sequence, 1);
}

/* A host that connects begins a session; one that asks again, because the line was interrupted, continues it. */
static void hello(uint8_t sequence)
{
    const uint32_t session = word_at(PAYLOAD);
    if (session != monitor.session) {
        monitor.previous = monitor.session;
        monitor.session = session;
        monitor.sequence = sequence;
    }
    PAYLOAD[0] = MLF_SERIAL_VERSION;
    PAYLOAD[1] = MLF_SERIAL_DATA;
    put_word(PAYLOAD + 2, monitor.session);
    put_word(PAYLOAD + 6, monitor.previous);
    put_word(PAYLOAD + 10, (uint32_t)(uintptr_t)mlf_serial_serve);
    put_word(PAYLOAD + 14, MLF_SERIAL_RAM_BEGIN);
    put_word(PAYLOAD + 18, MLF_SERIAL_RAM_END);
    send('h', sequence, 22);
}

static void peek(uint8_t sequence)
{
    const uint32_t address = word_at(PAYLOAD), count = word_at(PAYLOAD + 4);
    if (count > MLF_SERIAL_DATA) {
        refuse(MLF_SERIAL_UNKNOWN, sequence);
    } else {
        copy_from(PAYLOAD, address, count);
        send('r', sequence, count);
    }
}

static void poke(uint8_t sequence, uint32_t count)
{
    const uint32_t address = word_at(PAYLOAD), begin = MLF_SERIAL_RAM_BEGIN, end = MLF_SERIAL_RAM_END;
    if (address < begin || address > end || count > end - address) {
        refuse(MLF_SERIAL_NOT_RAM, sequence);
    } else {
        copy_to(address, PAYLOAD + ADDRESS, count);
        send('w', sequence, 0);
    }
}

static void check(uint8_t sequence)
{
    const volatile uint8_t *bytes = (const volatile uint8_t *)(uintptr_t)word_at(PAYLOAD);
    put_word(PAYLOAD, crc32(bytes, word_at(PAYLOAD + 4)));
    send('c', sequence, 4);
}

static void reset(uint8_t sequence)
{
#if defined(MLF_SERIAL_RESET)
    send('x', sequence, 0);
    MLF_SERIAL_RESET;
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    send('x', sequence, 0);
    __asm__ volatile("dsb" ::: "memory");
    *(volatile uint32_t *)0xE000ED0Cu = 0x05FA0004u; /* AIRCR: SYSRESETREQ */
    for (;;) {
    }
#else
    refuse(MLF_SERIAL_CANNOT_RESET, sequence);
#endif
}

/* Perform the request in the frame; returns 1 if it lets the firmware go. */
static int perform(uint32_t size)
{
    const char kind = (char)BODY[0];
    const uint8_t sequence = BODY[1];
    const uint32_t payload = size - HEAD - CRC;
    if (kind == 'H' && payload == 4) {
        hello(sequence);
        return 0;
    }
    if (monitor.session == 0) {
        send_stopped();
        return 0;
    }
    const int again = sequence == monitor.sequence;
    if (!again && sequence != (uint8_t)(monitor.sequence + 1)) {
        return 0; /* older than the last one */
    }
    monitor.sequence = sequence;
    if (kind == 'G' && !again) {
        send('g', sequence, 0);
        return 1;
    }
    if (kind == 'G' || kind == 'Q') {
        send_stopped();
    } else if (kind == 'R' && payload == 8) {
        peek(sequence);
    } else if (kind == 'W' && payload >= ADDRESS) {
        poke(sequence, payload - ADDRESS);
    } else if (kind == 'C' && payload == 8) {
        check(sequence);
    } else if (kind == 'X') {
        reset(sequence);
    } else {
        refuse(MLF_SERIAL_UNKNOWN, sequence);
    }
    return 0;
}

/* ---- Stops --------------------------------------------------------------------------------------------------- */

static int serve(void)
{
    for (int byte = mlf_serial_get(); byte >= 0; byte = mlf_serial_get()) {
        if (byte != 0) {
            monitor.overlong |= monitor.filled == sizeof monitor.frame;
            if (!monitor.overlong) {
                monitor.frame[monitor.filled++] = (uint8_t)byte;
            }
        } else if (monitor.filled > 0) {
            const uint32_t size = decode();
            monitor.filled = 0;
            monitor.overlong = 0;
            if (size == 0) {
                send('n', 0, 0);
            } else if (perform(size)) {
                monitor.stopped = 0;
                return 1;
            }
        }
    }
    return 0;
}

static void stop_at(uintptr_t place, const void *block, size_t size)
{
    if (!monitor.stopped) {
        monitor.stopped = 1;
        monitor.place = (uint32_t)place;
        monitor.block = (uint32_t)(uintptr_t)block;
        monitor.block_size = (uint8_t)(size < BLOCK ? size : (size_t)BLOCK);
        send_stopped();
    }
}

int mlf_serial_serve(void)
{
    stop_at((uintptr_t)mlf_serial_serve, NULL, 0);
    return serve();
}

void mlf_serial_stop(uintptr_t place, const void *block, size_t size)
{
    stop_at(place, block, size);
    while (!serve()) {
    }
}

#ifdef MLF_HOST_LINK
#include "mlf_host_link.h"

/* Firmware of mlfbuild calls it when it needs its host. */
void mlf_host_stop(void)
{
    mlf_serial_stop((uintptr_t)mlf_host_stop, (const void *)(uintptr_t)&mlf_host_call, sizeof mlf_host_call);
}
#endif
