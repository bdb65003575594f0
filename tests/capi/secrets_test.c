/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: no block of memory that the library frees has a part of a password, from wherever that
 * came. Method: the functions that free are replaced, and look at each block; the passwords repeat
 * one word, so that each part of them is recognised.
 */
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 20000, TAG = 7 };

/* One that fits into the object of a string, and one that does not. */
#define WORD "Zq9k"
#define FOUR WORD WORD WORD WORD
#define SHORT_PASSWORD WORD WORD WORD
#define LONG_PASSWORD FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR "end"

/* ---- memory ---------------------------------------------------------------------------------- */

extern void* __libc_malloc(size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void __libc_free(void* block);

static atomic_int found_count;

/* A breakpoint here shows who frees it. */
__attribute__((noinline)) static void found(void) { atomic_fetch_add(&found_count, 1); }

static void look_at(void* block) {
  static const char part[] = WORD WORD;
  const size_t size = block == NULL ? 0 : malloc_usable_size(block);
  if (size >= sizeof part && memmem(block, size, part, sizeof part - 1) != NULL) found();
}

/* Visible, so that the library and the C++ runtime below it call these. */
#define VISIBLE __attribute__((visibility("default")))

VISIBLE void free(void* block) {
  look_at(block);
  __libc_free(block);
}

/* The old block is freed by glibc, so it is left here. */
VISIBLE void* realloc(void* old, size_t size) {
  void* block;
  size_t old_size;
  if (old == NULL || size == 0) return __libc_realloc(old, size);
  old_size = malloc_usable_size(old);
  block = __libc_malloc(size);
  if (block == NULL) return NULL;
  memcpy(block, old, size < old_size ? size : old_size);
  free(old);
  return block;
}

/* ---- passwords ------------------------------------------------------------------------------- */

static const char* const passwords[] = {SHORT_PASSWORD, LONG_PASSWORD};
static const char* password;
static const char* protocol;
static char path[64]; /* of the password file; empty: there is none */

static void use(rl_client* client) {
  rl_error* err = rl_error_new();
  rl_lease* lease = rl_acquire(client, TEXT("secret"), WAIT_MS, NULL, err);
  if (!CHECK(lease != NULL)) fprintf(stderr, "  %s\n", rl_error_message(err));
  if (lease != NULL) give_back(lease);
  rl_error_free(err);
}

/* With each password and each protocol. The client connects a second time, too. */
static void with_each(rl_client* (*open_client)(void), void (*use_more)(rl_client* client)) {
  static const char* const protocols[] = {"2", "3"};
  size_t i;
  for (i = 0; i < 4; ++i) {
    rl_client* client;
    password = passwords[i % 2];
    protocol = protocols[i / 2];
    (void)server_url(); /* starts the server */
    set_password(password);
    atomic_store(&found_count, 0);
    client = open_client();
    REQUIRE(client != NULL);
    use(client);
    CHECK_INT(0, atomic_load(&found_count));
    if (use_more != NULL) use_more(client);
    kill_connections();
    use(client);
    CHECK_INT(0, atomic_load(&found_count));
    rl_client_close(client);
    CHECK_INT(0, atomic_load(&found_count));
    if (path[0] != '\0') unlink(path);
  }
}

/* server_url() with `user` in front of its path, and the protocol. */
static const char* url_with(const char* user) {
  static char url[1024];
  snprintf(url, sizeof url, "unix://%s%s?protocol=%s", user, server_url() + strlen("unix://"),
           protocol);
  return url;
}

static rl_client* open_by_url(void) {
  char user[512];
  const char* url;
  snprintf(user, sizeof user, "app:%s@", password);
  url = url_with(user);
  return rl_client_open(url, strlen(url), NULL, NULL);
}

static void the_url(void) { with_each(open_by_url, NULL); }

static rl_client* open_by_option(const char* name, const char* value) {
  const char* url = url_with("");
  rl_client_options* options = rl_client_options_new();
  rl_client* client;
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("user"), TEXT("app"), NULL));
  CHECK_INT(RL_OK, rl_client_options_set(options, name, strlen(name), value, strlen(value), NULL));
  client = rl_client_open(url, strlen(url), options, NULL);
  rl_client_options_free(options);
  return client;
}

static rl_client* open_by_password(void) { return open_by_option("password", password); }

static void the_option(void) { with_each(open_by_password, NULL); }

static rl_client* open_by_file(void) {
  int file;
  snprintf(path, sizeof path, "/tmp/redlatch-secret-XXXXXX");
  file = mkstemp(path);
  CHECK(write(file, password, strlen(password)) == (ssize_t)strlen(password));
  CHECK(write(file, "\n", 1) == 1);
  close(file);
  return open_by_option("password_file", path);
}

static void the_file(void) { with_each(open_by_file, NULL); }

static void set_credentials(rl_client* client) {
  CHECK_INT(RL_OK,
            rl_client_credentials_set(client, TEXT("app"), password, strlen(password), -1, NULL));
}

static rl_client* open_with_credentials(void) {
  const char* url = url_with("");
  rl_client* client = rl_client_open(url, strlen(url), NULL, NULL);
  set_credentials(client);
  return client;
}

/* AUTH is sent on the connection that is there. */
static void rotate(rl_client* client) {
  int i;
  for (i = 0; i < 3; ++i) {
    set_credentials(client);
    use(client);
  }
}

static void credentials(void) { with_each(open_with_credentials, rotate); }

static const struct test tests[] = {
    {"the_url", the_url},
    {"the_option", the_option},
    {"the_file", the_file},
    {"credentials", credentials},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
