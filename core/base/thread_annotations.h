// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Annotations for clang's thread safety analysis (-Wthread-safety): which mutex guards a field, and
// which a function needs held. Other compilers see nothing of them.
#pragma once

#if defined(__clang__)
#define REDLATCH_ATTRIBUTE(x) __attribute__((x))
#else
#define REDLATCH_ATTRIBUTE(x)
#endif

// For classes: it is a mutex, or holds one for as long as it exists.
#define CAPABILITY(name) REDLATCH_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY REDLATCH_ATTRIBUTE(scoped_lockable)
// For fields: the field, or the object that it points to.
#define GUARDED_BY(mutex) REDLATCH_ATTRIBUTE(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) REDLATCH_ATTRIBUTE(pt_guarded_by(mutex))
// For a field beside guarded ones that needs no mutex, and why; tools/tidy.py asks for it.
#define UNGUARDED(why)
// For functions: the mutex is held before and after; is taken; is freed.
#define REQUIRES(...) REDLATCH_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) REDLATCH_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) REDLATCH_ATTRIBUTE(release_capability(__VA_ARGS__))
// Held afterwards, whether it was before or not.
#define ASSERTS_HELD(...) REDLATCH_ATTRIBUTE(assert_capability(__VA_ARGS__))
// The analysis cannot follow the function: a comment there says why.
#define NOT_ANALYSED REDLATCH_ATTRIBUTE(no_thread_safety_analysis)
