/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * redlatch.h for Go: text is a string of any bytes, and each kind of handle a type of its own that
 * is no pointer of Go's. 0 is NULL.
 */
%module rlc

%typemap(gotype) (const char *TEXT, size_t TEXT_LEN) "string"
%typemap(imtype) (const char *TEXT, size_t TEXT_LEN) "string"
%typemap(in) (const char *TEXT, size_t TEXT_LEN) %{
  $1 = $input.p;
  $2 = (size_t)$input.n;
%}

%typemap(gotype) (char *BUFFER, size_t BUFFER_SIZE) "[]byte"
%typemap(in) (char *BUFFER, size_t BUFFER_SIZE) %{
  $1 = (char *)$input.array;
  $2 = (size_t)$input.len;
%}

/* A copy, made by cgo. */
%typemap(gotype) const char * "string"
%typemap(imtype) const char * "*C.char"
%typemap(out) const char * "$result = (char *)$1;"
%typemap(goout) const char * "$result = C.GoString($1)"

%define REDLATCH_HANDLE(c_type, go_type)
%insert(go_wrapper) %{
type go_type uintptr
%}
%typemap(gotype) c_type *, const c_type * #go_type
%typemap(imtype) c_type *, const c_type * "uintptr"
%typemap(goin) c_type *, const c_type * "$result = uintptr($input)"
%typemap(goout) c_type *, const c_type * "$result = go_type($1)"
%enddef

%include "redlatch.i"
