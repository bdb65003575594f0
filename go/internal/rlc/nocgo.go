// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

//go:build !cgo

package rlc

// Without cgo the files that call the library are left out, and the compiler would report unknown
// functions. It reports this name instead.
const _ = redlatch_needs_cgo__set_CGO_ENABLED_to_1_and_install_a_C_compiler
