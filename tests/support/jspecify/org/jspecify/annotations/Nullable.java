// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
package org.jspecify.annotations;

import java.lang.annotation.ElementType;
import java.lang.annotation.Target;

/** As JSpecify's, which need not be there to compile the package for a test. */
@Target(ElementType.TYPE_USE)
public @interface Nullable {}
