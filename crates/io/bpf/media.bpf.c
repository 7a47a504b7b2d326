// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Who gets a packet for a media port, and what bridges need nobody. Everything that is not for a leased port goes on untouched: SIP, ssh, other
// programs. IPv6, fragments (which come to `steer` whole) and frames with tags or IP options are the kernel's.
#include "bpf.h"

// What the program that owns the ports says of each of the 65,536; written through shared memory, a word at a time.
struct port {
    // Address it is leased on (network order) << 32 | worker << 16 | flags; 0 when it is not leased.
    u64 lease;
    // The one source that is let in (network order): address << 32 | port << 16; 0 lets everyone in.
    u64 peer;
};

enum { LEASED = 1 };

struct {
    UINT(type, MAP_ARRAY);
    UINT(max_entries, 65536);
    UINT(map_flags, MAP_MMAPABLE);
    TYPE(key, u32);
    TYPE(value, struct port);
} PORTS SECTION(".maps");

// One socket a worker. The last place holds a socket that takes nothing: what is sent there is dropped without an answer.
enum { WORKERS_MAX = 64, NOBODY = WORKERS_MAX };

struct {
    UINT(type, MAP_SOCKMAP);
    UINT(max_entries, WORKERS_MAX + 1);
    TYPE(key, u32);
    TYPE(value, u32);
} SOCKETS SECTION(".maps");

enum verdict { FOREIGN, STRANGER, OURS };

// Whether a datagram from `peer` to a port that is leased as `port` says is ours, and welcome.
INLINE enum verdict judge(u64 lease, u64 allowed, u32 to, u64 peer) {
    if (!(lease & LEASED) || (u32)(lease >> 32) != to) {
        return FOREIGN;
    }
    return allowed && allowed != peer ? STRANGER : OURS;
}

INLINE u64 address_of(u32 ip, u16 port) {
    return (u64)ip << 32 | (u32)port << 16;
}

// Brings datagrams of all media ports to one socket a worker.
SECTION("sk_lookup")
int steer(struct lookup *lookup) {
    if (lookup->family != FAMILY_IPV4 || lookup->protocol != PROTOCOL_UDP) {
        return SK_PASS;
    }
    u32 index = lookup->local_port & 0xffff;
    volatile struct port *port = map_lookup(&PORTS, &index);
    if (!port) {
        return SK_PASS;
    }
    u64 lease = port->lease;
    u64 peer = address_of(lookup->remote_ip4, lookup->remote_port);
    enum verdict verdict = judge(lease, port->peer, lookup->local_ip4, peer);
    if (verdict == FOREIGN) {
        return SK_PASS;
    }
    u32 place = verdict == OURS ? lease >> 16 & 0xffff : NOBODY;
    void *socket = map_lookup(&SOCKETS, &place);
    if (socket) {
        sk_assign(lookup, socket, 0);
        sk_release(socket);
    }
    return SK_PASS;
}

struct queue {
    u32 interface;
    u32 number;
};

// Queues of interfaces that have an AF_XDP socket: worker << 16 | place in RINGS.
enum { RINGS_MAX = 256 };

struct {
    UINT(type, MAP_HASH);
    UINT(max_entries, RINGS_MAX);
    TYPE(key, struct queue);
    TYPE(value, u32);
} QUEUES SECTION(".maps");

struct {
    UINT(type, MAP_XSKMAP);
    UINT(max_entries, RINGS_MAX);
    TYPE(key, u32);
    TYPE(value, u32);
} RINGS SECTION(".maps");

struct headers {
    u8 to[6];
    u8 from[6];
    u16 type;
    u8 version_length;
    u8 tos;
    u16 length;
    u16 id;
    u16 fragment;
    u8 time_to_live;
    u8 protocol;
    u16 checksum;
    u32 source;
    u32 destination;
    u16 source_port;
    u16 destination_port;
    u16 udp_length;
    u16 udp_checksum;
} __attribute__((packed));

enum { TYPE_IPV4 = 0x0800, NO_OPTIONS = 0x45, FRAGMENT = 0x3fff, IPV4_BYTES = 20, UDP_BYTES = 8, ETHERNET_BYTES = 14 };

struct rtp {
    u8 version;
    u8 kind;
    u16 sequence;
    u32 timestamp;
    u32 ssrc;
} __attribute__((packed));

enum { RTP_PLAIN = 0x80, MARKER = 0x80, RTCP_FIRST = 192, RTCP_LAST = 223 };

// One direction of a bridge that is relayed here. The program that owns the ports writes it through shared memory while it
// is off, and reads the counters.
struct relay {
    // Packets relayed << 32 | number of this plan << 17 | RELAYING | newest sequence number. Whoever relays a packet exchanges
    // it by comparison: a plan that ends takes no packet after its last count, and no two processors relay the same one.
    u64 state;
    // The only source, as `address_of` has it.
    u64 from;
    // Ethernet, IPv4 and UDP headers, complete but for lengths and checksums.
    u64 headers[6];
    // Sums of these headers for the checksums, without lengths.
    u32 ip_sum;
    u32 udp_sum;
    u32 ssrc_in;
    u32 ssrc_out;
    u32 interface_in;
    // 0: back by the same.
    u32 interface_out;
    u32 timestamp_offset;
    u16 sequence_offset;
    u8 payload_in;
    u8 payload_out;
    u32 clock;
    // Longest datagram that the way out carries.
    u32 room;
    // Counters: packets counted in full << 40 | bytes of their payloads; nanoseconds, timestamp of the last one (the
    // program's, before the first one); jitter, sixteenfold.
    u64 counted;
    u64 arrived;
    u32 timestamp;
    u32 jitter_x16;
};

enum { RELAYING = 1 << 16, AHEAD_MAX = 3000, RELAYS_MAX = 32768, SECOND = 1000000000 };
#define ONE_PACKET (1ULL << 32)
#define ONE_COUNTED (1ULL << 40)

// By half of the RTP port, which is even.
struct {
    UINT(type, MAP_ARRAY);
    UINT(max_entries, RELAYS_MAX);
    UINT(map_flags, MAP_MMAPABLE);
    TYPE(key, u32);
    TYPE(value, struct relay);
} RELAYS SECTION(".maps");

// Frames have no more than these many pieces of 32 bytes: what an interface with an AF_XDP socket carries.
enum { PIECES_MAX = 56 };

// Sum of 16-bit words in memory order (RFC 1071), not folded.
INLINE u64 sum(void *data, void *end) {
    u64 total = 0;
    for (int i = 0; i < PIECES_MAX && data + 32 <= end; i++) {
        u32 *words = data;
        total += (u64)words[0] + words[1] + words[2] + words[3] + words[4] + words[5] + words[6] + words[7];
        data += 32;
    }
    for (int i = 0; i < 8 && data + 4 <= end; i++) {
        total += *(u32 *)data;
        data += 4;
    }
    if (data + 2 <= end) {
        total += *(u16 *)data;
        data += 2;
    }
    if (data + 1 <= end) {
        u8 last[2] = {*(u8 *)data, 0};
        total += *(u16 *)last;
    }
    return total;
}

// Folded, not complemented: 0xffff when a checksum is right.
INLINE u16 fold(u64 total) {
    total = (total & 0xffffffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    return total;
}

enum { NOT_RELAYED = -1 };

// Relays a frame if a plan covers it, and says what becomes of it. It is left as it is when it is the worker's: all that is
// not plainly the next packet of the one source (`RelayPlan::carry` says the same in Rust).
//
// The checksum is verified as the kernel would, and made anew: what came without one, or left it to hardware that is not
// there (then the field holds the sum of the pseudo-header), leaves with one.
INLINE int relayed(struct frame *frame, u32 port, u64 peer) {
    u32 half = port >> 1;
    struct relay *relay = port & 1 ? 0 : map_lookup(&RELAYS, &half);
    if (!relay) {
        return NOT_RELAYED;
    }
    u64 state = *(volatile u64 *)&relay->state;
    if (!(state & RELAYING) || relay->from != peer || relay->interface_in != frame->ifindex) {
        return NOT_RELAYED;
    }
    void *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
    struct headers *headers = data;
    struct rtp *rtp = data + sizeof(*headers);
    void *payload = rtp + 1;
    if (payload + 1 > end) {
        return NOT_RELAYED;
    }
    // A short frame has padding behind the datagram; no packet of audio is that short.
    u32 length = NET16(headers->length);
    if ((u32)(frame->data_end - frame->data) != ETHERNET_BYTES + length) {
        return NOT_RELAYED;
    }
    u32 bytes = length - IPV4_BYTES - UDP_BYTES - sizeof(*rtp);
    u16 ahead = NET16(rtp->sequence) - (u16)state;
    if (rtp->version != RTP_PLAIN || (rtp->kind & ~MARKER) != relay->payload_in || rtp->ssrc != relay->ssrc_in ||
        (rtp->kind >= RTCP_FIRST && rtp->kind <= RTCP_LAST) || ahead == 0 || ahead >= AHEAD_MAX ||
        bytes + sizeof(*rtp) > relay->room) {
        return NOT_RELAYED;
    }
    // A source that began anew: more than half a second back, or as much as 7.5 s ahead.
    u32 timestamp = NET32(rtp->timestamp);
    if (timestamp - relay->timestamp + relay->clock / 2 >= relay->clock * 8) {
        return NOT_RELAYED;
    }
    u64 content = sum(payload, end);
    u64 addresses = (u64)headers->source + headers->destination;
    u64 pseudo = addresses + NET16(PROTOCOL_UDP) + headers->udp_length;
    u64 ports = (u64)headers->source_port + headers->destination_port;
    u32 *words = (void *)rtp;
    u64 old = (u64)words[0] + words[1] + words[2];
    u16 checksum = headers->udp_checksum;
    if (checksum && checksum != fold(pseudo) &&
        fold(pseudo + ports + headers->udp_length + checksum + old + content) != 0xffff) {
        return NOT_RELAYED;
    }
    u32 *ip = data + ETHERNET_BYTES;
    if (fold((u64)ip[0] + ip[1] + ip[2] + ip[3] + ip[4]) != 0xffff) {
        return NOT_RELAYED;
    }
    // The packet is ours from here on, or another processor's, or the plan has ended.
    u64 next = (state & ~0xffffULL) + ONE_PACKET + NET16(rtp->sequence);
    if (__sync_val_compare_and_swap(&relay->state, state, next) != state) {
        return NOT_RELAYED;
    }
    u64 now = monotonic_nanos(), passed = now - relay->arrived;
    if (relay->arrived && passed < SECOND) {
        s32 difference = (u32)(passed * relay->clock / SECOND) - (timestamp - relay->timestamp);
        u32 size = difference < 0 ? -difference : difference;
        if (size < relay->clock) {
            relay->jitter_x16 += size - ((relay->jitter_x16 + 8) >> 4);
        }
    }
    relay->arrived = now;
    relay->timestamp = timestamp;
    __sync_fetch_and_add(&relay->counted, ONE_COUNTED + bytes);
    // Headers of the way out. A frame begins at an even address, and no processor that Strowger is for minds.
    u16 ip_length = headers->length, udp_length = headers->udp_length;
    u64 *to = data;
    for (int i = 0; i < 5; i++) {
        to[i] = relay->headers[i];
    }
    headers->length = ip_length;
    headers->checksum = ~fold((u64)relay->ip_sum + ip_length);
    headers->udp_length = udp_length;
    rtp->kind = (rtp->kind & MARKER) | relay->payload_out;
    rtp->sequence = NET16((u16)(NET16(rtp->sequence) + relay->sequence_offset));
    rtp->timestamp = NET32(timestamp + relay->timestamp_offset);
    rtp->ssrc = relay->ssrc_out;
    u64 new = (u64)words[0] + words[1] + words[2];
    checksum = ~fold((u64)relay->udp_sum + 2 * (u64)udp_length + new + content);
    // 0 would mean that there is none (RFC 768).
    headers->udp_checksum = checksum ? checksum : 0xffff;
    return relay->interface_out ? redirect(relay->interface_out, 0) : XDP_TX;
}

// What becomes of a frame. Those for media ports are taken off an interface before the kernel makes packets of them.
INLINE int sort(struct frame *frame, int relays) {
    void *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
    struct headers *headers = data;
    if (data + sizeof(*headers) > end || headers->type != NET16(TYPE_IPV4) || headers->version_length != NO_OPTIONS ||
        headers->protocol != PROTOCOL_UDP || headers->fragment & NET16(FRAGMENT)) {
        return XDP_PASS;
    }
    u32 length = NET16(headers->length);
    if (length < IPV4_BYTES + UDP_BYTES || data + ETHERNET_BYTES + length > end ||
        NET16(headers->udp_length) != length - IPV4_BYTES) {
        return XDP_PASS;
    }
    u32 index = NET16(headers->destination_port);
    volatile struct port *port = map_lookup(&PORTS, &index);
    if (!port) {
        return XDP_PASS;
    }
    u64 lease = port->lease;
    u64 peer = address_of(headers->source, headers->source_port);
    switch (judge(lease, port->peer, headers->destination, peer)) {
    case FOREIGN:
        return XDP_PASS;
    case STRANGER:
        return XDP_DROP;
    case OURS:
        break;
    }
    if (relays) {
        int action = relayed(frame, index, peer);
        if (action != NOT_RELAYED) {
            return action;
        }
    }
    // A queue has one socket, and that one worker. Ports of other workers go their way through `steer`.
    struct queue queue = {frame->ifindex, frame->queue};
    u32 *ring = map_lookup(&QUEUES, &queue);
    if (!ring || *ring >> 16 != (lease >> 16 & 0xffff)) {
        return XDP_PASS;
    }
    return redirect_map(&RINGS, *ring & 0xffff, XDP_PASS);
}

SECTION("xdp")
int take(struct frame *frame) {
    return sort(frame, 0);
}

// The same, and relays bridges. Kernels before 5.12 have no exchange by comparison and refuse it.
SECTION("xdp")
int relay(struct frame *frame) {
    return sort(frame, 1);
}

// No helper above asks for more.
char LICENSE[] SECTION("license") = "Apache-2.0 OR MIT";
