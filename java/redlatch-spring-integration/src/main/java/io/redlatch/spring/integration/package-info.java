// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

/** Locks of redlatch for Spring Integration. */
@NullMarked
package io.redlatch.spring.integration;

import org.jspecify.annotations.NullMarked;
