/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Packets and sessions: see mlf_rpc.h. mlf_rpc_calls.c performs the requests. */
#include "mlf_rpc.h"

#include <string.h>

#include "mlf_rpc_packets.h"

enum { ESCAPE = 0xff, NOTHING = 0xfe, START = 0xfd };
enum { SESSION_INIT = 0x00, SESSION_REPLY = 0x01, SESSION_END = 0x02, NORMAL = 0x10, SESSION_VERSION = 0x01 };
enum { SESSION_HEAD = 3, CRC_SIZE = 2 };
/* ---- State --------------------------------------------------------------------------------------------------- */

enum { LARGEST_PAYLOAD = MLF_RPC_PACKET_SIZE - (MLF_RPC_OVERHEAD - SESSION_HEAD) };

enum place { OUTSIDE, LENGTH, PAYLOAD, CRC };

static struct {
    void (*send)(const uint8_t *bytes, size_t size);
    /* receiving */
    enum place place;
    int escaped;
    uint16_t crc;
    uint32_t length;
    uint32_t filled;
    uint8_t number[4];
    uint8_t payload[LARGEST_PAYLOAD];
    /* sending */
    uint16_t sent_crc;
    uint32_t waiting;
    uint8_t sent[64];
    /* session */
    uint16_t session;
    uint8_t nonce;
    int established;
} rpc;

static uint16_t crc16(uint16_t crc, uint8_t byte)
{
    unsigned value = crc ^ (unsigned)byte << 8;
    for (int bit = 0; bit < 8; bit++) {
        value = (value & 0x8000u) != 0 ? value << 1 ^ 0x1021u : value << 1;
    }
    return (uint16_t)value;
}

/* ---- Sending ------------------------------------------------------------------------------------------------- */

static void flush(void)
{
    if (rpc.waiting > 0) {
        rpc.send(rpc.sent, rpc.waiting);
        rpc.waiting = 0;
    }
}

static void put_raw(uint8_t byte)
{
    rpc.sent_crc = crc16(rpc.sent_crc, byte);
    rpc.sent[rpc.waiting++] = byte;
    if (rpc.waiting == sizeof rpc.sent) {
        flush();
    }
}

void mlf_rpc_put(const void *bytes, size_t size)
{
    const uint8_t *each = bytes;
    for (size_t i = 0; i < size; i++) {
        put_raw(each[i]);
        if (each[i] == ESCAPE) {
            put_raw(ESCAPE);
        }
    }
}

void mlf_rpc_put_number(uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        const uint8_t byte = (uint8_t)(value >> (8 * i));
        mlf_rpc_put(&byte, 1);
    }
}

static void begin_packet(uint16_t session, uint8_t kind, uint32_t size)
{
    rpc.sent_crc = 0xffff;
    put_raw(ESCAPE);
    put_raw(START);
    mlf_rpc_put_number(SESSION_HEAD + size, 4);
    mlf_rpc_put_number(session, 2);
    mlf_rpc_put_number(kind, 1);
}

void mlf_rpc_end(void)
{
    mlf_rpc_put_number(rpc.sent_crc, CRC_SIZE);
    flush();
}

/* Begin the message of an answer, which has `size` bytes. */
void mlf_rpc_begin(uint32_t size)
{
    begin_packet(rpc.session, NORMAL, 8 + size);
    mlf_rpc_put_number(size, 8);
}

/* ---- Packets ------------------------------------------------------------------------------------------------- */

static void begin_session(uint16_t session)
{
    rpc.nonce = (uint8_t)(rpc.nonce == 0xff ? 1 : rpc.nonce + 1);
    rpc.session = (uint16_t)((session & 0xff) | rpc.nonce << 8);
    rpc.established = 1;
    begin_packet(rpc.session, SESSION_REPLY, 1);
    mlf_rpc_put_number(SESSION_VERSION, 1);
    mlf_rpc_end();
}

static void end_session(void)
{
    rpc.established = 0;
    begin_packet(0, SESSION_END, 0);
    mlf_rpc_end();
}

static void dispatch(void)
{
    const uint16_t session = (uint16_t)(rpc.payload[0] | rpc.payload[1] << 8);
    if (rpc.length < SESSION_HEAD) {
        return;
    }
    if (rpc.payload[2] == SESSION_INIT && rpc.length > SESSION_HEAD && (session & 0xff) != 0) {
        begin_session(session);
    } else if (rpc.payload[2] == SESSION_END) {
        rpc.established = 0;
    } else if (rpc.payload[2] == NORMAL && rpc.established && session == rpc.session) {
        mlf_rpc_serve(rpc.payload + SESSION_HEAD, rpc.length - SESSION_HEAD);
    }
}

/* Add a byte, without escapes, to what is received now. */
static void add(uint8_t byte)
{
    if (rpc.place == PAYLOAD) {
        rpc.payload[rpc.filled++] = byte;
        if (rpc.filled == rpc.length) {
            rpc.place = CRC;
            rpc.filled = 0;
        }
        return;
    }
    rpc.number[rpc.filled++] = byte;
    if (rpc.place == LENGTH && rpc.filled == 4) {
        rpc.length = rpc.number[0] | (uint32_t)rpc.number[1] << 8 | (uint32_t)rpc.number[2] << 16 |
                     (uint32_t)rpc.number[3] << 24;
        rpc.filled = 0;
        rpc.place = rpc.length == 0 ? CRC : rpc.length > LARGEST_PAYLOAD ? OUTSIDE : PAYLOAD;
    } else if (rpc.place == CRC && rpc.filled == CRC_SIZE) {
        rpc.place = OUTSIDE;
        if (rpc.crc == (rpc.number[0] | rpc.number[1] << 8)) {
            dispatch();
        }
    }
}

static void receive(uint8_t byte)
{
    if (rpc.place != CRC) {
        rpc.crc = crc16(rpc.crc, byte);
    }
    if (rpc.escaped) {
        rpc.escaped = 0;
        if (byte == START) {
            rpc.crc = crc16(crc16(0xffff, ESCAPE), START);
            rpc.place = LENGTH;
            rpc.filled = 0;
        } else if (byte == ESCAPE && rpc.place != OUTSIDE) {
            add(byte);
        } else if (byte != NOTHING) {
            rpc.place = OUTSIDE;
            rpc.escaped = byte == ESCAPE; /* two of them outside a packet: the second may begin one */
        }
    } else if (byte == ESCAPE) {
        rpc.escaped = 1;
    } else if (rpc.place != OUTSIDE) {
        add(byte);
    }
}

void mlf_rpc_receive(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        receive(bytes[i]);
    }
}

void mlf_rpc_start(const struct mlf_rpc_model *models, int32_t count, void (*send)(const uint8_t *bytes, size_t size))
{
    memset(&rpc, 0, sizeof rpc);
    mlf_rpc_serve_models(models, count);
    rpc.send = send;
    end_session();
}
