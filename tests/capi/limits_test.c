/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: an option has the value that its setter gave it; a password reaches the server, and no
 * message. Method: tables, a real server, and URLs with a word that must not show. Values of
 * options are tested by option_table_test.cc, and URLs by options_test.cc and url_test.cc.
 */
#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

#define CANARY "c4nary"

static rl_error* err;

static void check_option(const rl_acquire_options* options, const char* name, const char* value) {
  char text[64];
  rl_acquire_options_get(options, name, strlen(name), text, sizeof text);
  if (!CHECK_INT(0, strcmp(value, text))) fprintf(stderr, "  %s: %s\n", name, text);
}

/* Each typed setter sets the option of its name, and nothing else. Its range is that of the name:
   option_table_test.cc, and cases/limits.case in every language. */
static void a_typed_setter_sets_its_option(void) {
  static const struct {
    const char *name, *before, *after;
  } rows[] = {
      {"ttl", "30000ms", "1234ms"},
      {"renew", "yes", "no"},
      {"max_hold", "0", "2345ms"},
      {"label", "", "some"},
      {"confirm", "no", "yes"},
      {"max_local_handoffs", "16", "3"},
      {"yield_every", "", "4"},
      {"yield_for", "150ms", "55ms"},
      {"owner", "", "me"},
      {"reentrant", "no", "yes"},
      {"format", "auto", "hash"},
      {"min_replicas", "0", "2"},
      {"sync_timeout", "1000ms", "345ms"},
  };
  rl_acquire_options* options = rl_acquire_options_new();
  size_t i;
  REQUIRE(options != NULL);
  for (i = 0; i < TEST_COUNT(rows); ++i) check_option(options, rows[i].name, rows[i].before);
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
  for (i = 0; i < TEST_COUNT(rows); ++i) check_option(options, rows[i].name, rows[i].after);
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_min_replicas(options, RL_MAX_REPLICAS + 1, 345));
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_min_replicas(options, 1, 0));
  check_option(options, "min_replicas", "1");
  check_option(options, "sync_timeout", "345ms");
  rl_acquire_options_free(options);
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

static const struct test tests[] = {
    {"a_typed_setter_sets_its_option", a_typed_setter_sets_its_option},
    {"redacted_urls_keep_the_rest", redacted_urls_keep_the_rest},
    {"passwords_reach_the_server_only", passwords_reach_the_server_only},
};

int main(int argc, char** argv) {
  int result;
  err = rl_error_new();
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_error_free(err);
  return result;
}
