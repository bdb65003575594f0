# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# The tag of C++ exceptions, which objects that throw or catch only name.
	.tagtype __cpp_exception i32
	.globl __cpp_exception
__cpp_exception:
