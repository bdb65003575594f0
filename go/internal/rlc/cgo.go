// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// Package rlc is redlatch.h as Go sees it, and no more: the functions without their rl_, each kind
// of handle as a type of its own, of which 0 is NULL, and text of any bytes as string. The header
// is the manual. Nothing is kept alive or freed here. tools/gen_swig.py makes it.
package rlc

// #cgo pkg-config: redlatch
import "C"
