/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * redlatch.h for Java: text is byte[] both ways, since a String would cross as modified UTF-8, in
 * which some names are others than everybody else's. Each kind of handle is a class of its own,
 * which frees nothing. null is NULL.
 */
%module Rlc

%typemap(jni) (const char *TEXT, size_t TEXT_LEN) "jbyteArray"
%typemap(jtype) (const char *TEXT, size_t TEXT_LEN) "byte[]"
%typemap(jstype) (const char *TEXT, size_t TEXT_LEN) "byte[]"
%typemap(javain) (const char *TEXT, size_t TEXT_LEN) "$javainput"
%typemap(in) (const char *TEXT, size_t TEXT_LEN) %{
  $1 = NULL;
  $2 = 0;
  if ($input) {
    $1 = (char *)(*jenv)->GetByteArrayElements(jenv, $input, NULL);
    if (!$1) return $null;
    $2 = (size_t)(*jenv)->GetArrayLength(jenv, $input);
  }
%}
%typemap(freearg) (const char *TEXT, size_t TEXT_LEN) %{
  if ($input) (*jenv)->ReleaseByteArrayElements(jenv, $input, (jbyte *)$1, JNI_ABORT);
%}

%typemap(jni) (char *BUFFER, size_t BUFFER_SIZE) "jbyteArray"
%typemap(jtype) (char *BUFFER, size_t BUFFER_SIZE) "byte[]"
%typemap(jstype) (char *BUFFER, size_t BUFFER_SIZE) "byte[]"
%typemap(javain) (char *BUFFER, size_t BUFFER_SIZE) "$javainput"
%typemap(in) (char *BUFFER, size_t BUFFER_SIZE) %{
  $1 = (char *)(*jenv)->GetByteArrayElements(jenv, $input, NULL);
  if (!$1) return $null;
  $2 = (size_t)(*jenv)->GetArrayLength(jenv, $input);
%}
%typemap(freearg) (char *BUFFER, size_t BUFFER_SIZE) %{
  (*jenv)->ReleaseByteArrayElements(jenv, $input, (jbyte *)$1, 0);
%}

/* A copy. */
%typemap(jni) const char * "jbyteArray"
%typemap(jtype) const char * "byte[]"
%typemap(jstype) const char * "byte[]"
%typemap(javaout) const char * { return $jnicall; }
%typemap(out) const char * %{
  $result = (*jenv)->NewByteArray(jenv, (jsize)strlen($1));
  if ($result) {
    (*jenv)->SetByteArrayRegion(jenv, $result, 0, (jsize)strlen($1), (const jbyte *)$1);
  }
%}

/* Of final fields, unlike SWIG's own: a thread that is handed one by a race does not find NULL. */
%typemap(javabody) SWIGTYPE * %{
  private final long pointer;

  $javaclassname(long pointer, boolean unused) {
    this.pointer = pointer;
  }

  static long getCPtr($javaclassname handle) {
    return handle == null ? 0 : handle.pointer;
  }
%}

%define REDLATCH_HANDLE(c_type, java_type)
%enddef

%include "redlatch.i"
