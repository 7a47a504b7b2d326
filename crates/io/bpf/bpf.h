// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What the programs need of the kernel's interface, so that a C compiler with the BPF target is all that builds them.
// Names and numbers are those of linux/bpf.h, the kernel's stable interface to user space.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// How a map is described to the loader (BTF in the section ".maps").
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) type *name

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NET16(x) __builtin_bswap16(x)
#define NET32(x) __builtin_bswap32(x)
#else
#define NET16(x) (x)
#define NET32(x) (x)
#endif

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_SOCKMAP = 15, MAP_XSKMAP = 17 };
enum { MAP_MMAPABLE = 1 << 10 };

// Helpers; none of them asks for a GPL program.
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const monotonic_nanos)(void) = (void *)5;
static long (*const redirect)(u32 interface, u64 flags) = (void *)23;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const sk_release)(void *sk) = (void *)86;
static long (*const sk_assign)(void *ctx, void *sk, u64 flags) = (void *)124;

enum { FAMILY_IPV4 = 2, PROTOCOL_UDP = 17 };

// struct bpf_sk_lookup
struct lookup {
    u64 cookie;
    u32 family;
    u32 protocol;
    u32 remote_ip4;  // network order
    u32 remote_ip6[4];
    u16 remote_port; // network order
    u16 zero;
    u32 local_ip4;   // network order
    u32 local_ip6[4];
    u32 local_port;  // host order
    u32 ifindex;
};

enum { SK_DROP = 0, SK_PASS = 1 };

// struct xdp_md
struct frame {
    u32 data;
    u32 data_end;
    u32 data_meta;
    u32 ifindex;
    u32 queue;
    u32 out_ifindex;
};

enum { XDP_ABORTED = 0, XDP_DROP = 1, XDP_PASS = 2, XDP_TX = 3 };
