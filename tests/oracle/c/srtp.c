/* libsrtp: `SUITE-protect`, `SUITE-unprotect`, and the same with `-rtcp` behind, where SUITE is as in descriptions.
 *
 * Input: 46 bytes of which the first are key and salt, then packets, each behind its length in two bytes, the low one
 * first. Output: packets in the same form; one that was refused has no bytes. */
#include "oracle.h"
#include <srtp2/srtp.h>

#define SECRET 46
#define PACKET_MAX 4096

static int policy_of(const char *suite, srtp_policy_t *policy) {
    static const struct {
        const char *name;
        void (*rtp)(srtp_crypto_policy_t *), (*rtcp)(srtp_crypto_policy_t *);
    } suites[] = {
        {"AES_CM_128_HMAC_SHA1_80", srtp_crypto_policy_set_rtp_default,
         srtp_crypto_policy_set_rtp_default},
        {"AES_CM_128_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32,
         srtp_crypto_policy_set_rtp_default},
        {"AES_192_CM_HMAC_SHA1_80", srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80,
         srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80},
        {"AES_192_CM_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_192_hmac_sha1_32,
         srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80},
        {"AES_256_CM_HMAC_SHA1_80", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80,
         srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80},
        {"AES_256_CM_HMAC_SHA1_32", srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32,
         srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80},
        {"AEAD_AES_128_GCM", srtp_crypto_policy_set_aes_gcm_128_16_auth,
         srtp_crypto_policy_set_aes_gcm_128_16_auth},
        {"AEAD_AES_256_GCM", srtp_crypto_policy_set_aes_gcm_256_16_auth,
         srtp_crypto_policy_set_aes_gcm_256_16_auth},
    };
    for (size_t at = 0; at < sizeof suites / sizeof *suites; at++) {
        if (strncmp(suite, suites[at].name, strlen(suites[at].name))) continue;
        suites[at].rtp(&policy->rtp);
        suites[at].rtcp(&policy->rtcp);
        return (int)strlen(suites[at].name);
    }
    return 0;
}

static size_t run(const char *mode, const uint8_t *input, size_t size, uint8_t *output) {
    static int started;
    if (!started++ && srtp_init() != srtp_err_status_ok) return 0;
    srtp_policy_t policy;
    memset(&policy, 0, sizeof policy);
    int length = policy_of(mode, &policy);
    if (!length || size < SECRET) return 0;
    const char *what = mode + length;
    int protects = !strncmp(what, "-protect", 8), rtcp = strstr(what, "-rtcp") != NULL;
    uint8_t secret[SECRET];
    memcpy(secret, input, SECRET);
    policy.key = secret;
    policy.ssrc.type = protects ? ssrc_any_outbound : ssrc_any_inbound;
    policy.window_size = 128;
    srtp_t session;
    if (srtp_create(&session, &policy) != srtp_err_status_ok) return 0;
    size_t made = 0;
    for (size_t at = SECRET; at + 2 <= size;) {
        int bytes = input[at] | input[at + 1] << 8;
        at += 2;
        if (at + bytes > size || bytes > PACKET_MAX) break;
        uint32_t aligned[(PACKET_MAX + SRTP_MAX_TRAILER_LEN + 4) / 4];
        memcpy(aligned, input + at, bytes);
        at += bytes;
        srtp_err_status_t status = rtcp
            ? (protects ? srtp_protect_rtcp : srtp_unprotect_rtcp)(session, aligned, &bytes)
            : (protects ? srtp_protect : srtp_unprotect)(session, aligned, &bytes);
        if (status != srtp_err_status_ok) bytes = 0;
        output[made++] = bytes & 0xff;
        output[made++] = bytes >> 8;
        memcpy(output + made, aligned, bytes);
        made += bytes;
    }
    srtp_dealloc(session);
    return made;
}

int main(int count, char **words) { return oracle_main(count, words, run); }
