/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * What all languages of SWIG's share: the functions of redlatch.h as it stands. A language's own
 * file defines REDLATCH_HANDLE(type of C, its own name), and typemaps for text that comes in,
 * (const char *TEXT, size_t TEXT_LEN), and for the buffer of text that goes out, (char *BUFFER,
 * size_t BUFFER_SIZE); then it includes this one. tools/gen_swig.py runs SWIG.
 */
%{
#include "redlatch/redlatch.h"
%}

%include <stdint.i>

/* Means nothing here. */
#define RL_API

/* Numbers stand in files of their own, as constants of the language: SWIG would ask the library for
   each of them when a program starts. */
%ignore "";
%rename("%(strip:[rl_])s", %$isfunction) "";
/* A structure would cost a call for each field: rl_queue_next() has what Go and Java need. */
%rename("$ignore", fullname=1) rl_queue_next_event;
/* A number by a pointer would be a type of its own: rl_recall_start() has what Go and Java need. */
%rename("$ignore", fullname=1) rl_recall;

/* Pairs go by the names that the header gives them. */
%define REDLATCH_TEXT(what)
%apply (const char *TEXT, size_t TEXT_LEN) { (const char *what, size_t what##_len) };
%enddef
REDLATCH_TEXT(name)
REDLATCH_TEXT(value)
REDLATCH_TEXT(url)
REDLATCH_TEXT(urls)
REDLATCH_TEXT(key)
REDLATCH_TEXT(token)
REDLATCH_TEXT(pattern)
REDLATCH_TEXT(label)
REDLATCH_TEXT(owner)
REDLATCH_TEXT(word)
REDLATCH_TEXT(words)
REDLATCH_TEXT(user)
REDLATCH_TEXT(password)
REDLATCH_TEXT(reason)
REDLATCH_TEXT(path)
REDLATCH_TEXT(type)
REDLATCH_TEXT(text)
%apply (char *BUFFER, size_t BUFFER_SIZE) { (char *buffer, size_t buffer_size) };

REDLATCH_HANDLE(rl_error, Error)
REDLATCH_HANDLE(rl_client_options, ClientOptions)
REDLATCH_HANDLE(rl_acquire_options, AcquireOptions)
REDLATCH_HANDLE(rl_client, Client)
REDLATCH_HANDLE(rl_lease, Lease)
REDLATCH_HANDLE(rl_request, Request)
REDLATCH_HANDLE(rl_queue, Queue)
REDLATCH_HANDLE(rl_info, Info)
REDLATCH_HANDLE(rl_list, List)
REDLATCH_HANDLE(rl_names, Names)

%include "redlatch/redlatch.h"
