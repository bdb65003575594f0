/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: each limit is where the header says, on both sides, and a refusal says what is wrong
 * without giving a password away. Method: tables of values at the edges, against a real server
 * where the value must also work.
 */
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

#define CANARY "c4nary"

static rl_error* err;
static rl_client* client;

static void acquire_options_have_edges(void) {
  static const int64_t bad_leases[] = {
      RL_MIN_TTL_MS - 1, 0, -1, RL_MAX_TTL_MS + INT64_C(1), INT64_MAX, -30000, INT64_MIN};
  static const int64_t bad_holds[] = {-1, RL_MAX_TTL_MS + INT64_C(1), INT64_MAX, INT64_MIN};
  char label[RL_MAX_LABEL_BYTES + 1] = {0};
  rl_acquire_options* options = rl_acquire_options_new();
  size_t i;
  REQUIRE(options != NULL);
  for (i = 0; i < TEST_COUNT(bad_leases); ++i) {
    CHECK_INT(RL_E_INVALID, rl_acquire_options_set_ttl_ms(options, bad_leases[i]));
  }
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, RL_MIN_TTL_MS));
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, RL_MAX_TTL_MS));
  for (i = 0; i < TEST_COUNT(bad_holds); ++i) {
    CHECK_INT(RL_E_INVALID, rl_acquire_options_set_max_hold_ms(options, bad_holds[i]));
  }
  CHECK_INT(RL_OK, rl_acquire_options_set_max_hold_ms(options, 0));
  CHECK_INT(RL_OK, rl_acquire_options_set_max_hold_ms(options, RL_MAX_TTL_MS));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_max_local_handoffs(options, -1));
  CHECK_INT(RL_E_INVALID,
            rl_acquire_options_set_max_local_handoffs(options, RL_MAX_LOCAL_HANDOFFS + 1));
  CHECK_INT(RL_OK, rl_acquire_options_set_max_local_handoffs(options, 0));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_yield_every(options, -1));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_yield_every(options, 1000001));
  CHECK_INT(RL_OK, rl_acquire_options_set_yield_every(options, 1000000));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_yield_ms(options, 0));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_yield_ms(options, 60001));
  CHECK_INT(RL_OK, rl_acquire_options_set_yield_ms(options, 60000));
  CHECK_INT(RL_OK, rl_acquire_options_set_max_local_handoffs(options, RL_MAX_LOCAL_HANDOFFS));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_label(options, label, RL_MAX_LABEL_BYTES + 1));
  CHECK_INT(RL_OK, rl_acquire_options_set_label(options, label, RL_MAX_LABEL_BYTES));
  rl_acquire_options_free(options);
}

static int acquire_option_is(const rl_acquire_options* options, const char* name,
                             const char* value) {
  char text[64];
  rl_acquire_options_get(options, name, strlen(name), text, sizeof text);
  return check_has(value, text, __FILE__, __LINE__) && strlen(text) == strlen(value);
}

/* Each typed setter sets the option of its name, and nothing else. */
static void a_typed_setter_sets_its_option(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  REQUIRE(options != NULL);
  CHECK(acquire_option_is(options, "ttl", "30000ms"));
  CHECK(acquire_option_is(options, "yield_every", ""));
  CHECK(acquire_option_is(options, "max_hold", "0"));
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, 1234));
  CHECK_INT(RL_OK, rl_acquire_options_set_renew(options, 0));
  CHECK_INT(RL_OK, rl_acquire_options_set_max_hold_ms(options, 2345));
  CHECK_INT(RL_OK, rl_acquire_options_set_label(options, TEXT("some")));
  CHECK_INT(RL_OK, rl_acquire_options_set_confirm(options, 1));
  CHECK_INT(RL_OK, rl_acquire_options_set_max_local_handoffs(options, 3));
  CHECK_INT(RL_OK, rl_acquire_options_set_yield_every(options, 4));
  CHECK_INT(RL_OK, rl_acquire_options_set_yield_ms(options, 55));
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, TEXT("me")));
  CHECK_INT(RL_OK, rl_acquire_options_set_reentrant(options, 1));
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, RL_FORMAT_HASH));
  CHECK_INT(RL_OK, rl_acquire_options_set_min_replicas(options, 2, 345));
  CHECK(acquire_option_is(options, "ttl", "1234ms"));
  CHECK(acquire_option_is(options, "renew", "no"));
  CHECK(acquire_option_is(options, "max_hold", "2345ms"));
  CHECK(acquire_option_is(options, "label", "some"));
  CHECK(acquire_option_is(options, "confirm", "yes"));
  CHECK(acquire_option_is(options, "max_local_handoffs", "3"));
  CHECK(acquire_option_is(options, "yield_every", "4"));
  CHECK(acquire_option_is(options, "yield_for", "55ms"));
  CHECK(acquire_option_is(options, "owner", "me"));
  CHECK(acquire_option_is(options, "reentrant", "yes"));
  CHECK(acquire_option_is(options, "format", "hash"));
  CHECK(acquire_option_is(options, "min_replicas", "2"));
  CHECK(acquire_option_is(options, "sync_timeout", "345ms"));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_min_replicas(options, RL_MAX_REPLICAS + 1, 345));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_min_replicas(options, 1, 0));
  CHECK(acquire_option_is(options, "min_replicas", "1"));
  CHECK(acquire_option_is(options, "sync_timeout", "345ms"));
  rl_acquire_options_free(options);
}

/* What was set, as text; never a secret, and nothing of a URL. */
static void client_options_are_read_back(void) {
  rl_client_options* options = rl_client_options_new();
  char text[64];
  REQUIRE(options != NULL);
  CHECK_INT(0, rl_client_options_get(options, TEXT("command_timeout"), text, sizeof text));
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("command_timeout"), TEXT("2s"), err));
  CHECK_INT(6, rl_client_options_get(options, TEXT("command_timeout"), text, sizeof text));
  CHECK_HAS("2000ms", text);
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("restart_guard"), TEXT("off"), err));
  CHECK_INT(3, rl_client_options_get(options, TEXT("restart_guard"), text, sizeof text));
  CHECK_HAS("off", text);
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("password"), TEXT(CANARY), err));
  CHECK_INT(0, rl_client_options_get(options, TEXT("password"), text, sizeof text));
  CHECK_INT(0, rl_client_options_get(options, TEXT("ttl"), text, sizeof text));
  REQUIRE(setenv("REDLATCH_NAMESPACE", "of-env:", 1) == 0);
  CHECK_INT(0, rl_client_options_get(options, TEXT("namespace"), text, sizeof text));
  CHECK_INT(RL_OK, rl_client_options_set_from_env(options, err));
  REQUIRE(unsetenv("REDLATCH_NAMESPACE") == 0);
  CHECK_INT(7, rl_client_options_get(options, TEXT("namespace"), text, sizeof text));
  CHECK_HAS("of-env:", text);
  rl_client_options_free(options);
}

/* A refused setting is reported by the acquire, and a longest lease is one. */
static void a_refused_option_is_reported_by_the_acquire(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  REQUIRE(options != NULL);
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, RL_MAX_TTL_MS));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_ttl_ms(options, INT64_MIN));
  lease = rl_acquire(client, TEXT("week"), 0, options, err);
  CHECK(lease == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS("option 'ttl' must be 10 ms to 7 days", rl_error_message(err));
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  REQUIRE(options != NULL);
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, RL_MAX_TTL_MS));
  lease = rl_acquire(client, TEXT("week"), 0, options, err);
  rl_acquire_options_free(options);
  REQUIRE(lease != NULL);
  CHECK(server_number("PTTL", "week", NULL) > RL_MAX_TTL_MS - 60000);
  CHECK(rl_lease_remaining_ms(lease) > RL_MAX_TTL_MS / 100 * 98);
  CHECK_INT(RL_E_INVALID, rl_extend(lease, RL_MIN_TTL_MS - 1, err));
  CHECK_INT(RL_E_INVALID, rl_extend(lease, RL_MAX_TTL_MS + INT64_C(1), err));
  CHECK_HAS("ttl must be 10 ms to 7 days", rl_error_message(err));
  CHECK_INT(RL_OK, rl_extend(lease, RL_MAX_TTL_MS, err));
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
}

static rl_status try_name(const char* name, size_t length) {
  rl_lease* lease = rl_acquire(client, name, length, 0, NULL, err);
  const rl_status status = rl_error_status(err);
  rl_info* info = rl_inspect(client, name, length, NULL);
  CHECK((status == RL_OK) == (info != NULL));
  rl_info_free(info);
  if (lease != NULL) CHECK_INT(RL_OK, rl_release(lease, NULL));
  rl_lease_free(lease);
  return status;
}

static void names_have_edges(void) {
  char name[RL_MAX_NAME_BYTES + 1];
  memset(name, 'n', sizeof name);
  CHECK_INT(RL_E_INVALID, try_name(name, 0));
  CHECK_INT(RL_OK, try_name(name, 1));
  CHECK_INT(RL_OK, try_name(name, RL_MAX_NAME_BYTES));
  CHECK_INT(RL_E_INVALID, try_name(name, RL_MAX_NAME_BYTES + 1));
  CHECK(rl_acquire(client, name, RL_MAX_NAME_BYTES + 1, 0, NULL, err) == NULL);
  CHECK_HAS("1024", rl_error_message(err));
  memset(name, 0, sizeof name);
  CHECK_INT(RL_OK, try_name(name, 1));
  CHECK_INT(RL_OK, try_name(name, RL_MAX_NAME_BYTES));
}

static void names_of_our_own_keys_are_refused(void) {
  CHECK_INT(RL_E_INVALID, try_name(TEXT("x:rl1:q")));
  CHECK_INT(RL_E_INVALID, try_name(TEXT("{x}:rl1.q")));
  CHECK_INT(RL_E_INVALID, try_name(TEXT("{x}:rl1:f")));
  CHECK_INT(RL_E_INVALID, try_name(TEXT(":rl1:hq")));
  CHECK(rl_acquire(client, TEXT("x:rl1:q"), 0, NULL, err) == NULL);
  CHECK_HAS("rl1", rl_error_message(err));
  CHECK_INT(RL_OK, try_name(TEXT("x:rl1:q/")));
  CHECK_INT(RL_OK, try_name(TEXT("x:rl1:q7")));
  CHECK_INT(RL_OK, try_name(TEXT("x:rl1")));
  CHECK_INT(RL_OK, try_name(TEXT(":rl1:q:x")));
}

static void waits_have_edges(void) {
  static const int64_t bad_waits[] = {-2, -1000, INT64_MIN};
  rl_lease* lease;
  size_t i;
  for (i = 0; i < TEST_COUNT(bad_waits); ++i) {
    CHECK(rl_acquire(client, TEXT("w"), bad_waits[i], NULL, err) == NULL);
    CHECK_INT(RL_E_INVALID, rl_error_status(err));
    CHECK_HAS("wait", rl_error_message(err));
  }
  lease = rl_acquire(client, TEXT("w"), INT64_MAX, NULL, err);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_E_INVALID, rl_lease_wait_lost(lease, INT64_MIN));
  CHECK_INT(RL_LEASE_HELD, rl_lease_wait_lost(lease, 0));
  CHECK_INT(RL_LEASE_HELD, rl_lease_wait_lost(lease, 20));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_wait_lost(lease, INT64_MAX));
  rl_lease_free(lease);
}

struct option_row {
  const char* name;
  const char* value;
  rl_status status;
  const char* in_message; /* NULL: nothing is asked of it. */
};

static const struct option_row option_rows[] = {
    {"db", "0", RL_OK, NULL},
    {"db", "16383", RL_OK, NULL},
    {"db", "16384", RL_E_INVALID, "16383"},
    {"db", "-1", RL_E_INVALID, "db"},
    {"db", "1x", RL_E_INVALID, "1x"},
    {"db", "99999999999999999999", RL_E_INVALID, "db"},
    {"command_timeout", "1ms", RL_OK, NULL},
    {"command_timeout", "1h", RL_OK, NULL},
    {"command_timeout", "3600s", RL_OK, NULL},
    {"command_timeout", "500", RL_E_INVALID, "500ms or 500s (got '500')"},
    {"command_timeout", "5m", RL_OK, NULL},
    {"command_timeout", "0", RL_E_INVALID, "1 ms to 1 hour"},
    {"command_timeout", "0ms", RL_E_INVALID, "timeout"},
    {"command_timeout", "3601s", RL_E_INVALID, "1 hour"},
    {"command_timeout", "3600001ms", RL_E_INVALID, "1 hour"},
    {"command_timeout", "-1s", RL_E_INVALID, "-1s"},
    {"command_timeout", "soon", RL_E_INVALID, "soon"},
    {"command_timeout", "2 s", RL_E_INVALID, "timeout"},
    {"command_timeout", "9223372036854775807h", RL_E_INVALID, "timeout"},
    {"connect_timeout", "500ms", RL_OK, NULL},
    {"connect_timeout", "2d", RL_E_INVALID, "2d"},
    {"protocol", "3", RL_OK, NULL},
    {"protocol", "2", RL_OK, NULL},
    {"protocol", "4", RL_E_INVALID, "protocol"},
    {"namespace", "app:", RL_OK, NULL},
    {"namespace", "a{b", RL_E_INVALID, "namespace"},
    {"namespace", "a}b", RL_E_INVALID, "namespace"},
    {"user", "someone", RL_OK, NULL},
    {"password", "", RL_OK, NULL},
    {"client_name", "worker", RL_OK, NULL},
    /* An unknown name: what was asked for, and the nearest that exists. */
    {"comand_timeout", "1s", RL_E_INVALID, "command_timeout"},
    {"timeout", "1s", RL_E_INVALID, "command_timeout"},
    {"timout", "1s", RL_E_INVALID, "timout"},
    {"conect_timeout", "1s", RL_E_INVALID, "connect_timeout"},
    {"name_space", "x", RL_E_INVALID, "namespace"},
    {"pasword", CANARY, RL_E_INVALID, "password"},
    {"DB", "1", RL_E_INVALID, "db"},
};

static void client_options_have_edges(void) {
  char text[RL_MAX_LABEL_BYTES + 1];
  rl_client_options* options = rl_client_options_new();
  size_t i;
  REQUIRE(options != NULL);
  for (i = 0; i < TEST_COUNT(option_rows); ++i) {
    const struct option_row* row = &option_rows[i];
    const rl_status status = rl_client_options_set(options, row->name, strlen(row->name),
                                                   row->value, strlen(row->value), err);
    if (!CHECK_INT(row->status, status)) fprintf(stderr, "  %s=%s\n", row->name, row->value);
    CHECK_INT(status, rl_error_status(err));
    if (row->in_message != NULL) CHECK_HAS(row->in_message, rl_error_message(err));
    CHECK(strstr(rl_error_message(err), CANARY) == NULL);
  }
  memset(text, 'h', sizeof text);
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("holder"), text, 256, err));
  CHECK_INT(RL_E_INVALID, rl_client_options_set(options, TEXT("holder"), text, 257, err));
  CHECK_HAS("256", rl_error_message(err));
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("namespace"), text, 128, err));
  CHECK_INT(RL_E_INVALID, rl_client_options_set(options, TEXT("namespace"), text, 129, err));
  CHECK_HAS("128", rl_error_message(err));
  rl_client_options_free(options);
}

struct url_row {
  const char* url;
  rl_status status;
  const char* in_message;
  const char* also;
};

static const struct url_row url_rows[] = {
    {"redis://localhost", RL_OK, NULL, NULL},
    {"redis://localhost:6379/3?command_timeout=500ms&namespace=app:", RL_OK, NULL, NULL},
    {"valkey://user:" CANARY "@10.1.2.3:7000", RL_OK, NULL, NULL},
    {"redis://:" CANARY "@localhost", RL_OK, NULL, NULL},
    {"unix:///run/redis.sock?db=2", RL_OK, NULL, NULL},
    {"unix://user:" CANARY "@/run/redis.sock", RL_OK, NULL, NULL},
    {"reddis://user:" CANARY "@localhost", RL_E_INVALID, "reddis", "redis"},
    {"valkie://localhost", RL_E_INVALID, "valkie", "valkey"},
    {"http://localhost", RL_E_INVALID, "http", "redis"},
    {"localhost:6379", RL_E_INVALID, "redis://", NULL},
    {"user:" CANARY "@localhost", RL_E_INVALID, NULL, NULL},
    {"redis+cluster://:" CANARY "@localhost", RL_OK, NULL, NULL},
    {"redis+cluster://h1/3", RL_E_INVALID, "db must be 0 on a cluster", "3"},
    {"rediss://:" CANARY "@localhost", RL_OK, NULL, NULL},
    {"valkeys://localhost?tls_verify=ca", RL_OK, NULL, NULL},
    {"redis://:" CANARY "@localhost?tls_verify=ca", RL_E_INVALID, "tls_", "rediss://"},
    {"rediss://:" CANARY "@localhost?tls_verify=no", RL_E_INVALID, "tls_verify", "none"},
    {"redis-sentinel://h1,h2/main/0", RL_OK, NULL, NULL},
    {"redis-sentinel://:" CANARY "@h1,h2", RL_E_INVALID, "name of the primary", "1 to 255"},
    {"redis-sentinel://h1,h2,h1/main", RL_E_INVALID, "sentinel h1:26379", "once"},
    {"redis-sentinel://h1/main?tls_verify=ca", RL_E_INVALID, "tls_", "rediss-sentinel://"},
    {"redis://h1?sentinel_user=u", RL_E_INVALID, "sentinel_", "redis-sentinel://"},
    {"redis+cluster://h1,h2", RL_OK, NULL, NULL},
    {"embedded://", RL_OK, NULL, NULL},
    {"embedded:///a/folder?server=/usr/bin/valkey-server", RL_OK, NULL, NULL},
    {"embedded://host", RL_E_INVALID, "three slashes", NULL},
    {"redis://localhost:70000", RL_E_INVALID, "port", "65535"},
    {"redis://localhost:0", RL_E_INVALID, "port", NULL},
    {"redis://localhost:12ab", RL_E_INVALID, "port", "65535"},
    {"redis://:" CANARY "@localhost:12ab", RL_E_INVALID, "port", "65535"},
    {"redis://localhost/x", RL_E_INVALID, "database", "16383"},
    /* What is no number may be a password in the wrong place. */
    {"redis://user:" CANARY, RL_E_INVALID, "port", NULL},
    {"redis://localhost/" CANARY, RL_E_INVALID, "database", NULL},
    {"redis://localhost?" CANARY, RL_E_INVALID, "=", NULL},
    {"redis://localhost/16384", RL_E_INVALID, "database", "16383"},
    {"redis://localhost?comand_timeout=2s", RL_E_INVALID, "comand_timeout", "command_timeout"},
    {"redis://localhost?command_timeout=soon", RL_E_INVALID, "timeout", "500ms"},
    {"redis://localhost&password=" CANARY, RL_E_INVALID, "host", NULL},
    {"redis://localhost;password=" CANARY, RL_E_INVALID, "host", NULL},
    {"redis://localhost?db=1;password=" CANARY, RL_E_INVALID, "'db'", NULL},
    {"redis://localhost?command_timeout=2s,password=" CANARY, RL_E_INVALID, "'command_timeout'",
     NULL},
    {"redis://localhost#password=" CANARY, RL_E_INVALID, "%23", NULL},
    {"redis://localhost/0#password=" CANARY, RL_E_INVALID, "%23", NULL},
    {"unix:///run/redis.sock#password=" CANARY, RL_E_INVALID, "%23", NULL},
    {"unix:///run/redis.sock;password=" CANARY, RL_E_INVALID, "percent-encoded", NULL},
    {"redis://localhost?pasword=" CANARY, RL_E_INVALID, "pasword", "password"},
    {"redis://localhost?timeout", RL_E_INVALID, "each option", "name=value"},
    {"redis://:" CANARY "@localhost?holdr=x", RL_E_INVALID, "holdr", "holder"},
    {"redis://:" CANARY "%zz@localhost", RL_E_INVALID, NULL, NULL},
    {"unix://", RL_E_INVALID, "path", NULL},
    {"unix://relative.sock", RL_E_INVALID, "path", NULL},
    {"redis://localhost?protocol=2", RL_OK, NULL, NULL},
    {"redis://localhost?protocol=1", RL_E_INVALID, "protocol", NULL},
};

static void urls_are_explained(void) {
  size_t i;
  for (i = 0; i < TEST_COUNT(url_rows); ++i) {
    const struct url_row* row = &url_rows[i];
    const int before = failure_count();
    char shown[256];
    rl_client* opened = rl_client_open(row->url, strlen(row->url), NULL, err);
    CHECK_INT(row->status, rl_error_status(err));
    CHECK((opened != NULL) == (row->status == RL_OK));
    CHECK((rl_error_message(err)[0] == '\0') == (row->status == RL_OK));
    if (row->in_message != NULL) CHECK_HAS(row->in_message, rl_error_message(err));
    if (row->also != NULL) CHECK_HAS(row->also, rl_error_message(err));
    CHECK(strstr(rl_error_message(err), CANARY) == NULL);
    rl_url_redact(row->url, strlen(row->url), shown, sizeof shown);
    CHECK(strstr(shown, CANARY) == NULL);
    if (failure_count() != before) fprintf(stderr, "  %s: %s\n", row->url, rl_error_message(err));
    rl_client_close(opened);
  }
}

static void redacted_urls_keep_the_rest(void) {
  static const char url[] = "redis://user:" CANARY "@localhost:1/2?command_timeout=1s";
  static const char expected[] = "redis://user:***@localhost:1/2?command_timeout=1s";
  char shown[64];
  char small[12];
  memset(small, '#', sizeof small);
  CHECK_INT(sizeof expected - 1, rl_url_redact(TEXT(url), shown, sizeof shown));
  CHECK_INT(0, strcmp(expected, shown));
  CHECK_INT(sizeof expected - 1, rl_url_redact(TEXT(url), small, 11));
  CHECK_INT(0, strcmp("redis://us", small));
  CHECK_INT('#', small[11]);
  CHECK_INT(sizeof expected - 1, rl_url_redact(TEXT(url), small, 1));
  CHECK_INT(0, strcmp("", small));
}

/* Also in URLs that no client would open: the log line comes before the error. */
static void malformed_urls_are_redacted_too(void) {
  static const char* const urls[] = {
      "redis://a:" CANARY "@b:" CANARY "@localhost:1",
      "redis://:" CANARY "@",
      "redis:/a:" CANARY "@localhost",
      "nonsense a:" CANARY "@localhost",
      "redis://localhost?user=a&password=" CANARY "&db=1",
      "redis://localhost?password=" CANARY,
  };
  size_t i;
  for (i = 0; i < TEST_COUNT(urls); ++i) {
    char shown[128];
    rl_url_redact(urls[i], strlen(urls[i]), shown, sizeof shown);
    if (!CHECK(strstr(shown, CANARY) == NULL)) fprintf(stderr, "  %s\n", shown);
    CHECK_HAS("***", shown);
  }
}

static void check_denied(const char* url) {
  rl_client* refused = rl_client_open(url, strlen(url), NULL, err);
  REQUIRE(refused != NULL);
  CHECK_INT(RL_E_DENIED, rl_client_connect(refused, 0, err));
  CHECK(strstr(rl_error_message(err), CANARY) == NULL);
  CHECK(rl_acquire(refused, TEXT("x"), 0, NULL, err) == NULL);
  CHECK_INT(RL_E_DENIED, rl_error_status(err));
  CHECK(strstr(rl_error_message(err), CANARY) == NULL);
  rl_client_close(refused);
}

/* User and password are percent-decoded; options win over the URL. */
static void passwords_reach_the_server_only(void) {
  const char* path = server_url() + strlen("unix://");
  char reply[64];
  char url[256];
  rl_client* accepted;
  rl_client_options* options = rl_client_options_new();
  REQUIRE(options != NULL);
  REQUIRE(server_command(reply, sizeof reply, "ACL", "SETUSER", "a@b", "on", ">" CANARY "@:/%",
                         "~*", "&*", "+@all", NULL));
  snprintf(url, sizeof url, "unix://a%%40b:" CANARY "%%40%%3A%%2F%%25@%s", path);
  accepted = rl_client_open(url, strlen(url), NULL, err);
  REQUIRE(accepted != NULL);
  CHECK_INT(RL_OK, rl_client_connect(accepted, 0, err));
  rl_client_close(accepted);
  snprintf(url, sizeof url, "unix://a%%40b:wrong-" CANARY "@%s", path);
  check_denied(url);
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("password"), TEXT(CANARY "@:/%"), err));
  accepted = rl_client_open(url, strlen(url), options, err);
  rl_client_options_free(options);
  REQUIRE(accepted != NULL);
  CHECK_INT(RL_OK, rl_client_connect(accepted, 0, err));
  rl_client_close(accepted);
  snprintf(url, sizeof url, "unix://nobody:" CANARY "@%s", path);
  check_denied(url);
}

static void unreachable_servers_are_named(void) {
  static const char url[] = "redis://:" CANARY "@127.0.0.1:1?connect_timeout=200ms";
  rl_client* nowhere = rl_client_open(TEXT(url), NULL, err);
  int64_t start_ms;
  REQUIRE(nowhere != NULL);
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(nowhere, 0, err));
  CHECK_HAS("127.0.0.1", rl_error_message(err));
  CHECK(strstr(rl_error_message(err), CANARY) == NULL);
  start_ms = now_ms();
  CHECK(rl_acquire(nowhere, TEXT("x"), 150, NULL, err) == NULL);
  CHECK_INT(RL_E_UNAVAILABLE, rl_error_status(err));
  CHECK(now_ms() - start_ms >= 149);
  CHECK(now_ms() - start_ms < 5000);
  CHECK(strstr(rl_error_message(err), CANARY) == NULL);
  rl_client_close(nowhere);
}

static const struct test tests[] = {
    {"acquire_options_have_edges", acquire_options_have_edges},
    {"a_typed_setter_sets_its_option", a_typed_setter_sets_its_option},
    {"client_options_are_read_back", client_options_are_read_back},
    {"a_refused_option_is_reported_by_the_acquire", a_refused_option_is_reported_by_the_acquire},
    {"names_have_edges", names_have_edges},
    {"names_of_our_own_keys_are_refused", names_of_our_own_keys_are_refused},
    {"waits_have_edges", waits_have_edges},
    {"client_options_have_edges", client_options_have_edges},
    {"urls_are_explained", urls_are_explained},
    {"redacted_urls_keep_the_rest", redacted_urls_keep_the_rest},
    {"malformed_urls_are_redacted_too", malformed_urls_are_redacted_too},
    {"passwords_reach_the_server_only", passwords_reach_the_server_only},
    {"unreachable_servers_are_named", unreachable_servers_are_named},
};

int main(int argc, char** argv) {
  int result;
  const char* url = server_url();
  err = rl_error_new();
  client = rl_client_open(url, strlen(url), NULL, err);
  if (client == NULL) return EXIT_FAILURE;
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_client_close(client);
  rl_error_free(err);
  return result;
}
