// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Who gets a packet for a media port. Everything that is not for a leased port goes on untouched: SIP, ssh, other
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

// Takes frames for media ports off an interface before the kernel makes packets of them.
SECTION("xdp")
int take(struct frame *frame) {
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
    // A queue has one socket, and that one worker. Ports of other workers go their way through `steer`.
    struct queue queue = {frame->ifindex, frame->queue};
    u32 *ring = map_lookup(&QUEUES, &queue);
    if (!ring || *ring >> 16 != (lease >> 16 & 0xffff)) {
        return XDP_PASS;
    }
    return redirect_map(&RINGS, *ring & 0xffff, XDP_PASS);
}

// No helper above asks for more.
char LICENSE[] SECTION("license") = "Apache-2.0 OR MIT";
