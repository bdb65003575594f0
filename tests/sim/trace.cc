// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "trace.h"

#include <cstdarg>

namespace redlatch::sim {

void Trace::say(Nanos now, const char *format, ...) {
  if (words_ == nullptr) return;
  fprintf(words_, "%12.6f  ", static_cast<double>(now) / 1e9);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(words_, format, arguments);
  va_end(arguments);
  fputc('\n', words_);
}

}  // namespace redlatch::sim
