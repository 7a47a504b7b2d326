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

// No helper above asks for more.
char LICENSE[] SECTION("license") = "Apache-2.0 OR MIT";
